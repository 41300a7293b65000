//! The schema of a custom kind as it is published in OpenAPI (`controller/openapi/builder`).

use serde_json::{Map, Value, json};

const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

/// For OpenAPI v2, whose readers know less: no conditions made of schemas, no nulls, and nothing about what
/// unknown fields may stand beside.
pub fn v2(schema: &Value) -> Value {
    if schema["x-kubernetes-preserve-unknown-fields"] == true {
        return json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    }
    let mut schema = schema.clone();
    simplify(&mut schema);
    embedded(&mut schema, "#/definitions/");
    schema
}

/// For OpenAPI v3: as declared.
pub fn v3(schema: &Value) -> Value {
    let mut schema = schema.clone();
    embedded(&mut schema, "#/components/schemas/");
    schema
}

fn simplify(schema: &mut Value) {
    let Value::Object(map) = schema else { return };
    for member in ["allOf", "anyOf", "oneOf", "not", "default", "x-kubernetes-validations", "example"] {
        map.remove(member);
    }
    let flag = |key: &str| map.get(key) == Some(&Value::Bool(true));
    if flag("nullable") {
        for member in ["type", "nullable", "items", "properties", "additionalProperties"] {
            map.remove(member);
        }
    } else if flag("x-kubernetes-preserve-unknown-fields") {
        for member in ["items", "properties", "type"] {
            map.remove(member);
        }
    } else if flag("x-kubernetes-int-or-string") {
        map.remove("type");
    }
    nested(map, &simplify);
}

/// Goes into every schema of a schema.
fn nested(map: &mut Map<String, Value>, change: &dyn Fn(&mut Value)) {
    for member in ["items", "additionalProperties"] {
        if let Some(inner) = map.get_mut(member).filter(|inner| inner.is_object()) {
            change(inner);
        }
    }
    if let Some(Value::Object(properties)) = map.get_mut("properties") {
        properties.values_mut().for_each(change);
    }
}

/// Embedded resources have the type and metadata of resources.
fn embedded(schema: &mut Value, definitions: &str) {
    let Value::Object(map) = schema else { return };
    nested(map, &|inner| embedded(inner, definitions));
    if map.get("x-kubernetes-embedded-resource") != Some(&Value::Bool(true)) {
        return;
    }
    let Some(properties) = map.entry("properties").or_insert_with(|| json!({})).as_object_mut() else {
        return;
    };
    properties.entry("apiVersion").or_insert_with(|| json!({"type": "string"}));
    properties.entry("kind").or_insert_with(|| json!({"type": "string"}));
    properties.insert("metadata".into(), json!({"$ref": format!("{definitions}{OBJECT_META}")}));
}
