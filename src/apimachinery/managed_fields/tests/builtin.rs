//! Built-in kinds: their schemas say what upstream publishes, and their owners are what a real server writes.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::SameForm;
use crate::managed_fields::{FieldManager, ResetFields, SchemaType, Updater, validate};
use crate::schema::{Facts, ListType, MapType, Schema, Schemas, apply_defaults, complete, zero_value};

const DEPLOYMENT: &str = "io.k8s.api.apps.v1.Deployment";
const POD: &str = "io.k8s.api.core.v1.Pod";

/// Every fact of the table, and no other: what the table leaves out merges as a list or map that nothing is
/// said of.
#[test]
fn lists_and_maps_merge_as_upstream_publishes() {
    let lines = include_str!("published.tsv").lines().filter(|line| !line.starts_with('#'));
    let rows: Vec<(&str, &str, &str)> = lines.map(row).collect();
    assert_eq!(rows.len(), 451);
    let mut published = BTreeMap::new();
    for (definition, field, facts) in rows {
        assert_eq!(published.insert((definition, field), facts), None, "{definition} {field}");
    }
    for name in Schemas::builtin().names().filter(|name| !is_historical(name)) {
        let schema = Schemas::lookup(name).unwrap();
        let fields = schema.fields().into_iter().flat_map(|fields| fields.iter());
        for (field, schema) in fields.chain([("-", schema)]) {
            let wanted = published.remove(&(name, field)).unwrap_or("\t\t\t\t");
            assert_eq!(facts_of(schema), wanted, "{name} {field}");
        }
    }
    assert_eq!(published, BTreeMap::new(), "nothing of that name");
}

/// Definition, field, and the rest of the line.
fn row(line: &str) -> (&str, &str, &str) {
    let mut cells = line.splitn(3, '\t');
    let mut cell = || cells.next().unwrap_or_else(|| panic!("{line}"));
    (cell(), cell(), cell())
}

/// As a line of the table.
fn facts_of(schema: &Schema) -> String {
    let Facts { list_map_keys, patch_strategies, patch_merge_key, .. } = schema.facts();
    let merge_key = patch_merge_key.as_deref().unwrap_or_default();
    let (list_type, map_type) = (list_type_name(schema), map_type_name(schema));
    let (keys, strategies) = (list_map_keys.join(","), patch_strategies.join(","));
    format!("{list_type}\t{keys}\t{map_type}\t{strategies}\t{merge_key}")
}

/// Versions that are served no more and published no more.
fn is_historical(definition: &str) -> bool {
    let of = |version: &str| definition.starts_with(&format!("io.k8s.api.{version}."));
    ["apps.v1beta1", "apps.v1beta2", "extensions.v1beta1", "batch.v1beta1", "batch.v2alpha1"]
        .into_iter()
        .any(of)
}

/// Only what is said of the field or type itself.
fn list_type_name(schema: &Schema) -> &'static str {
    match schema.facts().list_type {
        None => "",
        Some(ListType::Atomic) => "atomic",
        Some(ListType::Set) => "set",
        Some(ListType::Map) => "map",
    }
}

fn map_type_name(schema: &Schema) -> &'static str {
    match schema.facts().map_type {
        None => "",
        Some(MapType::Atomic) => "atomic",
        Some(MapType::Granular) => "granular",
    }
}

#[test]
fn every_keyed_list_has_keys_that_its_elements_have() {
    for name in Schemas::builtin().names() {
        let schema = Schemas::lookup(name).unwrap();
        for (field, schema) in schema.fields().into_iter().flat_map(|fields| fields.iter()) {
            if schema.list_type() == Some(ListType::Map) {
                let facts = schema.facts();
                assert!(!facts.list_map_keys.is_empty(), "{name}.{field}");
                for key in &facts.list_map_keys {
                    assert!(schema.items().unwrap().property(key).is_some(), "{name}.{field}: {key}");
                }
            }
        }
    }
}

/// The sets that a write leaves, by manager.
fn owners(definition: &str, live: Option<&Value>, new: &Value, subresource: &str, reset: &[&str]) -> Value {
    let schema = Schemas::lookup(definition).unwrap();
    let kind = SchemaType::Known(schema);
    let (reset, converter) = (ResetFields::excluding(reset), SameForm(kind));
    let updater = Updater { kind, api_version: "v1", reset: &reset, converter: &converter };
    let now = "2026-01-01T00:00:00Z";
    let manager = FieldManager { updater, gvk: "/v1, Kind=X", subresource, manager: "me", now };
    let empty = || {
        let mut empty = zero_value(schema);
        empty.as_object_mut().unwrap().retain(|name, _| name != "apiVersion" && name != "kind");
        empty
    };
    let mut new = new.clone();
    apply_defaults(schema, &mut new);
    complete(schema, &mut new);
    manager.update(live, empty, &mut new);
    new
}

fn fields(object: &Value, at: usize) -> Value {
    let text = object["metadata"]["managedFields"][at]["fieldsV1"].as_str().unwrap();
    serde_json::from_str(text).unwrap()
}

