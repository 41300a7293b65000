//! JSON patch (RFC 6902), as lenient and as strict as the library that kube-apiserver uses.
//!
//! Where that departs from the RFC, so does this: an index may be negative (from the end), a field that is
//! not there tests equal to null, and a whole object is not replaced by what is none. The words are its own,
//! too: who writes a webhook's patch hears them.

use serde_json::{Value, json};

use super::document::{PatchError, Patched};
use crate::decode::{decode_plain, syntax_error};
use crate::json_bytes::json_bytes;
use crate::schema::Schema;
use golang::go_text::quote;

golang::text_error! {
    /// What is no JSON patch; in upstream's words.
    pub struct BadJsonPatch;
}

const MISSING: &str = "missing value";
/// How the text of a test that failed ends.
pub const TEST_FAILED: &str = "test failed";

/// Upstream's bound on the operations of one patch; more are refused whole.
const MAX_OPERATIONS: usize = 10_000;
/// How many bytes of JSON all copies of one patch may make together: upstream's `AccumulatedCopySizeLimit`,
/// which is its `MaxRequestBodyBytes`. Beyond it the patch is refused whole, before the copy is made.
const MAX_COPIED_BYTES: usize = 3 * 1024 * 1024;
/// How deep moves, copies and additions may nest: twice as deep as a body. Who walks through an object needs
/// stack for each level; a patch that goes deeper is refused whole.
const MAX_DEPTH: usize = 256;
/// So often a patch may come near that, and the whole object is looked at to see how deep it is.
const MAX_LOOKS: usize = 256;

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
    let mut growth = Growth { copied_bytes: 0, deepest: depth(&value), looks: 0 };
    for operation in operations {
        perform(&mut value, operation, &mut growth).map_err(PatchError::Unprocessable)?;
        growth.check_depth(&value, operation).map_err(PatchError::Unprocessable)?;
    }
    let strict_errors = strict_errors.into_iter().map(|error| format!("json patch {error}")).collect();
    Ok(Patched { strict_errors, value })
}

/// Whether a document is a JSON patch, as those see it who get one from elsewhere than a request
/// (`jsonpatch.DecodePatch`): how many operations it has.
///
/// # Errors
/// What is wrong with it.
pub fn check(patch: &[u8]) -> Result<usize, BadJsonPatch> {
    let tree: Value = serde_json::from_slice(patch)
        .map_err(|error| syntax_error(patch).unwrap_or_else(|| error.to_string()))?;
    let wrong = |value: &Value, wanted: &str| {
        let kind = go_kind(value);
        Err(format!("json: cannot unmarshal {kind} into Go value of type jsonpatch.{wanted}").into())
    };
    let operations = match &tree {
        Value::Null => return Ok(0),
        Value::Array(operations) => operations,
        other => return wrong(other, "Patch"),
    };
    for operation in operations {
        if !operation.is_object() {
            return wrong(operation, "Operation");
        }
        check_operation(operation).map_err(|error| format!("invalid operation {operation}: {error}"))?;
    }
    Ok(operations.len())
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

/// What the operations of a patch have made of the object so far.
struct Growth {
    copied_bytes: usize,
    /// It is at most so deep.
    deepest: usize,
    looks: usize,
}

impl Growth {
    /// After an operation. How deep a value was that it moved or copied is not known, so the whole is looked
    /// at when it might be too deep.
    fn check_depth(&mut self, document: &Value, operation: &Value) -> Result<(), String> {
        let text = |field: &str| operation.get(field).and_then(Value::as_str).unwrap_or_default();
        let above = text("path").split('/').count();
        self.deepest = match text("op") {
            "move" | "copy" => self.deepest + above,
            "add" | "replace" => self.deepest.max(above + operation.get("value").map_or(0, depth)),
            _ => return Ok(()),
        };
        if self.deepest > MAX_DEPTH {
            self.looks += 1;
            self.deepest = depth(document);
        }
        if self.deepest > MAX_DEPTH || self.looks > MAX_LOOKS {
            Err("exceeded max depth".into())
        } else {
            Ok(())
        }
    }
}

/// How many levels of lists and objects there are.
fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(members) => 1 + members.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

fn perform(document: &mut Value, operation: &Value, growth: &mut Growth) -> Result<(), String> {
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
            let (from, path) = (text("from")?, text("path")?);
            let (parent, key) =
                parent(document, from).ok_or_else(|| nowhere("move", "doc is missing from path", from))?;
            let within = |error| format!("error in move for path: '{key}': {error}");
            child(parent, &key).map_err(within)?;
            let value = take(parent, &key).map_err(within)?;
            let (parent, key) = parent_of_destination(document, "move", path)?;
            put(parent, &key, value).map_err(|error| format!("error in move for path: '{path}': {error}"))
        }
        "copy" => copy(document, text("from")?, text("path")?, &mut growth.copied_bytes),
        unknown => Err(format!("Unexpected kind: {unknown}")),
    }
}

