//! What the validation of several kinds has in common (`pkg/apis/core/validation`, `k8s.io/apimachinery`'s
//! validation).
//!
//! Paths and texts are upstream's to the letter: people search for them. A [`Field`] is a value and where it
//! is, so that a rule says only what is wrong.

pub mod conditions;
pub mod labels;
pub mod resources;
pub mod texts;

use serde_json::Value;

use super::tree;
use apimachinery::field_error::{ErrorType, FieldErrors};

/// What a number may not be less than.
pub const NOT_NEGATIVE: &str = "must be greater than or equal to 0";
/// What may not change.
pub const IMMUTABLE: &str = "field is immutable";

/// A value and its path. What is absent is null and reads as Go's zero value.
#[derive(Clone, Debug)]
pub struct Field<'a> {
    /// As `spec.containers[0].image`.
    pub path: String,
    /// What is there.
    pub value: &'a Value,
}

impl<'a> Field<'a> {
    /// What is at `path` in `tree`.
    pub fn of(tree: &'a Value, path: &str) -> Field<'a> {
        Field { path: path.to_owned(), value: tree::at(tree, path) }
    }

    /// A field of this; names may be joined by dots.
    pub fn child(&self, name: &str) -> Field<'a> {
        // Joined rather than formatted: this is done a hundred times for each pod that is written.
        Field { path: [&self.path, ".", name].concat(), value: tree::at(self.value, name) }
    }

    /// The items of the list that is the child `name`, each with its index in the path.
    pub fn each(&self, name: &str) -> Vec<Field<'a>> {
        self.child(name).items()
    }

    /// The items of this list.
    pub fn items(&self) -> Vec<Field<'a>> {
        let item = |(at, value)| Field { path: format!("{}[{at}]", self.path), value };
        self.value.as_array().into_iter().flatten().enumerate().map(item).collect()
    }

    /// The members of this object: the name, and the value with the name in brackets in its path.
    pub fn members(&self) -> Vec<(&'a str, Field<'a>)> {
        let member = |(name, value): (&'a String, &'a Value)| {
            (name.as_str(), Field { path: [&self.path, "[", name, "]"].concat(), value })
        };
        self.value.as_object().into_iter().flatten().map(member).collect()
    }

    /// This field, renamed in messages: upstream does not always say where something is.
    pub fn shown_as(&self, path: impl Into<String>) -> Field<'a> {
        Field { path: path.into(), value: self.value }
    }

    /// As text.
    pub fn text(&self) -> &'a str {
        self.value.as_str().unwrap_or("")
    }

    /// As an integer.
    pub fn number(&self) -> i64 {
        self.value.as_i64().unwrap_or(0)
    }

    /// As a boolean.
    pub fn flag(&self) -> bool {
        self.value.as_bool().unwrap_or(false)
    }

    /// Whether there is anything (a Go pointer that is not nil).
    pub fn is_set(&self) -> bool {
        !self.value.is_null()
    }

    /// Whether it is Go's zero value.
    pub fn is_zero(&self) -> bool {
        tree::is_zero(self.value)
    }

    /// `Required value`
    pub fn required(&self, detail: &str, errors: &mut FieldErrors) {
        errors.required(self.path.as_str(), detail);
    }

    /// `Invalid value`
    pub fn invalid(&self, detail: impl AsRef<str>, errors: &mut FieldErrors) {
        errors.invalid(self.path.as_str(), self.value, detail);
    }

    /// `Invalid value`, for each of `details`.
    pub fn invalid_each(&self, details: Vec<String>, errors: &mut FieldErrors) {
        details.iter().for_each(|detail| self.invalid(detail, errors));
    }

    /// `Unsupported value`
    pub fn not_supported(&self, supported: &[&str], errors: &mut FieldErrors) {
        errors.not_supported(self.path.as_str(), self.value, supported);
    }

    /// `Forbidden`
    pub fn forbidden(&self, detail: impl AsRef<str>, errors: &mut FieldErrors) {
        errors.forbidden(self.path.as_str(), detail);
    }

    /// `Duplicate value`
    pub fn duplicate(&self, errors: &mut FieldErrors) {
        errors.duplicate(self.path.as_str(), self.value);
    }

    /// `Not found`
    pub fn not_found(&self, errors: &mut FieldErrors) {
        errors.not_found(self.path.as_str(), self.value);
    }

    /// Must be there.
    pub fn require(&self, errors: &mut FieldErrors) -> bool {
        let is_there = !self.is_zero();
        if !is_there {
            self.required("", errors);
        }
        is_there
    }

    /// Must be one of `supported`; must be there.
    pub fn one_of(&self, supported: &[&str], errors: &mut FieldErrors) {
        if self.require(errors) && !supported.contains(&self.text()) {
            self.not_supported(supported, errors);
        }
    }

    /// Must be one of `supported` when it is there.
    pub fn one_of_if_set(&self, supported: &[&str], errors: &mut FieldErrors) {
        if self.is_set() && !supported.contains(&self.text()) {
            self.not_supported(supported, errors);
        }
    }

    /// Must not be negative.
    pub fn nonnegative(&self, errors: &mut FieldErrors) {
        if self.number() < 0 {
            self.invalid(NOT_NEGATIVE, errors);
        }
    }

    /// Must follow `rule` when it is there.
    pub fn follows(&self, rule: fn(&str) -> Vec<String>, errors: &mut FieldErrors) {
        if !self.text().is_empty() {
            self.invalid_each(rule(self.text()), errors);
        }
    }

    /// Must be there and follow `rule`.
    pub fn must_follow(&self, rule: fn(&str) -> Vec<String>, errors: &mut FieldErrors) {
        if self.require(errors) {
            self.invalid_each(rule(self.text()), errors);
        }
    }

    /// Must not have changed; `old` is what it was.
    pub fn immutable(&self, old: &Field, errors: &mut FieldErrors) {
        if !equal(self.value, old.value) {
            self.invalid(IMMUTABLE, errors);
        }
    }

    /// Every one of these children must not be negative.
    pub fn all_nonnegative(&self, names: &[&str], errors: &mut FieldErrors) {
        names.iter().for_each(|name| self.child(name).nonnegative(errors));
    }

    /// Fields of a status that count some of what `replicas` counts.
    pub fn at_most(&self, names: &[&str], whole: &str, words: &str, errors: &mut FieldErrors) {
        let most = self.child(whole).number();
        for part in names.iter().map(|name| self.child(name)).filter(|part| part.number() > most) {
            part.invalid(words, errors);
        }
    }
}

