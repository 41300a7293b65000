//! Values of expressions.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use chrono::{TimeDelta, Utc};

use super::cost::Budget;
use super::error::EvaluationError;
use super::opaque::Opaque;
use super::times;

/// What an expression comes to.
pub(super) type EvaluationResult = Result<Value, EvaluationError>;

/// A value. Cloning shares what is large.
#[derive(Clone)]
pub enum Value {
    /// `null`
    Null,
    /// `bool`
    Bool(bool),
    /// `int`
    Int(i64),
    /// `uint`
    Uint(u64),
    /// `double`
    Double(f64),
    /// `string`
    String(Arc<str>),
    /// `bytes`
    Bytes(Arc<[u8]>),
    /// `google.protobuf.Duration`
    Duration(TimeDelta),
    /// `google.protobuf.Timestamp`
    Timestamp(chrono::DateTime<Utc>),
    /// `list`
    List(Arc<CelList>),
    /// `map`, and objects of a schema
    Map(Arc<Map>),
    /// What `type(x)` gives: the name of a type.
    Type(Arc<str>),
    /// `optional_type`
    Optional(Option<Arc<Value>>),
    /// A value of Kubernetes' libraries: quantity, IP, CIDR, URL, semver, format.
    Opaque(Opaque),
    /// A value of the embedding program: an authorizer, lazily evaluated variables.
    Host(Arc<dyn HostValue>),
    /// Data that does not fit its schema: whoever asks for it gets the error.
    Invalid(Arc<str>),
}

/// A value that the embedding program makes: fields that are worked out when they are asked for, functions
/// that only it can answer.
pub trait HostValue: Send + Sync {
    /// As `kubernetes.authorization.Authorizer`.
    fn type_name(&self) -> &str;

    /// A field; None where there is none of that name.
    fn field(&self, _name: &str, _budget: &mut Budget) -> Option<EvaluationResult> {
        None
    }

    /// A member function.
    ///
    /// # Errors
    /// What went wrong; by default no function is known.
    fn call(&self, _function: &str, _args: &[Value]) -> EvaluationResult {
        Err(EvaluationError::NoSuchOverload)
    }

    /// The number that it is, if it is one with a type of its own, as an amount: it is compared with other
    /// numbers, whatever their types, and counted with.
    fn number(&self) -> Option<f64> {
        None
    }

    /// What comes of counting with it: a number of its own type.
    fn with_number(&self, number: f64) -> Value {
        Value::Double(number)
    }
}

/// A list, and how it is compared and added to (`x-kubernetes-list-type`).
#[derive(Clone, Debug, Default)]
pub struct CelList {
    /// In order.
    pub items: Vec<Value>,
    /// What the list is.
    pub kind: ListKind,
}

/// `x-kubernetes-list-type`
#[derive(Clone, Debug, Default, PartialEq)]
pub enum ListKind {
    /// Order counts.
    #[default]
    Atomic,
    /// Order does not count.
    Set,
    /// Elements are known by these keys; order does not count.
    Map(Arc<[Arc<str>]>),
}

/// A map or object.
#[derive(Clone, Debug, Default)]
pub struct Map {
    /// By key.
    pub entries: BTreeMap<MapKey, Value>,
    /// Of an object: what its schema does not declare. No expression reaches it, but equality and size count
    /// it.
    pub undeclared: serde_json::Map<String, serde_json::Value>,
}

impl Map {
    /// With nothing undeclared.
    pub fn of(entries: BTreeMap<MapKey, Value>) -> Map {
        Map { entries, undeclared: serde_json::Map::new() }
    }

    /// How many members it has.
    pub fn len(&self) -> usize {
        self.entries.len() + self.undeclared.len()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether what is undeclared is the same in both: what only one has is not looked at.
    pub(super) fn agrees(&self, other: &Map) -> bool {
        self.undeclared.iter().all(|(name, value)| other.undeclared.get(name).is_none_or(|of| of == value))
    }
}

/// A key of a map. Numbers that are equal are the same key.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MapKey {
    /// `bool`
    Bool(bool),
    /// `int`, and every `uint` that is one
    Int(i64),
    /// A `uint` too large for an `int`
    Uint(u64),
    /// `string`
    String(Arc<str>),
}

impl MapKey {
    /// The key that a value makes; None for values that cannot be keys.
    pub fn of(value: &Value) -> Option<MapKey> {
        Some(match value {
            Value::Bool(flag) => MapKey::Bool(*flag),
            Value::Int(number) => MapKey::Int(*number),
            Value::Uint(number) => i64::try_from(*number).map_or(MapKey::Uint(*number), MapKey::Int),
            Value::Double(number) if number.fract() == 0.0 && number.abs() < 9.0e18 => {
                MapKey::Int(*number as i64)
            }
            Value::String(text) => MapKey::String(text.clone()),
            _ => return None,
        })
    }

    /// The key as a value.
    pub fn value(&self) -> Value {
        match self {
            MapKey::Bool(flag) => Value::Bool(*flag),
            MapKey::Int(number) => Value::Int(*number),
            MapKey::Uint(number) => Value::Uint(*number),
            MapKey::String(text) => Value::String(text.clone()),
        }
    }
}

