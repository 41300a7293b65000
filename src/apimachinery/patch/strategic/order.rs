//! The order of a merged list: `$setElementOrder` first, then the patch's own order, then the order that was.

use serde_json::Value;

use super::{
    DIRECTIVE, Object, PatchError, SET_ELEMENT_ORDER, field_of, field_schema, list, no_merge_key,
    without_directives,
};
use crate::apimachinery::patch::go_print::go_print;
use crate::apimachinery::schema::Schema;

/// What tells two elements apart.
#[derive(Clone, Copy)]
pub(super) enum Elements<'k> {
    /// Themselves.
    Scalars,
    /// The value of this field.
    Keyed(&'k str),
}

impl Elements<'_> {
    fn same(self, left: &Value, right: &Value) -> bool {
        match self {
            Self::Scalars => left == right,
            Self::Keyed(key) => left.get(key).is_some() && left.get(key) == right.get(key),
        }
    }

    fn position(self, list: &[Value], element: &Value) -> Option<usize> {
        list.iter().position(|other| self.same(other, element))
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
    original: &mut Object,
    patch: &mut Object,
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
        let live = live.unwrap_or_default();
        list::check_elements(&live, patched.as_deref().unwrap_or_default())?;
        elements.check(&merged)?;
        let (listed, others) = partition(merged, &order, elements);
        let ordered =
            interleave(sorted(others, &live, elements)?, sorted(listed, &order, elements)?, &live, elements);
        original.insert(key, Value::Array(ordered));
    }
    Ok(())
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
    list.into_iter().partition(|element| elements.position(by, element).is_some())
}

/// By their places in `order`; directives go to the end.
fn sorted(list: Vec<Value>, order: &[Value], elements: Elements) -> Result<Vec<Value>, PatchError> {
    elements.check(order)?;
    let (directives, mut plain): (Vec<Value>, Vec<Value>) = list.into_iter().partition(is_deletion);
    place_sort(&mut plain, |element| elements.position(order, element));
    plain.extend(directives);
    Ok(plain)
}

/// Stable, by place. Upstream's comparison says "less" of whatever has no place, and its insertion sort
/// thereby carries such an element to the front.
fn place_sort(list: &mut Vec<Value>, place: impl Fn(&Value) -> Option<usize>) {
    let mut sorted: Vec<(Option<usize>, Value)> = Vec::with_capacity(list.len());
    for element in list.drain(..) {
        let own = place(&element);
        let is_less = |other: Option<usize>| own.zip(other).is_none_or(|(own, other)| own < other);
        let at = sorted.iter().rposition(|(other, _)| !is_less(*other)).map_or(0, |at| at + 1);
        sorted.insert(at, (own, element));
    }
    list.extend(sorted.into_iter().map(|(_, element)| element));
}

/// Puts the elements that only the server has before the first of the patch's that came after them.
fn interleave(others: Vec<Value>, listed: Vec<Value>, live: &[Value], elements: Elements) -> Vec<Value> {
    let place = |element: &Value| elements.position(live, element);
    let mut others = others.into_iter().peekable();
    let mut all = Vec::with_capacity(others.len() + listed.len());
    for element in listed {
        while let Some(other) = others.peek() {
            match (place(other), place(&element)) {
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
    let (mut at, mut place) = (0, 0);
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
        Value::Null => "%!s(<nil>)",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    };
    PatchError::Internal(format!("expected a {expected}, but received a {given}"))
}
