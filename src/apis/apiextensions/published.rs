//! The schema of a custom kind as it is published in OpenAPI (`controller/openapi/builder`).

use serde_json::{Map, Value, json};

const API_VERSION: &str = "apiVersion defines the versioned schema of this representation of an object. More info: \
https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#resources";
const KIND: &str = "kind is a string value representing the type of this object. In CamelCase. More info: \
https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds";
const METADATA: &str = "Standard object's metadata. More info: \
https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata";
const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

/// For OpenAPI v2, whose readers know less: no conditions made of schemas, no nulls, and nothing about what
/// unknown fields may stand beside. An object of which any field may be unknown has no `properties` at all:
/// kubectl would believe that there are no others.
pub fn v2(schema: &Value) -> Value {
    if schema["x-kubernetes-preserve-unknown-fields"] == true {
        return json!({"type": "object"});
    }
    let mut schema = schema.clone();
    simplify(&mut schema);
    if let Some(map) = schema.as_object_mut() {
        map.entry("properties").or_insert_with(|| json!({}));
    }
    let reference = format!("#/definitions/{OBJECT_META}");
    embedded(&mut schema, &json!({"$ref": reference, "description": METADATA}));
    schema
}

/// For OpenAPI v3: as declared.
pub fn v3(schema: &Value) -> Value {
    let mut schema = schema.clone();
    unfold(&mut schema);
    let reference = format!("#/components/schemas/{OBJECT_META}");
    embedded(&mut schema, &json!({"allOf": [{"$ref": reference}], "description": METADATA}));
    schema
}

fn simplify(schema: &mut Value) {
    let Value::Object(map) = schema else { return };
    let flag = |map: &Map<String, Value>, key: &str| map.get(key) == Some(&Value::Bool(true));
    let remove = |map: &mut Map<String, Value>, members: &[&str]| {
        map.retain(|member, _| !members.contains(&member.as_str()));
    };
    remove(map, &["allOf", "anyOf", "oneOf", "not"]);
    if flag(map, "nullable") {
        remove(map, &["type", "nullable", "items", "properties"]);
    }
    if flag(map, "x-kubernetes-preserve-unknown-fields") {
        remove(map, &["items", "properties"]);
    }
    let is = |map: &Map<String, Value>, wanted: &str| map.get("type").is_some_and(|given| given == wanted);
    let has_no_items = is(map, "array") && !map.contains_key("items");
    if has_no_items || (is(map, "object") && flag(map, "x-kubernetes-preserve-unknown-fields")) {
        map.remove("type");
    }
    allow_nulls(map);
    nested(map, &simplify);
}

