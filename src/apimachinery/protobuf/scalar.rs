//! Values without fields of their own in JSON: scalars, and the messages that JSON writes as scalars.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use chrono::DateTime;
use serde_json::{Number, Value};

use super::error::ProtobufError;
use super::wire::{RawField, Reader, write_bytes, write_double, write_int, write_nested};
use crate::schema::Shape;
use crate::time::{Time, parse, rfc3339, rfc3339_micro};

/// Reads a scalar of a field of that name.
pub(super) fn read(shape: &Shape, name: &str, raw: RawField) -> Result<Value, ProtobufError> {
    Ok(match shape {
        Shape::String => raw.text(name)?.into(),
        Shape::Bytes => STANDARD.encode(raw.bytes(name)?).into(),
        Shape::Boolean => (raw.varint(name)? != 0).into(),
        Shape::Integer32 => (raw.varint(name)? as i32).into(),
        Shape::Integer64 => (raw.varint(name)? as i64).into(),
        Shape::Number => Number::from_f64(f64::from_bits(raw.fixed64(name)?)).into(),
        Shape::Quantity => quantity(name, raw.bytes(name)?)?,
        Shape::IntOrString => int_or_string(name, raw.bytes(name)?)?,
        Shape::Time => timestamp(name, raw.bytes(name)?)?.map_or(Value::Null, |time| rfc3339(time).into()),
        Shape::MicroTime => {
            timestamp(name, raw.bytes(name)?)?.map_or(Value::Null, |time| rfc3339_micro(time).into())
        }
        Shape::Free | Shape::Reference(_) | Shape::Object(_) | Shape::Map(_) | Shape::List(_) => Value::Null,
    })
}

/// Writes a scalar of that number; null is Go's zero.
pub(super) fn write(shape: &Shape, number: u32, value: &Value, out: &mut Vec<u8>) {
    let text = value.as_str().unwrap_or_default();
    match shape {
        Shape::String => write_bytes(out, number, text.as_bytes()),
        Shape::Bytes if value.is_null() => {}
        Shape::Bytes => write_bytes(out, number, &STANDARD.decode(text).unwrap_or_default()),
        Shape::Boolean => write_int(out, number, (*value == Value::Bool(true)).into()),
        Shape::Integer32 | Shape::Integer64 => write_int(out, number, value.as_i64().unwrap_or_default()),
        Shape::Number => write_double(out, number, value.as_f64().unwrap_or_default()),
        Shape::Quantity => {
            let text = if text.is_empty() { "0" } else { text };
            write_nested(out, number, |out| write_bytes(out, 1, text.as_bytes()));
        }
        Shape::IntOrString => write_nested(out, number, |out| {
            write_int(out, 1, value.is_string().into());
            write_int(out, 2, value.as_i64().unwrap_or_default());
            write_bytes(out, 3, text.as_bytes());
        }),
        Shape::Time => write_nested(out, number, |out| write_timestamp(text, false, out)),
        Shape::MicroTime => write_nested(out, number, |out| write_timestamp(text, true, out)),
        Shape::Free | Shape::Reference(_) | Shape::Object(_) | Shape::Map(_) | Shape::List(_) => {}
    }
}

/// Whether protobuf may write several values of a list as one run of bytes.
pub(super) fn is_packable(shape: &Shape) -> bool {
    matches!(shape, Shape::Boolean | Shape::Integer32 | Shape::Integer64 | Shape::Number)
}

/// The next value of such a run.
pub(super) fn packed<'a>(shape: &Shape, run: &mut Reader<'a>) -> Result<RawField<'a>, ProtobufError> {
    match shape {
        Shape::Number => run.fixed64().map(RawField::Fixed64),
        _ => run.varint().map(RawField::Varint),
    }
}

/// JSON in the bytes of a message: `RawExtension`, `FieldsV1`, `apiextensions.JSON`.
pub(super) fn json(name: &str, message: &[u8]) -> Result<Value, ProtobufError> {
    let mut value = Value::Null;
    let mut reader = Reader::new(message, name);
    while let Some((number, raw)) = reader.next()? {
        if number == 1 {
            let bytes = raw.bytes(name)?;
            if !bytes.is_empty() {
                value =
                    serde_json::from_slice(bytes).map_err(|error| ProtobufError::Json(error.to_string()))?;
            }
        }
    }
    Ok(value)
}

fn quantity(name: &str, message: &[u8]) -> Result<Value, ProtobufError> {
    let mut text = String::new();
    let mut reader = Reader::new(message, name);
    while let Some((number, raw)) = reader.next()? {
        if number == 1 {
            text = raw.text(name)?;
        }
    }
    Ok(if text.is_empty() { "0".into() } else { text.into() })
}

fn int_or_string(name: &str, message: &[u8]) -> Result<Value, ProtobufError> {
    let mut is_text = false;
    let mut number = 0;
    let mut text = String::new();
    let mut reader = Reader::new(message, name);
    while let Some((field, raw)) = reader.next()? {
        match field {
            1 => is_text = raw.varint("type")? == 1,
            2 => number = raw.varint("intVal")? as i32,
            3 => text = raw.text("strVal")?,
            _ => {}
        }
    }
    Ok(if is_text { text.into() } else { number.into() })
}

/// JSON in the bytes of a message; nothing where nothing is.
pub(super) fn write_json(value: &Value, out: &mut Vec<u8>) {
    if !value.is_null() {
        write_bytes(out, 1, value.to_string().as_bytes());
    }
}

/// `metav1.Timestamp`; no bytes are how a time that was never set is written.
fn timestamp(name: &str, message: &[u8]) -> Result<Option<Time>, ProtobufError> {
    if message.is_empty() {
        return Ok(None);
    }
    let mut seconds = 0;
    let mut nanos = 0;
    let mut reader = Reader::new(message, name);
    while let Some((number, raw)) = reader.next()? {
        match number {
            1 => seconds = raw.varint("seconds")? as i64,
            2 => nanos = raw.varint("nanos")? as i32,
            _ => {}
        }
    }
    let nanos = u32::try_from(nanos).unwrap_or_default();
    DateTime::from_timestamp(seconds, nanos).map(Some).ok_or(ProtobufError::Time(seconds))
}

/// Whole seconds, or with microseconds.
fn write_timestamp(text: &str, is_micro: bool, out: &mut Vec<u8>) {
    let Some(time) = parse(text) else { return };
    let nanos = if is_micro { time.timestamp_subsec_micros() * 1000 } else { 0 };
    write_int(out, 1, time.timestamp());
    write_int(out, 2, nanos.into());
}