#[test]
fn a_new_deployment_is_owned_as_a_real_server_has_it() {
    let deployment = json!({"metadata": {"name": "web", "labels": {"app": "web"}}, "spec": {"replicas": 1,
        "selector": {"matchLabels": {"app": "web"}},
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}},
        "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [
            {"name": "nginx", "image": "nginx", "ports": [{"containerPort": 80}]}], "securityContext": {}}}}});
    let expected = json!({
        "f:metadata": {"f:labels": {".": {}, "f:app": {}}},
        "f:spec": {
            "f:replicas": {},
            "f:selector": {},
            "f:strategy": {"f:rollingUpdate": {".": {}, "f:maxSurge": {}, "f:maxUnavailable": {}}, "f:type": {}},
            "f:template": {
                "f:metadata": {"f:labels": {".": {}, "f:app": {}}},
                "f:spec": {
                    "f:containers": {"k:{\"name\":\"nginx\"}": {
                        ".": {}, "f:image": {}, "f:name": {},
                        "f:ports": {".": {}, "k:{\"containerPort\":80,\"protocol\":\"TCP\"}": {
                            ".": {}, "f:containerPort": {}, "f:protocol": {}}},
                        "f:resources": {}}},
                    "f:securityContext": {}}}}});
    assert_eq!(fields(&owners(DEPLOYMENT, None, &deployment, "", &["status"]), 0), expected);
}

#[test]
fn status_has_an_owner_of_its_own() {
    let spec = json!({"containers": [{"name": "a", "image": "b", "resources": {}}]});
    let pod = json!({"metadata": {"name": "web"}, "spec": spec, "status": {}});
    let live = owners(POD, None, &pod, "", &["status"]);
    let mut live = live;
    live["metadata"]["uid"] = json!("u");
    let mut new = live.clone();
    new["status"] = json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]});
    new["spec"]["nodeName"] = json!("ignored");
    let written = owners(POD, Some(&live), &new, "status", &["spec"]);
    let entries = &written["metadata"]["managedFields"];
    assert_eq!(entries[0], live["metadata"]["managedFields"][0]);
    assert_eq!((&entries[1]["subresource"], &entries[1]["operation"]), (&json!("status"), &json!("Update")));
    let status = json!({"f:status": {
        "f:conditions": {".": {}, "k:{\"type\":\"Ready\"}": {
            ".": {}, "f:lastProbeTime": {}, "f:lastTransitionTime": {}, "f:status": {}, "f:type": {}}},
        "f:phase": {}}});
    assert_eq!(fields(&written, 1), status);
}

#[test]
fn what_does_not_fit_is_told_in_upstreams_words() {
    let schema = Schemas::lookup(DEPLOYMENT).unwrap();
    let refused = |object: Value| validate(SchemaType::Known(schema), &object).unwrap_err().to_string();
    let with_container =
        |container: Value| json!({"spec": {"template": {"spec": {"containers": [container]}}}});
    assert_eq!(refused(json!({"spec": {"foo": 1}})), ".spec.foo: field not declared in schema");
    let ports = json!([{"containerPort": 80}, {"containerPort": 80, "protocol": "TCP"}]);
    let container = ".spec.template.spec.containers[name=\"a\"]";
    assert_eq!(
        refused(with_container(json!({"name": "a", "ports": ports}))),
        format!("{container}.ports: duplicate entries for key [containerPort=80,protocol=\"TCP\"]")
    );
    assert_eq!(
        refused(with_container(json!({"name": "a", "image": 5}))),
        format!("{container}.image: expected string, got &value.valueUnstructured{{Value:5}}")
    );
    assert_eq!(
        refused(json!({"spec": {"replicas": "x", "paused": "y", "template": []}})),
        "errors:\n  .spec.paused: expected boolean, got &{y}\n  \
         .spec.replicas: expected numeric (int or float), got string\n  .spec.template: expected map, got &{[]}"
    );
    assert_eq!(
        refused(json!({"metadata": {"finalizers": [{"a": 1}]}})),
        ".metadata.finalizers: element 0: associative list without keys has an element that's a map type"
    );
    // A quantity and a port may be numbers; a key that is always there has its zero.
    assert!(
        validate(SchemaType::Known(schema), &with_container(json!({"resources": {"limits": {"cpu": 1}}})))
            .is_ok()
    );
}

#[test]
fn a_custom_resource_has_the_metadata_of_every_object() {
    let schema = Schema::from_openapi(&json!({"type": "object", "properties": {
        "spec": {"type": "object", "properties": {"size": {"type": "integer"}}}}}));
    let check =
        |object: Value| validate(SchemaType::Custom(&schema), &object).map_err(|error| error.to_string());
    let fits = json!({"apiVersion": "a/v1", "kind": "A", "metadata": {"name": "a"}, "spec": {"size": 1}});
    assert_eq!(check(fits), Ok(()));
    assert_eq!(check(json!({"spec": {"x": 1}})).unwrap_err(), ".spec.x: field not declared in schema");
    assert_eq!(
        check(json!({"metadata": {"x": 1}})).unwrap_err(),
        ".metadata.x: field not declared in schema"
    );
    assert!(validate(SchemaType::Custom(&Schema::FREE), &json!({"x": {"y": [1]}})).is_ok());
}