/// Nobody can ask for what may be null.
fn allow_nulls(map: &mut Map<String, Value>) {
    let may_be_null = |schema: &Value| schema["nullable"] == true;
    let properties = map.get("properties").and_then(Value::as_object).into_iter().flatten();
    let nulls: Vec<String> =
        properties.filter(|(_, schema)| may_be_null(schema)).map(|(name, _)| name.clone()).collect();
    if let Some(required) = map.get_mut("required").and_then(Value::as_array_mut) {
        required.retain(|name| !nulls.iter().any(|null| name == null));
    }
    let is_bare = map.get("required").is_some_and(|required| required.as_array().is_some_and(Vec::is_empty));
    if is_bare || map.get("additionalProperties").is_some_and(may_be_null) {
        map.remove("required");
    }
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

/// A number or a text is said so (`Unfold`), beside other conditions too.
fn unfold(schema: &mut Value) {
    let Value::Object(map) = schema else { return };
    nested(map, &unfold);
    let either = json!([{"type": "integer"}, {"type": "string"}]);
    let says_so =
        map.get("anyOf") == Some(&either) || map.get("allOf").is_some_and(|all| all[0]["anyOf"] == either);
    if map.get("x-kubernetes-int-or-string") != Some(&Value::Bool(true)) || says_so {
        return;
    }
    if !map.contains_key("anyOf") {
        map.insert("anyOf".into(), either);
        return;
    }
    let all = map.entry("allOf").or_insert_with(|| json!([]));
    if let Some(all) = all.as_array_mut() {
        all.insert(0, json!({"anyOf": either}));
    }
}

/// Embedded resources have the type and metadata of resources.
fn embedded(schema: &mut Value, metadata: &Value) {
    let Value::Object(map) = schema else { return };
    nested(map, &|inner| embedded(inner, metadata));
    let flag = |key: &str| map.get(key) == Some(&Value::Bool(true));
    // In v2 these would make kubectl refuse unknown fields.
    let takes_any = flag("x-kubernetes-preserve-unknown-fields") && metadata.get("$ref").is_some();
    if takes_any || !flag("x-kubernetes-embedded-resource") {
        return;
    }
    let properties = map.entry("properties").or_insert_with(|| json!({}));
    properties["apiVersion"] = json!({"type": "string", "description": API_VERSION});
    properties["kind"] = json!({"type": "string", "description": KIND});
    properties["metadata"] = metadata.clone();
    let required = map.entry("required").or_insert_with(|| json!([]));
    if let Some(required) = required.as_array_mut() {
        let missing = ["kind", "apiVersion"].map(Value::from).into_iter();
        let missing: Vec<Value> = missing.filter(|name| !required.contains(name)).collect();
        required.extend(missing);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_old_form_is_pruned_as_upstream_prunes_it() {
        const FREE: &str = "x-kubernetes-preserve-unknown-fields";
        const EITHER: &str = "x-kubernetes-int-or-string";
        let leaf = json!({"type": "string"});
        for (declared, published) in [
            (json!({"type": "array", "items": leaf, "nullable": true, "title": "t"}), json!({"title": "t"})),
            (json!({"type": "array", FREE: true, "items": leaf}), json!({FREE: true})),
            (json!({"type": "object", FREE: true, "properties": {"a": leaf}}), json!({FREE: true})),
            (
                json!({EITHER: true, "anyOf": [{"minimum": 1}], "not": {"enum": [1]}, "example": 5}),
                json!({EITHER: true, "example": 5}),
            ),
            (
                json!({"type": "object", "required": ["a", "b"], "oneOf": [{}], "allOf": [{}], "properties":
                    {"a": leaf, "b": {"type": "integer", "nullable": true}}}),
                json!({"type": "object", "required": ["a"], "properties": {"a": leaf, "b": {}}}),
            ),
            (
                json!({"type": "object", "required": ["a"], "additionalProperties": {"type": "string", "nullable": true}}),
                json!({"type": "object", "additionalProperties": {}}),
            ),
            (
                json!({"type": "object", FREE: true, "x-kubernetes-embedded-resource": true}),
                json!({FREE: true, "x-kubernetes-embedded-resource": true}),
            ),
        ] {
            let root = json!({"type": "object", "properties": {"field": declared}});
            assert_eq!(v2(&root)["properties"]["field"], published, "{declared}");
        }
        assert_eq!(v2(&json!({"type": "object", FREE: true, "description": "d"})), json!({"type": "object"}));
        assert_eq!(v2(&json!({"type": "object"})), json!({"type": "object", "properties": {}}));
    }

    #[test]
    fn what_is_a_number_or_a_text_says_so_beside_other_conditions() {
        const EITHER: &str = "x-kubernetes-int-or-string";
        let either = json!([{"type": "integer"}, {"type": "string"}]);
        for (declared, published) in [
            (json!({EITHER: true}), json!({EITHER: true, "anyOf": either})),
            (json!({EITHER: true, "anyOf": either}), json!({EITHER: true, "anyOf": either})),
            (
                json!({EITHER: true, "allOf": [{"anyOf": either}, {"minimum": 1}]}),
                json!({EITHER: true, "allOf": [{"anyOf": either}, {"minimum": 1}]}),
            ),
            (
                json!({EITHER: true, "allOf": [{"minimum": 1}]}),
                json!({EITHER: true, "anyOf": either, "allOf": [{"minimum": 1}]}),
            ),
            (
                json!({EITHER: true, "anyOf": [{"minimum": 1}]}),
                json!({EITHER: true, "anyOf": [{"minimum": 1}], "allOf": [{"anyOf": either}]}),
            ),
        ] {
            let root = json!({"type": "object", "properties": {"field": declared}});
            assert_eq!(v3(&root)["properties"]["field"], published);
        }
    }
}
