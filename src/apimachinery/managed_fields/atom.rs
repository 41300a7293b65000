//! What a schema says of ownership: which values are leaves, how lists are keyed (`schema.Atom`, and
//! `schemaconv`, which makes one of OpenAPI).

use serde_json::Value;

use crate::schema::{Fields, ListType, MapType, Presence, Schema, Schemas, Shape, zero_value};

const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
const RAW_EXTENSION: &str = "io.k8s.apimachinery.pkg.runtime.RawExtension";

/// What is known of a value.
#[derive(Clone, Copy, Debug)]
pub enum SchemaType<'s> {
    /// It has a schema.
    Known(&'s Schema),
    /// It is a whole custom resource: by its own schema, but for type and metadata.
    Custom(&'s Schema),
    /// Nothing: maps are merged, lists replaced (`__untyped_deduced_`).
    Deduced,
    /// Nothing, and it is replaced whole (`__untyped_atomic_`).
    Atomic,
}

/// What a value may be. One of several where the schema leaves it open; then the value decides.
#[derive(Clone, Copy, Debug)]
pub(super) struct Atom<'s> {
    pub(super) scalar: Option<Scalar>,
    pub(super) list: Option<ListAtom<'s>>,
    pub(super) map: Option<MapAtom<'s>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scalar {
    Numeric,
    Text,
    Boolean,
    Untyped,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct ListAtom<'s> {
    pub(super) element: SchemaType<'s>,
    pub(super) is_atomic: bool,
    /// The fields that tell elements apart; none in a set.
    pub(super) keys: &'s [Box<str>],
    key_source: Option<&'s Schema>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct MapAtom<'s> {
    fields: Option<&'s Fields>,
    /// What is not a named field; None where there must be no others.
    element: Option<SchemaType<'s>>,
    pub(super) is_atomic: bool,
    is_resource: bool,
}

/// Which of its forms a value takes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Form<'s> {
    Map(MapAtom<'s>),
    Scalar(Scalar),
    List(ListAtom<'s>),
}

impl<'s> SchemaType<'s> {
    pub(super) fn atom(self) -> Atom<'s> {
        match self {
            SchemaType::Known(schema) if schema.resolve().embedded_resource => {
                SchemaType::Custom(schema).atom()
            }
            SchemaType::Known(schema) => known(schema),
            SchemaType::Custom(schema) => {
                let (fields, is_open) = match &schema.resolve().shape {
                    Shape::Object(fields) => (Some(fields), is_open(schema, fields)),
                    _ => (None, true),
                };
                let element = is_open.then_some(SchemaType::Deduced);
                Atom::map(MapAtom { fields, element, is_atomic: false, is_resource: true })
            }
            SchemaType::Deduced => Atom::untyped(SchemaType::Deduced, false),
            SchemaType::Atomic => Atom::untyped(SchemaType::Atomic, true),
        }
    }
}

fn known(schema: &Schema) -> Atom<'_> {
    let resolved = schema.resolve();
    let is_atomic = schema.map_type() == Some(MapType::Atomic);
    let plain = |fields, element| MapAtom { fields, element, is_atomic, is_resource: false };
    match &resolved.shape {
        Shape::Free if resolved.facts().name.as_deref() == Some(RAW_EXTENSION) => SchemaType::Atomic.atom(),
        Shape::Free | Shape::Reference(_) => SchemaType::Deduced.atom(),
        Shape::Object(fields) => {
            let element = is_open(resolved, fields).then_some(SchemaType::Deduced);
            Atom::map(plain(Some(fields), element))
        }
        Shape::Map(values) => Atom::map(plain(None, Some(SchemaType::Known(values)))),
        Shape::List(items) => Atom { scalar: None, list: Some(list(schema, items)), map: None },
        // Of a custom kind: it has no type, so it may be anything.
        Shape::IntOrString if schema.facts().format.is_none() => SchemaType::Deduced.atom(),
        Shape::String if schema.facts().format.is_none() => Atom::scalar(Scalar::Text),
        Shape::Bytes => Atom::scalar(Scalar::Text),
        Shape::Boolean => Atom::scalar(Scalar::Boolean),
        Shape::Integer32 | Shape::Integer64 | Shape::Number => Atom::scalar(Scalar::Numeric),
        _ => Atom::scalar(Scalar::Untyped),
    }
}

