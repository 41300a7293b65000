//! What changed between two states of an object, field by field (`typed.Compare`).

use std::cmp::Ordering;

use serde_json::Value;

use super::atom::{Form, ListAtom, MapAtom, SchemaType};
use super::element::identified;
use super::path::{PathElement, equal};
use super::set::{Set, SetNode};

/// The fields that changed. No field is in two of the sets; all are empty if and only if nothing changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Comparison {
    /// What is there no longer.
    pub removed: Set,
    /// In both states, with another value.
    pub modified: Set,
    /// What was not there before.
    pub added: Set,
}

impl Comparison {
    /// Whether nothing changed.
    pub fn is_same(&self) -> bool {
        self.removed.is_empty() && self.modified.is_empty() && self.added.is_empty()
    }

    /// Each set anew.
    pub(super) fn map(self, change: impl Fn(Set) -> Set) -> Comparison {
        Comparison {
            removed: change(self.removed),
            modified: change(self.modified),
            added: change(self.added),
        }
    }

    /// What is there now and was not, or not so.
    pub(super) fn written(self) -> Set {
        self.modified.with(self.added)
    }

    /// Every field that is in one of the sets.
    pub(super) fn changed(&self) -> Set {
        self.removed.clone().with(self.modified.clone()).with(self.added.clone())
    }

    fn put(&mut self, element: PathElement, below: Below) {
        let Below { change, inner } = below;
        let sets = [
            (&mut self.removed, inner.removed, FieldChange::Removed),
            (&mut self.modified, inner.modified, FieldChange::Modified),
            (&mut self.added, inner.added, FieldChange::Added),
        ];
        // Nearly always the element is in one set: then it is not copied.
        let mut wanted =
            sets.iter().filter(|(_, set, kind)| change == Some(*kind) || !set.is_empty()).count();
        let mut element = Some(element);
        for (into, children, kind) in sets {
            let member = change == Some(kind);
            if member || !children.is_empty() {
                wanted -= 1;
                let element = if wanted == 0 { element.take() } else { element.clone() };
                into.nodes.extend(element.map(|element| SetNode { element, member, children }));
            }
        }
    }
}

