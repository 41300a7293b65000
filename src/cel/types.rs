//! Types of expressions (`common/types/types.go`).

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// A type.
#[derive(Clone, Debug, PartialEq)]
pub enum Type {
    /// Anything, known when it runs.
    Dyn,
    /// `null_type`
    Null,
    /// `bool`
    Bool,
    /// `int`
    Int,
    /// `uint`
    Uint,
    /// `double`
    Double,
    /// `string`
    String,
    /// `bytes`
    Bytes,
    /// `google.protobuf.Duration`
    Duration,
    /// `google.protobuf.Timestamp`
    Timestamp,
    /// The type of types.
    Type,
    /// `list(A)`
    List(Arc<Type>),
    /// `map(A, B)`
    Map(Arc<Type>, Arc<Type>),
    /// `optional_type(A)`
    Optional(Arc<Type>),
    /// A type of a library, as `kubernetes.Quantity`.
    Opaque(Arc<str>),
    /// An object whose fields are known.
    Object(Arc<ObjectType>),
    /// What a declaration leaves open.
    Param(char),
}

/// An object whose fields are declared (`apiservercel.DeclType` of an object).
#[derive(Debug, Default, PartialEq)]
pub struct ObjectType {
    /// As `object` or `kubernetes.AdmissionRequest`; shown in errors.
    pub name: Arc<str>,
    /// By name, as an expression writes it.
    pub fields: BTreeMap<Arc<str>, Type>,
}

impl Type {
    /// `list(item)`
    pub fn list(item: Type) -> Type {
        Type::List(Arc::new(item))
    }

    /// `map(string, value)`
    pub fn map_of(value: Type) -> Type {
        Type::Map(Arc::new(Type::String), Arc::new(value))
    }

