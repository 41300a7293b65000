//! One schema: the shape of a value, and the facts that Kubernetes attaches to it.

use serde_json::Value;

use super::builtin::{DefinitionId, Schemas};

/// The schema of one value: of a kind, of a field, of an element. Upstream's `structural.Structural`, and for
/// built-in kinds what their Go types and struct tags say.
///
/// A field whose type is a definition of its own is a [`Shape::Reference`]; facts of the field are on the
/// reference, facts of the type on what [`Schema::resolve`] gives.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Schema {
    /// What JSON a value of it is.
    pub shape: Shape,
    /// Whether a zero value is written.
    pub presence: Presence,
    /// `null` is a value of its own (`nullable`, custom resources only).
    pub nullable: bool,
    /// Unknown fields stay (`x-kubernetes-preserve-unknown-fields`).
    pub preserve_unknown_fields: bool,
    /// The value is a whole object (`x-kubernetes-embedded-resource`).
    pub embedded_resource: bool,
    /// Everything that few schemas have.
    pub(super) facts: Option<Box<Facts>>,
}

/// What JSON a value is, by the rule that decodes it.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum Shape {
    /// Any JSON, taken as it comes: `runtime.RawExtension`, `metav1.FieldsV1`, untyped custom fields.
    #[default]
    Free,
    /// A built-in definition.
    Reference(DefinitionId),
    /// Named fields, all known.
    Object(Fields),
    /// Any keys, values of one schema.
    Map(Box<Schema>),
    /// A list, elements of one schema.
    List(Box<Schema>),
    /// A string.
    String,
    /// A string holding base64 (`[]byte` upstream).
    Bytes,
    /// `metav1.Time`: RFC 3339, whole seconds.
    Time,
    /// `metav1.MicroTime`: RFC 3339 with six digits of a second.
    MicroTime,
    /// true or false.
    Boolean,
    /// A 32 bit integer.
    Integer32,
    /// A 64 bit integer.
    Integer64,
    /// A floating point number.
    Number,
    /// `intstr.IntOrString`.
    IntOrString,
    /// `resource.Quantity`.
    Quantity,
}

/// The fields of an object, sorted by name.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Fields {
    all: Box<[(Box<str>, Schema)]>,
    /// Where those are that have a default: few, and asked for with every write.
    defaulted: Box<[u32]>,
    /// Where those are that are written even when they are absent.
    always: Box<[u32]>,
}

/// What a typed round trip upstream writes for a field.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Presence {
    /// Only when it is not zero: `omitempty` on a plain type. An empty list, map or string disappears.
    Omitted,
    /// Unless it is null: `omitempty` on a pointer. A zero that was given stays.
    #[default]
    Kept,
    /// Even when it is zero: no `omitempty`, or a struct, which Go never omits.
    Always,
    /// As null when absent: a pointer, list or map without `omitempty`.
    Null,
}

/// `x-kubernetes-list-type`: how a list merges in a server-side apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListType {
    /// Replaced as a whole.
    Atomic,
    /// Scalars, each once.
    Set,
    /// Objects, identified by their map keys.
    Map,
}

/// `x-kubernetes-map-type`: how an object or map merges in a server-side apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MapType {
    /// Replaced as a whole.
    Atomic,
    /// Field by field.
    Granular,
}

/// The rarer facts of a schema.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Facts {
    /// The definition's name, on the definition itself.
    pub name: Option<Box<str>>,
    /// `format`.
    pub format: Option<Box<str>>,
    /// `x-kubernetes-list-type`.
    pub list_type: Option<ListType>,
    /// `x-kubernetes-list-map-keys`.
    pub list_map_keys: Vec<Box<str>>,
    /// `x-kubernetes-map-type`.
    pub map_type: Option<MapType>,
    /// `x-kubernetes-patch-strategy`, which may name several: `merge`, `retainKeys`, `replace`.
    pub patch_strategies: Vec<Box<str>>,
    /// `x-kubernetes-patch-merge-key`.
    pub patch_merge_key: Option<Box<str>>,
    /// `default`.
    pub default: Option<Value>,
    /// `enum`.
    pub enumeration: Vec<Value>,
    /// `required`.
    pub required: Vec<Box<str>>,
    /// The name of the Go type, where it is not the obvious one.
    pub go_type: Option<Box<str>>,
}

const NO_FACTS: &Facts = &Facts {
    name: None,
    format: None,
    list_type: None,
    list_map_keys: Vec::new(),
    map_type: None,
    patch_strategies: Vec::new(),
    patch_merge_key: None,
    default: None,
    enumeration: Vec::new(),
    required: Vec::new(),
    go_type: None,
};

impl Fields {
    /// From the fields in any order.
    pub(super) fn new(mut all: Vec<(Box<str>, Schema)>) -> Fields {
        all.sort_by(|left, right| left.0.cmp(&right.0));
        let places = |holds: fn(&Schema) -> bool| {
            let found = all.iter().enumerate().filter(|(_, (_, schema))| holds(schema));
            found.filter_map(|(at, _)| u32::try_from(at).ok()).collect()
        };
        let defaulted = places(|field| field.facts().default.is_some());
        let always = places(|field| matches!(field.presence, Presence::Always | Presence::Null));
        Fields { all: all.into(), defaulted, always }
    }

    /// Those that have a default, sorted by name.
    pub(super) fn defaulted(&self) -> impl Iterator<Item = (&str, &Schema)> {
        self.at(&self.defaulted)
    }