/// What happened from `old` to `new`. `metadata.managedFields` is not looked at.
pub fn compare(kind: SchemaType, old: &Value, new: &Value) -> Comparison {
    CompareWalker { depth: 0, in_metadata: false }.visit(kind, Some(old), Some(new)).inner
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum FieldChange {
    Removed,
    Modified,
    Added,
}

/// What happened to a value, and below it.
#[derive(Default)]
struct Below {
    change: Option<FieldChange>,
    inner: Comparison,
}

impl Below {
    fn leaf(old: Option<&Value>, new: Option<&Value>) -> Below {
        let change = match (old, new) {
            (None, _) => Some(FieldChange::Added),
            (_, None) => Some(FieldChange::Removed),
            (Some(old), Some(new)) if !equal(old, new) => Some(FieldChange::Modified),
            _ => None,
        };
        Below { change, inner: Comparison::default() }
    }
}

#[derive(Clone, Copy)]
struct CompareWalker {
    depth: usize,
    in_metadata: bool,
}

impl CompareWalker {
    fn visit(self, kind: SchemaType, old: Option<&Value>, new: Option<&Value>) -> Below {
        if let (Some(old), Some(new)) = (old, new)
            && is_scalar(old)
            && is_scalar(new)
            && equal(old, new)
        {
            return Below::default();
        }
        let atom = kind.atom();
        match (old, new) {
            (Some(left), Some(right))
                if !atom.same_form(left, right) && !left.is_null() && !right.is_null() =>
            {
                self.visit_both(atom.form(old), atom.form(new), left, right)
            }
            // A null takes the form of the other.
            (Some(_), None | Some(Value::Null)) => self.visit_as(atom.form(old), old, new),
            _ => self.visit_as(atom.form(new), old, new),
        }
    }

    /// One form went, another came: what was in the old one is gone, what is in the new one is new.
    fn visit_both(self, old_form: Form, new_form: Form, old: &Value, new: &Value) -> Below {
        let first = self.visit_as(old_form, Some(old), Some(new));
        let second = self.visit_as(new_form, Some(old), Some(new));
        Below {
            change: first.change.or(second.change),
            inner: Comparison {
                removed: first.inner.removed.union(&second.inner.removed),
                modified: first.inner.modified.union(&second.inner.modified),
                added: first.inner.added.union(&second.inner.added),
            },
        }
    }

    fn visit_as(self, form: Form, old: Option<&Value>, new: Option<&Value>) -> Below {
        let inner = match form {
            Form::Scalar(_) => return Below::leaf(old, new),
            Form::Map(map) => {
                let (from, to) = (old.and_then(Value::as_object), new.and_then(Value::as_object));
                let is_empty =
                    |map: Option<&serde_json::Map<_, _>>| map.is_none_or(serde_json::Map::is_empty);
                if map.is_atomic || is_empty(from) && is_empty(to) {
                    return Below::leaf(old, new);
                }
                self.visit_map(map, from, to)
            }
            Form::List(list) => {
                let items =
                    |value: Option<&'_ Value>| value.and_then(Value::as_array).is_none_or(Vec::is_empty);
                if list.is_atomic || items(old) && items(new) {
                    return Below::leaf(old, new);
                }
                let items =
                    |value| Option::<&Value>::and_then(value, Value::as_array).map_or(&[][..], Vec::as_slice);
                self.visit_list(list, items(old), items(new))
            }
        };
        let change = match (old, new) {
            (None, _) => Some(FieldChange::Added),
            (_, None) => Some(FieldChange::Removed),
            _ => None,
        };
        Below { change, inner }
    }

    fn visit_map(
        self,
        map: MapAtom,
        old: Option<&serde_json::Map<String, Value>>,
        new: Option<&serde_json::Map<String, Value>>,
    ) -> Comparison {
        let mut comparison = Comparison::default();
        let (mut old, mut new) = (old.into_iter().flatten().peekable(), new.into_iter().flatten().peekable());
        loop {
            let order = match (old.peek(), new.peek()) {
                (None, None) => return comparison,
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some((left, _)), Some((right, _))) => left.cmp(right),
            };
            let from = if order.is_le() { old.next() } else { None };
            let to = if order.is_ge() { new.next() } else { None };
            let name = from.or(to).map(|(name, _)| name.as_str()).unwrap_or_default();
            if self.in_metadata && name == "managedFields" {
                continue;
            }
            // Most of an object stays as it is, and equality costs less than a walk.
            if order.is_eq() && from == to {
                continue;
            }
            let Some(kind) = map.child(name) else { continue };
            let below =
                CompareWalker { depth: self.depth + 1, in_metadata: self.depth == 0 && name == "metadata" };
            let below = below.visit(kind, from.map(|(_, value)| value), to.map(|(_, value)| value));
            if below.change.is_some() || !below.inner.is_same() {
                comparison.put(PathElement::field(name), below);
            }
        }
    }

    fn visit_list(self, list: ListAtom, old: &[Value], new: &[Value]) -> Comparison {
        if old == new {
            return Comparison::default();
        }
        let (old, new) = (grouped(&list, old), grouped(&list, new));
        let mut comparison = Comparison::default();
        let (mut old, mut new) = (old.into_iter().peekable(), new.into_iter().peekable());
        loop {
            let order = match (old.peek(), new.peek()) {
                (None, None) => return comparison,
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some(left), Some(right)) => left.0.cmp(&right.0),
            };
            let from = if order.is_le() { old.next() } else { None };
            let to = if order.is_ge() { new.next() } else { None };
            let below = self.visit_items(list.element, items_of(&from), items_of(&to));
            if let Some((element, _)) = from.or(to)
                && (below.change.is_some() || !below.inner.is_same())
            {
                comparison.put(element, below);
            }
        }
    }

    /// Elements of the same key: one on each side is compared; several count as one that has no inside.
    fn visit_items(self, kind: SchemaType, old: &[&Value], new: &[&Value]) -> Below {
        let walker = CompareWalker { depth: self.depth + 1, in_metadata: false };
        match (old, new) {
            ([] | [_], [] | [_]) => walker.visit(kind, old.first().copied(), new.first().copied()),
            ([_, _, ..], [_, _, ..]) => {
                let is_same = old.len() == new.len() && old.iter().zip(new).all(|(old, new)| equal(old, new));
                Below { change: (!is_same).then_some(FieldChange::Modified), inner: Comparison::default() }
            }
            ([_, _, ..], new) => {
                let inner = new.first().map(|new| walker.visit(kind, None, Some(new)).inner);
                let mut below =
                    Below { change: Some(FieldChange::Removed), inner: inner.unwrap_or_default() };
                below.also(new.first().map(|_| FieldChange::Added));
                below
            }
            (old, _) => {
                let inner = old.first().map(|old| walker.visit(kind, Some(old), None).inner);
                let mut below = Below { change: Some(FieldChange::Added), inner: inner.unwrap_or_default() };
                below.also(old.first().map(|_| FieldChange::Removed));
                below
            }
        }
    }
}

impl Below {
    /// Two things at once happened to the element itself; for its owners it is there before and after.
    fn also(&mut self, other: Option<FieldChange>) {
        if other.is_some() {
            self.change = Some(FieldChange::Modified);
        }
    }
}

type ValuesAtElement<'v> = (PathElement, Vec<&'v Value>);

fn items_of<'g, 'v>(group: &'g Option<ValuesAtElement<'v>>) -> &'g [&'v Value] {
    group.as_ref().map_or(&[], |(_, items)| items)
}

/// Elements by what tells them apart, sorted by it.
fn grouped<'v>(list: &ListAtom, items: &'v [Value]) -> Vec<ValuesAtElement<'v>> {
    let mut identified = identified(list, items);
    identified.sort_by(|left, right| left.0.cmp(&right.0));
    let mut groups: Vec<ValuesAtElement> = Vec::with_capacity(identified.len());
    for (element, item) in identified {
        match groups.last_mut() {
            Some((last, items)) if *last == element => items.push(item),
            _ => groups.push((element, vec![item])),
        }
    }
    groups
}

fn is_scalar(value: &Value) -> bool {
    !value.is_array() && !value.is_object()
}
