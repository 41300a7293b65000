//! `FieldsV1`: a set of fields as JSON (`fieldpath/serialize.go`).
//!
//! `{"f:spec":{"f:containers":{"k:{\"name\":\"web\"}":{".":{},"f:image":{}}}}}`: an object per field that
//! leads to others, empty for one that does not; `.` says that the field itself is owned as well.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, Visitor};
use serde_json::Value;

use super::path::PathElement;
use super::set::{Set, SetNode};

golang::text_error! {
    /// What is no `FieldsV1`.
    pub struct BadFieldSet;
}

/// Reads a set. Elements of kinds that are not known are dropped, as upstream drops them.
///
/// # Errors
/// What is no such JSON.
pub fn decode(text: &str) -> Result<Set, BadFieldSet> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let read =
        FieldsV1Visitor.deserialize(&mut deserializer).and_then(|read| deserializer.end().map(|()| read));
    read.map(|read| read.set).map_err(|error| error.to_string().into())
}

/// Writes a set in upstream's canonical order.
pub fn encode(set: &Set) -> String {
    let mut out = String::with_capacity(256);
    write_set(&mut out, set, false);
    out
}

/// Whether a set that is written so owns one of `changed`, or anything below one; without building the set.
/// True as well for a text that cannot be read: whoever decodes it will say so.
pub(super) fn touches(text: &str, changed: &Set) -> bool {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    Touches(changed).deserialize(&mut deserializer).is_err()
}

/// Whether a set that is written so owns all of `fields`; without building the set.
pub(super) fn covers(text: &str, fields: &Set) -> bool {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    Covers(fields).deserialize(&mut deserializer).is_ok_and(|found| found.below == fields.len())
}

fn write_set(out: &mut String, set: &Set, is_member: bool) {
    out.push('{');
    if is_member {
        out.push_str("\".\":{}");
    }
    for (at, node) in set.nodes.iter().enumerate() {
        if at > 0 || is_member {
            out.push(',');
        }
        write_element(out, &node.element);
        out.push(':');
        write_set(out, &node.children, node.member && !node.children.is_empty());
    }
    out.push('}');
}

fn write_element(out: &mut String, element: &PathElement) {
    let text = match element {
        PathElement::Field(name) if is_plain(name) => {
            out.push_str("\"f:");
            out.push_str(name);
            out.push('"');
            return;
        }
        PathElement::Field(name) => format!("f:{name}"),
        PathElement::Key(fields) => {
            let fields: Vec<String> =
                fields.iter().map(|(name, value)| format!("{}:{value}", Value::from(&**name))).collect();
            format!("k:{{{}}}", fields.join(","))
        }
        PathElement::Value(value) => format!("v:{value}"),
        PathElement::Index(at) => format!("i:{at}"),
    };
    out.push_str(&Value::from(text).to_string());
}

/// Nothing in it has to be escaped in JSON.
fn is_plain(name: &str) -> bool {
    name.bytes().all(|byte| byte >= 0x20 && byte != b'"' && byte != b'\\')
}

fn read_element(key: &str) -> Result<Option<PathElement>, String> {
    let Some((kind, rest)) = key.split_once(':') else {
        return Err(format!("missing colon: {key:?}"));
    };
    let json = || serde_json::from_str::<Value>(rest).map_err(|error| error.to_string());
    Ok(match kind {
        "f" => Some(PathElement::field(rest)),
        "v" => Some(PathElement::Value(json()?)),
        "i" => Some(PathElement::Index(rest.parse().map_err(|_| format!("not an index: {rest:?}"))?)),
        "k" => {
            let Value::Object(fields) = json()? else { return Err(format!("not a key: {rest:?}")) };
            Some(PathElement::Key(fields.into_iter().map(|(name, value)| (name.into(), value)).collect()))
        }
        _ => None,
    })
}

/// A set, and whether the field that it is below of is in the set, too.
struct ReadFields {
    set: Set,
    is_member: bool,
}

struct FieldsV1Visitor;

impl<'de> DeserializeSeed<'de> for FieldsV1Visitor {
    type Value = ReadFields;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<ReadFields, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for FieldsV1Visitor {
    type Value = ReadFields;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of FieldsV1")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<ReadFields, A::Error> {
        let mut read = ReadFields { set: Set::default(), is_member: false };
        let mut is_empty = true;
        while let Some(key) = map.next_key::<Cow<'de, str>>()? {
            is_empty = false;
            if key == "." {
                map.next_value::<IgnoredAny>()?;
                read.is_member = true;
                continue;
            }
            let Some(element) = read_element(&key).map_err(A::Error::custom)? else {
                map.next_value::<IgnoredAny>()?;
                continue;
            };
            let below = map.next_value_seed(FieldsV1Visitor)?;
            add(&mut read.set, SetNode { element, member: below.is_member, children: below.set });
        }
        read.is_member |= is_empty;
        Ok(read)
    }
}

/// In the order of the text, which is nearly always that of the set.
fn add(set: &mut Set, node: SetNode) {
    let is_last = set.nodes.last().is_none_or(|last| last.element < node.element);
    if is_last {
        set.push(node);
        return;
    }
    let mut one = Set::default();
    one.push(node);
    *set = set.union(&one);
}

/// Fails at the first element that is touched: the rest need not be read.
struct Touches<'s>(&'s Set);

impl<'de> DeserializeSeed<'de> for Touches<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Touches<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of FieldsV1")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<Cow<'de, str>>()? {
            match self.find(&key).map_err(A::Error::custom)? {
                Some(node) if node.member => return Err(A::Error::custom("touched")),
                Some(node) => map.next_value_seed(Touches(&node.children))?,
                None => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }
}

impl Touches<'_> {
    fn find(&self, key: &str) -> Result<Option<&SetNode>, String> {
        if let Some(name) = key.strip_prefix("f:") {
            return Ok(self.0.field(name));
        }
        if key == "." || self.0.nodes.iter().all(|node| matches!(node.element, PathElement::Field(_))) {
            return Ok(None);
        }
        Ok(read_element(key)?.and_then(|element| self.0.node(&element)))
    }
}

/// How many of these fields are there.
struct Covers<'s>(&'s Set);

struct FoundField {
    below: usize,
    is_member: bool,
}

impl<'de> DeserializeSeed<'de> for Covers<'_> {
    type Value = FoundField;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<FoundField, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Covers<'_> {
    type Value = FoundField;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of FieldsV1")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<FoundField, A::Error> {
        let mut found = FoundField { below: 0, is_member: false };
        let mut is_empty = true;
        while let Some(key) = map.next_key::<Cow<'de, str>>()? {
            is_empty = false;
            found.is_member |= key == ".";
            match Touches(self.0).find(&key).map_err(A::Error::custom)? {
                Some(node) => {
                    let inner = map.next_value_seed(Covers(&node.children))?;
                    found.below += inner.below + usize::from(inner.is_member && node.member);
                }
                None => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        found.is_member |= is_empty;
        Ok(found)
    }
}
