//! Reads a few fields out of JSON bytes without building a tree: the values that field selectors compare.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use super::object_meta::ObjectMeta;

/// The values at `paths` (segments joined by dots) as text; empty where there is none. Booleans and numbers
/// are written as in JSON; objects and lists have no text.
pub fn pick(json: &[u8], paths: &[&str]) -> Vec<String> {
    let mut values = vec![String::new(); paths.len()];
    let wanted: Vec<(usize, &str)> = paths.iter().copied().enumerate().collect();
    let mut deserializer = serde_json::Deserializer::from_slice(json);
    // Bytes that are no JSON have no fields; whoever reads the object itself says so.
    let _ = PickLevel { wanted, values: &mut values }.deserialize(&mut deserializer);
    values
}

/// The value at one path of a tree as text, as [`pick`] writes it.
pub fn text_at(tree: &Value, path: &str) -> String {
    match path.split('.').fold(tree, |tree, name| &tree[name]) {
        Value::String(text) => text.clone(),
        value @ (Value::Bool(_) | Value::Number(_)) => value.to_string(),
        _ => String::new(),
    }
}

/// The metadata of an object's stored bytes, in which it stands first, and the values at `paths`, as [`pick`]
/// reads them: both in one pass. No path leads into the metadata.
pub(super) fn metadata_and_fields(
    stored: &[u8],
    paths: &[&str],
) -> Result<(ObjectMeta, Vec<String>), serde_json::Error> {
    let mut values = vec![String::new(); paths.len()];
    let mut deserializer = serde_json::Deserializer::from_slice(stored);
    let wanted = paths.iter().copied().enumerate().collect();
    let metadata = Stored(PickLevel { wanted, values: &mut values }).deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok((metadata, values))
}

/// A whole object: its metadata, then the rest as a [`PickLevel`].
struct Stored<'a, 'p>(PickLevel<'a, 'p>);

impl<'de> DeserializeSeed<'de> for Stored<'_, '_> {
    type Value = ObjectMeta;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<ObjectMeta, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Stored<'_, '_> {
    type Value = ObjectMeta;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an API object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<ObjectMeta, A::Error> {
        let first = map.next_key::<Cow<'_, str>>()?;
        if first.as_deref() != Some("metadata") {
            return Err(A::Error::custom("metadata does not stand first"));
        }
        let metadata = map.next_value()?;
        self.0.visit_map(map)?;
        Ok(metadata)
    }
}

/// One level of the document, with the paths that lead below it.
struct PickLevel<'a, 'p> {
    wanted: Vec<(usize, &'p str)>,
    values: &'a mut Vec<String>,
}

impl PickLevel<'_, '_> {
    fn put(&mut self, text: impl ToString) {
        for (at, _) in self.wanted.iter().filter(|(_, rest)| rest.is_empty()) {
            self.values[*at] = text.to_string();
        }
    }
}

impl<'de> DeserializeSeed<'de> for PickLevel<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for PickLevel<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<Cow<'_, str>>()? {
            let wanted: Vec<(usize, &str)> =
                self.wanted.iter().filter_map(|(at, path)| Some((*at, below(path, &key)?))).collect();
            if wanted.is_empty() {
                map.next_value::<IgnoredAny>()?;
            } else {
                map.next_value_seed(PickLevel { wanted, values: self.values })?;
            }
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(())
    }

    fn visit_str<E>(mut self, text: &str) -> Result<(), E> {
        self.put(text);
        Ok(())
    }

    fn visit_bool<E>(mut self, value: bool) -> Result<(), E> {
        self.put(value);
        Ok(())
    }

    fn visit_u64<E>(mut self, value: u64) -> Result<(), E> {
        self.put(value);
        Ok(())
    }

    fn visit_i64<E>(mut self, value: i64) -> Result<(), E> {
        self.put(value);
        Ok(())
    }

    fn visit_f64<E>(mut self, value: f64) -> Result<(), E> {
        self.put(value);
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}

/// What is left of `path` below `key`; nothing when it does not lead there.
fn below<'p>(path: &'p str, key: &str) -> Option<&'p str> {
    let rest = path.strip_prefix(key)?;
    if rest.is_empty() { Some("") } else { rest.strip_prefix('.') }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn picks_the_fields_that_are_there() {
        let json =
            br#"{"metadata":{"name":"a"},"spec":{"nodeName":"n\"1","hostNetwork":true,"x":[1,{"y":2}]}}"#;
        let paths = ["spec.nodeName", "spec.hostNetwork", "status.phase", "spec", "specx"];
        assert_eq!(pick(json, &paths), ["n\"1", "true", "", "", ""]);
        let tree: Value = serde_json::from_slice(json).unwrap();
        assert_eq!(paths.map(|path| text_at(&tree, path)), ["n\"1", "true", "", "", ""]);
        assert_eq!(pick(b"{", &["a"]), [""]);
    }
}
