//! Conversion at the registry's door: outside, objects have the form of the version that was asked for;
//! inside, the form in which their kind is stored (upstream's versioning codec).

use std::borrow::Cow;
use std::sync::Arc;

use futures::future::BoxFuture;
use serde_json::Value;

use apimachinery::list::List;
use apimachinery::object::{Object, encode_for_storage};
use apimachinery::options::ListOptions;
use apimachinery::schema::{Schemas, complete};
use apimachinery::status::Status;
use apis::apiextensions::custom_resource::CustomResource;
use apis::kind::Kind;

/// Turns objects of a custom kind into another version (`conversion.crConverter`).
pub trait CustomResourceConverter: Send + Sync {
    /// The objects, whose versions may differ from one another, in `api_version`, in the same order.
    fn convert<'a>(
        &'a self,
        custom: &'a CustomResource,
        objects: Vec<Value>,
        api_version: &'a str,
    ) -> BoxFuture<'a, Result<Vec<Value>, Status>>;
}

/// What there is of a custom kind whose versions a webhook turns into one another.
pub(super) fn webhook(kind: &Kind) -> Option<&CustomResource> {
    CustomResource::of(kind).filter(|custom| custom.webhook.is_some())
}

/// The kind that is stored.
pub(super) fn storage_kind(kind: &Arc<Kind>) -> Arc<Kind> {
    if let Some(storage) = kind.custom.as_ref().and_then(|custom| custom.storage().cloned()) {
        return storage;
    }
    match &kind.stored {
        Some(stored) => Arc::clone(stored.kind),
        None => kind.clone(),
    }
}

/// A tree in the form of `kind`, as it is stored.
pub(super) fn encode(kind: &Kind, tree: Value) -> Value {
    match &kind.stored {
        Some(stored) => completed(stored.kind, (stored.encode)(tree)),
        None => tree,
    }
}

/// A stored tree in the form of `kind`.
pub(super) fn decode(kind: &Kind, tree: Value) -> Value {
    match &kind.stored {
        Some(stored) => completed(kind, (stored.decode)(tree)),
        None => tree,
    }
}

/// With what the types of this version always write, which the other's may not have.
fn completed(kind: &Kind, mut tree: Value) -> Value {
    if let (Some(schema), false) = (Schemas::builtin().get(&kind.definition), kind.is_custom) {
        complete(&schema, &mut tree);
    }
    tree
}

/// A stored object in the form of `kind`.
///
/// # Errors
/// 500 when the conversion makes something that is no object.
pub(super) fn present(kind: &Kind, object: Arc<Object>) -> Result<Arc<Object>, Status> {
    if kind.stored.is_none() {
        return Ok(object);
    }
    let revision = object.metadata.resource_version;
    object_of(kind, &decode(kind, object.to_value()), revision)
}

/// A list of stored objects in the form of `kind`.
pub(super) fn present_list(kind: &Kind, mut list: List) -> Result<List, Status> {
    if kind.stored.is_some() {
        list.items =
            list.items.iter().map(|object| present(kind, object.clone())).collect::<Result<_, _>>()?;
    }
    Ok(list)
}

/// An object that is not stored as it is, as a dry run answers; with the revision 0 it has none.
pub(super) fn object_of(kind: &Kind, tree: &Value, revision: u64) -> Result<Arc<Object>, Status> {
    let stored = encode_for_storage(tree).map_err(Status::internal)?;
    kind.object_of_tree(tree, stored, revision).map(Arc::new).map_err(Status::internal)
}

/// Options whose field selectors are in the form of `kind`, as its storage kind understands them. The
/// selectable fields of both stand in the same order.
pub(super) fn encode_options<'a>(kind: &Kind, options: &'a ListOptions) -> Cow<'a, ListOptions> {
    let Some(stored) = &kind.stored else { return Cow::Borrowed(options) };
    let mut options = options.clone();
    for requirement in &mut options.predicate.fields.requirements {
        let at = kind.selectable.iter().position(|field| *field.name == *requirement.field);
        if let Some(field) = at.and_then(|at| stored.kind.selectable.get(at)) {
            requirement.field = field.name.to_string();
        }
    }
    Cow::Owned(options)
}
