//! Decoding: a request body in, the object as upstream's typed decoding would hold it out. Pure data.
//!
//! In comes JSON, YAML or protobuf and the kind that the path asks for. Out comes the object with unknown
//! fields dropped and every value in canonical form, the strict errors (unknown and duplicate fields), or
//! the one error that makes the body useless, in upstream's words. Not here: defaulting, validation, which
//! kinds are served.
//!
//! The road is one pass over the bytes: a serde visitor that carries the schema and the path builds the
//! tree, so that nothing is kept that the kind does not have. Only a body that fails is looked at twice,
//! for Go's words.

mod content_type;
mod context;
mod conversion;
mod go_json;
mod go_time;
mod name;
mod patched;
mod refusal;
mod scalar;
mod typed;

#[cfg(test)]
mod tests;

use http::HeaderMap;
use http::header::CONTENT_TYPE;
use serde::de::DeserializeSeed;
use serde_json::{Map, Value};

use crate::protobuf;
use crate::schema::{self, Schema, Schemas};
use crate::yaml;
use context::DecodeContext;
pub use go_json::syntax_error;
pub use name::name_in;
pub use refusal::DecodeError;
pub use refusal::{other_version, type_meta_error};
pub use scalar::base64_error;
use typed::Typed;

golang::text_error! {
    /// What cannot be read as JSON or YAML, or not as what it should be; in Go's words.
    pub struct BadDocument;
}

/// How a body is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyFormat {
    /// `application/json`.
    Json,
    /// `application/yaml`.
    Yaml,
    /// `application/vnd.kubernetes.protobuf`; of built-in kinds only.
    Protobuf,
}

impl BodyFormat {
    /// Of the body that comes with these headers (`negotiation.NegotiateInputSerializer`): JSON where nobody
    /// says it, and nothing of what is not known.
    pub fn of(headers: &HeaderMap) -> Option<BodyFormat> {
        let value = headers.get(CONTENT_TYPE).map_or(&b""[..], |value| value.as_bytes());
        if value.is_empty() {
            return Some(BodyFormat::Json);
        }
        let value = String::from_utf8_lossy(value);
        let name = content_type::media_type(&value)?;
        match name {
            _ if name.eq_ignore_ascii_case("application/json") => Some(BodyFormat::Json),
            _ if name.eq_ignore_ascii_case("application/yaml") => Some(BodyFormat::Yaml),
            _ if name.eq_ignore_ascii_case(protobuf::MEDIA_TYPE) => Some(BodyFormat::Protobuf),
            _ => None,
        }
    }
}

/// What a body is expected to be.
#[derive(Clone, Copy)]
pub struct DecodeTarget<'a> {
    /// The API group of the request; empty for the core group.
    pub group: &'a str,
    /// The version of the request.
    pub version: &'a str,
    /// The kind that the path serves.
    pub kind: &'a str,
    /// Its schema.
    pub schema: &'a Schema,
    /// A built-in kind: unknown fields and zero values are dropped, and types checked, as by a Go type. Of
    /// a custom resource only the metadata is; pruning and validation by its schema come later.
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
    /// Of a custom resource: the type that the body says, where it is not the path's. Upstream decodes
    /// anything there, and refuses it later.
    pub foreign: Option<ForeignType>,
}

/// What a body says that it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForeignType {
    /// As `example.com/v1`; may be empty.
    pub api_version: String,
    /// As `Widget`.
    pub kind: String,
}

/// Decodes a body.
pub fn decode(target: &DecodeTarget, body: &[u8], format: BodyFormat) -> Result<Decoded, DecodeError> {
    match format {
        BodyFormat::Json => decode_json(target, body),
        BodyFormat::Yaml if first_byte(body) == Some(b'{') => {
            let mut decoded = decode_json(target, body)?;
            lose_points(&mut decoded.value);
            Ok(decoded)
        }
        BodyFormat::Yaml => {
            let document =
                yaml::to_json(body).map_err(|error| refusal::unrecognized(target, &error, body))?;
            let mut context = DecodeContext::new(target.typed);
            context.strict_errors.extend(document.duplicates);
            let value = root(target, &mut context).deserialize(document.value);
            let value = value.map_err(|error| refusal::unrecognized(target, &error.to_string(), body))?;
            finish(target, context, value, body)
        }
        BodyFormat::Protobuf => decode_protobuf(target, body),
    }
}

