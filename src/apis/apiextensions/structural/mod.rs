//! Structural schemas (`apiextensions-apiserver/pkg/apiserver/schema`): what a version of a custom kind
//! knows of its objects, read once from `openAPIV3Schema` and then walked by pruning, defaulting and
//! validation.

mod compiled_rule;
mod defaults;
mod embedded;
mod formats;
mod lists;
mod prune;
mod quantifiers;
mod rules;
mod value_pattern;
mod values;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde_json::Value;

pub use compiled_rule::{CompiledRule, environment};
pub use value_pattern::ValuePattern;

use compiled_rule::compile_rules;

/// The schema of one value.
#[derive(Debug, Default)]
pub struct Structural {
    /// `type`; empty where none is said.
    pub type_name: String,
    /// `format`
    pub format: String,
    /// `nullable`
    pub nullable: bool,
    /// `x-kubernetes-int-or-string`
    pub int_or_string: bool,
    /// `x-kubernetes-preserve-unknown-fields`
    pub preserve_unknown_fields: bool,
    /// `x-kubernetes-embedded-resource`
    pub embedded_resource: bool,
    /// `properties`
    pub properties: BTreeMap<String, Structural>,
    /// `additionalProperties` that is a schema.
    pub additional: Option<Box<Structural>>,
    /// `additionalProperties: true`
    pub additional_allowed: bool,
    /// `items`
    pub items: Option<Box<Structural>>,
    /// `default`
    pub default: Option<Value>,
    /// `x-kubernetes-list-type`; empty where none is said.
    pub list_type: String,
    /// `x-kubernetes-list-map-keys`
    pub list_map_keys: Vec<String>,
    /// `x-kubernetes-map-type`; empty where none is said.
    pub map_type: String,
    /// `required`
    pub required: Vec<String>,
    /// `enum`
    pub enumeration: Vec<Value>,
    /// Bounds and patterns.
    pub bounds: Bounds,
    /// `allOf`, `anyOf`, `oneOf`, `not`.
    pub quantifiers: Quantifiers,
    /// `x-kubernetes-validations`, compiled.
    pub rules: Vec<CompiledRule>,
    /// The JSON it was read from, where rules need it.
    pub source: Option<Value>,
    /// Whether anything in it has rules.
    has_rules: bool,
}

/// What a value must keep within.
#[derive(Debug, Default)]
pub struct Bounds {
    pub(super) minimum: Option<f64>,
    pub(super) exclusive_minimum: bool,
    pub(super) maximum: Option<f64>,
    pub(super) exclusive_maximum: bool,
    pub(super) multiple_of: Option<f64>,
    pub(super) min_length: Option<u64>,
    pub(super) max_length: Option<u64>,
    pub(super) pattern: Option<ValuePattern>,
    pub(super) min_items: Option<u64>,
    pub(super) max_items: Option<u64>,
    pub(super) unique_items: bool,
    pub(super) min_properties: Option<u64>,
    pub(super) max_properties: Option<u64>,
}

/// Conditions made of schemas.
#[derive(Debug, Default)]
pub struct Quantifiers {
    pub(super) all_of: Vec<Structural>,
    pub(super) any_of: Vec<Structural>,
    pub(super) one_of: Vec<Structural>,
    pub(super) not: Option<Box<Structural>>,
}

