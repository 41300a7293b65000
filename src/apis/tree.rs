//! Walking trees (`serde_json::Value`): the few moves that defaults, strategies, validation and printing are
//! made of.
//!
//! Paths are field names joined by dots. What is absent reads as Go's zero value; so does what is null.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

static NULL: Value = Value::Null;

/// What is at `path`; null when there is nothing.
pub fn at<'a>(value: &'a Value, path: &str) -> &'a Value {
    path.split('.').try_fold(value, |value, name| value.get(name)).unwrap_or(&NULL)
}

/// Whether there is something at `path`, be it empty (a Go pointer that is not nil).
pub fn is_set(value: &Value, path: &str) -> bool {
    !at(value, path).is_null()
}

/// The text at `path`.
pub fn text<'a>(value: &'a Value, path: &str) -> &'a str {
    at(value, path).as_str().unwrap_or("")
}

/// The integer at `path`.
pub fn number(value: &Value, path: &str) -> i64 {
    at(value, path).as_i64().unwrap_or(0)
}

/// The boolean at `path`.
pub fn flag(value: &Value, path: &str) -> bool {
    at(value, path).as_bool().unwrap_or(false)
}

/// The list at `path`.
pub fn items<'a>(value: &'a Value, path: &str) -> &'a [Value] {
    at(value, path).as_array().map_or(&[], Vec::as_slice)
}

/// The texts of the list at `path`.
pub fn texts<'a>(value: &'a Value, path: &str) -> Vec<&'a str> {
    items(value, path).iter().filter_map(Value::as_str).collect()
}

/// The members of the object at `path`, ordered by name.
pub fn members<'a>(value: &'a Value, path: &str) -> impl Iterator<Item = (&'a String, &'a Value)> {
    at(value, path).as_object().into_iter().flatten()
}

/// How many members the object, or items the list, at `path` has.
pub fn count(value: &Value, path: &str) -> usize {
    match at(value, path) {
        Value::Object(map) => map.len(),
        Value::Array(list) => list.len(),
        _ => 0,
    }
}

/// The texts of the object at `path`: labels, selectors.
pub fn string_map(value: &Value, path: &str) -> BTreeMap<String, String> {
    let text = |(name, value): (&String, &Value)| (name.clone(), value.as_str().unwrap_or("").to_owned());
    members(value, path).map(text).collect()
}

/// An annotation; empty when there is none.
pub fn annotation<'a>(value: &'a Value, name: &str) -> &'a str {
    at(value, "metadata.annotations").get(name).and_then(Value::as_str).unwrap_or("")
}

/// Whether a value is what Go leaves out: null, `""`, `0`, `false`, `[]`, `{}`.
pub fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(flag) => !flag,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
    }
}

/// What is at `path`, to be changed; none when there is nothing.
pub fn get_mut<'a>(value: &'a mut Value, path: &str) -> Option<&'a mut Value> {
    let found = path.split('.').try_fold(value, |value, name| value.get_mut(name));
    found.filter(|value| !value.is_null())
}

/// Changes what is at `path`, if there is something.
pub fn change(value: &mut Value, path: &str, how: impl FnOnce(&mut Value)) {
    if let Some(found) = get_mut(value, path) {
        how(found);
    }
}

/// The list at `path`, to be changed.
pub fn items_mut<'a>(value: &'a mut Value, path: &str) -> &'a mut [Value] {
    get_mut(value, path).and_then(Value::as_array_mut).map_or(&mut [], Vec::as_mut_slice)
}

/// The object at `path`, made with all that leads to it when it is missing.
pub fn object_mut<'a>(value: &'a mut Value, path: &str) -> &'a mut Map<String, Value> {
    let mut value = value;
    for name in path.split('.').filter(|name| !name.is_empty()) {
        value = as_object(value).entry(name).or_insert(Value::Null);
    }
    as_object(value)
}

/// Sets what is at `path`, making what leads to it.
pub fn set(value: &mut Value, path: &str, new: impl Into<Value>) {
    let (parent, name) = path.rsplit_once('.').unwrap_or(("", path));
    object_mut(value, parent).insert(name.to_owned(), new.into());
}

/// Sets what is at `path` when nothing is (a nil pointer).
pub fn set_if_unset(value: &mut Value, path: &str, new: impl Into<Value>) {
    if !is_set(value, path) {
        set(value, path, new);
    }
}

/// Sets what is at `path` when it is Go's zero value.
pub fn set_if_zero(value: &mut Value, path: &str, new: impl Into<Value>) {
    if is_zero(at(value, path)) {
        set(value, path, new);
    }
}

/// Takes finalizers away from an object; whether one of them was there.
pub fn remove_finalizers(object: &mut Value, gone: &[&str]) -> bool {
    let own = texts(object, "metadata.finalizers");
    let kept: Vec<String> = own.iter().filter(|own| !gone.contains(own)).map(ToString::to_string).collect();
    let differs = kept.len() != own.len();
    if differs {
        set(object, "metadata.finalizers", kept);
    }
    differs
}

/// Gives an object the finalizers that it lacks, behind its own; whether it lacked one.
pub fn add_finalizers(object: &mut Value, wanted: &[&str]) -> bool {
    let own = texts(object, "metadata.finalizers");
    let missing = wanted.iter().filter(|wanted| !own.contains(wanted));
    let all: Vec<String> = own.iter().chain(missing).map(ToString::to_string).collect();
    let differs = all.len() != own.len();
    if differs {
        set(object, "metadata.finalizers", all);
    }
    differs
}

/// Takes away what is at `path`.
pub fn remove(value: &mut Value, path: &str) -> Option<Value> {
    match path.rsplit_once('.') {
        Some((parent, name)) => get_mut(value, parent)?.as_object_mut()?.remove(name),
        None => value.as_object_mut()?.remove(path),
    }
}

fn as_object(value: &mut Value) -> &mut Map<String, Value> {
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    value.as_object_mut().expect("it was just made one")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_absent_reads_as_the_zero_value() {
        let tree = json!({"a": {"b": "x", "n": 3, "gone": null, "l": [1]}});
        assert_eq!((text(&tree, "a.b"), number(&tree, "a.n"), number(&tree, "a.b.c")), ("x", 3, 0));
        assert!(!is_set(&tree, "a.gone") && is_set(&tree, "a.l"));
        assert_eq!((count(&tree, "a.l"), count(&tree, "a"), count(&tree, "z")), (1, 4, 0));
    }

    #[test]
    fn setting_makes_the_way() {
        let mut tree = json!({"a": null});
        set_if_unset(&mut tree, "a.b.c", 1);
        set_if_unset(&mut tree, "a.b.c", 2);
        set_if_zero(&mut tree, "d", "x");
        assert_eq!(tree, json!({"a": {"b": {"c": 1}}, "d": "x"}));
        assert_eq!(remove(&mut tree, "a.b"), Some(json!({"c": 1})));
        assert_eq!(remove(&mut tree, "d"), Some(json!("x")));
        assert_eq!(tree, json!({"a": {}}));
    }
}