/// Whether the metadata of a custom resource is as decoding would leave it; without any it is.
pub fn metadata_fits(object: &Value) -> bool {
    let metadata = object.get("metadata").filter(|metadata| !metadata.is_null());
    metadata.is_none_or(|metadata| schema::fits(Schemas::reference(typed::OBJECT_META), metadata))
}

/// Decodes an object that is already a tree: one that a JSON or merge patch made.
pub fn decode_value(target: &DecodeTarget, value: Value) -> Result<Decoded, DecodeError> {
    decode_tree(target, value, DecodeContext::new(target.typed))
}

/// Decodes the tree that a strategic merge patch made, which upstream converts without going through JSON:
/// the same, but for the words of what does not fit.
pub fn decode_merged(target: &DecodeTarget, value: Value) -> Result<Decoded, DecodeError> {
    let mut context = DecodeContext::new(target.typed);
    context.converted = true;
    decode_tree(target, value, context)
}

/// Decodes a tree that a patch made of one that is decoded already. What the patch does not reach is left as
/// it is, and is as the others leave it.
pub fn decode_patched(
    target: &DecodeTarget,
    value: Value,
    patch: &Value,
    is_merged: bool,
) -> Result<Decoded, DecodeError> {
    let mut context = DecodeContext::new(target.typed);
    context.converted = is_merged;
    if !target.typed || !patched::is_partial(&value, patch) {
        return decode_tree(target, value, context);
    }
    let value = patched::decode(target.schema, value, patch, &mut context);
    let value = value.map_err(|error| refusal::unrecognized(target, &error.to_string(), b""))?;
    finish(target, context, value, b"")
}

fn decode_tree<'s>(
    target: &DecodeTarget<'s>,
    value: Value,
    mut context: DecodeContext<'s>,
) -> Result<Decoded, DecodeError> {
    let value = root(target, &mut context).deserialize(value);
    let value = value.map_err(|error| refusal::unrecognized(target, &error.to_string(), b""))?;
    finish(target, context, value, b"")
}

/// Reads JSON that is no object of a kind, such as a patch: the tree, and its unknown and duplicate fields.
pub fn decode_plain(schema: &Schema, body: &[u8]) -> Result<(Value, Vec<String>), BadDocument> {
    let mut context = DecodeContext::new(false);
    let value = read_json(body, Typed::new(schema, &mut context))?;
    match context.error() {
        Some(error) => Err(error.into()),
        None => Ok((value, context.strict_errors)),
    }
}

/// Reads the metadata of an object within an object, as `metav1.ObjectMeta` holds it; with the paths of its
/// unknown fields. The error is Go's.
pub fn decode_metadata(value: Value) -> Result<(Value, Vec<String>), BadDocument> {
    let mut context = DecodeContext::new(true);
    let decoded = Typed::new(Schemas::reference(typed::OBJECT_META), &mut context).deserialize(value);
    let mut metadata = decoded.map_err(|error| error.to_string())?;
    if let Some(error) = context.error() {
        return Err(error.into());
    }
    match metadata.as_object_mut() {
        Some(fields) => fields.retain(|_, value| !value.is_null()),
        None => metadata = Value::Object(Map::new()),
    }
    let path = |error: &String| Some(error.strip_prefix("unknown field \"")?.strip_suffix('"')?.to_owned());
    Ok((metadata, context.strict_errors.iter().filter_map(path).collect()))
}

/// Reads YAML or JSON that is no object of a kind, as upstream's `yaml.Unmarshal`: the tree, and one text
/// about its duplicate keys. The error is Go's.
pub fn decode_yaml(body: &[u8]) -> Result<(Value, Option<String>), BadDocument> {
    if first_byte(body) == Some(b'{')
        && let Ok((mut value, errors)) = decode_plain(&Schema::FREE, body)
        && errors.is_empty()
    {
        lose_points(&mut value);
        return Ok((value, None));
    }
    let mut document = yaml::to_json(body).map_err(String::from)?;
    lose_points(&mut document.value);
    Ok((document.value, document.duplicates))
}