impl Structural {
    /// Reads a schema; what it cannot read is left out, because validation has had its say before. Rules are
    /// compiled where the schema is one of a resource.
    pub fn read(schema: &Value, is_resource: bool) -> Structural {
        let flag = |key: &str| schema[key].as_bool().unwrap_or(false);
        let text = |key: &str| schema[key].as_str().unwrap_or_default().to_owned();
        let nested = |schema: &Value| Structural::read(schema, is_embedded(schema));
        let additional = schema.get("additionalProperties");
        let has_rules = schema["x-kubernetes-validations"].as_array().is_some_and(|rules| !rules.is_empty());
        let mut read = Structural {
            type_name: text("type"),
            format: formats::checked(&text("type"), &text("format")),
            nullable: flag("nullable"),
            int_or_string: flag("x-kubernetes-int-or-string"),
            preserve_unknown_fields: flag("x-kubernetes-preserve-unknown-fields"),
            embedded_resource: is_embedded(schema),
            properties: members(schema, "properties").map(|(name, of)| (name.clone(), nested(of))).collect(),
            additional: additional.filter(|of| of.is_object()).map(|of| Box::new(nested(of))),
            additional_allowed: additional == Some(&Value::Bool(true)),
            items: schema.get("items").filter(|of| of.is_object()).map(|of| Box::new(nested(of))),
            default: schema.get("default").cloned(),
            list_type: text("x-kubernetes-list-type"),
            list_map_keys: texts(schema, "x-kubernetes-list-map-keys"),
            map_type: text("x-kubernetes-map-type"),
            required: texts(schema, "required"),
            enumeration: schema["enum"].as_array().cloned().unwrap_or_default(),
            bounds: Bounds::read(schema),
            quantifiers: Quantifiers::read(schema),
            rules: if has_rules { compile_rules(schema, is_resource) } else { vec![] },
            source: has_rules.then(|| schema.clone()),
            has_rules: false,
        };
        read.has_rules = has_rules
            || read.children().any(Structural::has_rules)
            || read.quantifiers.all_of.iter().any(Structural::has_rules);
        read
    }

    /// Whether anything in it has a default.
    pub fn has_defaults(&self) -> bool {
        self.default.is_some() || self.children().any(Structural::has_defaults)
    }

    /// Whether anything in it has rules.
    pub fn has_rules(&self) -> bool {
        self.has_rules
    }

    fn children(&self) -> impl Iterator<Item = &Structural> {
        let nested = [&self.additional, &self.items].into_iter().flatten().map(|of| &**of);
        self.properties.values().chain(nested)
    }

    /// The schema of a member of an object.
    pub fn member(&self, name: &str) -> Option<&Structural> {
        self.properties.get(name).or(self.additional.as_deref())
    }

    /// Whether a null of it is no value at all.
    fn drops(&self, value: &Value) -> bool {
        value.is_null() && !self.nullable
    }
}

fn is_embedded(schema: &Value) -> bool {
    schema["x-kubernetes-embedded-resource"].as_bool().unwrap_or(false)
}

fn members<'a>(schema: &'a Value, key: &str) -> impl Iterator<Item = (&'a String, &'a Value)> {
    schema[key].as_object().into_iter().flatten()
}

fn texts(schema: &Value, key: &str) -> Vec<String> {
    let list = schema[key].as_array().into_iter().flatten();
    list.filter_map(|text| text.as_str().map(str::to_owned)).collect()
}

impl Bounds {
    fn read(schema: &Value) -> Bounds {
        let flag = |key: &str| schema[key].as_bool().unwrap_or(false);
        let number = |key: &str| schema[key].as_f64();
        let count = |key: &str| schema[key].as_u64();
        Bounds {
            minimum: number("minimum"),
            exclusive_minimum: flag("exclusiveMinimum"),
            maximum: number("maximum"),
            exclusive_maximum: flag("exclusiveMaximum"),
            multiple_of: number("multipleOf"),
            min_length: count("minLength"),
            max_length: count("maxLength"),
            pattern: schema["pattern"].as_str().and_then(|pattern| ValuePattern::read(pattern).ok()),
            min_items: count("minItems"),
            max_items: count("maxItems"),
            unique_items: flag("uniqueItems"),
            min_properties: count("minProperties"),
            max_properties: count("maxProperties"),
        }
    }
}

impl Quantifiers {
    fn read(schema: &Value) -> Quantifiers {
        let list = |key: &str| {
            let list = schema[key].as_array().into_iter().flatten();
            list.map(|of| Structural::read(of, false)).collect()
        };
        let not = schema.get("not").filter(|of| of.is_object());
        Quantifiers {
            all_of: list("allOf"),
            any_of: list("anyOf"),
            one_of: list("oneOf"),
            not: not.map(|of| Box::new(Structural::read(of, false))),
        }
    }
}

/// The path of a member: the root is empty.
pub(super) fn child(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

/// A path as errors show it: upstream's nil path is the root.
pub(super) fn shown(path: &str) -> &str {
    if path.is_empty() { "<nil>" } else { path }
}
