//! Path elements: one step of the way to a field (`fieldpath.PathElement`).

use std::cmp::Ordering;
use std::fmt;

use serde_json::Value;

/// One step of a path. The order of the variants is the order in which upstream sorts and writes them.
#[derive(Clone, Debug)]
pub enum PathElement {
    /// A named field or a key of a map: `f:name`.
    Field(Box<str>),
    /// The element of a list that has these values in its key fields, sorted by name: `k:{"name":"web"}`.
    Key(Box<[(Box<str>, Value)]>),
    /// The element of a set with this value: `v:"web"`.
    Value(Value),
    /// The element at this place of a list: `i:0`. Nobody owns places; old servers wrote some.
    Index(i64),
}

/// The way from an object's root to a field (`fieldpath.Path`).
pub type Path = Vec<PathElement>;

impl PathElement {
    /// A named field.
    pub fn field(name: &str) -> PathElement {
        PathElement::Field(name.into())
    }
}

/// A path of named fields, from its names between dots.
pub fn path_of(dotted: &str) -> Path {
    dotted.split('.').map(PathElement::field).collect()
}

/// `.spec.containers[name="web"].image`.
pub fn print_path(path: &[PathElement]) -> String {
    path.iter().map(PathElement::to_string).collect()
}

impl fmt::Display for PathElement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(name) => write!(f, ".{name}"),
            Self::Key(fields) => {
                let shown = fields.iter().map(|(name, value)| format!("{name}={}", print_value(value)));
                write!(f, "[{}]", shown.collect::<Vec<_>>().join(","))
            }
            Self::Value(value) => write!(f, "[={}]", print_value(value)),
            Self::Index(at) => write!(f, "[{at}]"),
        }
    }
}

fn print_value(value: &Value) -> String {
    match value {
        Value::String(text) => format!("{text:?}"),
        other => other.to_string(),
    }
}

impl Ord for PathElement {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Field(left), Self::Field(right)) => left.cmp(right),
            (Self::Key(left), Self::Key(right)) => compare_keys(left, right),
            (Self::Value(left), Self::Value(right)) => compare_values(left, right),
            (Self::Index(left), Self::Index(right)) => left.cmp(right),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

impl PathElement {
    fn rank(&self) -> u8 {
        match self {
            Self::Field(_) => 0,
            Self::Key(_) => 1,
            Self::Value(_) => 2,
            Self::Index(_) => 3,
        }
    }
}

impl PartialOrd for PathElement {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for PathElement {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for PathElement {}

fn compare_keys(left: &[(Box<str>, Value)], right: &[(Box<str>, Value)]) -> Ordering {
    let pairs = left.iter().zip(right);
    let differing =
        pairs.map(|(left, right)| left.0.cmp(&right.0).then_with(|| compare_values(&left.1, &right.1)));
    differing.into_iter().find(|order| order.is_ne()).unwrap_or_else(|| left.len().cmp(&right.len()))
}

/// `value.Compare`: numbers before texts before booleans before lists before maps before null.
pub(super) fn compare_values(left: &Value, right: &Value) -> Ordering {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => match (left.as_i64(), right.as_i64()) {
            (Some(left), Some(right)) => left.cmp(&right),
            _ => left.as_f64().unwrap_or(0.0).total_cmp(&right.as_f64().unwrap_or(0.0)),
        },
        (Value::String(left), Value::String(right)) => left.cmp(right),
        (Value::Bool(left), Value::Bool(right)) => left.cmp(right),
        (Value::Array(left), Value::Array(right)) => {
            let mut orders = left.iter().zip(right).map(|(left, right)| compare_values(left, right));
            orders.find(|order| order.is_ne()).unwrap_or_else(|| left.len().cmp(&right.len()))
        }
        (Value::Object(left), Value::Object(right)) => {
            let mut orders = left.iter().zip(right).map(|((left_key, left), (right_key, right))| {
                left_key.cmp(right_key).then_with(|| compare_values(left, right))
            });
            orders.find(|order| order.is_ne()).unwrap_or_else(|| left.len().cmp(&right.len()))
        }
        _ => rank(left).cmp(&rank(right)),
    }
}

/// `value.Equals`: a whole float is the integer.
pub(super) fn equal(left: &Value, right: &Value) -> bool {
    left == right || compare_values(left, right).is_eq()
}

fn rank(value: &Value) -> u8 {
    match value {
        Value::Number(_) => 0,
        Value::String(_) => 1,
        Value::Bool(_) => 2,
        Value::Array(_) => 3,
        Value::Object(_) => 4,
        Value::Null => 5,
    }
}
