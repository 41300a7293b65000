//! Patches: an object and a patch document in, the patched object out. Pure data.
//!
//! The three ways of upstream's `PATCH` (server-side apply is `managed_fields`'): JSON patch is a list of
//! operations, merge patch is the new parts of the object, strategic merge patch is that with lists merged
//! by the keys that the kind's schema names. What may be patched, and what happens afterwards (decoding,
//! defaulting, validation), is the endpoint's.

mod json;
mod merge;
mod strategic;

#[cfg(test)]
mod tests;

use std::borrow::Cow;

use serde_json::{Map, Value, json};

use crate::decode::decode_plain;
use crate::schema::Schema;
use golang::go_print::go_print;

pub use json::{TEST_FAILED, check as check_json_patch};

/// The media type of a patch body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PatchType {
    /// `application/json-patch+json`.
    Json,
    /// `application/merge-patch+json`.
    Merge,
    /// `application/strategic-merge-patch+json`; built-in kinds only.
    StrategicMerge,
}

impl PatchType {
    /// The patch type of a media type without parameters; None for any other.
    pub fn from_media_type(media_type: &str) -> Option<Self> {
        match media_type {
            "application/json-patch+json" => Some(Self::Json),
            "application/merge-patch+json" => Some(Self::Merge),
            "application/strategic-merge-patch+json" => Some(Self::StrategicMerge),
            _ => None,
        }
    }
}

/// A patch as it came.
#[derive(Debug, Clone, Copy)]
pub enum Document<'p> {
    /// The body of a request.
    Text(&'p [u8]),
    /// From a caller in this process: the same as its text.
    Tree(&'p Value),
}

/// Why a patch was refused; each is one of upstream's Statuses, and the text is its message (or, for
/// [`PatchError::Unprocessable`], the text that only the log tells: the message is then "the server
/// rejected our request due to an error in our request").
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatchError {
    /// 400 `BadRequest`: the patch is not one.
    #[error("{0}")]
    BadRequest(String),
    /// 413 `RequestEntityTooLarge`: more operations than a server works off.
    #[error("{0}")]
    RequestEntityTooLarge(String),
    /// 422 `Invalid`: the patch does not fit this object.
    #[error("{0}")]
    Unprocessable(String),
    /// 500 without a reason, the text as the message: what upstream's handler does not classify.
    #[error("{0}")]
    Internal(String),
}

/// A patched object, still to be decoded as its kind, defaulted and validated.
#[derive(Debug, Clone, PartialEq)]
pub struct Patched {
    /// The object after the patch.
    pub value: Value,
    /// Duplicate fields in the patch itself, for `fieldValidation`; before those that decoding `value` finds.
    pub strict_errors: Vec<String>,
}

/// Applies a patch. `schema` is the kind's; only a strategic merge patch reads it.
pub fn apply(
    schema: &Schema,
    patch_type: PatchType,
    original: Value,
    patch: &[u8],
) -> Result<Patched, PatchError> {
    apply_document(schema, patch_type, original, Document::Text(patch))
}

/// The same of a patch that may be a tree.
pub fn apply_document(
    schema: &Schema,
    patch_type: PatchType,
    original: Value,
    patch: Document,
) -> Result<Patched, PatchError> {
    match patch_type {
        PatchType::Json => json::apply(original, &patch.text()),
        PatchType::Merge => merge::apply(original, patch),
        PatchType::StrategicMerge => strategic::apply(schema, original, patch),
    }
}

/// What upstream shows as the bad value of the field `patch` when what came of it does not decode: the
/// patched JSON, or the strategic merge patch as Go prints a map.
pub fn show(patch_type: PatchType, patched: &Value, patch: Document) -> String {
    match patch_type {
        PatchType::Json | PatchType::Merge => patched.to_string(),
        PatchType::StrategicMerge => {
            let (patch, _) = decode_object(patch).unwrap_or_default();
            go_print(&Value::Object(patch))
        }
    }
}

impl Document<'_> {
    /// Whether anything in it may be called so.
    pub fn mentions(&self, name: &str) -> bool {
        match self {
            Document::Text(text) => text.windows(name.len()).any(|part| part == name.as_bytes()),
            Document::Tree(tree) => mentions(tree, name),
        }
    }

    fn text(&self) -> Cow<'_, [u8]> {
        match self {
            Document::Text(text) => Cow::Borrowed(text),
            Document::Tree(tree) => Cow::Owned(tree.to_string().into()),
        }
    }
}

fn mentions(tree: &Value, name: &str) -> bool {
    match tree {
        Value::String(text) => text.contains(name),
        Value::Array(items) => items.iter().any(|item| mentions(item, name)),
        Value::Object(members) => {
            members.iter().any(|(key, value)| key.contains(name) || mentions(value, name))
        }
        _ => false,
    }
}

/// Reads a patch that is an object, and the duplicate fields in it.
fn decode_object(patch: Document) -> Result<(Map<String, Value>, Vec<String>), String> {
    if let Document::Tree(Value::Object(members)) = patch {
        return Ok((members.clone(), Vec::new()));
    }
    let schema = Schema::from_openapi(&json!({"type": "object", "additionalProperties": true}));
    let (value, strict_errors) = decode_plain(&schema, &patch.text())?;
    match value {
        Value::Object(map) => Ok((map, strict_errors)),
        _ => Ok((Map::new(), strict_errors)),
    }
}
