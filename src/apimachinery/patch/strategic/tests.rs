//! Upstream's cases as data, and the law of every diff: what a patch was made from, it makes.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::patch::{Document, PatchType, apply, apply_document};
use crate::schema::Schema;

fn cases() -> (Schema, Vec<Value>) {
    let mut file: Value = serde_yaml::from_str(include_str!("cases.yaml")).unwrap();
    (Schema::from_openapi(&file["schema"]), file["cases"].as_array_mut().map(std::mem::take).unwrap())
}

#[test]
fn patches_do_what_upstream_says() {
    let (schema, cases) = cases();
    for case in cases {
        let (name, patch, expected) = (&case[0], case[2].to_string(), &case[3]);
        let patched = apply(&schema, PatchType::StrategicMerge, case[1].clone(), patch.as_bytes());
        let tree = Document::Tree(&case[2]);
        assert_eq!(apply_document(&schema, PatchType::StrategicMerge, case[1].clone(), tree), patched);
        match (patched, expected.get("error")) {
            (Ok(patched), None) => assert_eq!(patched.value, *expected, "{name}"),
            (Err(error), Some(part)) => {
                let part = part.as_str().unwrap();
                assert!(error.to_string().contains(part), "{name}: {error}");
            }
            (Ok(patched), Some(_)) => panic!("{name}: {:?}", patched.value),
            (Err(error), None) => panic!("{name}: {error}"),
        }
    }
}

/// `CreateTwoWayMergePatch` for the fields of the law's objects.
fn diff(old: &Map<String, Value>, new: &Map<String, Value>) -> Value {
    let mut patch = Map::new();
    for (name, value) in new.iter().filter(|(name, value)| old.get(*name) != Some(value)) {
        match (old.get(name), value) {
            (Some(Value::Object(old)), Value::Object(new)) => {
                patch.insert(name.clone(), diff(old, new));
            }
            (Some(Value::Array(old)), Value::Array(new)) => diff_lists(&mut patch, name, old, new),
            _ => {
                patch.insert(name.clone(), value.clone());
            }
        }
    }
    let gone = old.keys().filter(|name| !new.contains_key(*name));
    patch.extend(gone.map(|name| (name.clone(), Value::Null)));
    Value::Object(patch)
}

fn diff_lists(patch: &mut Map<String, Value>, name: &str, old: &[Value], new: &[Value]) {
    let order = |list: &[Value]| -> Vec<Value> {
        let key = |item: &Value| if item.is_object() { json!({"name": item["name"]}) } else { item.clone() };
        list.iter().map(key).collect()
    };
    let gone: Vec<Value> = order(old).into_iter().filter(|item| !order(new).contains(item)).collect();
    patch.insert(format!("$setElementOrder/{name}"), order(new).into());
    if name == "mergingIntList" {
        patch.insert(format!("$deleteFromPrimitiveList/{name}"), gone.into());
        let added = new.iter().filter(|item| !old.contains(item)).cloned().collect();
        patch.insert(name.to_owned(), Value::Array(added));
        return;
    }
    let mut items = Vec::new();
    for item in new {
        let before = old.iter().find(|before| before["name"] == item["name"]);
        let empty = Map::new();
        let before = before.and_then(Value::as_object).unwrap_or(&empty);
        let mut changed = diff(before, item.as_object().unwrap());
        changed["name"] = item["name"].clone();
        items.push(changed);
    }
    items.extend(gone.into_iter().map(|mut item| {
        item["$patch"] = "delete".into();
        item
    }));
    patch.insert(name.to_owned(), items.into());
}

fn object() -> impl Strategy<Value = Value> {
    let letter = || "[a-d]".prop_map(Value::from);
    let map = proptest::collection::btree_map("[a-c]", letter(), 0..3);
    let ints = proptest::collection::btree_set(0..5_i64, 1..4).prop_map(Vec::from_iter).prop_shuffle();
    let items = proptest::collection::btree_map("[a-e]", proptest::option::of(letter()), 1..4);
    let items = items.prop_map(Vec::from_iter).prop_shuffle().prop_map(|items| {
        let item = |(name, value)| match value {
            Option::<Value>::None => json!({"name": name}),
            Some(value) => json!({"name": name, "value": value}),
        };
        items.into_iter().map(item).collect::<Vec<Value>>()
    });
    (proptest::option::of(letter()), map, proptest::option::of(ints), proptest::option::of(items)).prop_map(
        |(value, map, ints, items)| {
            let mut object = Map::new();
            value.map(|value| object.insert("value".into(), value));
            object.insert("simpleMap".into(), json!(map));
            ints.map(|ints| object.insert("mergingIntList".into(), ints.into()));
            items.map(|items| object.insert("mergingList".into(), items.into()));
            Value::Object(object)
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn a_patch_makes_what_it_was_made_from(old in object(), new in object()) {
        let (schema, _) = cases();
        let patch = diff(old.as_object().unwrap(), new.as_object().unwrap());
        let text = patch.to_string();
        let patched = apply(&schema, PatchType::StrategicMerge, old.clone(), text.as_bytes());
        let patched = patched.map_err(|error| TestCaseError::fail(format!("{patch}: {error}")))?;
        prop_assert_eq!(&patched.value, &new, "{}", patch);
        for patch_type in [PatchType::StrategicMerge, PatchType::Merge] {
            let of_text = apply(&schema, patch_type, old.clone(), text.as_bytes());
            let of_tree = apply_document(&schema, patch_type, old.clone(), Document::Tree(&patch));
            prop_assert_eq!(of_tree, of_text, "{}", patch);
        }
    }

    #[test]
    fn a_merge_patch_is_applied_once(old in object(), patch in object()) {
        let text = patch.to_string();
        let once = apply(&Schema::FREE, PatchType::Merge, old.clone(), text.as_bytes()).unwrap().value;
        let twice = apply(&Schema::FREE, PatchType::Merge, once.clone(), text.as_bytes()).unwrap().value;
        prop_assert_eq!(once, twice);
    }
}