/// The items of a list that may hold `most`; nothing when there are more.
pub fn at_most<'a>(list: &Field<'a>, most: usize, errors: &mut FieldErrors) -> Vec<Field<'a>> {
    let items = list.items();
    if items.len() > most {
        errors.too_many(list.path.as_str(), items.len(), most);
        return vec![];
    }
    items
}

/// An error with a value and words of its own.
pub fn push(errors: &mut FieldErrors, path: &str, error_type: ErrorType, shown: &str, detail: &str) {
    errors.push(path, error_type, format!("{shown:?}"), detail);
}

/// `apiequality.Semantic.DeepEqual`: nothing, null and empty are the same.
pub fn equal(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Object(a), Value::Object(b)) => {
            let same = |name: &String| {
                equal(a.get(name).unwrap_or(&Value::Null), b.get(name).unwrap_or(&Value::Null))
            };
            a.keys().all(same) && b.keys().filter(|name| !a.contains_key(*name)).all(same)
        }
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b)),
        (Value::Null, other) | (other, Value::Null) => is_nothing(other),
        (a, b) => a == b,
    }
}

fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Object(map) => map.values().all(is_nothing),
        Value::Array(list) => list.is_empty(),
        Value::String(text) => text.is_empty(),
        Value::Null => true,
        Value::Bool(_) | Value::Number(_) => false,
    }
}

/// What changed, a line for each: for people, beside an error that speaks of a whole spec.
pub fn difference(old: &Value, new: &Value) -> String {
    let mut lines = Vec::new();
    collect_difference("", old, new, &mut lines);
    lines.join("\n")
}

fn collect_difference(path: &str, old: &Value, new: &Value, lines: &mut Vec<String>) {
    if equal(old, new) {
        return;
    }
    match (old, new) {
        (Value::Object(a), Value::Object(b)) => {
            let added = b.keys().filter(|name| !a.contains_key(*name));
            for name in a.keys().chain(added) {
                let (old, new) = (a.get(name).unwrap_or(&Value::Null), b.get(name).unwrap_or(&Value::Null));
                collect_difference(&format!("{path}.{name}"), old, new, lines);
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (at, (old, new)) in a.iter().zip(b).enumerate() {
                collect_difference(&format!("{path}[{at}]"), old, new, lines);
            }
        }
        _ => lines.push(format!("  {}: - {old} + {new}", path.trim_start_matches('.'))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn nothing_null_and_empty_are_the_same() {
        for (left, right, same) in [
            (json!({"a": {}}), json!({}), true),
            (json!({"a": null, "b": []}), json!({"b": null}), true),
            (json!({"a": 0}), json!({}), false),
            (json!([{}]), json!([]), false),
            (json!({"a": [1]}), json!({"a": [1]}), true),
        ] {
            assert_eq!(equal(&left, &right), same, "{left} {right}");
            assert_eq!(equal(&right, &left), same, "{right} {left}");
        }
        let (old, new) = (json!({"a": [{"b": 1}], "c": 2}), json!({"a": [{"b": 3}], "c": 2}));
        assert_eq!(difference(&old, &new), "  a[0].b: - 1 + 3");
    }

    #[test]
    fn a_field_knows_where_it_is() {
        let tree = json!({"spec": {"list": [{"x": ""}], "map": {"cpu": "1"}}});
        let spec = Field::of(&tree, "spec");
        let mut errors = FieldErrors::default();
        spec.each("list")[0].child("x").require(&mut errors);
        assert_eq!(errors.to_string(), "spec.list[0].x: Required value");
        assert_eq!(spec.child("map").members()[0].1.path, "spec.map[cpu]");
    }
}