impl fmt::Display for MapKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MapKey::Bool(flag) => write!(f, "{flag}"),
            MapKey::Int(number) => write!(f, "{number}"),
            MapKey::Uint(number) => write!(f, "{number}"),
            MapKey::String(text) => f.write_str(text),
        }
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Value {
        Value::String(text.into())
    }
}

impl From<bool> for Value {
    fn from(flag: bool) -> Value {
        Value::Bool(flag)
    }
}

impl From<Vec<Value>> for Value {
    fn from(items: Vec<Value>) -> Value {
        Value::List(Arc::new(CelList { items, kind: ListKind::Atomic }))
    }
}

impl Value {
    /// A map with text keys.
    pub fn map(entries: impl IntoIterator<Item = (Arc<str>, Value)>) -> Value {
        // As in `Type::object`.
        let mut map = BTreeMap::new();
        for (key, value) in entries {
            map.insert(MapKey::String(key), value);
        }
        Value::Map(Arc::new(Map::of(map)))
    }

    /// JSON as it is, without a schema: numbers are `int` where they are whole, objects are maps.
    pub fn from_json(json: &serde_json::Value) -> Value {
        match json {
            serde_json::Value::Null => Value::Null,
            serde_json::Value::Bool(flag) => Value::Bool(*flag),
            serde_json::Value::Number(number) => match number.as_i64() {
                Some(number) => Value::Int(number),
                None => Value::Double(number.as_f64().unwrap_or_default()),
            },
            serde_json::Value::String(text) => Value::from(text.as_str()),
            serde_json::Value::Array(items) => {
                Value::from(items.iter().map(Value::from_json).collect::<Vec<_>>())
            }
            serde_json::Value::Object(map) => {
                let entry = |(name, value): (&String, &serde_json::Value)| {
                    (name.as_str().into(), Value::from_json(value))
                };
                Value::map(map.iter().map(entry))
            }
        }
    }

    /// As JSON; None for what has no such form.
    pub fn to_json(&self) -> Option<serde_json::Value> {
        Some(match self {
            Value::Null => serde_json::Value::Null,
            Value::Bool(flag) => (*flag).into(),
            Value::Int(number) => (*number).into(),
            Value::Uint(number) => (*number).into(),
            Value::Double(number) => (*number).into(),
            Value::String(text) | Value::Type(text) => (**text).into(),
            Value::Bytes(bytes) => {
                use base64::Engine;
                base64::engine::general_purpose::STANDARD.encode(bytes).into()
            }
            Value::Duration(duration) => times::duration_text(*duration)?.into(),
            Value::Timestamp(time) => times::timestamp_text(*time).into(),
            Value::List(list) => list.items.iter().map(Value::to_json).collect::<Option<Vec<_>>>()?.into(),
            Value::Map(map) => {
                let entry = |(key, value): (&MapKey, &Value)| Some((key.to_string(), value.to_json()?));
                serde_json::Value::Object(map.entries.iter().map(entry).collect::<Option<_>>()?)
            }
            Value::Optional(Some(value)) => value.to_json()?,
            Value::Optional(None) => serde_json::Value::Null,
            Value::Opaque(_) | Value::Host(_) | Value::Invalid(_) => return None,
        })
    }

    /// The text of a string.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Value::String(text) => Some(text),
            _ => None,
        }
    }

    /// The name of its type, as `type(x)` gives it.
    pub fn type_name(&self) -> &str {
        match self {
            Value::Null => "null_type",
            Value::Bool(_) => "bool",
            Value::Int(_) => "int",
            Value::Uint(_) => "uint",
            Value::Double(_) => "double",
            Value::String(_) => "string",
            Value::Bytes(_) => "bytes",
            Value::Duration(_) => "google.protobuf.Duration",
            Value::Timestamp(_) => "google.protobuf.Timestamp",
            Value::List(_) => "list",
            Value::Map(_) => "map",
            Value::Type(_) => "type",
            Value::Optional(_) => "optional_type",
            Value::Opaque(opaque) => opaque.type_name(),
            Value::Host(host) => host.type_name(),
            Value::Invalid(_) => "error",
        }
    }

    /// Whether it is its type's zero value.
    pub(super) fn is_zero(&self) -> bool {
        match self {
            Value::Null | Value::Optional(None) => true,
            Value::Bool(flag) => !flag,
            Value::Int(number) => *number == 0,
            Value::Uint(number) => *number == 0,
            Value::Double(number) => *number == 0.0,
            Value::String(text) => text.is_empty(),
            Value::Bytes(bytes) => bytes.is_empty(),
            Value::Duration(duration) => duration.is_zero(),
            Value::List(list) => list.items.is_empty(),
            Value::Map(map) => map.entries.is_empty(),
            _ => false,
        }
    }
}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.to_json() {
            Some(json) => write!(f, "{}({json})", self.type_name()),
            None => f.write_str(self.type_name()),
        }
    }
}
