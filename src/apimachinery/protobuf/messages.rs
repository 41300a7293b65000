//! The messages: which number is which field. A constant, read when the first protobuf body comes.

use std::collections::HashMap;
use std::sync::LazyLock;

use serde_json::{Value, json};

static TABLE: &str = include_str!("../../../manifests/protobuf/messages.tsv");
static MESSAGES: LazyLock<HashMap<&'static str, Message>> = LazyLock::new(|| parse(TABLE));

/// The fields of a message.
#[derive(Debug, Default)]
pub(super) struct Message(Vec<(u32, Field)>);

/// One field.
#[derive(Debug)]
pub(super) struct Field {
    /// In JSON.
    pub name: &'static str,
    /// How often it may be there.
    pub arity: Arity,
    /// What one of it is.
    pub kind: Type,
}

/// How often a field may be there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Arity {
    /// Once.
    One,
    /// A list.
    List,
    /// A map from strings.
    Map,
}

/// What a value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Type {
    /// Text.
    String,
    /// Any integer.
    Int,
    /// `true` or `false`.
    Bool,
    /// A number with a fraction.
    Double,
    /// Base64 in JSON.
    Bytes,
    /// JSON in bytes.
    Raw,
    /// `resource.Quantity`
    Quantity,
    /// `intstr.IntOrString`
    IntOrString,
    /// `metav1.Time` or `metav1.MicroTime`
    Time {
        /// With microseconds.
        micro: bool,
    },
    /// Another message, by name.
    Message(&'static str),
}

impl Message {
    /// The field of a number.
    pub fn field(&self, number: u32) -> Option<&Field> {
        self.0.iter().find(|(own, _)| *own == number).map(|(_, field)| field)
    }
}

impl Field {
    /// Whether its fields stand in the message around it, as those of an embedded struct of Go do.
    pub fn is_inline(&self) -> bool {
        self.name == "-"
    }
}

impl Type {
    /// What a map's entry without a value holds.
    pub fn zero(&self) -> Value {
        match self {
            Type::Int | Type::Double => json!(0),
            Type::Bool => json!(false),
            Type::Message(_) => json!({}),
            Type::Time { .. } | Type::Raw => Value::Null,
            _ => json!(""),
        }
    }
}

/// The message of a definition's name.
pub(super) fn find(definition: &str) -> Option<&'static Message> {
    MESSAGES.get(definition)
}

fn parse(table: &'static str) -> HashMap<&'static str, Message> {
    let mut messages: HashMap<&str, Message> = HashMap::new();
    let mut current = "";
    for line in table.lines().filter(|line| !line.starts_with('#')) {
        let Some(field) = line.strip_prefix('\t') else {
            current = line;
            messages.entry(current).or_default();
            continue;
        };
        let field = parse_field(field).expect("the table is well formed");
        messages.entry(current).or_default().0.push(field);
    }
    messages
}

fn parse_field(line: &'static str) -> Option<(u32, Field)> {
    let mut columns = line.split('\t');
    let (number, name, kind) = (columns.next()?.parse().ok()?, columns.next()?, columns.next()?);
    let (arity, kind) = match (kind.strip_prefix("[]"), kind.strip_prefix("{}")) {
        (Some(kind), _) => (Arity::List, kind),
        (_, Some(kind)) => (Arity::Map, kind),
        _ => (Arity::One, kind),
    };
    let kind = match kind {
        "string" => Type::String,
        "int" => Type::Int,
        "bool" => Type::Bool,
        "double" => Type::Double,
        "bytes" => Type::Bytes,
        "raw" => Type::Raw,
        "quantity" => Type::Quantity,
        "intOrString" => Type::IntOrString,
        "time" => Type::Time { micro: false },
        "microTime" => Type::Time { micro: true },
        message => Type::Message(message.strip_prefix('@')?),
    };
    Some((number, Field { name, arity, kind }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_message_that_is_named_is_there() {
        for (name, message) in MESSAGES.iter() {
            for (number, field) in &message.0 {
                if let Type::Message(other) = field.kind {
                    assert!(find(other).is_some(), "{name}.{number}: {other}");
                }
            }
        }
    }
}
