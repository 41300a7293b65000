//! Objects in the version that somebody asked for, and back (`admission.VersionedAttributes`).

use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::admission::Attributes;
use crate::registry::Registry;
use apimachinery::decode::{DecodeTarget, decode_value};
use apimachinery::field_error::FieldErrors;
use apimachinery::gvk::{GroupVersion, GroupVersionKind};
use apimachinery::managed_fields;
use apimachinery::schema::{self, Schema, Schemas};
use apimachinery::status::Status;
use apis::apiextensions::custom_resource::CustomResource;
use apis::kind::{Kind, Subresource};
use apis::scheme::Scheme;
use apis::tree::text;

/// The group, version and kind of what is written below `subresource`.
pub(super) fn group_version_kind(kind: &Kind, subresource: &str) -> (GroupVersion, Arc<str>) {
    let found = kind.subresources.iter().find(|own| own.name() == subresource);
    match found.and_then(|own: &Subresource| own.kind()) {
        Some((group, version, name)) => (GroupVersion::new(group, version), name.into()),
        None => (kind.group_version.clone(), kind.kind.clone()),
    }
}

/// The objects of a request in one version, with `apiVersion` and `kind`. Null where there is none.
pub(crate) struct Versions {
    /// As it will be.
    pub object: Value,
    /// As it was.
    pub old_object: Value,
}

impl Versions {
    /// The objects of a request, as `kind` shows them.
    ///
    /// # Errors
    /// What the webhook that turns versions of a custom kind into one another does wrong.
    pub(crate) async fn new(
        registry: &Registry,
        attributes: &Attributes<'_>,
        kind: &Kind,
        object: Option<&Value>,
        old: Option<&Value>,
    ) -> Result<Versions, Status> {
        let old_object = Versions::show(registry, attributes, kind, old).await?;
        Ok(Versions { object: Versions::show(registry, attributes, kind, object).await?, old_object })
    }

    async fn show(
        registry: &Registry,
        attributes: &Attributes<'_>,
        kind: &Kind,
        tree: Option<&Value>,
    ) -> Result<Value, Status> {
        let Some(tree) = tree else { return Ok(Value::Null) };
        let mut tree = tree.clone();
        managed_fields::expand(&mut tree);
        let tree = convert(registry, attributes.kind, kind, attributes.subresource, tree).await?;
        Ok(with_type(tree, kind, attributes.subresource))
    }

    /// Puts another object in its place, as it was read ([`Codec::read`]).
    pub(crate) fn set_object(&mut self, kind: &Kind, subresource: &str, mut object: Value) {
        managed_fields::expand(&mut object);
        self.object = with_type(object, kind, subresource);
    }
}

/// The objects in the version that was wanted last, for whoever wants the same next.
#[derive(Default)]
pub(crate) struct Shown(Option<(Arc<Kind>, Versions)>);

impl Shown {
    /// The objects as `kind` shows them.
    ///
    /// # Errors
    /// As of [`Versions::new`].
    pub(crate) async fn of(
        &mut self,
        registry: &Registry,
        attributes: &Attributes<'_>,
        kind: &Arc<Kind>,
        object: Option<&Value>,
        old: Option<&Value>,
    ) -> Result<&mut Versions, Status> {
        let kept = match self.0.take().filter(|(kept, _)| Arc::ptr_eq(kept, kind)) {
            Some(kept) => kept,
            None => (kind.clone(), Versions::new(registry, attributes, kind, object, old).await?),
        };
        Ok(&mut self.0.insert(kept).1)
    }
}

/// An object of one version in another, if the two differ; bodies of subresources have a version of their
/// own.
async fn convert(
    registry: &Registry,
    from: &Kind,
    to: &Kind,
    subresource: &str,
    tree: Value,
) -> Result<Value, Status> {
    if std::ptr::eq(from, to) || !is_whole(to, subresource) {
        return Ok(tree);
    }
    if to.is_custom {
        return registry.convert_custom(from, to, tree).await;
    }
    let stored = match &from.stored {
        Some(stored) => (stored.encode)(tree),
        None => tree,
    };
    Ok(match &to.stored {
        Some(wanted) => (wanted.decode)(stored),
        None => stored,
    })
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
pub(crate) struct Codec {
    schemas: Arc<Schemas>,
    scheme: Arc<Scheme>,
    registry: Registry,
}

/// What was read.
pub(crate) struct Read {
    /// In the version of whoever changed it.
    pub versioned: Value,
    /// In the version of the request.
    pub object: Value,
}

impl Codec {
    /// With the schemas of built-in kinds.
    pub(crate) fn new(registry: &Registry, scheme: &Arc<Scheme>) -> Codec {
        Codec { schemas: Schemas::builtin(), scheme: scheme.clone(), registry: registry.clone() }
    }

    /// The schema of what is written; none for custom kinds.
    pub(crate) fn schema(&self, kind: &Kind, subresource: &str) -> Option<Arc<Schema>> {
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
    pub(crate) async fn read(
        &self,
        attributes: &Attributes<'_>,
        kind: &Kind,
        tree: Value,
    ) -> Result<Read, Status> {
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
            (kind.stamps)(&mut object, self.registry.now());
            if let Some(custom) = CustomResource::of(kind) {
                custom.prune(&mut object).map_err(Status::internal)?;
                custom.apply_defaults(&mut object)?;
            }
        }
        let versioned = object.clone();
        let object = convert(&self.registry, kind, attributes.kind, subresource, object).await?;
        Ok(Read { versioned, object })
    }

    fn decode(&self, kind: &Kind, subresource: &str, tree: Value) -> Result<Value, String> {
        let (version, name) = group_version_kind(kind, subresource);
        let schema = self.schema(kind, subresource);
        let is_registered = |group: &str, version: &str, kind: &str| {
            self.scheme.kind(&GroupVersion::new(group, version), kind).is_some()
        };
        let nothing_known = Arc::default();
        let target = DecodeTarget {
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
