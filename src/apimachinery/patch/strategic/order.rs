//! The order of a merged list: `$setElementOrder` first, then the patch's own order, then the order that was.

use std::collections::HashMap;

use serde_json::Value;

use super::{
    DIRECTIVE, PatchError, PatchObject, SET_ELEMENT_ORDER, field_of, field_schema, list, no_merge_key,
    without_directives,
};
use crate::schema::Schema;
use golang::go_print::{go_print, go_type};

/// What tells two elements apart.
#[derive(Clone, Copy)]
pub(super) enum Elements<'k> {
    /// Scalars are their own keys.
    Scalars,
    /// The value of this field.
    Keyed(&'k str),
}

/// Where each element of a list stands first. Looked up by the text of what tells elements apart, so that a
/// list of a hundred thousand costs no hundred thousand comparisons an element.
pub(super) struct ElementPlaces<'k> {
    elements: Elements<'k>,
    first: HashMap<String, usize>,
}

impl<'k> ElementPlaces<'k> {
    pub(super) fn of(list: &[Value], elements: Elements<'k>) -> Self {
        let mut places = Self { elements, first: HashMap::with_capacity(list.len()) };
        list.iter().enumerate().for_each(|(at, element)| places.note(element, at));
        places
    }

    pub(super) fn get(&self, element: &Value) -> Option<usize> {
        self.first.get(&self.elements.identity(element)?).copied()
    }

    pub(super) fn note(&mut self, element: &Value, at: usize) {
        if let Some(identity) = self.elements.identity(element) {
            self.first.entry(identity).or_insert(at);
        }
    }
}

impl Elements<'_> {
    fn identity(self, element: &Value) -> Option<String> {
        match self {
            Self::Scalars => Some(element.to_string()),
            Self::Keyed(key) => element.get(key).map(Value::to_string),
        }
    }

    fn same(self, left: &Value, right: &Value) -> bool {
        match self {
            Self::Scalars => left == right,
            Self::Keyed(key) => left.get(key).is_some() && left.get(key) == right.get(key),
        }
    }

    /// Every element of a keyed list must have its key.
    fn check(self, list: &[Value]) -> Result<(), PatchError> {
        let Self::Keyed(key) = self else { return Ok(()) };
        for element in list {
            match element {
                Value::Object(object) if object.contains_key(key) => {}
                Value::Object(object) => return Err(no_merge_key(object, key)),
                other => return Err(wrong_type("map[string]interface {}", other)),
            }
        }
        Ok(())
    }
}

/// Merges every list for which the patch sets an order, and takes it out of the patch.
pub(super) fn apply(
    original: &mut PatchObject,
    patch: &mut PatchObject,
    schema: Option<&Schema>,
) -> Result<(), PatchError> {
    let directives: Vec<String> =
        patch.keys().filter(|key| key.starts_with(SET_ELEMENT_ORDER)).cloned().collect();
    for directive in directives {
        let order = into_list(patch.remove(&directive).expect("the key is the patch's"))?;
        let key = field_of(&directive, SET_ELEMENT_ORDER).ok_or_else(malformed)?;
        let field = field_schema(schema, &key)?;
        let elements = match field.and_then(|field| field.facts().patch_merge_key.as_deref()) {
            Some(key) => Elements::Keyed(key),
            None => Elements::Scalars,
        };
        let patched = patch.remove(&key).map(into_list).transpose()?;
        let live = original.get(&key).cloned().map(into_list).transpose()?;
        check_against(patched.as_deref().unwrap_or_default(), &order, elements)?;
        let merged = match (live.clone(), patched.clone()) {
            (None, None) => continue,
            (Some(live), None) => live,
            (None, Some(patched)) => patched.into_iter().filter_map(without_directives).collect(),
            (Some(live), Some(patched)) => list::merge(live, patched, field, false)?,
        };
        let (live, patched) = (live.unwrap_or_default(), patched.unwrap_or_default());
        list::check_elements(&live, &patched)?;
        elements.check(&merged)?;
        let live = order_left(live, patched, elements);
        let (listed, others) = partition(merged, &order, elements);
        let ordered =
            interleave(sorted(others, &live, elements)?, sorted(listed, &order, elements)?, &live, elements);
        original.insert(key, Value::Array(ordered));
    }
    Ok(())
}

/// The order that was, as a merge leaves it: upstream deletes from and appends to the very list whose order
/// it then asks for, as far as that list had room, so a new element may take a deleted one's place.
fn order_left(mut live: Vec<Value>, patch: Vec<Value>, elements: Elements) -> Vec<Value> {
    let room = live.len();
    let (deletions, others): (Vec<Value>, Vec<Value>) = patch.into_iter().partition(is_deletion);
    let deleted = ElementPlaces::of(&deletions, elements);
    live.retain(|element| deleted.get(element).is_none());
    let kept = ElementPlaces::of(&live, elements);
    let is_new = |element: &Value| element.get(DIRECTIVE).is_none() && kept.get(element).is_none();
    live.extend(others.into_iter().filter(is_new));
    live.truncate(room);
    live
}

