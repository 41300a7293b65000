//! Laws that hold for any objects and any managers.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::State;
use crate::managed_fields::{
    Comparison, PathElement, SchemaType, Set, compare, decode, encode, field_set, merge,
};
use crate::schema::Schema;

fn schema() -> Schema {
    Schema::from_openapi(&json!({"type": "object", "properties": {
        "text": {"type": "string"},
        "struct": {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "integer"}}},
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        "atomic": {"type": "array", "items": {"type": "string"}},
        "keyed": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
            "items": {"type": "object", "properties": {"k": {"type": "string"}, "v": {"type": "string"}}}},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
    }}))
}

fn letter() -> impl Strategy<Value = String> {
    "[a-d]"
}

fn distinct() -> impl Strategy<Value = Vec<String>> {
    proptest::collection::btree_set(letter(), 1..4).prop_map(|set| set.into_iter().collect()).prop_shuffle()
}

/// An object of the schema.
fn object() -> impl Strategy<Value = Value> {
    let keyed = proptest::collection::btree_map(letter(), letter(), 1..4);
    let keyed = keyed.prop_map(|map| map.iter().map(|(k, v)| json!({"k": k, "v": v})).collect::<Vec<_>>());
    let map = || proptest::collection::btree_map(letter(), letter(), 1..3);
    let parts = (
        proptest::option::of(letter()),
        proptest::option::of((letter(), 0..3_i64)),
        proptest::option::of(map()),
        proptest::option::of(distinct()),
        proptest::option::of(distinct()),
        proptest::option::of(keyed),
        proptest::option::of(map()),
    );
    parts.prop_map(|(text, structure, labels, set, atomic, keyed, free)| {
        let mut object = Map::new();
        let mut put = |name: &str, value: Option<Value>| value.map(|value| object.insert(name.into(), value));
        put("text", text.map(Value::from));
        put("struct", structure.map(|(a, b)| json!({"a": a, "b": b})));
        put("labels", labels.map(|map| json!(map)));
        put("set", set.map(Value::from));
        put("atomic", atomic.map(Value::from));
        put("keyed", keyed.map(Value::from));
        put("free", free.map(|map| json!(map)));
        Value::Object(object)
    })
}

fn element() -> impl Strategy<Value = PathElement> {
    prop_oneof![
        letter().prop_map(|name| PathElement::field(&name)),
        letter().prop_map(|name| PathElement::Key([("k".into(), Value::from(name))].into())),
        (0..3_i64).prop_map(|number| PathElement::Value(number.into())),
        letter().prop_map(|text| PathElement::Value(text.into())),
    ]
}

fn set() -> impl Strategy<Value = Set> {
    let path = proptest::collection::vec(element(), 1..4);
    proptest::collection::vec(path, 0..12).prop_map(|paths| Set::of(&paths))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn sets_are_an_algebra(a in set(), b in set(), c in set()) {
        prop_assert_eq!(a.union(&b), b.union(&a));
        prop_assert_eq!(a.intersection(&b), b.intersection(&a));
        prop_assert_eq!(a.union(&b).union(&c), a.union(&b.union(&c)));
        prop_assert_eq!(a.intersection(&b).intersection(&c), a.intersection(&b.intersection(&c)));
        prop_assert_eq!(a.intersection(&b.union(&c)), a.intersection(&b).union(&a.intersection(&c)));
        prop_assert_eq!(a.difference(&b).union(&a.intersection(&b)), a.clone());
        prop_assert!(a.difference(&b).intersection(&b).is_empty());
        prop_assert_eq!(a.difference(&a), Set::default());
        prop_assert_eq!(a.union(&b).len() + a.intersection(&b).len(), a.len() + b.len());
        prop_assert_eq!(a.recursive_difference(&b).difference(&a), Set::default());
        for path in a.paths() {
            prop_assert!(a.has(&path) && (b.has(&path) != a.difference(&b).has(&path)));
        }
    }

    #[test]
    fn what_is_written_reads_the_same(a in set()) {
        prop_assert_eq!(decode(&encode(&a)).unwrap(), a);
    }

    #[test]
    fn a_comparison_tells_each_change_once(old in object(), new in object()) {
        let schema = schema();
        let kind = SchemaType::Known(&schema);
        let Comparison { removed, modified, added } = compare(kind, &old, &new);
        prop_assert!(removed.intersection(&modified).is_empty());
        prop_assert!(removed.intersection(&added).is_empty());
        prop_assert!(modified.intersection(&added).is_empty());
        let back = compare(kind, &new, &old);
        prop_assert_eq!((back.removed, back.modified, back.added), (added, modified, removed));
        prop_assert!(compare(kind, &old, &old).is_same());
    }

    #[test]
    fn applying_twice_is_applying_once(live in object(), config in object()) {
        let schema = schema();
        let mut state = State::new(&schema);
        state.update("other", "v1", &live);
        state.apply("me", "v1", &config, true).unwrap();
        let once = (state.object.clone(), state.managed.clone().encode());
        prop_assert_eq!(state.apply("me", "v1", &config, false), Ok(()));
        prop_assert_eq!((state.object.clone(), state.managed.clone().encode()), once);
        // Everything that was applied is there, and the applier owns exactly that.
        let kind = SchemaType::Known(&schema);
        prop_assert_eq!(merge(kind, &state.object, &config).unwrap(), state.object.clone());
        let own = state.managed.set_of(&State::id("me", "v1", super::ManagedFieldsOperation::Apply));
        prop_assert_eq!(own, field_set(kind, &config));
    }

    #[test]
    fn applying_nothing_removes_what_only_the_applier_owned(config in object()) {
        let schema = schema();
        let mut state = State::new(&schema);
        state.apply("me", "v1", &config, false).unwrap();
        state.apply("me", "v1", &Value::Null, false).unwrap();
        prop_assert_eq!(&state.object, &Value::Null);
        prop_assert!(state.managed.0.is_empty());
    }

    #[test]
    fn after_updates_every_field_has_one_owner(objects in proptest::collection::vec(object(), 1..5)) {
        let schema = schema();
        let mut state = State::new(&schema);
        for (at, object) in objects.iter().enumerate() {
            state.update(&format!("manager-{}", at % 3), "v1", object);
        }
        let mut all = Set::default();
        for entry in &state.managed.0 {
            prop_assert!(all.intersection(&entry.set()).is_empty());
            all = all.union(&entry.set());
        }
        let leaves = field_set(SchemaType::Known(&schema), &state.object);
        prop_assert!(leaves.difference(&all).is_empty(), "{:?}", leaves.difference(&all));
    }
}