/// On their way from YAML through JSON numbers lose a point with nothing behind it.
fn lose_points(value: &mut Value) {
    match value {
        Value::Number(number) if number.is_f64() => {
            let whole = number.as_f64().filter(|number| number.fract() == 0.0 && number.abs() < 1e18);
            if let Some(whole) = whole {
                *value = (whole as i64).into();
            }
        }
        Value::Array(items) => items.iter_mut().for_each(lose_points),
        Value::Object(map) => map.values_mut().for_each(lose_points),
        _ => {}
    }
}

/// The name on the envelope decides whether the message in it is read at all.
fn decode_protobuf(target: &DecodeTarget, body: &[u8]) -> Result<Decoded, DecodeError> {
    let envelope =
        protobuf::open(body).map_err(|error| refusal::unrecognized(target, &error.to_string(), body))?;
    let name = [("apiVersion", envelope.api_version), ("kind", envelope.kind)];
    let name = name.into_iter().map(|(field, value)| (field.to_owned(), value.into())).collect();
    let context = DecodeContext::new(target.typed);
    refusal::check_kind(target, &name, &context, body)?;
    let value = protobuf::decode(target.schema, envelope.raw).map_err(|error| {
        refusal::cannot_be_handled(target, target.kind, target.version, &error.to_string())
    })?;
    decode_tree(target, value, context)
}

fn decode_json(target: &DecodeTarget, body: &[u8]) -> Result<Decoded, DecodeError> {
    let mut context = DecodeContext::new(target.typed);
    let value = read_json(body, root(target, &mut context)).map_err(|error| {
        let error = format!("couldn't get version/kind; json parse error: {error}");
        refusal::unrecognized(target, &error, body)
    })?;
    finish(target, context, value, body)
}

/// One pass with serde; whatever it stumbles over is said in Go's words.
fn read_json(body: &[u8], seed: Typed) -> Result<Value, String> {
    let mut deserializer = serde_json::Deserializer::from_slice(body);
    seed.deserialize(&mut deserializer)
        .and_then(|value| deserializer.end().map(|()| value))
        .map_err(|error| go_json::syntax_error(body).unwrap_or_else(|| error.to_string()))
}

fn root<'c, 's>(target: &DecodeTarget<'s>, context: &'c mut DecodeContext<'s>) -> Typed<'c, 's> {
    Typed::root(target.schema, context)
}

/// Whose words count: a body of another kind before anything in it, what is mistyped before what is unknown.
fn finish(
    target: &DecodeTarget,
    context: DecodeContext,
    value: Value,
    body: &[u8],
) -> Result<Decoded, DecodeError> {
    if let Some(given) = &context.not_an_object {
        return Err(refusal::not_an_object(target, given, body));
    }
    let mut map = match value {
        Value::Object(map) => map,
        Value::Null => Map::new(),
        other => return Err(refusal::not_an_object(target, refusal::json_type(&other), body)),
    };
    refusal::check_kind(target, &map, &context, body)?;
    if !target.typed && map.get("kind").is_none_or(|kind| *kind == "" || kind.is_null()) {
        return Err(refusal::kind_is_missing(target, map, body));
    }
    if !target.typed && map.get("apiVersion").is_some_and(Value::is_null) {
        let error = ".apiVersion accessor error: <nil> is of the type <nil>, expected string";
        return Err(refusal::cannot_be_handled(target, target.kind, target.version, error));
    }
    if let Some(error) = context.error() {
        return Err(refusal::cannot_be_handled(target, target.kind, target.version, &error));
    }
    let api_version = match target.group {
        "" => target.version.to_owned(),
        group => format!("{group}/{}", target.version),
    };
    let given = [("apiVersion", api_version), ("kind", target.kind.into())];
    let given = given.map(|(name, text)| map.insert(name.into(), text.into()));
    let [version, kind] = given.map(|given| match given {
        Some(Value::String(text)) => text,
        _ => String::new(),
    });
    let strict_errors = context.strict_errors;
    let is_foreign = !target.typed && (map["apiVersion"] != *version || map["kind"] != *kind);
    let foreign = is_foreign.then_some(ForeignType { api_version: version, kind });
    Ok(Decoded { value: Value::Object(map), strict_errors, foreign })
}

fn first_byte(body: &[u8]) -> Option<u8> {
    body.iter().copied().find(|byte| !byte.is_ascii_whitespace())
}