/// The order of a merge without a directive: elements of the patch as it has them, the others between them
/// as they were.
pub(super) fn by_patch(
    merged: Vec<Value>,
    patch: &[Value],
    live: &[Value],
    elements: Elements,
) -> Result<Vec<Value>, PatchError> {
    elements.check(&merged)?;
    let (listed, others) = partition(merged, patch, elements);
    Ok(interleave(sorted(others, live, elements)?, sorted(listed, patch, elements)?, live, elements))
}

fn partition(list: Vec<Value>, by: &[Value], elements: Elements) -> (Vec<Value>, Vec<Value>) {
    let places = ElementPlaces::of(by, elements);
    list.into_iter().partition(|element| places.get(element).is_some())
}

/// By their places in `order`; directives go to the end.
fn sorted(list: Vec<Value>, order: &[Value], elements: Elements) -> Result<Vec<Value>, PatchError> {
    elements.check(order)?;
    let places = ElementPlaces::of(order, elements);
    let (directives, plain): (Vec<Value>, Vec<Value>) = list.into_iter().partition(is_deletion);
    let placed = plain.into_iter().map(|element| (places.get(&element), element)).collect();
    Ok(place_sort(placed).into_iter().chain(directives).collect())
}

/// Stable, by place. Upstream's comparison says "less" of whatever has no place, and the insertion sort
/// that Go uses for up to twenty elements thereby carries such an element to the front.
fn place_sort(mut list: Vec<(Option<usize>, Value)>) -> Vec<Value> {
    const INSERTION_SORT: usize = 20;
    if list.len() > INSERTION_SORT || list.iter().all(|(place, _)| place.is_some()) {
        list.sort_by_key(|(place, _)| *place);
        return list.into_iter().map(|(_, element)| element).collect();
    }
    let mut sorted: Vec<(Option<usize>, Value)> = Vec::with_capacity(list.len());
    for (place, element) in list {
        let is_less = |other: Option<usize>| place.zip(other).is_none_or(|(own, other)| own < other);
        let at = sorted.iter().rposition(|(other, _)| !is_less(*other)).map_or(0, |at| at + 1);
        sorted.insert(at, (place, element));
    }
    sorted.into_iter().map(|(_, element)| element).collect()
}

/// Puts the elements that only the server has before the first of the patch's that came after them.
fn interleave(others: Vec<Value>, listed: Vec<Value>, live: &[Value], elements: Elements) -> Vec<Value> {
    let places = ElementPlaces::of(live, elements);
    let mut others = others.into_iter().peekable();
    let mut all = Vec::with_capacity(others.len() + listed.len());
    for element in listed {
        while let Some(other) = others.peek() {
            match (places.get(other), places.get(&element)) {
                (Some(before), Some(after)) if before < after => all.extend(others.next()),
                _ => break,
            }
        }
        all.push(element);
    }
    all.extend(others);
    all
}

/// The patch's elements must be among the ordered ones, in the same order.
fn check_against(patch: &[Value], order: &[Value], elements: Elements) -> Result<(), PatchError> {
    if patch.is_empty() || order.is_empty() {
        return Ok(());
    }
    let kept: Vec<&Value> = patch.iter().filter(|element| !is_deletion(element)).collect();
    let mut at = 0;
    let mut place = 0;
    while at < kept.len() && place < order.len() {
        if kept[at].get(DIRECTIVE).is_some() {
            at += 1;
            continue;
        }
        elements.check(std::slice::from_ref(kept[at]))?;
        elements.check(std::slice::from_ref(&order[place]))?;
        at += usize::from(elements.same(kept[at], &order[place]));
        place += 1;
    }
    if at < kept.len() {
        let print = |list: &[Value]| go_print(&Value::Array(list.to_vec()));
        return Err(PatchError::Internal(format!(
            "The order in patch list:\n{}\n doesn't match {SET_ELEMENT_ORDER} list:\n{}\n",
            print(patch),
            print(order)
        )));
    }
    Ok(())
}

fn is_deletion(element: &Value) -> bool {
    element.get(DIRECTIVE).is_some_and(|directive| directive == "delete")
}

fn into_list(value: Value) -> Result<Vec<Value>, PatchError> {
    match value {
        Value::Array(list) => Ok(list),
        other => Err(wrong_type("[]interface {}", &other)),
    }
}

fn malformed() -> PatchError {
    PatchError::BadRequest("invalid patch format of setElementOrder list".into())
}

fn wrong_type(expected: &str, given: &Value) -> PatchError {
    let given = match given {
        // What `%s` makes of the type of nothing.
        Value::Null => "%!s(<nil>)",
        given => go_type(given),
    };
    PatchError::Internal(format!("expected a {expected}, but received a {given}"))
}
