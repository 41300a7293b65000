//! JSON patch (RFC 6902), as lenient and as strict as the library that kube-apiserver uses.
//!
//! Where that departs from the RFC, so does this: an index may be negative (from the end), replacing a
//! field that is not there adds it, and a field that is not there tests equal to null.

use serde_json::{Value, json};

use super::{PatchError, Patched};
use crate::apimachinery::decode::decode_plain;
use crate::apimachinery::schema::Schema;

/// Upstream's bound on the operations of one patch; more are refused whole.
const MAX_OPERATIONS: usize = 10_000;

/// Applies every operation or none.
pub(super) fn apply(original: Value, patch: &[u8]) -> Result<Patched, PatchError> {
    let (operations, strict_errors) = decode_plain(&operations_schema(), patch)
        .map_err(|error| PatchError::BadRequest(format!("error decoding patch: {error}")))?;
    let operations = operations.as_array().map_or(&[][..], Vec::as_slice);
    if operations.len() > MAX_OPERATIONS {
        return Err(PatchError::RequestEntityTooLarge(format!(
            "The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {}",
            operations.len()
        )));
    }
    let mut value = original;
    for operation in operations {
        perform(&mut value, operation).map_err(PatchError::Unprocessable)?;
    }
    let strict_errors = strict_errors.into_iter().map(|error| format!("json patch {error}")).collect();
    Ok(Patched { strict_errors, value })
}

fn operations_schema() -> Schema {
    let text = json!({"type": "string", "x-kubarium-presence": "always"});
    Schema::from_openapi(&json!({
        "type": "array",
        "x-kubarium-go-type": "[]handlers.jsonPatchOp",
        "items": {
            "type": "object",
            "x-kubarium-name": "handlers.jsonPatchOp",
            "properties": {"op": text, "path": text, "from": text, "value": {"nullable": true, "x-kubarium-presence": "kept"}},
        },
    }))
}

fn perform(document: &mut Value, operation: &Value) -> Result<(), String> {
    let kind = operation.get("op").and_then(Value::as_str).unwrap_or("unknown");
    let value = || operation.get("value").cloned().unwrap_or(Value::Null);
    let text = |field: &str| {
        let text = operation.get(field).and_then(Value::as_str);
        text.ok_or_else(|| format!("{kind} operation failed to decode {field}: missing value"))
    };
    match kind {
        "add" => add(document, text("path")?, value()),
        "remove" => remove(document, text("path")?).map(drop),
        "replace" => replace(document, text("path")?, value()),
        "test" => test(document, text("path")?, &value()),
        "move" => {
            let value = remove(document, text("from")?)?;
            add(document, text("path")?, value)
        }
        "copy" => {
            let value = get(document, text("from")?)?.cloned().unwrap_or(Value::Null);
            add(document, text("path")?, value)
        }
        unknown => Err(format!("Unexpected kind: {unknown}")),
    }
}

fn add(document: &mut Value, path: &str, value: Value) -> Result<(), String> {
    let (parent, key) = parent(document, path)?;
    match parent {
        Value::Object(map) => {
            map.insert(key, value);
        }
        Value::Array(list) if key == "-" => list.push(value),
        Value::Array(list) => {
            let at = index(&key, list.len() + 1)?;
            list.insert(at, value);
        }
        _ => return Err(missing(path)),
    }
    Ok(())
}

fn remove(document: &mut Value, path: &str) -> Result<Value, String> {
    let (parent, key) = parent(document, path)?;
    match parent {
        Value::Object(map) => {
            map.remove(&key).ok_or_else(|| format!("Unable to remove nonexistent key: {key}: missing value"))
        }
        Value::Array(list) => Ok(list.remove(index(&key, list.len())?)),
        _ => Err(missing(path)),
    }
}

fn replace(document: &mut Value, path: &str, value: Value) -> Result<(), String> {
    if path.is_empty() {
        if !value.is_object() && !value.is_array() {
            return Err("replace operation value must be object or array".into());
        }
        *document = value;
        return Ok(());
    }
    let (parent, key) = parent(document, path)?;
    match parent {
        Value::Object(map) => {
            map.insert(key, value);
        }
        Value::Array(list) => {
            let at = index(&key, list.len())?;
            list[at] = value;
        }
        _ => return Err(missing(path)),
    }
    Ok(())
}

fn test(document: &mut Value, path: &str, value: &Value) -> Result<(), String> {
    let found = get(document, path)?;
    match found.unwrap_or(&Value::Null) == value {
        true => Ok(()),
        false => Err(format!("testing value {path} failed: test failed")),
    }
}

fn get<'d>(document: &'d mut Value, path: &str) -> Result<Option<&'d Value>, String> {
    if path.is_empty() {
        return Ok(Some(document));
    }
    let (parent, key) = parent(document, path)?;
    match parent {
        Value::Object(map) => Ok(map.get(&key)),
        Value::Array(list) => {
            let at = index(&key, list.len())?;
            Ok(list.get(at))
        }
        _ => Err(missing(path)),
    }
}

/// The container that a path leads to, and the key in it.
fn parent<'d>(document: &'d mut Value, path: &str) -> Result<(&'d mut Value, String), String> {
    let mut parts = path.split('/').map(|part| part.replace("~1", "/").replace("~0", "~"));
    parts.next();
    let mut parts: Vec<String> = parts.collect();
    let key = parts.pop().ok_or_else(|| missing(path))?;
    let mut at = document;
    for part in parts {
        at = match at {
            Value::Object(map) => map.get_mut(&part),
            Value::Array(list) => index(&part, list.len()).ok().and_then(|at| list.get_mut(at)),
            _ => None,
        }
        .ok_or_else(|| missing(path))?;
    }
    Ok((at, key))
}

/// A place in a list of `length`; negative counts from its end.
fn index(key: &str, length: usize) -> Result<usize, String> {
    let given: i64 = key.parse().map_err(|_| format!("value was not a proper array index: '{key}'"))?;
    let at = if given < 0 { given + length as i64 } else { given };
    match usize::try_from(at) {
        Ok(at) if at < length => Ok(at),
        _ => Err(format!("Unable to access invalid index: {given}: invalid index referenced")),
    }
}

fn missing(path: &str) -> String {
    format!("doc is missing path: {path:?}: missing value")
}
