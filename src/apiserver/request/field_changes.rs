//! What is different in an object: for people who are told what a plugin or a write changed.

use std::sync::Arc;

use golang::first_bytes::first_bytes;
use serde_json::Value;

use flow::FieldFromTo;

/// A value that is longer as JSON is shortened.
pub(super) const MAX_VALUE_BYTES: usize = 120;
/// And while somebody looks from near: what a plugin puts in is then told whole, mostly.
pub(super) const MAX_NEAR_VALUE_BYTES: usize = 2048;

/// What nobody has asked for and changes with each write.
const UNTOLD: &[&str] = &["managedFields", "resourceVersion"];

/// The fields that differ, at most [`FieldFromTo::MAX`]; what is more is counted in one without a value.
/// Values have at most so many bytes.
pub(super) fn field_changes(old: &Value, new: &Value, value_bytes: usize) -> Vec<FieldFromTo> {
    let mut changes = FieldChanges { kept: vec![], more: 0, value_bytes };
    changes.compare("", Some(old), Some(new));
    if changes.more > 0 {
        let path = format!("and {} more", changes.more).into();
        changes.kept.push(FieldFromTo { path, from: None, to: None });
    }
    changes.kept
}

/// Where something differs and not how: of objects whose values not everybody may know. Of a Secret not even
/// the names of its keys.
pub(super) fn without_values(changes: Vec<FieldFromTo>, is_secret: bool) -> Vec<FieldFromTo> {
    let mut kept: Vec<FieldFromTo> = Vec::new();
    for FieldFromTo { path, .. } in changes {
        let path = if is_secret { path.split('.').next().unwrap_or_default().into() } else { path };
        if kept.iter().all(|other| other.path != path) {
            kept.push(FieldFromTo { path, from: None, to: None });
        }
    }
    kept
}

/// A Scale leaves replicas of 0 out, which are told as they are meant.
pub(super) fn with_zero_replicas(mut changes: Vec<FieldFromTo>) -> Vec<FieldFromTo> {
    for change in changes.iter_mut().filter(|change| &*change.path == "spec.replicas") {
        let zero = || Some("0".into());
        (change.from, change.to) = (change.from.take().or_else(zero), change.to.take().or_else(zero));
    }
    changes
}

struct FieldChanges {
    kept: Vec<FieldFromTo>,
    more: usize,
    value_bytes: usize,
}

impl FieldChanges {
    fn compare(&mut self, path: &str, old: Option<&Value>, new: Option<&Value>) {
        if old == new {
            return;
        }
        let inside = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
        match (old, new) {
            (Some(Value::Object(old)), Some(Value::Object(new))) => {
                let added = new.keys().filter(|name| !old.contains_key(*name));
                for name in old.keys().chain(added).filter(|name| !UNTOLD.contains(&name.as_str())) {
                    self.compare(&inside(name), old.get(name), new.get(name));
                }
            }
            (Some(Value::Array(old)), Some(Value::Array(new))) if old.len() == new.len() => {
                for (at, (old, new)) in old.iter().zip(new).enumerate() {
                    self.compare(&format!("{path}[{at}]"), Some(old), Some(new));
                }
            }
            _ if self.kept.len() == FieldFromTo::MAX => self.more += 1,
            // Passwords are often there.
            _ if path.contains(".env[") || path.ends_with(".env") => {
                self.kept.push(FieldFromTo { path: path.into(), from: None, to: None });
            }
            _ => {
                let told = |value| told(value, self.value_bytes);
                self.kept.push(FieldFromTo { path: path.into(), from: old.map(told), to: new.map(told) });
            }
        }
    }
}