    /// An object with these fields.
    pub fn object<'a>(name: &str, fields: impl IntoIterator<Item = (&'a str, Type)>) -> Type {
        // One by one: collecting sorts, and each caller would have a sort of its own in the program.
        let mut of_object = ObjectType { name: name.into(), fields: BTreeMap::new() };
        for (name, of) in fields {
            of_object.fields.insert(name.into(), of);
        }
        Type::Object(Arc::new(of_object))
    }

    /// `optional_type(of)`
    pub fn optional(of: Type) -> Type {
        Type::Optional(Arc::new(of))
    }

    /// The type that a name means, in expressions and declarations.
    pub(super) fn named(name: &str) -> Option<Type> {
        Some(match name {
            "dyn" => Type::Dyn,
            "null_type" => Type::Null,
            "bool" => Type::Bool,
            "int" => Type::Int,
            "uint" => Type::Uint,
            "double" => Type::Double,
            "string" => Type::String,
            "bytes" => Type::Bytes,
            "duration" | "google.protobuf.Duration" => Type::Duration,
            "timestamp" | "google.protobuf.Timestamp" => Type::Timestamp,
            "type" => Type::Type,
            "list" => Type::list(Type::Dyn),
            "map" => Type::Map(Arc::new(Type::Dyn), Arc::new(Type::Dyn)),
            "optional_type" => Type::optional(Type::Dyn),
            "kubernetes.URL"
            | "kubernetes.Quantity"
            | "kubernetes.Semver"
            | "kubernetes.NamedFormat"
            | "net.IP"
            | "net.CIDR" => Type::Opaque(name.into()),
            _ if name.starts_with("kubernetes.authorization.") => Type::Opaque(name.into()),
            _ => return None,
        })
    }

    /// The name that `type(x)` gives for values of it.
    pub(super) fn runtime_name(&self) -> Arc<str> {
        match self {
            Type::Null => "null_type".into(),
            Type::Duration => "google.protobuf.Duration".into(),
            Type::Timestamp => "google.protobuf.Timestamp".into(),
            Type::List(_) => "list".into(),
            Type::Map(..) => "map".into(),
            Type::Optional(_) => "optional_type".into(),
            other => other.to_string().into(),
        }
    }

    /// Whether `null` can stand where it is wanted (`isLegacyNullable`).
    fn is_nullable(&self) -> bool {
        use Type::{Duration, Object, Opaque, Optional, Timestamp};
        matches!(self, Object(_) | Duration | Timestamp | Opaque(_) | Optional(_))
    }

    /// Whether a value of type `given` can stand where `self` is wanted, once `bound` says what the
    /// parameters are; parameters that are free are bound by it.
    pub(super) fn accepts(&self, given: &Type, bound: &mut BTreeMap<char, Type>) -> bool {
        if let Type::Param(name) = self {
            return accept_param(*name, given, bound);
        }
        match (self, given) {
            (Type::Dyn, _) | (_, Type::Dyn) => true,
            (nullable, Type::Null) if nullable.is_nullable() => true,
            (Type::Null, nullable) if nullable.is_nullable() => true,
            (Type::List(wanted), Type::List(given)) => wanted.accepts(given, bound),
            (Type::Optional(wanted), Type::Optional(given)) => wanted.accepts(given, bound),
            (Type::Map(key, value), Type::Map(given_key, given_value)) => {
                key.accepts(given_key, bound) && value.accepts(given_value, bound)
            }
            (wanted, given) => wanted == given,
        }
    }

    /// With the parameters that are bound; those that are not are `dyn`.
    pub(super) fn substitute(&self, bound: &BTreeMap<char, Type>) -> Type {
        match self {
            Type::Param(name) => bound.get(name).cloned().unwrap_or(Type::Dyn),
            Type::List(item) => Type::list(item.substitute(bound)),
            Type::Optional(item) => Type::optional(item.substitute(bound)),
            Type::Map(key, value) => {
                Type::Map(Arc::new(key.substitute(bound)), Arc::new(value.substitute(bound)))
            }
            other => other.clone(),
        }
    }

    /// Whether values of it can be sorted (`comparableTypes`), as far as that is known.
    pub(super) fn is_ordered(&self) -> bool {
        use Type::{Bool, Bytes, Double, Duration, Dyn, Int, Param, String, Timestamp, Uint};
        matches!(self, Dyn | Param(_) | Bool | Bytes | Double | Duration | Int | String | Timestamp | Uint)
    }

    /// The more general of two types of which one accepts the other.
    pub(super) fn join(&self, other: &Type) -> Option<Type> {
        if matches!(self, Type::Dyn) || matches!(other, Type::Dyn) {
            return Some(Type::Dyn);
        }
        if matches!(self, Type::Null) && other.accepts(self, &mut BTreeMap::new()) {
            return Some(other.clone());
        }
        self.accepts(other, &mut BTreeMap::new()).then(|| self.clone())
    }
}

/// A parameter that is bound to something vague becomes what is known better.
fn accept_param(name: char, given: &Type, bound: &mut BTreeMap<char, Type>) -> bool {
    let Some(known) = bound.get(&name).cloned() else {
        bound.insert(name, given.clone());
        return true;
    };
    if !known.accepts(given, bound) {
        return false;
    }
    if matches!(known, Type::Dyn | Type::Null) {
        bound.insert(name, given.clone());
    }
    true
}

impl Type {
    /// `Type.String`: every type by the name that it has at run time.
    pub fn declared_name(&self) -> String {
        match self {
            Type::List(item) => format!("list({})", item.declared_name()),
            Type::Map(key, value) => format!("map({}, {})", key.declared_name(), value.declared_name()),
            Type::Optional(of) => format!("optional_type({})", of.declared_name()),
            other => other.runtime_name().to_string(),
        }
    }
}

/// `FormatCELType`
impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Type::Dyn => "dyn",
            Type::Null => "null",
            Type::Bool => "bool",
            Type::Int => "int",
            Type::Uint => "uint",
            Type::Double => "double",
            Type::String => "string",
            Type::Bytes => "bytes",
            Type::Duration => "duration",
            Type::Timestamp => "timestamp",
            Type::Type => "type",
            Type::List(item) => return write!(f, "list({item})"),
            Type::Map(key, value) => return write!(f, "map({key}, {value})"),
            Type::Optional(item) => return write!(f, "optional_type({item})"),
            Type::Opaque(name) => name,
            Type::Object(object) => &object.name,
            Type::Param(name) => return write!(f, "{name}"),
        };
        f.write_str(name)
    }
}
