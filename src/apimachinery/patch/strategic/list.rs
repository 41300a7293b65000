//! Merging two lists: scalars as a set, objects by their merge key.

use serde_json::Value;

use super::order::{self, ElementPlaces, Elements};
use super::{DIRECTIVE, PatchError, PatchObject, merge_map, no_merge_key, unknown_directive};
use crate::schema::Schema;
use golang::go_print::go_print;

/// Merges by the field's strategy; without one the patch's list replaces the original's.
pub(super) fn merge(
    original: Vec<Value>,
    patch: Vec<Value>,
    field: Option<&Schema>,
    is_deletion: bool,
) -> Result<Vec<Value>, PatchError> {
    let Some(field) = field.filter(|field| field.has_patch_strategy("merge")) else { return Ok(patch) };
    if original.is_empty() && patch.is_empty() {
        return Ok(original);
    }
    let merge_key = field.facts().patch_merge_key.as_deref();
    if !check_elements(&original, &patch)? {
        if is_deletion {
            let unwanted = ElementPlaces::of(&patch, Elements::Scalars);
            return Ok(original.into_iter().filter(|value| unwanted.get(value).is_none()).collect());
        }
        let merged = deduplicated(original.iter().chain(&patch).cloned().collect());
        return order::by_patch(merged, &patch, &original, Elements::Scalars);
    }
    let Some(merge_key) = merge_key else {
        return Err(PatchError::Internal("cannot merge lists without merge key for type struct".into()));
    };
    let (original, patch) = apply_directives(original, patch, merge_key)?;
    let merged = merge_objects(original.clone(), patch.clone(), merge_key, field.items())?;
    order::by_patch(merged, &patch, &original, Elements::Keyed(merge_key))
}

/// Whether the elements are objects; all must be of one kind, and none a list.
pub(super) fn check_elements(original: &[Value], patch: &[Value]) -> Result<bool, PatchError> {
    let mut all = original.iter().chain(patch);
    let Some(first) = all.next() else {
        return Err(PatchError::Internal("no elements in any of the given slices".into()));
    };
    if first.is_array() {
        return Err(PatchError::Unprocessable("lists of lists are not supported".into()));
    }
    if all.any(|element| !super::same_kind(first, element)) {
        let print = |list: &[Value]| go_print(&Value::Array(list.to_vec()));
        let lists = format!("[{} {}]", print(original), print(patch));
        return Err(PatchError::Internal(format!("list element types are not identical: {lists}")));
    }
    Ok(first.is_object())
}

/// Works off the elements that are directives: what is left of the original and of the patch.
fn apply_directives(
    mut original: Vec<Value>,
    patch: Vec<Value>,
    merge_key: &str,
) -> Result<(Vec<Value>, Vec<Value>), PatchError> {
    let mut plain = Vec::new();
    let mut deleted = Vec::new();
    let mut replace = false;
    for element in patch {
        let Some(directive) = element.get(DIRECTIVE) else {
            plain.push(element);
            continue;
        };
        let object = element.as_object().expect("only objects have a directive");
        match directive.as_str() {
            Some("delete") => {
                object.get(merge_key).ok_or_else(|| no_merge_key(object, merge_key))?;
                deleted.push(element);
            }
            Some("replace") => replace = true,
            Some("merge") => {
                let error = "merging lists cannot yet be specified in the patch";
                return Err(PatchError::Internal(error.into()));
            }
            _ => return Err(unknown_directive(object)),
        }
    }
    let deleted = ElementPlaces::of(&deleted, Elements::Keyed(merge_key));
    original.retain(|own| deleted.get(own).is_none());
    Ok(if replace { (plain, Vec::new()) } else { (original, plain) })
}

fn merge_objects(
    mut original: Vec<Value>,
    patch: Vec<Value>,
    merge_key: &str,
    items: Option<&Schema>,
) -> Result<Vec<Value>, PatchError> {
    let mut places = ElementPlaces::of(&original, Elements::Keyed(merge_key));
    for element in patch {
        let place = places.get(&element);
        let Value::Object(object) = &element else { continue };
        object.get(merge_key).ok_or_else(|| no_merge_key(object, merge_key))?;
        match (place, element) {
            (Some(at), Value::Object(patch)) => {
                let own = match original[at].take() {
                    Value::Object(own) => own,
                    _ => PatchObject::new(),
                };
                original[at] = Value::Object(merge_map(own, patch, items)?);
            }
            (_, element) => {
                places.note(&element, original.len());
                original.push(element);
            }
        }
    }
    Ok(original)
}

/// Upstream fills the place of a duplicate with the last element, and the order of its result is part of
/// what it does; a long list, where that would take too long, keeps its order.
fn deduplicated(mut list: Vec<Value>) -> Vec<Value> {
    const SHORT: usize = 1000;
    let places = ElementPlaces::of(&list, Elements::Scalars);
    let is_first = |(at, element): (usize, &Value)| places.get(element) == Some(at);
    let firsts: Vec<bool> = list.iter().enumerate().map(is_first).collect();
    if list.len() > SHORT || !firsts.contains(&false) {
        let kept = list.into_iter().zip(firsts).filter(|(_, is_first)| *is_first);
        return kept.map(|(element, _)| element).collect();
    }
    let mut at = 0;
    while at < list.len() {
        let mut other = at + 1;
        while other < list.len() {
            if list[at] == list[other] {
                list.swap_remove(other);
            } else {
                other += 1;
            }
        }
        at += 1;
    }
    list
}