fn told(value: &Value, value_bytes: usize) -> Arc<str> {
    let text = value.to_string();
    // Also in a text that holds an object, as the annotation of what was applied last does.
    if text.replace('\\', "").contains("\"env\":") {
        return "...".into();
    }
    if text.len() <= value_bytes {
        return text.into();
    }
    format!("{}...", first_bytes(&text, value_bytes)).into()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn told_of(old: Value, new: Value) -> Vec<String> {
        let show = |value: &Option<Arc<str>>| value.as_deref().unwrap_or("-").to_owned();
        let changes = field_changes(&old, &new, MAX_VALUE_BYTES);
        changes.iter().map(|one| format!("{} {} {}", one.path, show(&one.from), show(&one.to))).collect()
    }

    #[test]
    fn of_what_is_private_only_the_place_is_told() {
        let paths = |is_secret| {
            let (old, new) = (json!({"data": {"a": "1", "b": "2"}}), json!({"data": {"a": "3"}}));
            let changes = field_changes(&old, &new, MAX_VALUE_BYTES);
            let told = without_values(changes, is_secret);
            assert!(told.iter().all(|one| one.from.is_none() && one.to.is_none()));
            told.iter().map(|one| one.path.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(
            (paths(false), paths(true)),
            (vec!["data.a".into(), "data.b".into()], vec!["data".into()])
        );
    }

    #[test]
    fn a_scale_to_zero_is_told_as_a_number() {
        let changes = |old: Value, new: Value| {
            let changes = with_zero_replicas(field_changes(&old, &new, MAX_VALUE_BYTES));
            changes.into_iter().map(|one| (one.from.unwrap(), one.to.unwrap())).collect::<Vec<_>>()
        };
        let (none, three) = (json!({"spec": {}}), json!({"spec": {"replicas": 3}}));
        assert_eq!(changes(three.clone(), none.clone()), [("3".into(), "0".into())]);
        assert_eq!(changes(none, three), [("0".into(), "3".into())]);
    }

    #[test]
    fn what_differs_is_told_by_its_path() {
        let old = json!({"spec": {"replicas": 2, "list": [{"a": 1}], "gone": true},
            "metadata": {"managedFields": 1}});
        let new = json!({"spec": {"replicas": 3, "list": [{"a": 2}], "new": "x"},
            "metadata": {"managedFields": 2}});
        let wanted = ["spec.gone true -", "spec.list[0].a 1 2", "spec.replicas 2 3", "spec.new - \"x\""];
        assert_eq!(told_of(old, new), wanted);
    }

    #[test]
    fn what_is_too_much_is_counted_and_what_is_too_long_is_cut() {
        let many = |value: i32| (0..20).map(|at| (format!("f{at:02}"), json!(value))).collect::<Value>();
        let told = told_of(many(1), many(2));
        assert_eq!((told.len(), told.last().unwrap().as_str()), (FieldFromTo::MAX + 1, "and 12 more - -"));
        let of = |value: &str| json!({"containers": [{"env": [{"name": "PASSWORD", "value": value}]}]});
        assert_eq!(told_of(of("s3cret"), of("other")), ["containers[0].env[0].value - -"]);
        let long = told_of(json!({}), json!({"a": "ä".repeat(500)}));
        assert!(long[0].ends_with("...") && long[0].len() < MAX_VALUE_BYTES + 10, "{long:?}");
        let applied = |value: &str| {
            let applied = json!({"spec": {"containers": [{"env": [{"name": "PASSWORD", "value": value}]}]}});
            let last = "kubectl.kubernetes.io/last-applied-configuration";
            json!({"metadata": {"annotations": {last: applied.to_string()}}})
        };
        for (old, new) in [(applied("s3cret"), applied("other")), (json!({"metadata": {}}), applied("other"))]
        {
            for told in field_changes(&old, &new, MAX_NEAR_VALUE_BYTES) {
                let values = [told.from, told.to].into_iter().flatten().collect::<Vec<_>>();
                assert!(values.iter().all(|value| &**value == "..."), "{values:?}");
            }
        }
        let near = field_changes(&json!({}), &json!({"a": "x".repeat(500)}), MAX_NEAR_VALUE_BYTES);
        assert_eq!(near[0].to.as_deref().map(str::len), Some(502));
    }
}