/// An object without named fields is of any form.
fn is_open(schema: &Schema, fields: &Fields) -> bool {
    schema.resolve().preserve_unknown_fields || fields.iter().next().is_none()
}

/// By the list type; a list without one by its patch strategy; any other is replaced whole.
fn list<'s>(schema: &'s Schema, items: &'s Schema) -> ListAtom<'s> {
    let own = [schema, schema.resolve()];
    let keys = own.iter().map(|schema| &schema.facts().list_map_keys[..]).find(|keys| !keys.is_empty());
    let merge_key = schema.facts().patch_merge_key.as_slice();
    let (is_atomic, keys) = match schema.list_type() {
        Some(ListType::Atomic) => (true, &[][..]),
        Some(ListType::Set) => (false, &[][..]),
        Some(ListType::Map) => (false, keys.unwrap_or_default()),
        None => (!schema.has_patch_strategy("merge"), merge_key),
    };
    ListAtom { element: SchemaType::Known(items), is_atomic, keys, key_source: Some(items) }
}

impl<'s> Atom<'s> {
    fn map(map: MapAtom<'s>) -> Self {
        Atom { scalar: None, list: None, map: Some(map) }
    }

    fn scalar(scalar: Scalar) -> Self {
        Atom { scalar: Some(scalar), list: None, map: None }
    }

    fn untyped(element: SchemaType<'s>, is_atomic: bool) -> Self {
        Atom {
            scalar: Some(Scalar::Untyped),
            list: Some(ListAtom {
                element: SchemaType::Atomic,
                is_atomic: true,
                keys: &[],
                key_source: None,
            }),
            map: Some(MapAtom { fields: None, element: Some(element), is_atomic, is_resource: false }),
        }
    }

    /// The form that the value has, as far as it may (`deduceAtom`): what fits none is held against the
    /// first.
    pub(super) fn form(&self, value: Option<&Value>) -> Form<'s> {
        let fitting = match value {
            Some(Value::Array(_)) => self.list.map(Form::List),
            Some(Value::Object(_)) => self.map.map(Form::Map),
            Some(Value::Null) | None => None,
            Some(_) => self.scalar.map(Form::Scalar),
        };
        let first = || self.map.map(Form::Map).or(self.scalar.map(Form::Scalar));
        fitting.or_else(first).or(self.list.map(Form::List)).expect("an atom has at least one form")
    }

    /// Whether both values take the same form; null takes any.
    pub(super) fn same_form(&self, left: &Value, right: &Value) -> bool {
        let is_open = self.map.is_some() && self.scalar.is_some();
        !is_open || class(left) == class(right)
    }
}

fn class(value: &Value) -> u8 {
    match value {
        Value::Array(_) => 1,
        Value::Object(_) => 2,
        Value::Null => 3,
        _ => 0,
    }
}

impl<'s> MapAtom<'s> {
    /// Whether `name` is a named field, as opposed to a key.
    pub(super) fn declares(&self, name: &str) -> bool {
        self.is_resource && matches!(name, "apiVersion" | "kind" | "metadata")
            || self.fields.is_some_and(|fields| fields.get(name).is_some())
    }

    /// What a field or key holds; None where there must be none of that name.
    pub(super) fn child(&self, name: &str) -> Option<SchemaType<'s>> {
        if self.is_resource {
            match name {
                "apiVersion" | "kind" => return Some(SchemaType::Known(&Schema::TEXT)),
                "metadata" => return Some(SchemaType::Known(Schemas::reference(OBJECT_META))),
                _ => {}
            }
        }
        let field = self.fields.and_then(|fields| fields.get(name)).map(SchemaType::Known);
        field.or(self.element)
    }

    /// Nothing is known of its values.
    pub(super) fn is_deduced(&self) -> bool {
        !self.is_resource && self.fields.is_none() && matches!(self.element, Some(SchemaType::Deduced))
    }
}

impl ListAtom<'_> {
    /// What a key field is that an element leaves out: its default, or what Go has where nothing was set.
    pub(super) fn key_default(&self, name: &str) -> Option<Value> {
        let field = self.key_source?.property(name)?;
        let is_struct_field = self.key_source?.resolve().facts().name.is_some();
        let zero = || (is_struct_field && field.presence == Presence::Always).then(|| zero_value(field));
        field.facts().default.clone().or_else(zero)
    }
}
