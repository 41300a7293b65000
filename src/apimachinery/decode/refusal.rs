//! The words for a body that is not what the path asks for: upstream's `transformDecodeError` and the
//! errors of its serializers.

use serde_json::{Map, Value};

use super::DecodeTarget;
use super::context::DecodeContext;
use golang::go_text::quote;

/// How much of a body a refusal shows.
const SHOWN_BYTES: usize = 30;
/// What upstream's kinds without a version are registered in; part of the words.
const SCHEME: &str = "pkg/api/legacyscheme/scheme.go:30";

/// A body that cannot be decoded: 400 `BadRequest`, and the text is the Status' message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct DecodeError {
    message: String,
    /// What was wrong without the frame around it: what a patch shows beside the patched object.
    cause: String,
}

impl DecodeError {
    /// The refusal of `fieldValidation=Strict`.
    pub fn strict(target: &DecodeTarget, errors: &[String]) -> Self {
        let error = format!("strict decoding error: {}", errors.join(", "));
        cannot_be_handled(target, target.kind, target.version, &error)
    }

    /// Something in a decoded body is not as it has to be.
    pub fn of(target: &DecodeTarget, error: &str) -> Self {
        cannot_be_handled(target, target.kind, target.version, error)
    }

    /// What was wrong, without saying what with: `json: cannot unmarshal string into Go struct field ...`.
    pub fn cause(&self) -> &str {
        &self.cause
    }
}

/// The body has a kind, and something in it is wrong.
pub(super) fn cannot_be_handled(
    target: &DecodeTarget,
    kind: &str,
    version: &str,
    error: &str,
) -> DecodeError {
    let message = format!("{kind} in version {version:?} cannot be handled as a {}: {error}", target.kind);
    DecodeError { message, cause: error.to_owned() }
}

/// The body does not even tell its kind.
pub(super) fn unrecognized(target: &DecodeTarget, error: &str, body: &[u8]) -> DecodeError {
    let shown = summary(body);
    let message =
        format!("the object provided is unrecognized (must be of type {}): {error} ({shown})", target.kind);
    DecodeError { message, cause: error.to_owned() }
}

/// The body of a custom resource does not say its kind; a patched one has no bytes.
pub(super) fn kind_is_missing(target: &DecodeTarget, object: Map<String, Value>, body: &[u8]) -> DecodeError {
    let shown = match body {
        b"" => Value::Object(object).to_string(),
        body => String::from_utf8_lossy(body).into_owned(),
    };
    unrecognized(target, &format!("Object 'Kind' is missing in '{shown}'"), body)
}

/// The body is JSON, but a list or scalar.
pub(super) fn not_an_object(target: &DecodeTarget, given: &str, body: &[u8]) -> DecodeError {
    let error = format!("couldn't get version/kind; json parse error: {}", no_type_meta(given));
    unrecognized(target, &error, body)
}

/// What Go says of JSON that cannot have a kind, because it is a list or scalar.
pub fn type_meta_error(tree: &Value) -> Option<String> {
    (!tree.is_object() && !tree.is_null()).then(|| no_type_meta(json_type(tree)))
}

fn no_type_meta(given: &str) -> String {
    format!(
        "json: cannot unmarshal {given} into Go value of type {}",
        r#"struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }"#
    )
}

/// Whether the body is of the kind that the path serves. Absent parts are taken from the path.
pub(super) fn check_kind(
    target: &DecodeTarget,
    object: &Map<String, Value>,
    context: &DecodeContext,
    body: &[u8],
) -> Result<(), DecodeError> {
    let mut parts = [("kind", target.kind), ("apiVersion", "")];
    for (field, given) in &mut parts {
        match object.get(*field) {
            None | Some(Value::Null) => {}
            Some(Value::String(text)) if text.is_empty() => {}
            Some(Value::String(text)) => *given = text,
            Some(other) => return Err(mistyped_kind(target, field, json_type(other), body)),
        }
    }
    if let Some(error) = context.error().filter(|error| is_about_kind(error)) {
        let field = if error.contains(".kind of") { "kind" } else { "apiVersion" };
        let given = error.split(' ').nth(3).unwrap_or("object");
        return Err(mistyped_kind(target, field, given, body));
    }
    let [(_, kind), (_, api_version)] = parts;
    let (group, version) = match api_version.split_once('/') {
        Some((_, version)) if version.contains('/') => {
            let error = format!("unexpected GroupVersion string: {api_version}");
            return Err(unrecognized(target, &error, body));
        }
        Some(parts) => parts,
        None if api_version.is_empty() => (target.group, target.version),
        None => ("", api_version),
    };
    if target.typed { check_names(target, group, version, kind) } else { Ok(()) }
}

fn check_names(target: &DecodeTarget, group: &str, version: &str, kind: &str) -> Result<(), DecodeError> {
    let same_version = group == target.group && version == target.version;
    if same_version && kind == target.kind {
        return Ok(());
    }
    let api_version = |group: &str, version: &str| match group {
        "" => version.to_owned(),
        group => format!("{group}/{version}"),
    };
    let (given, expected) = (api_version(group, version), api_version(target.group, target.version));
    if !(target.is_registered)(group, version, kind) {
        let error = format!(
            "no kind {} is registered for version {} in scheme {SCHEME:?}",
            quote(kind),
            quote(&given)
        );
        return Err(cannot_be_handled(target, kind, version, &error));
    }
    if kind == target.kind && group == target.group {
        let message = other_version(&given, &expected);
        return Err(DecodeError { cause: message.clone(), message });
    }
    let internal = internal_package(target.group);
    let error = format!("converting ({version}.{kind}) to ({internal}.{}): unknown conversion", target.kind);
    Err(cannot_be_handled(target, kind, version, &error))
}

/// The body is of the kind, but of another version than the path.
pub fn other_version(given: &str, expected: &str) -> String {
    format!("the API version in the data ({given}) does not match the expected API version ({expected})")
}

/// The Go package of a group's internal types.
fn internal_package(group: &str) -> &str {
    match group {
        "" | "events.k8s.io" => "core",
        "internal.apiserver.k8s.io" => "apiserverinternal",
        group => group.split('.').next().unwrap_or(group),
    }
}

/// Whether a type error is about the `kind` or `apiVersion` of the object itself: `field Pod.kind of type
/// string`.
fn is_about_kind(error: &str) -> bool {
    let field = error.split("Go struct field ").nth(1).and_then(|rest| rest.strip_suffix(" of type string"));
    let name = field.and_then(|field| field.split_once('.')).map(|(_, name)| name);
    matches!(name, Some("kind" | "apiVersion"))
}

fn mistyped_kind(target: &DecodeTarget, field: &str, given: &str, body: &[u8]) -> DecodeError {
    let error = format!(
        "couldn't get version/kind; json parse error: json: cannot unmarshal {given} into Go struct field .{field} of \
         type string"
    );
    unrecognized(target, &error, body)
}

/// What Go calls a JSON value.
pub(super) fn json_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// The beginning of a body: as it is when it looks like JSON, in hex when it may be anything.
fn summary(body: &[u8]) -> String {
    let shown = &body[..body.len().min(SHOWN_BYTES)];
    let more = if body.len() > SHOWN_BYTES { " ..." } else { "" };
    match body.first() {
        None => "<empty>".into(),
        Some(b'{') => format!("{}{more}", String::from_utf8_lossy(shown)),
        Some(_) => shown.iter().map(|byte| format!("{byte:02x}")).collect::<String>() + more,
    }
}
