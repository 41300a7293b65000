//! `SnapshotDiff`: what is different between two snapshots, field by field.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;
use serde_json::Value;

use super::export::is_in_every_cluster;
use super::stocked::{ObjectPlace, Stock};

/// Fields that say when and how something was written, not what.
const BOOKKEEPING: [&str; 3] = ["resourceVersion", "managedFields", "generation"];
/// Kinds that tell of what goes on all the time.
const NOISE: [&str; 2] = ["Lease", "Event"];
/// A value is shown up to so many characters.
const SHOWN: usize = 120;

/// What is different. Its text is for people, a line a field; JSON is for programs.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SnapshotDiff {
    /// Only in the second.
    pub added: Vec<DiffObject>,
    /// Only in the first.
    pub removed: Vec<DiffObject>,
    /// In both, and not alike.
    pub changed: Vec<ChangedObject>,
}

/// An object that is there or not.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DiffObject {
    /// As `apps/v1`.
    pub api_version: String,
    /// As `Deployment`.
    pub kind: String,
    /// Empty: none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// An object that is not what it was.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ChangedObject {
    /// Which one.
    #[serde(flatten)]
    pub object: DiffObject,
    /// What is different in it.
    pub fields: Vec<ChangedField>,
}

/// A field that is not what it was.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ChangedField {
    /// As `spec.containers[web].image`: entries of a list are named by their name or type, if they have one.
    pub path: String,
    /// None: it was not there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<Value>,
    /// None: it is not there any more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<Value>,
}

impl SnapshotDiff {
    /// Whether nothing is different.
    pub fn is_empty(&self) -> bool {
        self.added.is_empty() && self.removed.is_empty() && self.changed.is_empty()
    }

    pub(super) fn between(before: &Stock, after: &Stock, all: bool) -> SnapshotDiff {
        let counts = |(place, object): &(&ObjectPlace, &Value)| {
            all || !(NOISE.contains(&place.kind.as_str()) || is_in_every_cluster(object))
        };
        let only = |these: &Stock, others: &Stock| {
            let only = these.iter().filter(counts).filter(|(place, _)| !others.contains_key(place));
            only.map(|(place, _)| DiffObject::of(place)).collect()
        };
        let changed = before.iter().filter(counts).filter_map(|(place, old)| {
            let mut fields = Vec::new();
            compare("", Some(old), Some(after.get(place)?), &mut fields);
            fields.retain(|field| all || !field.is_bookkeeping());
            (!fields.is_empty()).then(|| ChangedObject { object: DiffObject::of(place), fields })
        });
        SnapshotDiff { changed: changed.collect(), added: only(after, before), removed: only(before, after) }
    }
}

impl DiffObject {
    fn of(place: &ObjectPlace) -> DiffObject {
        let ObjectPlace { api_version, kind, namespace, name } = place.clone();
        DiffObject { api_version, kind, namespace, name }
    }
}

impl ChangedField {
    fn is_bookkeeping(&self) -> bool {
        let of_metadata = self.path.strip_prefix("metadata.");
        let is_metadata =
            of_metadata.is_some_and(|rest| BOOKKEEPING.iter().any(|field| is_at_or_below(rest, field)));
        is_metadata || self.path.ends_with(".lastHeartbeatTime") || self.path == "status.observedGeneration"
    }
}

fn is_at_or_below(path: &str, field: &str) -> bool {
    path.strip_prefix(field).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

fn compare(path: &str, before: Option<&Value>, after: Option<&Value>, found: &mut Vec<ChangedField>) {
    match (before, after) {
        (Some(Value::Object(old)), Some(Value::Object(new))) => {
            let mut names: Vec<&String> = old.keys().chain(new.keys()).collect();
            names.sort_unstable();
            names.dedup();
            for name in names {
                compare(&member(path, name), old.get(name), new.get(name), found);
            }
        }
        (Some(Value::Array(old)), Some(Value::Array(new))) if old != new => {
            let (old, new) = (entries(old), entries(new));
            let added = new.keys().filter(|key| !old.contains_key(*key));
            for key in old.keys().chain(added) {
                compare(&format!("{path}[{}]", key.1), old.get(key).copied(), new.get(key).copied(), found);
            }
        }
        (before, after) if before != after => {
            let path = path.to_owned();
            found.push(ChangedField { path, before: before.cloned(), after: after.cloned() });
        }
        _ => {}
    }
}

/// Names with dots, as those of labels, stand in brackets.
fn member(path: &str, name: &str) -> String {
    match (path.is_empty(), name.contains(['.', '/'])) {
        (true, _) => name.to_owned(),
        (false, true) => format!("{path}[{name}]"),
        (false, false) => format!("{path}.{name}"),
    }
}

/// By name or type where each has one of its own, else by number.
fn entries(list: &[Value]) -> BTreeMap<(usize, String), &Value> {
    for field in ["name", "type"] {
        let named = list.iter().map(|entry| entry[field].as_str().map(|name| ((0, name.to_owned()), entry)));
        let named: Option<BTreeMap<_, _>> = named.collect();
        if let Some(named) = named.filter(|named| named.len() == list.len()) {
            return named;
        }
    }
    list.iter().enumerate().map(|(number, entry)| ((number, number.to_string()), entry)).collect()
}

impl fmt::Display for DiffObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let slash = if self.namespace.is_empty() { "" } else { "/" };
        write!(f, "{} {} {}{slash}{}", self.api_version, self.kind, self.namespace, self.name)
    }
}

