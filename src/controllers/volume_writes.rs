//! What the volume controller writes: of claims and of volumes, bound, lost and let go.

use serde_json::{Value, json};

use super::controller::Reconcile;
use super::volume_fit::{self, Reclaim};
use apimachinery::object::Object;
use apimachinery::options::DeleteOptions;
use apimachinery::status::Status;
use apis::core::persistent_volume::PERSISTENT_VOLUMES;
use apis::core::persistent_volume_claim::PERSISTENT_VOLUME_CLAIMS;
use apis::kind::Kind;
use apis::tree::{annotation, at, object_mut, set, text};
use apis::volumes::{BIND_COMPLETED, BOUND_BY_CONTROLLER, PROVISIONED_BY, claim_volume};

/// Gives a claim that came without one the default class.
pub(super) async fn give_class(ctx: &Reconcile, mut claim: Value, class: &str) -> Result<(), Status> {
    set(&mut claim, "spec.storageClassName", class);
    let (namespace, name) = (text(&claim, "metadata.namespace"), text(&claim, "metadata.name"));
    let (namespace, name) = (namespace.to_owned(), name.to_owned());
    ctx.client.update(&PERSISTENT_VOLUME_CLAIMS, &namespace, &name, claim).await.map(drop)
}

/// What the policy of a volume says, whose claim is gone. Says whether that was anything.
async fn reclaim(ctx: &Reconcile, volume: &Object, tree: &Value) -> Result<bool, Status> {
    let (kind, name) = (&PERSISTENT_VOLUMES, &volume.metadata.name);
    match volume_fit::reclaim(tree) {
        // What is to be emptied is the recycler's.
        Reclaim::Keep | Reclaim::Recycle => return Ok(false),
        Reclaim::Delete => ctx.client.delete(kind, "", name, &DeleteOptions::default()).await?,
        Reclaim::Fail(reason, message) => fail(ctx, volume, tree.clone(), reason, &message).await?,
    }
    Ok(true)
}

/// What the policy of a volume says could not be done: that is told, and why.
pub(super) async fn fail(
    ctx: &Reconcile,
    volume: &Object,
    tree: Value,
    reason: &str,
    message: &str,
) -> Result<(), Status> {
    ctx.event(&PERSISTENT_VOLUMES, volume, "Warning", reason, message);
    set_status(ctx, &PERSISTENT_VOLUMES, tree, json!({"phase": "Failed", "message": message})).await
}

/// Binds both sides to each other, the volume first.
pub(super) async fn bind(
    ctx: &Reconcile,
    claim: &Object,
    tree: &Value,
    volume: &Object,
) -> Result<(), Status> {
    let metadata = &claim.metadata;
    let mut new = volume.to_value();
    if text(&new, "spec.claimRef.uid") != metadata.uid {
        claim_volume(&mut new, metadata);
        let name = &volume.metadata.name;
        new = ctx.client.update(&PERSISTENT_VOLUMES, "", name, new).await?.to_value();
    }
    set_status(ctx, &PERSISTENT_VOLUMES, new.clone(), json!({"phase": "Bound"})).await?;
    let mut bound = tree.clone();
    let annotations = object_mut(&mut bound, "metadata.annotations");
    annotations.insert(BIND_COMPLETED.into(), "yes".into());
    if text(tree, "spec.volumeName").is_empty() {
        annotations.insert(BOUND_BY_CONTROLLER.into(), "yes".into());
    }
    set(&mut bound, "spec.volumeName", volume.metadata.name.as_str());
    let (kind, namespace) = (&PERSISTENT_VOLUME_CLAIMS, &metadata.namespace);
    let bound = ctx.client.update(kind, namespace, &metadata.name, bound).await?.to_value();
    set_bound(ctx, bound, &new).await
}

/// Says of a claim what its volume has.
pub(super) async fn set_bound(ctx: &Reconcile, claim: Value, volume: &Value) -> Result<(), Status> {
    let mut status = json!({"phase": "Bound", "accessModes": at(volume, "spec.accessModes"),
        "capacity": at(volume, "spec.capacity")});
    let attributes = at(volume, "spec.volumeAttributesClassName");
    if text(&claim, "status.phase") == "Pending" && !attributes.is_null() {
        status["currentVolumeAttributesClassName"] = attributes.clone();
    }
    set_status(ctx, &PERSISTENT_VOLUME_CLAIMS, claim, status).await
}

/// A claim whose volume is gone or another's has none: that is told once.
pub(super) async fn lose(
    ctx: &Reconcile,
    claim: &Object,
    tree: &Value,
    reason: &str,
    message: &str,
) -> Result<(), Status> {
    if text(tree, "status.phase") == "Lost" {
        return Ok(());
    }
    ctx.event(&PERSISTENT_VOLUME_CLAIMS, claim, "Warning", reason, message);
    let mut lost = tree.clone();
    for member in ["accessModes", "capacity"] {
        object_mut(&mut lost, "status").remove(member);
    }
    set_status(ctx, &PERSISTENT_VOLUME_CLAIMS, lost, json!({"phase": "Lost"})).await
}

/// A volume whose claim is gone: what its policy says, unless a provisioner looks after it.
pub(super) async fn release(ctx: &Reconcile, volume: &Object, tree: Value) -> Result<(), Status> {
    // What failed once stays so: nothing has changed.
    if text(&tree, "status.phase") == "Failed" {
        return Ok(());
    }
    let has_provisioner = !annotation(&tree, PROVISIONED_BY).is_empty();
    if !has_provisioner && !volume.is_deleting() && reclaim(ctx, volume, &tree).await? {
        return Ok(());
    }
    set_volume_phase(ctx, tree, "Released").await
}

/// A volume that is bound to a claim which has another one is let go.
pub(super) async fn unbind(ctx: &Reconcile, volume: &Object, tree: Value) -> Result<(), Status> {
    let free = volume_fit::unbound(tree);
    let free = ctx.client.update(&PERSISTENT_VOLUMES, "", &volume.metadata.name, free).await?;
    set_volume_phase(ctx, free.to_value(), "Available").await
}

/// Says what becomes of a volume, unless that is said already.
pub(super) async fn set_volume_phase(ctx: &Reconcile, mut volume: Value, phase: &str) -> Result<(), Status> {
    if text(&volume, "status.phase") == phase {
        return Ok(());
    }
    // Why it had failed is of the past.
    object_mut(&mut volume, "status").remove("message");
    set_status(ctx, &PERSISTENT_VOLUMES, volume, json!({"phase": phase})).await
}

/// Says what becomes of a claim, unless that is said already.
pub(super) async fn set_phase(ctx: &Reconcile, claim: &Value, phase: &str) -> Result<(), Status> {
    if text(claim, "status.phase") == phase {
        return Ok(());
    }
    set_status(ctx, &PERSISTENT_VOLUME_CLAIMS, claim.clone(), json!({"phase": phase})).await
}

/// Changes these members of an object's status.
pub(super) async fn set_status(
    ctx: &Reconcile,
    kind: &Kind,
    mut tree: Value,
    status: Value,
) -> Result<(), Status> {
    let members = status.as_object().cloned().unwrap_or_default();
    object_mut(&mut tree, "status").extend(members);
    let (namespace, name) = (text(&tree, "metadata.namespace"), text(&tree, "metadata.name"));
    let (namespace, name) = (namespace.to_owned(), name.to_owned());
    ctx.client.update_status(kind, &namespace, &name, tree).await.map(drop)
}
