//! Runs the cases of `testdata/errors.yaml`: what is refused, and in which words.

use std::sync::Arc;

use serde_json::Value;

use super::kind::Kind;
use super::tree::{items, members, text};

#[test]
fn what_is_right_is_accepted_and_may_be_written_again() {
    for (path, object) in members(&data(), "objects") {
        let kind = kind_at(path);
        let stored = created(&kind, object.clone());
        assert_eq!(kind.strategy.validate(&stored).0, vec![], "{path}");
        assert_eq!(errors_of_update(&kind, stored.clone(), &stored), Vec::<String>::new(), "{path}");
    }
}

#[test]
fn what_is_wrong_is_refused_in_upstreams_words() {
    let data = data();
    let mut surprises = Vec::new();
    for case in items(&data, "cases") {
        let kind = kind_at(text(case, "of"));
        let mut object = data["objects"][text(case, "of")].clone();
        put_all(&mut object, &case["with"]);
        let stored = created(&kind, object);
        let shown: Vec<String> = match &case["then"] {
            Value::Null => kind.strategy.validate(&stored).0.iter().map(ToString::to_string).collect(),
            changes => {
                let mut new = stored.clone();
                put_all(&mut new, changes);
                errors_of_update(&kind, new, &stored)
            }
        };
        let wanted: Vec<&str> = items(case, "errors").iter().filter_map(Value::as_str).collect();
        if shown != wanted {
            surprises.push(format!("{}: {shown:#?}\nwanted: {wanted:#?}", text(case, "of")));
        }
    }
    assert!(surprises.is_empty(), "{}", surprises.join("\n\n"));
}

#[test]
fn nonsense_of_any_kind_is_refused_or_not_but_never_panics() {
    let nonsense =
        ["{}", "[]", "null", r#"{"spec": [], "metadata": 3}"#, r#"{"spec": {"template": 1, "ports": {}}}"#];
    for kind in super::all() {
        for text in nonsense {
            let value: Value = serde_json::from_str(text).unwrap();
            let _ = kind.strategy.validate(&value);
            let _ = kind.strategy.validate_update(&value, &value);
            let _ = kind.strategy.validate_status_update(&value, &value);
            let _ = kind.strategy.warnings(&value, None);
        }
    }
}

fn data() -> Value {
    apimachinery::yaml::from_str(include_str!("testdata/errors.yaml")).unwrap()
}

fn kind_at(path: &str) -> Arc<Kind> {
    let kinds = super::all();
    let found = kinds.iter().find(|kind| kind.collection_path("") == path);
    Arc::clone(found.unwrap_or_else(|| panic!("no kind at {path}")))
}

fn created(kind: &Kind, mut object: Value) -> Value {
    (kind.defaults)(&mut object);
    kind.strategy.prepare_for_create(&mut object);
    object
}

fn errors_of_update(kind: &Kind, mut new: Value, old: &Value) -> Vec<String> {
    (kind.defaults)(&mut new);
    kind.strategy.prepare_for_update(&mut new, old);
    kind.strategy.validate_update(&new, old).0.iter().map(ToString::to_string).collect()
}

/// Puts values at JSON pointers; null takes away.
fn put_all(object: &mut Value, values: &Value) {
    for (pointer, value) in values.as_object().into_iter().flatten() {
        let (parent, name) = pointer.rsplit_once('/').unwrap();
        match object.pointer_mut(parent) {
            Some(Value::Array(list)) => match name.parse::<usize>() {
                Ok(at) if at < list.len() => list[at] = value.clone(),
                _ => list.push(value.clone()),
            },
            Some(Value::Object(map)) if value.is_null() => drop(map.remove(name)),
            Some(Value::Object(map)) => drop(map.insert(name.to_owned(), value.clone())),
            _ => panic!("nothing at {parent}"),
        }
    }
}