fn copy(document: &mut Value, from: &str, path: &str, copied_bytes: &mut usize) -> Result<(), String> {
    let (parent, key) =
        parent(document, from).ok_or_else(|| nowhere("copy", "doc is missing from path", from))?;
    let found = child(parent, &key).map_err(|error| format!("error in copy for from: '{from}': {error}"))?;
    *copied_bytes += json_bytes(found);
    if *copied_bytes > MAX_COPIED_BYTES {
        return Err(format!(
            "Unable to complete the copy, the accumulated size increase of copy is {copied_bytes}, exceeding \
             the limit {MAX_COPIED_BYTES}"
        ));
    }
    let value = found.clone();
    let (parent, key) = parent_of_destination(document, "copy", path)?;
    put(parent, &key, value).map_err(|error| format!("error while adding value during copy: {error}"))
}

fn parent_of_destination<'d>(
    document: &'d mut Value,
    operation: &str,
    path: &str,
) -> Result<(&'d mut Value, String), String> {
    parent(document, path).ok_or_else(|| nowhere(operation, "doc is missing destination path", path))
}

fn add(document: &mut Value, path: &str, value: Value) -> Result<(), String> {
    let missing = || nowhere("add", "doc is missing path", &format!("\"{path}\""));
    let (parent, key) = parent(document, path).ok_or_else(missing)?;
    put(parent, &key, value).map_err(|error| format!("error in add for path: '{path}': {error}"))
}

fn remove(document: &mut Value, path: &str) -> Result<Value, String> {
    let missing = || nowhere("remove", "doc is missing path", &format!("\"{path}\""));
    let (parent, key) = parent(document, path).ok_or_else(missing)?;
    take(parent, &key).map_err(|error| format!("error in remove for path: '{path}': {error}"))
}

fn replace(document: &mut Value, path: &str, value: Value) -> Result<(), String> {
    if path.is_empty() {
        // What is neither changes nothing.
        if value.is_object() || value.is_array() {
            *document = value;
        }
        return Ok(());
    }
    let (parent, key) =
        parent(document, path).ok_or_else(|| nowhere("replace", "doc is missing path", path))?;
    match child(parent, &key) {
        Ok(old) => *old = value,
        Err(_) => return Err(nowhere("replace", "doc is missing key", path)),
    }
    Ok(())
}

fn test(document: &mut Value, path: &str, value: &Value) -> Result<(), String> {
    let differs = || format!("testing value {path} failed: {TEST_FAILED}");
    if path.is_empty() {
        return if document == value { Ok(()) } else { Err(differs()) };
    }
    let (parent, key) = parent(document, path).ok_or_else(|| nowhere("test", "is missing path", path))?;
    let is_same = match child(parent, &key) {
        Ok(found) => found == value,
        // A field that is not there is as good as null.
        Err(error) if error.ends_with(MISSING) => value.is_null(),
        Err(error) => return Err(format!("error in test for path: '{path}': {error}")),
    };
    if is_same { Ok(()) } else { Err(differs()) }
}

