//! The definitions that a document's operations lead to.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::ServedResource;
use super::operations::{API_RESOURCE_LIST, DELETE_OPTIONS, PATCH_BODY, STATUS};
use apimachinery::schema::Schemas;

/// Any object: what identifies it is described in the same words for all.
const SOME_OBJECT: &str = "io.k8s.api.core.v1.ConfigMap";
const LIST_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta";
const SELECTABLE_FIELDS: &str = "x-kubernetes-selectable-fields";
const CONVENTIONS: &str =
    "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md";
const WATCH_EVENT: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.WatchEvent";

/// The definitions that `resources` need and all that they refer to, in the form of OpenAPI v2. `served` is
/// everything there is: the options of a delete are a kind of every group.
pub(super) fn collect<'a>(
    resources: impl Iterator<Item = &'a ServedResource>,
    served: &[ServedResource],
    schemas: &Schemas,
    is_v3: bool,
) -> BTreeMap<String, Value> {
    let mut found = BTreeMap::new();
    let mut wanted: Vec<String> = [STATUS, DELETE_OPTIONS, PATCH_BODY].map(str::to_owned).into();
    let mut of_group = None;
    for resource in resources {
        if resource.schema.is_none() {
            of_group = is_v3.then_some((resource.group.as_str(), resource.version.as_str()));
            wanted.extend([API_RESOURCE_LIST, WATCH_EVENT].map(str::to_owned));
        }
        if let Some(schema) = if is_v3 { &resource.schema_v3 } else { &resource.schema } {
            custom(resource, schema, schemas, is_v3, &mut found);
        }
        wanted.push(resource.definition.clone());
        wanted.extend(resource.list_definition.clone());
        wanted.extend(resource.subresources.iter().map(|subresource| subresource.definition.clone()));
    }
    let own: Vec<String> = found.values().flat_map(references).collect();
    wanted.extend(own);
    follow(wanted, schemas, &mut found);
    for (name, kind) in [(DELETE_OPTIONS, "DeleteOptions"), (WATCH_EVENT, "WatchEvent")] {
        if let Some(schema) = found.get_mut(name) {
            schema["x-kubernetes-group-version-kind"] = every_group(served, kind, of_group);
        }
    }
    found
}

/// These definitions, and all that they refer to.
pub(super) fn reached(names: impl Iterator<Item = String>, schemas: &Schemas) -> BTreeMap<String, Value> {
    let mut found = BTreeMap::new();
    follow(names.collect(), schemas, &mut found);
    found
}

fn follow(mut wanted: Vec<String>, schemas: &Schemas, found: &mut BTreeMap<String, Value>) {
    while let Some(name) = wanted.pop() {
        if found.contains_key(&name) {
            continue;
        }
        let Some(schema) = schemas.published(&name) else { continue };
        wanted.extend(references(&schema));
        found.insert(name, schema);
    }
}

/// A kind that belongs to every group and version; the document of one built-in group names only that one
/// and the core.
fn every_group(served: &[ServedResource], kind: &str, own: Option<(&str, &str)>) -> Value {
    let groups: BTreeSet<(&str, &str)> =
        served.iter().map(|resource| (resource.group.as_str(), resource.version.as_str())).collect();
    let groups = groups.into_iter().filter(|of| own.is_none_or(|own| own == *of || *of == ("", "v1")));
    groups.map(|(group, version)| group_version_kind(group, version, kind)).collect()
}

fn group_version_kind(group: &str, version: &str, kind: &str) -> Value {
    json!({"group": group, "kind": kind, "version": version})
}

/// The definitions of a custom resource and of its list.
fn custom(
    resource: &ServedResource,
    schema: &Value,
    schemas: &Schemas,
    is_v3: bool,
    found: &mut BTreeMap<String, Value>,
) {
    let ServedResource { group, version, kind, .. } = resource;
    let mut definition = match schema {
        Value::Object(map) => map.clone(),
        _ => Map::new(),
    };
    definition.insert("type".into(), "object".into());
    // In v2 known properties would make kubectl believe that there are no others: then there are none.
    if is_v3 || definition.contains_key("properties") {
        let properties = definition.entry("properties").or_insert_with(|| json!({}));
        identity(properties, schemas);
    }
    definition
        .insert("x-kubernetes-group-version-kind".into(), json!([group_version_kind(group, version, kind)]));
    let selectable = definition.get(SELECTABLE_FIELDS).cloned();
    found.insert(resource.definition.clone(), Value::Object(definition));
    let (Some(list), Some(list_kind)) = (&resource.list_definition, &resource.list_kind) else { return };
    let items = json!({
        "type": "array",
        "description": format!("List of {}. More info: {CONVENTIONS}", resource.plural),
        "items": {"$ref": format!("#/definitions/{}", resource.definition)},
    });
    let mut properties = json!({"items": items});
    identity(&mut properties, schemas);
    properties["metadata"] = json!({
        "description": format!("Standard list metadata. More info: {CONVENTIONS}#types-kinds"),
        "$ref": format!("#/definitions/{LIST_META}"),
    });
    let mut schema = json!({
        "description": format!("{list_kind} is a list of {kind}"),
        "type": "object",
        "required": ["items"],
        "properties": properties,
        "x-kubernetes-group-version-kind": [group_version_kind(group, version, list_kind)],
    });
    if let Some(selectable) = selectable {
        schema[SELECTABLE_FIELDS] = selectable;
    }
    found.insert(list.clone(), schema);
}

/// The fields that say what an object is.
fn identity(properties: &mut Value, schemas: &Schemas) {
    let known = schemas.published(SOME_OBJECT).expect("it is built in");
    for name in ["apiVersion", "kind", "metadata"] {
        properties[name] = known["properties"][name].clone();
    }
}

/// The names of the definitions that a schema refers to.
pub(super) fn references(schema: &Value) -> Vec<String> {
    let mut names = Vec::new();
    gather(schema, &mut names);
    names
}

fn gather(value: &Value, names: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            if let Some(name) = map.get("$ref").and_then(Value::as_str) {
                names.extend(name.rsplit('/').next().map(str::to_owned));
            }
            map.values().for_each(|value| gather(value, names));
        }
        Value::Array(list) => list.iter().for_each(|value| gather(value, names)),
        _ => {}
    }
}
