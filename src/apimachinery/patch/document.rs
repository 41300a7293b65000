//! A patch as it came, and what comes of it.

use std::borrow::Cow;

use serde_json::{Map, Value, json};

use crate::decode::{BadDocument, decode_plain};
use crate::schema::Schema;

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
    /// From a caller in this process: it stands for its text.
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

impl Document<'_> {
    /// Whether anything in it may be called so.
    pub fn mentions(&self, name: &str) -> bool {
        match self {
            Document::Text(text) => text.windows(name.len()).any(|part| part == name.as_bytes()),
            Document::Tree(tree) => mentions(tree, name),
        }
    }

    pub(super) fn text(&self) -> Cow<'_, [u8]> {
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
pub(super) fn decode_object(patch: Document) -> Result<(Map<String, Value>, Vec<String>), BadDocument> {
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
