//! Objects in the version that somebody asked for, and back (`admission.VersionedAttributes`).

use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::apimachinery::decode::{Target, decode_value};
use crate::apimachinery::field_error::FieldErrors;
use crate::apimachinery::gvk::{GroupVersion, GroupVersionKind};
use crate::apimachinery::managed_fields;
use crate::apimachinery::schema::{self, Schema, Schemas};
use crate::apimachinery::status::Status;
use crate::apis::kind::{Kind, Subresource};
use crate::apis::scheme::Scheme;
use crate::apis::tree::text;
use crate::apiserver::admission::Attributes;

/// The group, version and kind of what is written below `subresource`.
pub fn group_version_kind(kind: &Kind, subresource: &str) -> (GroupVersion, Arc<str>) {
    let found = kind.subresources.iter().find(|own| own.name() == subresource);
    match found.and_then(|own: &Subresource| own.kind()) {
        Some((group, version, name)) => (GroupVersion::new(group, version), name.into()),
        None => (kind.group_version.clone(), kind.kind.clone()),
    }
}

/// The objects of a request in one version, with `apiVersion` and `kind`. Null where there is none.
pub struct Versions {
    /// As it will be.
    pub object: Value,
    /// As it was.
    pub old_object: Value,
}

impl Versions {
    /// The objects of a request, as `kind` shows them.
    pub fn new(
        attributes: &Attributes,
        kind: &Kind,
        object: Option<&Value>,
        old: Option<&Value>,
    ) -> Versions {
        let show = |tree: Option<&Value>| match tree {
            None => Value::Null,
            Some(tree) => {
                let mut tree = convert(attributes, kind, tree);
                managed_fields::expand(&mut tree);
                with_type(tree, kind, attributes.subresource)
            }
        };
        Versions { object: show(object), old_object: show(old) }
    }
}

/// An object of the request's version in that of `kind`, if the two differ; bodies of subresources have a
/// version of their own.
fn convert(attributes: &Attributes, kind: &Kind, tree: &Value) -> Value {
    if Arc::as_ptr(attributes.kind) == std::ptr::from_ref(kind) || !is_whole(kind, attributes.subresource) {
        return tree.clone();
    }
    let stored = match &attributes.kind.stored {
        Some(stored) => (stored.encode)(tree.clone()),
        None => tree.clone(),
    };
    match &kind.stored {
        Some(wanted) => (wanted.decode)(stored),
        None => stored,
    }
}

/// Whether what is written is an object of the kind itself.
fn is_whole(kind: &Kind, subresource: &str) -> bool {
    group_version_kind(kind, subresource).1 == kind.kind
}

fn with_type(tree: Value, kind: &Kind, subresource: &str) -> Value {
    let (version, name) = group_version_kind(kind, subresource);
    let mut map = match tree {
        Value::Object(map) => map,
        _ => Map::new(),
    };
    map.insert("apiVersion".into(), version.to_string().into());
    map.insert("kind".into(), json!(&*name));
    Value::Object(map)
}

fn check_custom_kind(kind: &Kind, tree: &Value) -> Result<(), Status> {
    let found = text(tree, "kind");
    if *found == *kind.kind {
        return Ok(());
    }
    let mut errors = FieldErrors::default();
    errors.invalid("kind", &tree["kind"], format!("must be {}", kind.kind));
    let named = GroupVersionKind { group_version: kind.group_version.clone(), kind: found.into() };
    Err(Status::invalid(&named, text(tree, "metadata.name"), &errors))
}

/// Reads what a webhook or a policy has made of an object: unknown fields go, defaults come.
pub struct Codec {
    schemas: Arc<Schemas>,
    scheme: Arc<Scheme>,
}

impl Codec {
    /// With the schemas of built-in kinds.
    pub fn new(scheme: &Arc<Scheme>) -> Codec {
        Codec { schemas: Schemas::builtin(), scheme: scheme.clone() }
    }

    /// The schema of what is written; none for custom kinds.
    pub fn schema(&self, kind: &Kind, subresource: &str) -> Option<Arc<Schema>> {
        if kind.is_custom {
            return None;
        }
        let found = kind.subresources.iter().find(|own| own.name() == subresource);
        let definition = match found.and_then(|own| own.kind()) {
            Some(("", version, name)) => format!("io.k8s.api.core.{version}.{name}"),
            Some((group, version, name)) => {
                let group = group.trim_end_matches(".k8s.io");
                format!("io.k8s.api.{group}.{version}.{name}")
            }
            None => kind.definition.to_string(),
        };
        self.schemas.get(&definition)
    }

    /// A changed tree in the form of `kind`, as an object in the form of the request's kind, without
    /// `apiVersion` and `kind`.
    ///
    /// # Errors
    /// 500 when it is no object of the kind any more; 422 for a custom one, which upstream only validates.
    pub fn read(&self, attributes: &Attributes, kind: &Kind, tree: Value) -> Result<Value, Status> {
        let subresource = attributes.subresource;
        let is_whole = is_whole(kind, subresource);
        if kind.is_custom && is_whole {
            check_custom_kind(kind, &tree)?;
        }
        let mut object = self.decode(kind, subresource, tree).map_err(Status::internal)?;
        if let Some(schema) = self.schema(kind, subresource) {
            schema::apply_defaults(&schema, &mut object);
        }
        if is_whole {
            (kind.defaults)(&mut object);
            if let Some(custom) = &kind.custom {
                custom.prune(&mut object).map_err(Status::internal)?;
                custom.apply_defaults(&mut object);
            }
        }
        if Arc::as_ptr(attributes.kind) == std::ptr::from_ref(kind) || !is_whole {
            return Ok(object);
        }
        let stored = match &kind.stored {
            Some(stored) => (stored.encode)(object),
            None => object,
        };
        Ok(match &attributes.kind.stored {
            Some(wanted) => (wanted.decode)(stored),
            None => stored,
        })
    }

    fn decode(&self, kind: &Kind, subresource: &str, tree: Value) -> Result<Value, String> {
        let (version, name) = group_version_kind(kind, subresource);
        let schema = self.schema(kind, subresource);
        let is_registered = |group: &str, version: &str, kind: &str| {
            self.scheme.kind(&GroupVersion::new(group, version), kind).is_some()
        };
        let nothing_known = Arc::default();
        let target = Target {
            group: &version.group,
            version: &version.version,
            kind: &name,
            schema: schema.as_ref().unwrap_or(&nothing_known),
            typed: schema.is_some(),
            is_registered: &is_registered,
        };
        let mut decoded = decode_value(&target, tree).map_err(|error| error.to_string())?.value;
        if let Some(map) = decoded.as_object_mut() {
            map.remove("apiVersion");
            map.remove("kind");
        }
        Ok(decoded)
    }
}
