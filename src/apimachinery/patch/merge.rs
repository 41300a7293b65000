//! JSON merge patch (RFC 7386).

use serde_json::{Map, Value};

use super::document::{Document, PatchError, Patched, decode_object};

/// Lays the patch over the object; null removes.
pub(super) fn apply(original: Value, patch: Document) -> Result<Patched, PatchError> {
    let (patch, strict_errors) = decode_object(patch)
        .map_err(|error| PatchError::BadRequest(format!("error decoding patch: {error}")))?;
    let mut value = original;
    merge(&mut value, patch);
    Ok(Patched { strict_errors, value })
}

fn merge(target: &mut Value, patch: Map<String, Value>) {
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Value::Object(target) = target else { return };
    for (key, value) in patch {
        match value {
            Value::Null => {
                target.remove(&key);
            }
            Value::Object(patch) => merge(target.entry(key).or_insert(Value::Null), patch),
            value => {
                target.insert(key, value);
            }
        }
    }
}
