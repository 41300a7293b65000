//! Strategic merge patch: a merge patch in which lists merge by the keys that the schema names.
//!
//! Upstream's `k8s.io/apimachinery/pkg/util/strategicpatch`. What a patch may say beyond its values:
//! - `$patch: delete | replace` in an object: empty it, or take the patch's instead of merging; in an
//!   element of a keyed list: drop the element, or take the patch's list whole;
//! - `$retainKeys`: of this object keep only these fields (unions such as a Deployment's strategy);
//! - `$deleteFromPrimitiveList/FIELD`: take these scalars out of the list;
//! - `$setElementOrder/FIELD`: the order of the list's elements afterwards.

mod list;
mod order;

#[cfg(test)]
mod tests;

use serde_json::{Map, Value};

use super::document::{Document, PatchError, Patched, decode_object};
use crate::schema::Schema;
use golang::go_print::go_print;

const DIRECTIVE: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const DELETE_FROM_PRIMITIVE_LIST: &str = "$deleteFromPrimitiveList";
const SET_ELEMENT_ORDER: &str = "$setElementOrder";

type PatchObject = Map<String, Value>;

/// Lays the patch over the object, list by list as the schema says.
pub(super) fn apply(schema: &Schema, original: Value, patch: Document) -> Result<Patched, PatchError> {
    let (patch, strict_errors) = decode_object(patch).map_err(|why| PatchError::BadRequest(why.into()))?;
    let original = match original {
        Value::Object(members) => members,
        _ => PatchObject::new(),
    };
    let value = Value::Object(merge_map(original, patch, Some(schema))?);
    Ok(Patched { value, strict_errors })
}

/// Merges two objects. `schema` is None below a map of no known values.
fn merge_map(
    mut original: PatchObject,
    mut patch: PatchObject,
    schema: Option<&Schema>,
) -> Result<PatchObject, PatchError> {
    match patch.get(DIRECTIVE).map(|directive| directive.as_str()) {
        None => {}
        Some(Some("replace")) => {
            patch.remove(DIRECTIVE);
            return Ok(patch);
        }
        Some(Some("delete")) => return Ok(PatchObject::new()),
        Some(_) => return Err(unknown_directive(&patch)),
    }
    retain_keys(&mut original, &mut patch)?;
    order::apply(&mut original, &mut patch, schema)?;
    for (key, value) in patch {
        merge_field(&mut original, key, value, schema)?;
    }
    Ok(original)
}

fn merge_field(
    original: &mut PatchObject,
    key: String,
    patch: Value,
    schema: Option<&Schema>,
) -> Result<(), PatchError> {
    let is_deletion = key.starts_with(DELETE_FROM_PRIMITIVE_LIST);
    let key = if is_deletion {
        field_of(&key, DELETE_FROM_PRIMITIVE_LIST)
            .ok_or_else(|| PatchError::BadRequest("invalid patch format of primitive list".into()))?
    } else {
        key
    };
    if patch.is_null() {
        original.remove(&key);
        return Ok(());
    }
    let merged = match (original.remove(&key), patch) {
        (Some(Value::Object(original)), Value::Object(patch)) => {
            let field = field_schema(schema, &key)?;
            if field.is_some_and(|field| field.has_patch_strategy("replace")) {
                Some(Value::Object(patch))
            } else {
                Some(Value::Object(merge_map(original, patch, field)?))
            }
        }
        (Some(Value::Array(original)), Value::Array(patch)) => {
            let field = field_schema(schema, &key)?;
            Some(Value::Array(list::merge(original, patch, field, is_deletion)?))
        }
        (original, _) if is_deletion => original,
        (Some(original), patch) if same_kind(&original, &patch) => Some(patch),
        (_, patch) => without_directives(without_nulls(patch)),
    };
    if let Some(merged) = merged {
        original.insert(key, merged);
    }
    Ok(())
}

/// Upstream's `LookupPatchMetadata`: what the struct says of a field; a field of no struct has no strategy.
fn field_schema<'s>(schema: Option<&'s Schema>, key: &str) -> Result<Option<&'s Schema>, PatchError> {
    let Some(schema) = schema else { return Ok(None) };
    match (schema.child(key), schema.fields()) {
        (None, Some(_)) => Err(PatchError::Internal(format!(
            "unable to find api field in struct {} for the json field {key:?}",
            schema.go_struct()
        ))),
        (child, _) => Ok(child),
    }
}

/// Keeps only the named fields of the original; every field of the patch must be among them.
fn retain_keys(original: &mut PatchObject, patch: &mut PatchObject) -> Result<(), PatchError> {
    let Some(keys) = patch.remove(RETAIN_KEYS) else { return Ok(()) };
    let malformed = || PatchError::BadRequest("invalid patch format of retainKeys".into());
    let keys = keys.as_array().ok_or_else(malformed)?;
    let retained = |name: &str| keys.iter().any(|key| key == name);
    let is_covered = |(name, value): (&String, &Value)| {
        value.is_null()
            || name.starts_with(DELETE_FROM_PRIMITIVE_LIST)
            || name.starts_with(SET_ELEMENT_ORDER)
            || retained(name)
    };
    if !patch.iter().all(is_covered) {
        return Err(malformed());
    }
    original.retain(|name, _| retained(name));
    Ok(())
}

/// `FIELD` of `$directive/FIELD`.
fn field_of(key: &str, directive: &str) -> Option<String> {
    let (prefix, field) = key.split_once('/')?;
    (prefix == directive).then(|| field.to_owned())
}

fn same_kind(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => left.is_f64() == right.is_f64(),
        _ => std::mem::discriminant(left) == std::mem::discriminant(right),
    }
}

/// What a patch adds where nothing was has nothing to delete.
fn without_nulls(mut value: Value) -> Value {
    match &mut value {
        Value::Object(map) => {
            map.retain(|_, value| !value.is_null());
            map.values_mut().for_each(|value| *value = without_nulls(value.take()));
        }
        Value::Array(list) => list.iter_mut().for_each(|value| *value = without_nulls(value.take())),
        _ => {}
    }
    value
}

/// Drops every object that is a directive; None where the value itself is one.
fn without_directives(value: Value) -> Option<Value> {
    match value {
        Value::Object(map) if map.contains_key(DIRECTIVE) => None,
        Value::Object(map) => {
            let kept = map.into_iter().filter_map(|(key, value)| Some((key, without_directives(value)?)));
            Some(Value::Object(kept.collect()))
        }
        Value::Array(list) => Some(Value::Array(list.into_iter().filter_map(without_directives).collect())),
        scalar => Some(scalar),
    }
}

fn unknown_directive(patch: &PatchObject) -> PatchError {
    let directive = patch.get(DIRECTIVE).map(go_print).unwrap_or_default();
    PatchError::Internal(format!("unknown patch type: {directive} in map: {}", print(patch)))
}

fn no_merge_key(element: &PatchObject, merge_key: &str) -> PatchError {
    PatchError::Internal(format!("map: {} does not contain declared merge key: {merge_key}", print(element)))
}

fn print(object: &PatchObject) -> String {
    go_print(&Value::Object(object.clone()))
}
