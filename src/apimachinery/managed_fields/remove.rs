//! Taking fields out of an object (`typed.RemoveItems`).

use serde_json::{Map as JsonMap, Value};

use super::atom::{Form, ListAtom, MapAtom, SchemaType};
use super::element::identify;
use super::path::PathElement;
use super::set::Set;

/// The object without these fields. What is emptied by that becomes null.
pub(super) fn remove_items(kind: SchemaType, value: &Value, fields: &Set) -> Value {
    if fields.is_empty() {
        return value.clone();
    }
    match (kind.atom().form(Some(value)), value) {
        (Form::Scalar(_), value) => value.clone(),
        (Form::List(list), Value::Array(items)) if !list.is_atomic => from_list(list, items, fields),
        (Form::Map(map), Value::Object(members)) if !map.is_atomic => from_map(map, members, fields),
        _ => Value::Null,
    }
}

fn from_list(list: ListAtom, items: &[Value], fields: &Set) -> Value {
    let mut left = Vec::with_capacity(items.len());
    for item in items {
        let node = identify(&list, item).ok().and_then(|element| fields.node(&element));
        match node {
            Some(node) if node.member => {}
            Some(node) => left.push(remove_items(list.element, item, &node.children)),
            None => left.push(item.clone()),
        }
    }
    if left.is_empty() { Value::Null } else { Value::Array(left) }
}

fn from_map(map: MapAtom, members: &JsonMap<String, Value>, fields: &Set) -> Value {
    let mut left = JsonMap::new();
    for (name, value) in members {
        match fields.node(&PathElement::field(name)) {
            Some(node) if node.member => {}
            Some(node) => {
                let kind = map.child(name).unwrap_or(SchemaType::Deduced);
                left.insert(name.clone(), remove_items(kind, value, &node.children));
            }
            None => {
                left.insert(name.clone(), value.clone());
            }
        }
    }
    if left.is_empty() { Value::Null } else { Value::Object(left) }
}
