//! Swagger 2.0 as OpenAPI 3.0 (`kube-openapi/pkg/openapiconv`), for servers that publish only the former.
//! What the older form cannot say is lost.

use serde_json::{Map, Value, json};

use super::v3::component;

/// What the same key means in both.
const OF_OPERATION: [&str; 6] =
    ["description", "externalDocs", "tags", "summary", "deprecated", "operationId"];
const OF_PARAMETER: [&str; 6] = ["$ref", "name", "description", "in", "required", "allowEmptyValue"];
const OF_SCHEME: [&str; 4] = ["description", "type", "name", "in"];

pub(super) fn document(v2: &Value) -> Value {
    let mut components = Map::new();
    if v2["definitions"].is_object() {
        components.insert("schemas".into(), each(&v2["definitions"], schema));
    }
    if v2["securityDefinitions"].is_object() {
        let scheme = |own: &Value| picked(own, &OF_SCHEME);
        components.insert("securitySchemes".into(), each(&v2["securityDefinitions"], scheme));
    }
    if v2["responses"].is_object() {
        let of_document = |own: &Value| response(own, &v2["produces"]);
        components.insert("responses".into(), each(&v2["responses"], of_document));
    }
    let mut v3 = json!({
        "openapi": "3.0.0",
        "info": v2["info"],
        "paths": each(&v2["paths"], path_item),
        "components": components,
    });
    if let Some(docs) = v2.get("externalDocs") {
        v3["externalDocs"] = docs.clone();
    }
    v3
}

fn each(map: &Value, convert: impl Fn(&Value) -> Value) -> Value {
    let members = map.as_object().into_iter().flatten();
    Value::Object(members.map(|(name, own)| (name.clone(), convert(own))).collect())
}

/// These keys and all extensions.
fn picked(value: &Value, keys: &[&str]) -> Value {
    let members = value.as_object().into_iter().flatten();
    let wanted = members.filter(|(name, _)| name.starts_with("x-") || keys.contains(&name.as_str()));
    Value::Object(wanted.map(|(name, own)| (name.clone(), own.clone())).collect())
}

fn schema(v2: &Value) -> Value {
    component(v2.clone(), None)
}

fn path_item(v2: &Value) -> Value {
    let mut item = picked(v2, &["$ref"]);
    for method in ["get", "put", "post", "delete", "options", "head", "patch"] {
        if let Some(own) = v2.get(method) {
            item[method] = operation(own);
        }
    }
    if let Some(own) = v2["parameters"].as_array() {
        item["parameters"] = own.iter().map(parameter).collect();
    }
    item
}

fn operation(v2: &Value) -> Value {
    let mut operation = picked(v2, &OF_OPERATION);
    let is_body = |own: &&Value| own["name"] == "body" && own["schema"].is_object();
    let (bodies, others): (Vec<&Value>, Vec<&Value>) =
        v2["parameters"].as_array().into_iter().flatten().partition(is_body);
    if let Some(body) = bodies.first() {
        operation["requestBody"] = json!({"content": content(&body["schema"], &v2["consumes"])});
    }
    if !others.is_empty() {
        operation["parameters"] = others.into_iter().map(parameter).collect();
    }
    operation["responses"] = each(&v2["responses"], |own| response(own, &v2["produces"]));
    operation
}

fn content(v2: &Value, media_types: &Value) -> Value {
    let names = media_types.as_array().into_iter().flatten().filter_map(Value::as_str);
    let content = names.map(|name| (name.to_owned(), json!({"schema": schema(v2)})));
    Value::Object(content.collect())
}

fn response(v2: &Value, produces: &Value) -> Value {
    let mut response = referring(picked(v2, &["$ref", "description"]), "responses");
    if v2["schema"].is_object() && produces.is_array() {
        response["content"] = content(&v2["schema"], produces);
    }
    response
}

fn parameter(v2: &Value) -> Value {
    let mut parameter = referring(picked(v2, &OF_PARAMETER), "parameters");
    let plain = || picked(v2, &["type", "format", "uniqueItems"]);
    if parameter.get("$ref").is_none() {
        parameter["schema"] = v2.get("schema").map_or_else(plain, schema);
    }
    parameter
}

fn referring(mut value: Value, section: &str) -> Value {
    if let Some(Value::String(reference)) = value.get_mut("$ref") {
        *reference = reference.replacen(&format!("#/{section}/"), &format!("#/components/{section}/"), 1);
    }
    value
}
