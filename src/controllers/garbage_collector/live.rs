//! What the collector asks of the apiserver and writes to it, of any kind.

use std::sync::Arc;

use serde_json::{Value, json};

use super::graph_node::ObjectIdentity;
use crate::controller::Reconcile;
use apimachinery::object::Object;
use apimachinery::options::{ListOptions, PatchType};
use apimachinery::status::Status;
use apis::kind::Kind;

/// How often a write starts anew when somebody else was first.
const ATTEMPTS: usize = 5;

/// The object as it is now; none when it is gone or another has its name.
pub(super) async fn get(
    ctx: &Reconcile,
    identity: &ObjectIdentity,
    uid: &str,
) -> Result<Option<Arc<Object>>, Status> {
    let found = ctx.client.find(kind(identity)?, &identity.namespace, &identity.name).await?;
    Ok(found.filter(|object| object.metadata.uid == uid))
}

/// Who names an owner, of all `kinds`: what the graph has not been told of yet included. An owner is let go
/// only after this has been asked, for its dependents' informers may lag behind its own.
///
/// A kind that cannot be listed is passed over, as one that is not served: what the graph knows of it counts.
pub(super) async fn dependents(
    ctx: &Reconcile,
    kinds: &[Arc<Kind>],
    owner: &ObjectIdentity,
    uid: &str,
) -> Result<Vec<(ObjectIdentity, Arc<Object>)>, Status> {
    let mut found = Vec::new();
    // What is not in a namespace is not owned by what is.
    for kind in kinds.iter().filter(|kind| owner.namespace.is_empty() || kind.namespaced) {
        let list = match ctx.client.list(kind, &owner.namespace, &ListOptions::default()).await {
            Ok(list) => list,
            Err(error) if error.is_not_found() || error.is("InternalError") => continue,
            Err(error) => return Err(error),
        };
        let names_owner = |object: &&Arc<Object>| {
            object.metadata.uid != uid && object.metadata.owner_references.iter().any(|it| it.uid == uid)
        };
        let dependents = list.items.iter().filter(names_owner).cloned();
        found.extend(dependents.map(|object| (ObjectIdentity::of(kind, &object), object)));
    }
    Ok(found)
}

/// The kind; an owner reference may name one that is not served.
pub(super) fn kind(identity: &ObjectIdentity) -> Result<&Arc<Kind>, Status> {
    let name = &identity.name;
    identity
        .kind
        .as_ref()
        .ok_or_else(|| Status::internal(format!("unable to get REST mapping for the owner {name}")))
}

/// Removes a finalizer; nothing to do when the object or the finalizer is gone.
pub(super) async fn remove_finalizer(
    ctx: &Reconcile,
    identity: &ObjectIdentity,
    uid: &str,
    finalizer: &str,
) -> Result<(), Status> {
    change_metadata(ctx, identity, uid, "finalizers", |object| {
        let finalizers = &object.metadata.finalizers;
        let has = finalizers.iter().any(|it| it == finalizer);
        has.then(|| finalizers.iter().filter(|it| *it != finalizer).map(|it| json!(it)).collect())
    })
    .await
}

/// Changes the owner references of an object; those for which `change` says none are removed.
pub(super) async fn change_owners(
    ctx: &Reconcile,
    identity: &ObjectIdentity,
    uid: &str,
    change: impl Fn(&Value) -> Option<Value>,
) -> Result<(), Status> {
    change_metadata(ctx, identity, uid, "ownerReferences", |object| {
        let tree = object.to_value();
        let references = tree["metadata"]["ownerReferences"].as_array()?;
        let changed: Vec<Value> = references.iter().filter_map(&change).collect();
        (changed != *references).then_some(changed)
    })
    .await
}

/// Replaces one list in an object's metadata, by a merge patch, which every kind understands, at the revision
/// that was read, so that nobody else's change is lost.
async fn change_metadata(
    ctx: &Reconcile,
    identity: &ObjectIdentity,
    uid: &str,
    field: &str,
    change: impl Fn(&Object) -> Option<Vec<Value>>,
) -> Result<(), Status> {
    let mut last = Ok(());
    for _ in 0..ATTEMPTS {
        let Some(object) = get(ctx, identity, uid).await? else { return Ok(()) };
        let Some(list) = change(&object) else { return Ok(()) };
        let list = if list.is_empty() { Value::Null } else { list.into() };
        let revision = object.metadata.resource_version.to_string();
        let mut patch = json!({"metadata": {"uid": uid, "resourceVersion": revision}});
        patch["metadata"][field] = list;
        let (namespace, name) = (&identity.namespace, &identity.name);
        match ctx.client.patch(kind(identity)?, namespace, name, PatchType::Merge, &patch).await {
            Ok(_) => return Ok(()),
            Err(error) if error.is_not_found() => return Ok(()),
            Err(error) if error.is_conflict() => last = Err(error),
            Err(error) => return Err(error),
        }
    }
    last
}
