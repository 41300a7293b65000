//! Operations and definitions as swagger 2.0: one document for everything.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::ServedResource;
use super::definitions;
use super::operation::{Body, PathItem, PathOperation};
use super::operations::{DELETE_OPTIONS, PATCH_BODY, paths};
use super::parameters::Parameter;
use super::roots::roots;
use apimachinery::schema::Schemas;

pub(super) fn document(served: &[ServedResource], schemas: &Schemas, release: &str) -> Value {
    let groups: BTreeSet<(&str, &str)> =
        served.iter().map(|resource| (resource.group.as_str(), resource.version.as_str())).collect();
    let mut paths: Map<String, Value> = groups
        .into_iter()
        .flat_map(|(group, version)| paths(group, version, served))
        .chain(roots(served).into_iter().map(|root| root.item))
        .map(|item| (item.path.clone(), path_item(&item)))
        .collect();
    let mut definitions = definitions::collect(served.iter(), served, schemas, false);
    let answers = roots(served).into_iter().flat_map(|root| root.item.operations);
    definitions.extend(definitions::reached(answers.map(|operation| operation.answer), schemas));
    definitions.values_mut().for_each(without_defaults);
    let parameters = shared_parameters(&mut paths);
    json!({
        "swagger": "2.0",
        "info": {"title": "Kubernetes", "version": release},
        "paths": paths,
        "definitions": definitions,
        "parameters": parameters,
        "securityDefinitions": {"BearerToken": {
            "description": "Bearer Token authentication", "type": "apiKey", "name": "authorization", "in": "header",
        }},
        "security": [{"BearerToken": []}],
    })
}

fn path_item(item: &PathItem) -> Value {
    let mut value: Map<String, Value> =
        item.operations.iter().map(|own| (own.method.to_owned(), operation(item, own))).collect();
    let placeholders = item.placeholders.iter().map(|(name, description)| {
        json!({
            "name": name, "in": "path", "required": true, "type": "string", "uniqueItems": true,
            "description": description,
        })
    });
    let parameters = sorted(placeholders.chain(item.common().into_iter().map(query)));
    if !parameters.is_empty() {
        value.insert("parameters".into(), parameters.into());
    }
    Value::Object(value)
}

/// Parameters by their names.
pub(super) fn sorted(parameters: impl Iterator<Item = Value>) -> Vec<Value> {
    let mut parameters: Vec<Value> = parameters.collect();
    let key = |parameter: &Value| ["name", "in"].map(|key| parameter[key].as_str().map(str::to_owned));
    parameters.sort_by_cached_key(key);
    parameters
}

fn operation(item: &PathItem, operation: &PathOperation) -> Value {
    let body = operation.body.as_ref().map(body);
    let parameters = sorted(body.into_iter().chain(item.own(operation).into_iter().map(query)));
    let mut value = json!({
        "consumes": operation.consumes(),
        "description": operation.description,
        "operationId": operation.id,
        "produces": operation.produces(),
        "responses": responses(operation),
        "schemes": ["https"],
        "tags": [operation.tag],
    });
    if !parameters.is_empty() {
        value["parameters"] = parameters.into();
    }
    if let Some([group, version, kind]) = &operation.kind {
        value["x-kubernetes-action"] = operation.action.into();
        value["x-kubernetes-group-version-kind"] = json!({"group": group, "kind": kind, "version": version});
    }
    value
}

fn body(body: &Body) -> Value {
    let (definition, required) = match body {
        Body::Object(definition) => (definition.as_str(), true),
        Body::DeleteOptions => (DELETE_OPTIONS, false),
        Body::Patch { .. } => (PATCH_BODY, true),
    };
    let mut value = json!({"name": "body", "in": "body", "schema": reference(definition)});
    if required {
        value["required"] = true.into();
    }
    value
}

fn responses(operation: &PathOperation) -> Value {
    let schema = match operation.answer.as_str() {
        "" => json!({"type": "string"}),
        definition => reference(definition),
    };
    let mut responses: Map<String, Value> = operation
        .codes
        .iter()
        .map(|code| ((*code).to_owned(), json!({"description": meaning(code), "schema": schema})))
        .collect();
    responses.insert("401".into(), json!({"description": meaning("401")}));
    Value::Object(responses)
}

/// What a response's code says.
pub(super) fn meaning(code: &str) -> &'static str {
    match code {
        "200" => "OK",
        "201" => "Created",
        "202" => "Accepted",
        _ => "Unauthorized",
    }
}

fn query(parameter: &Parameter) -> Value {
    json!({
        "name": parameter.name, "in": "query", "type": parameter.kind, "uniqueItems": true,
        "description": parameter.description,
    })
}

fn reference(definition: &str) -> Value {
    json!({"$ref": format!("#/definitions/{definition}")})
}

/// Parameters are said once, and referred to by their name and a hash
/// (`kube-openapi/pkg/builder/parameters`).
fn shared_parameters(paths: &mut Map<String, Value>) -> Map<String, Value> {
    let mut shared = Map::new();
    for item in paths.values_mut().filter_map(Value::as_object_mut) {
        for (key, own) in item {
            let list = if key == "parameters" { Some(own) } else { own.get_mut("parameters") };
            let all = list.and_then(Value::as_array_mut).into_iter().flatten();
            for parameter in all.filter(|parameter| is_shared(parameter)) {
                let hash = super::hash(parameter.to_string().as_bytes());
                let name = format!("{}-{}", parameter["name"].as_str().unwrap_or("param"), &hash[..8]);
                let reference = json!({"$ref": format!("#/parameters/{name}")});
                shared.insert(name, std::mem::replace(parameter, reference));
            }
        }
    }
    shared
}

/// Not what tells of a kind, nor what older clients look for in an operation itself.
fn is_shared(parameter: &Value) -> bool {
    let definition = parameter["schema"]["$ref"].as_str().unwrap_or_default();
    match parameter["name"].as_str() {
        Some("name" | "fieldValidation" | "dryRun") => false,
        Some("body") => definition.starts_with("#/definitions/io.k8s.apimachinery"),
        _ => true,
    }
}

/// The definitions of swagger 2.0 are published without defaults (`PruneDefaults`).
fn without_defaults(schema: &mut Value) {
    let Value::Object(map) = schema else { return };
    map.remove("default");
    for nested in ["items", "additionalProperties"] {
        if let Some(nested) = map.get_mut(nested) {
            without_defaults(nested);
        }
    }
    if let Some(Value::Object(properties)) = map.get_mut("properties") {
        properties.values_mut().for_each(without_defaults);
    }
}