/// What is at a place of a container.
fn child<'d>(parent: &'d mut Value, key: &str) -> Result<&'d mut Value, String> {
    match parent {
        Value::Object(map) => {
            map.get_mut(key).ok_or_else(|| format!("unable to get nonexistent key: {key}: {MISSING}"))
        }
        Value::Array(list) => {
            let at = index(key, list.len())?;
            Ok(&mut list[at])
        }
        _ => Err(format!("unable to get nonexistent key: {key}: {MISSING}")),
    }
}

fn put(parent: &mut Value, key: &str, value: Value) -> Result<(), String> {
    match parent {
        Value::Object(map) => drop(map.insert(key.to_owned(), value)),
        Value::Array(list) if key == "-" => list.push(value),
        Value::Array(list) => {
            let at = index(key, list.len() + 1).map_err(|error| match key.parse::<i64>() {
                Ok(_) => error,
                Err(_) => format!("value was not a proper array index: '{key}': {error}"),
            })?;
            list.insert(at, value);
        }
        _ => return Err(MISSING.into()),
    }
    Ok(())
}

fn take(parent: &mut Value, key: &str) -> Result<Value, String> {
    match parent {
        Value::Object(map) => {
            map.remove(key).ok_or_else(|| format!("unable to remove nonexistent key: {key}: {MISSING}"))
        }
        Value::Array(list) => {
            let at = index(key, list.len())?;
            Ok(list.remove(at))
        }
        _ => Err(MISSING.into()),
    }
}

/// The container that a path leads to, and the key in it; nothing where there is none.
fn parent<'d>(document: &'d mut Value, path: &str) -> Option<(&'d mut Value, String)> {
    let mut parts = path.split('/').map(|part| part.replace("~1", "/").replace("~0", "~"));
    parts.next();
    let mut parts: Vec<String> = parts.collect();
    let key = parts.pop()?;
    let mut at = document;
    for part in parts {
        at = match at {
            Value::Object(map) => map.get_mut(&part),
            Value::Array(list) => index(&part, list.len()).ok().and_then(|at| list.get_mut(at)),
            _ => None,
        }?;
    }
    matches!(at, Value::Object(_) | Value::Array(_)).then_some((at, key))
}

/// A place in a list of `length`; negative counts from its end.
fn index(key: &str, length: usize) -> Result<usize, String> {
    let given: i64 =
        key.parse().map_err(|_| format!("strconv.Atoi: parsing {}: invalid syntax", quote(key)))?;
    let at = if given < 0 { given + length as i64 } else { given };
    match usize::try_from(at) {
        Ok(at) if at < length => Ok(at),
        _ => Err(format!("Unable to access invalid index: {given}: invalid index referenced")),
    }
}

fn nowhere(operation: &str, what: &str, path: &str) -> String {
    format!("{operation} operation does not apply: {what}: {path}: {MISSING}")
}

fn check_operation(operation: &Value) -> Result<(), String> {
    let has_text = |field: &str| operation.get(field).is_some_and(Value::is_string);
    let need = |field: &str, is_there: bool| {
        if is_there { Ok(()) } else { Err(format!("failed to decode '{field}': {MISSING}")) }
    };
    match operation.get("op").and_then(Value::as_str).unwrap_or("unknown") {
        "add" | "replace" => need("value", operation.get("value").is_some())?,
        "move" | "copy" => need("from", has_text("from"))?,
        "remove" | "test" => {}
        _ => return Err("unsupported operation".into()),
    }
    need("path", has_text("path"))
}

fn go_kind(value: &Value) -> &'static str {
    match value {
        Value::Object(_) => "object",
        Value::Array(_) => "array",
        Value::String(_) => "string",
        Value::Number(_) => "number",
        Value::Bool(_) => "bool",
        Value::Null => "null",
    }
}