    /// Those that are written even when they are absent, sorted by name.
    pub(super) fn always(&self) -> impl Iterator<Item = (&str, &Schema)> {
        self.at(&self.always)
    }

    fn at<'f>(&'f self, places: &'f [u32]) -> impl Iterator<Item = (&'f str, &'f Schema)> {
        places.iter().map(|at| &self.all[*at as usize]).map(|(name, schema)| (name.as_ref(), schema))
    }

    /// The schema of one field.
    pub fn get(&self, name: &str) -> Option<&Schema> {
        self.entry(name).map(|(_, schema)| schema)
    }

    /// The field's own name and its schema.
    pub fn entry(&self, name: &str) -> Option<(&str, &Schema)> {
        let at = self.all.binary_search_by(|(field, _)| field.as_ref().cmp(name)).ok()?;
        Some((&self.all[at].0, &self.all[at].1))
    }

    /// Every field, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Schema)> {
        self.all.iter().map(|(name, schema)| (name.as_ref(), schema))
    }
}

impl Schema {
    /// The schema of anything.
    pub const FREE: Schema = Schema {
        shape: Shape::Free,
        presence: Presence::Kept,
        nullable: false,
        preserve_unknown_fields: false,
        embedded_resource: false,
        facts: None,
    };

    /// The schema of a text.
    pub const TEXT: Schema = Schema {
        shape: Shape::String,
        presence: Presence::Kept,
        nullable: false,
        preserve_unknown_fields: false,
        embedded_resource: false,
        facts: None,
    };

    /// The schema of a custom resource (or a part of it) from its `openAPIV3Schema`. Never fails: what it
    /// cannot read is free of form; whether a schema is structural is the validation's to say.
    pub fn from_openapi(schema: &Value) -> Schema {
        super::lower::lower(schema, &[])
    }

    /// The type behind a reference; itself otherwise.
    pub fn resolve(&self) -> &Schema {
        match self.shape {
            Shape::Reference(id) => Schemas::definition(id),
            _ => self,
        }
    }

    /// The facts on this schema itself, not those of the type that it refers to.
    pub fn facts(&self) -> &Facts {
        self.facts.as_deref().unwrap_or(NO_FACTS)
    }

    /// The named fields, where the value is an object.
    pub fn fields(&self) -> Option<&Fields> {
        match &self.resolve().shape {
            Shape::Object(fields) => Some(fields),
            _ => None,
        }
    }

    /// The schema of one named field.
    pub fn property(&self, name: &str) -> Option<&Schema> {
        self.fields()?.get(name)
    }

    /// The schema of a child of an object or map.
    pub fn child(&self, key: &str) -> Option<&Schema> {
        match &self.resolve().shape {
            Shape::Object(fields) => fields.get(key),
            Shape::Map(values) => Some(values),
            _ => None,
        }
    }

    /// The schema of the elements of a list.
    pub fn items(&self) -> Option<&Schema> {
        match &self.resolve().shape {
            Shape::List(items) => Some(items),
            _ => None,
        }
    }

    /// The list type of the field or of its type.
    pub fn list_type(&self) -> Option<ListType> {
        self.facts().list_type.or_else(|| self.resolve().facts().list_type)
    }

    /// The map type of the field or of its type.
    pub fn map_type(&self) -> Option<MapType> {
        self.facts().map_type.or_else(|| self.resolve().facts().map_type)
    }

    /// Whether the field's patch strategies name this one.
    pub fn has_patch_strategy(&self, strategy: &str) -> bool {
        self.facts().patch_strategies.iter().any(|own| own.as_ref() == strategy)
    }

    /// The name of the Go struct, as upstream's decoding errors print it: `DeploymentSpec`.
    pub fn go_struct(&self) -> &str {
        let name = self.resolve().facts().name.as_deref().unwrap_or_default();
        name.rsplit('.').next().unwrap_or_default()
    }

    /// The Go type, as upstream's decoding errors print it: `int32`, `[]v1.Container`, `map[string]string`.
    pub fn go_type(&self) -> String {
        if let Some(own) = &self.facts().go_type {
            return own.to_string();
        }
        match &self.shape {
            Shape::Free => "interface {}".into(),
            Shape::Reference(id) => short_name(id.name()).into(),
            Shape::Object(_) => {
                self.facts().name.as_deref().map_or("map[string]interface {}", short_name).into()
            }
            Shape::Map(values) => format!("map[string]{}", values.go_type()),
            Shape::List(items) => format!("[]{}", items.go_type()),
            Shape::String => "string".into(),
            Shape::Bytes => "[]uint8".into(),
            Shape::Time => "v1.Time".into(),
            Shape::MicroTime => "v1.MicroTime".into(),
            Shape::Boolean => "bool".into(),
            Shape::Integer32 => "int32".into(),
            Shape::Integer64 => "int64".into(),
            Shape::Number => "float64".into(),
            Shape::IntOrString => "intstr.IntOrString".into(),
            Shape::Quantity => "resource.Quantity".into(),
        }
    }
}

/// `v1.Container` of `io.k8s.api.core.v1.Container`.
fn short_name(definition: &str) -> &str {
    let mut dots = definition.rmatch_indices('.').map(|(at, _)| at);
    dots.nth(1).map_or(definition, |at| &definition[at + 1..])
}
