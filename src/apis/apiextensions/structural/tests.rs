//! Objects against schemas.

use serde_json::json;

use super::Structural;
use apimachinery::field_error::FieldErrors;

fn errors(schema: serde_json::Value, value: serde_json::Value) -> String {
    let mut found = FieldErrors::default();
    Structural::read(&schema, false).validate_value("spec", &value, None, &mut found);
    found.to_string()
}

#[test]
fn values_are_refused_in_upstreams_words() {
    let cases = [
        (json!({"type": "number", "multipleOf": 0.5}), json!(0.7), "should be a multiple of 0.5"),
        (
            json!({"type": "number", "minimum": 1, "exclusiveMinimum": true}),
            json!(1),
            "should be greater than 1",
        ),
        (
            json!({"type": "string", "minLength": 2}),
            json!("a"),
            "spec in body should be at least 2 chars long",
        ),
        (json!({"type": "string", "maxLength": 2}), json!("abc"), "Too long: may not be more than 2 bytes"),
        (json!({"type": "string"}), json!(null), "spec in body must be of type string: \"null\""),
        (
            json!({"type": "array", "items": {"type": "object", "required": ["a"]}}),
            json!([{}]),
            "spec[0].a: Required value",
        ),
        (json!({"type": "object", "minProperties": 1}), json!({}), "should have at least 1 properties"),
        (
            json!({"type": "string", "not": {"enum": ["a"]}}),
            json!("a"),
            "\"spec\" must not validate the schema (not)",
        ),
        (json!({"type": "string", "format": "ipv4"}), json!("x"), "spec in body must be of type ipv4: \"x\""),
        (json!({"type": "integer"}), json!(1.5), "spec in body must be of type integer: \"number\""),
    ];
    for (schema, value, wanted) in cases {
        let found = errors(schema.clone(), value);
        assert!(found.contains(wanted), "{schema}: {found}");
    }
    assert_eq!(errors(json!({"type": "integer"}), json!(2.0)), "[]");
    assert_eq!(errors(json!({"type": "string", "nullable": true}), json!(null)), "[]");
}

#[test]
fn unknown_fields_go_and_defaults_come() {
    let schema = json!({"type": "object", "properties": {
        "a": {"type": "object", "default": {}, "properties": {"b": {"type": "integer", "default": 1}}},
        "l": {"type": "array", "items": {"type": "object", "properties": {"x": {"type": "string"}}}},
        "m": {"type": "object", "additionalProperties": {"type": "object", "properties": {"y": {"type": "string"}}}},
    }});
    let of = Structural::read(&schema, true);
    let mut object =
        json!({"metadata": {"z": 1}, "l": [{"x": "1", "u": 2}], "m": {"k": {"y": "", "v": 1}}, "w": {}});
    assert_eq!(of.prune(&mut object), ["l[0].u", "m.k.v", "w"]);
    of.apply_defaults(&mut object).unwrap();
    let wanted = json!({"metadata": {"z": 1}, "a": {"b": 1}, "l": [{"x": "1"}], "m": {"k": {"y": ""}}});
    assert_eq!(object, wanted);
}

#[test]
fn defaults_end_before_an_object_is_too_large_to_be_stored() {
    let long = "x".repeat(500_000);
    let schema = json!({"type": "object", "properties": {"l": {"type": "array", "items": {
        "type": "object", "properties": {"t": {"type": "string", "default": long}}}}}});
    let of = Structural::read(&schema, true);
    for (count, filled) in [(3, 3), (10_000, 3)] {
        let mut object = json!({"l": vec![json!({}); count]});
        let is_refused = of.apply_defaults(&mut object).is_err();
        assert_eq!(is_refused, count > filled);
        let with_default = |item: &&serde_json::Value| item.get("t").is_some();
        assert_eq!(object["l"].as_array().unwrap().iter().filter(with_default).count(), filled);
    }
}
