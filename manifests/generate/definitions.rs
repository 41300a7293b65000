//! `manifests/schemas/definitions.json`: the published types, from `api/openapi-spec/swagger.json`.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::{Map, Value};

use crate::checkout::{Checkout, Problem};

/// Where they stand in our tree.
pub(crate) const PATH: &str = "manifests/schemas/definitions.json";

/// The document with all definitions in it.
pub(crate) const SWAGGER: &str = "api/openapi-spec/swagger.json";

/// What has a table of its own, where it is easier to read and to compare.
const IN_TABLES: [&str; 7] = [
    "default",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-list-type",
    "x-kubernetes-map-type",
    "x-kubernetes-patch-merge-key",
    "x-kubernetes-patch-strategy",
    "x-kubernetes-unions",
];

/// The groups, versions and kinds of a definition.
const KINDS: &str = "x-kubernetes-group-version-kind";

/// Definitions by name.
pub(crate) type Definitions = BTreeMap<String, Value>;

/// # Errors
/// No published document.
pub(crate) fn make(checkout: &Checkout, _before: &str) -> Result<String, Problem> {
    let mut all = published(checkout)?;
    all.values_mut().for_each(tidy);
    all.values_mut().for_each(forget_groups);
    Ok(render(&all))
}

/// The definitions as upstream publishes them.
///
/// # Errors
/// No published document, or one without definitions.
pub(crate) fn published(checkout: &Checkout) -> Result<Definitions, Problem> {
    let document = checkout.json(SWAGGER)?;
    let all = document["definitions"].as_object();
    let all = all.ok_or_else(|| Problem::bad(SWAGGER, "has no definitions"))?;
    Ok(all.iter().map(|(name, definition)| (name.clone(), definition.clone())).collect())
}

/// The definitions of our tree, which are new when the checkout has them.
///
/// # Errors
/// A file that is not there or no JSON.
pub(crate) fn own(checkout: &Checkout) -> Result<Definitions, Problem> {
    match published(checkout) {
        Err(Problem::Missing(_)) => {
            let text = checkout.own(PATH)?;
            serde_json::from_str(&text).map_err(|error| Problem::bad(PATH, error.to_string()))
        }
        other => other,
    }
}

/// Takes away what the tables have; what is required is a set, and stands sorted.
fn tidy(schema: &mut Value) {
    let Value::Object(map) = schema else { return };
    map.retain(|key, _| !IN_TABLES.contains(&key.as_str()));
    if let Some(Value::Array(required)) = map.get_mut("required") {
        required.sort_by(|one, other| one.as_str().cmp(&other.as_str()));
    }
    for nested in ["items", "additionalProperties"] {
        if let Some(nested) = map.get_mut(nested) {
            tidy(nested);
        }
    }
    if let Some(Value::Object(properties)) = map.get_mut("properties") {
        properties.values_mut().for_each(tidy);
    }
}

/// What belongs to every group, such as the options of a delete, is told of the groups that we serve.
fn forget_groups(definition: &mut Value) {
    if definition[KINDS].as_array().is_some_and(|kinds| kinds.len() > 1) {
        definition.as_object_mut().map(|map| map.remove(KINDS));
    }
}

/// One line a field, so that a review sees which changed.
pub(crate) fn render(definitions: &Definitions) -> String {
    let blocks: Vec<String> = definitions
        .iter()
        .map(|(name, definition)| format!("\n{:?}: {{{}\n}}", name, block(definition)))
        .collect();
    format!("{{{}\n}}\n", blocks.join(","))
}

fn block(definition: &Value) -> String {
    let keys = definition.as_object().into_iter().flatten().map(|(key, value)| match (key.as_str(), value) {
        ("properties", Value::Object(fields)) => format!("\n  \"properties\": {{{}\n  }}", lines(fields)),
        _ => format!("\n  {key:?}: {value}"),
    });
    keys.collect::<Vec<_>>().join(",")
}

fn lines(fields: &Map<String, Value>) -> String {
    let mut text = String::new();
    for (number, (name, schema)) in fields.iter().enumerate() {
        let comma = if number == 0 { "" } else { "," };
        let _ = write!(text, "{comma}\n    {name:?}: {schema}");
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn definitions_stand_one_field_a_line_and_read_back() {
        let mut schema = json!({
            "type": "object", "required": ["b", "a"],
            "properties": {"b": {"type": "array", "items": {"type": "string", "default": ""},
                                 "x-kubernetes-list-type": "atomic"}, "a": {"type": "string"}},
        });
        tidy(&mut schema);
        let text = render(&BTreeMap::from([("io.k8s.T".to_owned(), schema.clone())]));
        assert_eq!(
            text,
            "{\n\"io.k8s.T\": {\n  \"properties\": {\n    \"a\": {\"type\":\"string\"},\n    \
             \"b\": {\"items\":{\"type\":\"string\"},\"type\":\"array\"}\n  },\n  \
             \"required\": [\"a\",\"b\"],\n  \"type\": \"object\"\n}\n}\n"
        );
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap()["io.k8s.T"], schema);
    }
}
