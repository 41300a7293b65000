//! The fields that a configuration names (`typed.ToFieldSet`): what its applier owns.

use serde_json::Value;

use super::atom::{Form, ListAtom, MapAtom, SchemaType};
use super::element::identified;
use super::path::PathElement;
use super::set::{Set, SetNode};

/// Every field of a value: leaves, elements of keyed lists, keys of maps; of objects only empty ones.
pub fn field_set(kind: SchemaType, value: &Value) -> Set {
    visit(kind, value).children
}

/// What is owned of a value and below it; the element is the caller's to put.
fn visit(kind: SchemaType, value: &Value) -> Owned {
    match (kind.atom().form(Some(value)), value) {
        (Form::Scalar(_), _) => Owned::whole(),
        (Form::List(list), _) if list.is_atomic => Owned::whole(),
        (Form::Map(map), _) if map.is_atomic => Owned::whole(),
        (Form::List(list), Value::Array(items)) => Owned { member: false, children: of_list(list, items) },
        (Form::Map(map), Value::Object(fields)) => Owned { member: false, children: of_map(map, fields) },
        _ => Owned { member: false, children: Set::default() },
    }
}

struct Owned {
    member: bool,
    children: Set,
}

impl Owned {
    fn whole() -> Owned {
        Owned { member: true, children: Set::default() }
    }
}

fn of_map(map: MapAtom, fields: &serde_json::Map<String, Value>) -> Set {
    let mut set = Set::default();
    for (name, value) in fields {
        let Some(kind) = map.child(name) else { continue };
        let owned = visit(kind, value);
        let is_empty = value.is_null() || value.as_object().is_some_and(serde_json::Map::is_empty);
        let member = owned.member || is_empty || !map.declares(name);
        set.push(SetNode { element: PathElement::field(name), member, children: owned.children });
    }
    set
}

/// An element that is there several times is owned as one, without what is in it.
fn of_list(list: ListAtom, items: &[Value]) -> Set {
    let mut nodes: Vec<SetNode> = identified(&list, items)
        .into_iter()
        .map(|(element, item)| SetNode {
            element,
            member: true,
            children: visit(list.element, item).children,
        })
        .collect();
    nodes.sort_by(|left, right| left.element.cmp(&right.element));
    nodes.dedup_by(|again, first| {
        let is_same = again.element == first.element;
        if is_same {
            first.children = Set::default();
        }
        is_same
    });
    Set { nodes }
}