impl fmt::Display for SnapshotDiff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.added.iter().try_for_each(|object| writeln!(f, "+ {object}"))?;
        self.removed.iter().try_for_each(|object| writeln!(f, "- {object}"))?;
        for ChangedObject { object, fields } in &self.changed {
            writeln!(f, "~ {object}")?;
            for ChangedField { path, before, after } in fields {
                writeln!(f, "    {path}: {} -> {}", shown(before.as_ref()), shown(after.as_ref()))?;
            }
        }
        Ok(())
    }
}

fn shown(value: Option<&Value>) -> String {
    let Some(value) = value else { return "(none)".into() };
    let text = value.to_string();
    match text.char_indices().nth(SHOWN) {
        Some((cut, _)) => format!("{}...", &text[..cut]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn stock(objects: &[Value]) -> Stock {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let entry = |object: &Value| {
            let place = ObjectPlace {
                api_version: text(&object["apiVersion"]),
                kind: text(&object["kind"]),
                namespace: text(&object["metadata"]["namespace"]),
                name: text(&object["metadata"]["name"]),
            };
            (place, object.clone())
        };
        objects.iter().map(entry).collect()
    }

    fn object(kind: &str, name: &str, rest: Value) -> Value {
        let mut object =
            json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": "n"}});
        for (field, value) in rest.as_object().unwrap() {
            object[field] = value.clone();
        }
        object
    }

    #[test]
    fn what_was_added_removed_and_changed_is_told_field_by_field() {
        let containers = |image: &str| json!([{"name": "a"}, {"name": "web", "image": image}]);
        let before = stock(&[
            object("Pod", "p", json!({"spec": {"containers": containers("nginx:1"), "list": [1, 2]}})),
            object("ConfigMap", "gone", json!({})),
            object("Lease", "l", json!({"spec": {"renewTime": 1}})),
        ]);
        let after = stock(&[
            object(
                "Pod",
                "p",
                json!({"spec": {"containers": containers("nginx:2"), "list": [1]}, "x": {"a.b/c": 1}}),
            ),
            object("ConfigMap", "new", json!({})),
            object("Lease", "l", json!({"spec": {"renewTime": 2}})),
        ]);
        let diff = SnapshotDiff::between(&before, &after, false);
        let text = "+ v1 ConfigMap n/new\n- v1 ConfigMap n/gone\n~ v1 Pod n/p\n    \
            spec.containers[web].image: \"nginx:1\" -> \"nginx:2\"\n    spec.list[1]: 2 -> (none)\n    \
            x: (none) -> {\"a.b/c\":1}\n";
        assert_eq!(diff.to_string(), text);
        let json = serde_json::to_value(&diff).unwrap();
        assert_eq!(json["changed"][0]["fields"][0]["after"], "nginx:2");
        assert_eq!(json["changed"][0]["name"], "p");
        let all = SnapshotDiff::between(&before, &after, true);
        assert_eq!(all.changed[0].object.kind, "Lease");
        assert!(SnapshotDiff::between(&before, &before, true).is_empty());
    }

    #[test]
    fn how_something_was_written_is_no_difference() {
        let written = |version: &str, time: &str| {
            let mut node = object("Node", "n", json!({}));
            node["metadata"]["resourceVersion"] = version.into();
            node["metadata"]["managedFields"] = json!([{"time": time}]);
            node["status"] = json!({"conditions": [{"type": "Ready", "lastHeartbeatTime": time}]});
            stock(&[node])
        };
        let (before, after) = (written("1", "a"), written("2", "b"));
        assert!(SnapshotDiff::between(&before, &after, false).is_empty());
        let all = SnapshotDiff::between(&before, &after, true).to_string();
        assert!(all.contains("status.conditions[Ready].lastHeartbeatTime: \"a\" -> \"b\""), "{all}");
        let long = shown(Some(&"x".repeat(1000).into()));
        assert_eq!(long.len(), SHOWN + 3);
    }
}
