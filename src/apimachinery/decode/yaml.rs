//! YAML bodies: to JSON first, as upstream does (`sigs.k8s.io/yaml`), with the duplicate keys that were met.

use std::cell::RefCell;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use super::aliases::{Allowance, EXCESSIVE, REPETITIONS};

/// Duplicate keys that are reported; each costs one more reading of the body to learn its line.
const MAX_DUPLICATES: usize = 16;

/// A YAML document.
pub(super) struct Document {
    /// As JSON.
    pub(super) value: Value,
    /// One strict error for all duplicate keys, as upstream's reader reports them; empty without any.
    pub(super) duplicates: Option<String>,
}

/// Reads the first document; the error is Go's.
pub(super) fn parse(body: &[u8]) -> Result<Document, String> {
    let reading = RefCell::new(Reading::of(body, None));
    let value = read(body, &reading).map_err(|error| go_error(&error))?;
    let found = reading.into_inner().duplicates;
    Ok(Document { value, duplicates: (!found.is_empty()).then(|| duplicate_error(body, &found)) })
}

/// Whether the aliases of all documents stand for no more than is allowed; other mistakes are for those who
/// read them in earnest.
pub(super) fn check_aliases(text: &[u8]) -> Result<(), serde_yaml::Error> {
    if !text.contains(&b'*') {
        return Ok(());
    }
    let reading = RefCell::new(Reading::of(text, None));
    for document in serde_yaml::Deserializer::from_slice(text) {
        Tree(&reading).deserialize(document)?;
    }
    Ok(())
}

/// What is kept in mind while a text is read.
struct Reading {
    /// Duplicate keys in the order they were met. serde_yaml tells lines only with errors, so a second
    /// reading makes the wanted one, `stop_at`, an error.
    duplicates: Vec<String>,
    stop_at: Option<usize>,
    allowance: Allowance,
}

impl Reading {
    fn of(text: &[u8], stop_at: Option<usize>) -> Reading {
        Reading { duplicates: Vec::new(), stop_at, allowance: Allowance::of(text) }
    }
}

fn read(body: &[u8], reading: &RefCell<Reading>) -> Result<Value, serde_yaml::Error> {
    match serde_yaml::Deserializer::from_slice(body).next() {
        Some(document) => Tree(reading).deserialize(document),
        None => Ok(Value::Null),
    }
}

fn duplicate_error(body: &[u8], found: &[String]) -> String {
    let mut text = String::from("yaml: unmarshal errors:");
    for (at, key) in found.iter().enumerate().take(MAX_DUPLICATES) {
        let reading = RefCell::new(Reading::of(body, Some(at)));
        let line =
            read(body, &reading).err().and_then(|error| error.location()).map_or(1, |place| place.line());
        text.push_str(&format!("\n  line {line}: key {key:?} already set in map"));
    }
    text
}

/// libyaml's problem without serde's place at the end, and the line where Go puts it: its parser counts from
/// zero, its scanner from one, and neither names the first line.
fn go_error(error: &serde_yaml::Error) -> String {
    let text = error.to_string();
    let problem =
        text.split(" at line ").next().and_then(|text| text.split(", while").next()).unwrap_or(&text);
    if problem.ends_with(EXCESSIVE) || problem.ends_with(REPETITIONS) {
        return format!("yaml: {EXCESSIVE}");
    }
    let line = error.location().map_or(0, |place| place.line());
    let is_scanner = !problem.starts_with("did not find expected");
    match if is_scanner { line } else { line.saturating_sub(1) } {
        0 => format!("yaml: {problem}"),
        1 if is_scanner => format!("yaml: {problem}"),
        line => format!("yaml: line {line}: {problem}"),
    }
}

struct Tree<'k>(&'k RefCell<Reading>);

impl<'de> DeserializeSeed<'de> for Tree<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        self.0.borrow_mut().allowance.take_value()?;
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Tree<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("YAML that JSON can say")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: Error>(self, flag: bool) -> Result<Value, E> {
        Ok(Value::Bool(flag))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_u128<E: Error>(self, number: u128) -> Result<Value, E> {
        self.visit_f64(number as f64)
    }

    fn visit_i128<E: Error>(self, number: i128) -> Result<Value, E> {
        self.visit_f64(number as f64)
    }

    /// A float without a fraction is written as an integer on the way to JSON, and read as one.
    fn visit_f64<E: Error>(self, number: f64) -> Result<Value, E> {
        let is_whole = number.fract() == 0.0 && number.abs() < 9e15;
        Ok(match is_whole {
            true => Value::from(number as i64),
            false => Number::from_f64(number).map_or(Value::Null, Value::Number),
        })
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Value, E> {
        self.0.borrow_mut().allowance.take_text(text)?;
        Ok(Value::String(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = list.next_element_seed(Tree(self.0))? {
            values.push(value);
        }
        Ok(Value::Array(values))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(key) = map.next_key_seed(Tree(self.0))? {
            // As a text it would double with each level, as each escapes what the one below has escaped.
            if matches!(key, Value::Array(_) | Value::Object(_)) {
                return Err(serde::de::Error::custom("invalid map key"));
            }
            let key = key_text(key);
            if object.contains_key(&key) && self.stops_at(&key) {
                map.next_value_seed(Located)?;
            }
            let value = map.next_value_seed(Tree(self.0))?;
            object.insert(key, value);
        }
        merge_anchors(&mut object);
        Ok(Value::Object(object))
    }

    fn visit_enum<A: serde::de::EnumAccess<'de>>(self, data: A) -> Result<Value, A::Error> {
        // A tagged value: the tag says nothing to JSON.
        use serde::de::VariantAccess;
        let (_, value) = data.variant::<IgnoredAny>()?;
        value.newtype_variant_seed(Tree(self.0))
    }
}

impl Tree<'_> {
    /// Notes a duplicate; true where this reading is to end at it.
    fn stops_at(&self, key: &str) -> bool {
        let mut reading = self.0.borrow_mut();
        let at = reading.duplicates.len();
        reading.duplicates.push(key.to_owned());
        reading.stop_at == Some(at)
    }
}

/// Fails at its value, whatever that is, which lets the reader tell where it lies.
struct Located;

impl<'de> DeserializeSeed<'de> for Located {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl Visitor<'_> for Located {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no second value")
    }
}

/// JSON has no other keys than texts.
fn key_text(key: Value) -> String {
    match key {
        Value::String(text) => text,
        other => other.to_string(),
    }
}

/// `<<`: what the named mappings have and this one does not.
fn merge_anchors(object: &mut Map<String, Value>) {
    let sources = match object.remove("<<") {
        Some(Value::Array(list)) => list,
        Some(one) => vec![one],
        None => return,
    };
    for (key, value) in sources.into_iter().filter_map(|source| source.as_object().cloned()).flatten() {
        object.entry(key).or_insert(value);
    }
}
