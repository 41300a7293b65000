//! What other servers publish, put into one swagger 2.0 document (`kube-openapi/pkg/aggregator`).

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::definitions::references;

const KINDS: &str = "x-kubernetes-group-version-kind";
/// What other parts of a document refer to by name.
const SECTIONS: [&str; 2] = ["definitions", "parameters"];

/// Without the paths that are not wanted, and without the definitions that only those needed.
pub(super) fn filter(mut document: Value, wanted: impl Fn(&str) -> bool) -> Value {
    let before = used(&document);
    let Some(paths) = document.get_mut("paths").and_then(Value::as_object_mut) else { return document };
    paths.retain(|path, _| wanted(path));
    let after = used(&document);
    if let Some(definitions) = document.get_mut("definitions").and_then(Value::as_object_mut) {
        definitions.retain(|name, _| after.contains(name) || !before.contains(name));
    }
    document
}

/// Puts `source` into `target`, which wins where both have a path.
pub(super) fn merge(target: &mut Value, source: Value) {
    let is_new = |path: &str| target["paths"].get(path).is_none();
    let Some(paths) = source.get("paths").and_then(Value::as_object) else { return };
    if !paths.keys().any(|path| is_new(path)) {
        return;
    }
    let has_conflicts = !paths.keys().all(|path| is_new(path));
    let mut source = if has_conflicts { filter(source, is_new) } else { source };
    for section in SECTIONS {
        let renames = renames(target, &source, section);
        rename(&mut source, section, &renames);
        for (name, new) in take(&mut source, section) {
            match target[section].get_mut(&name) {
                Some(known) => add_kinds(known, &new),
                None => target[section][&name] = new,
            }
        }
    }
    for (path, item) in take(&mut source, "paths") {
        target["paths"][&path] = item;
    }
}

/// The names of the definitions that the paths lead to.
fn used(document: &Value) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut wanted = references(&document["paths"]);
    while let Some(name) = wanted.pop() {
        if !found.contains(&name) {
            let meant = SECTIONS.iter().filter_map(|section| document[section].get(&name));
            wanted.extend(meant.flat_map(references));
            found.insert(name);
        }
    }
    found
}

/// New names for what says something else in `target`: the name with `_v2`, or the first number that is free.
fn renames(target: &Value, source: &Value, section: &str) -> BTreeMap<String, String> {
    let known = |name: &str| target[section].get(name);
    let mut renames: BTreeMap<String, String> = BTreeMap::new();
    for (name, new) in source.get(section).and_then(Value::as_object).into_iter().flatten() {
        if known(name).is_none_or(|known| is_same(known, new)) {
            continue;
        }
        let is_free = |other: &String| match known(other) {
            Some(known) => is_same(known, new),
            None => source[section].get(other).is_none() && renames.values().all(|taken| taken != other),
        };
        let numbered = (2..).map(|number| format!("{name}_v{number}")).find(is_free);
        renames.extend(numbered.map(|other| (name.clone(), other)));
    }
    renames
}

fn rename(document: &mut Value, section: &str, renames: &BTreeMap<String, String>) {
    if renames.is_empty() {
        return;
    }
    let prefix = format!("#/{section}/");
    redirect(document, &prefix, renames);
    let renamed = take(document, section).into_iter().map(|(name, value)| {
        let name = renames.get(&name).cloned().unwrap_or(name);
        (name, value)
    });
    document[section] = Value::Object(renamed.collect());
}

fn redirect(value: &mut Value, prefix: &str, renames: &BTreeMap<String, String>) {
    match value {
        Value::Object(map) => {
            if let Some(Value::String(reference)) = map.get_mut("$ref")
                && let Some(new) = reference.strip_prefix(prefix).and_then(|name| renames.get(name))
            {
                *reference = format!("{prefix}{new}");
            }
            map.values_mut().for_each(|value| redirect(value, prefix, renames));
        }
        Value::Array(list) => list.iter_mut().for_each(|value| redirect(value, prefix, renames)),
        _ => {}
    }
}

/// Whichever kinds it is of.
fn is_same(one: &Value, other: &Value) -> bool {
    let members = |value: &Value| value.as_object().map(Map::len).unwrap_or_default();
    let plain = |value: &Value| members(value) - usize::from(value.get(KINDS).is_some());
    let same = |(name, value): (&String, &Value)| name == KINDS || other.get(name) == Some(value);
    match one {
        Value::Object(map) => plain(one) == plain(other) && map.iter().all(same),
        one => one == other,
    }
}

/// A definition is of all the kinds that either document says.
fn add_kinds(known: &mut Value, new: &Value) {
    let Some(new) = new.get(KINDS).and_then(Value::as_array) else { return };
    let mut kinds = known.get(KINDS).and_then(Value::as_array).cloned().unwrap_or_default();
    let added: Vec<Value> = new.iter().filter(|kind| !kinds.contains(kind)).cloned().collect();
    if added.is_empty() {
        return;
    }
    kinds.extend(added);
    let text = |kind: &Value, key: &str| kind[key].as_str().unwrap_or_default().to_owned();
    kinds.sort_by_cached_key(|kind| {
        format!("{}/{}.{}", text(kind, "group"), text(kind, "version"), text(kind, "kind"))
    });
    known[KINDS] = json!(kinds);
}

fn take(document: &mut Value, section: &str) -> Map<String, Value> {
    match document.get_mut(section).map(Value::take) {
        Some(Value::Object(map)) => map,
        _ => Map::new(),
    }
}
