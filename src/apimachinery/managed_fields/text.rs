//! Sets as texts in trees: from an object's bytes, back into them, and as JSON for those outside
//! (see [`super::Managed`]).

use std::fmt;
use std::io::Write;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// The tree of an object's bytes, `metadata.managedFields[].fieldsV1` being texts.
///
/// # Errors
/// What is no JSON.
pub(crate) fn read_tree(body: &[u8]) -> Result<Value, serde_json::Error> {
    let mut deserializer = serde_json::Deserializer::from_slice(body);
    let tree = SetPosition::Object.deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok(tree)
}

/// Writes `metadata.managedFields` of a tree as JSON.
pub(crate) fn write_entries(out: &mut impl Write, entries: &Value) -> std::io::Result<()> {
    let Some(list) = entries.as_array() else { return Ok(serde_json::to_writer(out, entries)?) };
    out.write_all(b"[")?;
    for (at, entry) in list.iter().enumerate() {
        out.write_all(if at > 0 { b"," } else { b"" })?;
        write_entry(out, entry)?;
    }
    out.write_all(b"]")
}

/// Makes JSON of the texts in a tree that leaves the server otherwise than as an object's bytes: to a
/// webhook, to a patch that reads `managedFields`.
pub fn expand(object: &mut Value) {
    let entries = object.get_mut("metadata").and_then(|metadata| metadata.get_mut("managedFields"));
    for entry in entries.and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(fields) = entry.get_mut("fieldsV1")
            && let Some(tree) = fields.as_str().and_then(|text| serde_json::from_str(text).ok())
        {
            *fields = tree;
        }
    }
}

fn write_entry(out: &mut impl Write, entry: &Value) -> std::io::Result<()> {
    let Some(members) = entry.as_object() else { return Ok(serde_json::to_writer(out, entry)?) };
    out.write_all(b"{")?;
    for (at, (name, value)) in members.iter().enumerate() {
        out.write_all(if at > 0 { b"," } else { b"" })?;
        serde_json::to_writer(&mut *out, name)?;
        out.write_all(b":")?;
        match value {
            Value::String(text) if name == "fieldsV1" => out.write_all(text.as_bytes())?,
            value => serde_json::to_writer(&mut *out, value)?,
        }
    }
    out.write_all(b"}")
}

/// Where in an object a value is, on the way to the sets.
#[derive(Clone, Copy)]
enum SetPosition {
    Object,
    Metadata,
    Entries,
    Entry,
}

impl SetPosition {
    fn below(self, key: &str) -> Option<SetPosition> {
        match (self, key) {
            (SetPosition::Object, "metadata") => Some(SetPosition::Metadata),
            (SetPosition::Metadata, "managedFields") => Some(SetPosition::Entries),
            _ => None,
        }
    }
}

impl<'de> DeserializeSeed<'de> for SetPosition {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for SetPosition {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an API object")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, flag: bool) -> Result<Value, E> {
        Ok(flag.into())
    }

    fn visit_i64<E>(self, number: i64) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_u64<E>(self, number: u64) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_f64<E>(self, number: f64) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(text.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = list.next_element_seed(SetPosition::Entry)? {
            entries.push(entry);
        }
        Ok(Value::Array(entries))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut members = Map::new();
        while let Some(key) = map.next_key::<String>()? {
            let value = match self {
                SetPosition::Entry if key == "fieldsV1" => {
                    Value::from(map.next_value::<Box<RawValue>>()?.get())
                }
                _ => match self.below(&key) {
                    Some(below) => map.next_value_seed(below)?,
                    None => map.next_value()?,
                },
            };
            members.insert(key, value);
        }
        Ok(Value::Object(members))
    }
}
