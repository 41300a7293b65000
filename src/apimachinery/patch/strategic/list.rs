//! Merging two lists: scalars as a set, objects by their merge key.

use serde_json::Value;

use super::order::{self, Elements};
use super::{DIRECTIVE, PatchError, merge_map, no_merge_key, unknown_directive};
use crate::apimachinery::patch::go_print::go_print;
use crate::apimachinery::schema::Schema;

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
            return Ok(original.into_iter().filter(|value| !patch.contains(value)).collect());
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
    let mut replace = false;
    for element in patch {
        let Some(directive) = element.get(DIRECTIVE) else {
            plain.push(element);
            continue;
        };
        let object = element.as_object().expect("only objects have a directive");
        match directive.as_str() {
            Some("delete") => {
                let value = object.get(merge_key).ok_or_else(|| no_merge_key(object, merge_key))?;
                original.retain(|own| own.get(merge_key) != Some(value));
            }
            Some("replace") => replace = true,
            Some("merge") => {
                let error = "merging lists cannot yet be specified in the patch";
                return Err(PatchError::Internal(error.into()));
            }
            _ => return Err(unknown_directive(object)),
        }
    }
    Ok(if replace { (plain, Vec::new()) } else { (original, plain) })
}

fn merge_objects(
    mut original: Vec<Value>,
    patch: Vec<Value>,
    merge_key: &str,
    items: Option<&Schema>,
) -> Result<Vec<Value>, PatchError> {
    for element in patch {
        let Value::Object(element) = element else { continue };
        let value = element.get(merge_key).ok_or_else(|| no_merge_key(&element, merge_key))?;
        match original.iter_mut().find(|own| own.get(merge_key) == Some(value)) {
            Some(own) => {
                let Value::Object(object) = own.take() else { continue };
                *own = Value::Object(merge_map(object, element, items)?);
            }
            None => original.push(Value::Object(element)),
        }
    }
    Ok(original)
}

/// Upstream fills the place of a duplicate with the last element; the order of its result is part of what
/// it does.
fn deduplicated(mut list: Vec<Value>) -> Vec<Value> {
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
