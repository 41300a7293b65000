//! Claims that ask for more than their volume has, or for other attributes (`pkg/controller/volume/expand`,
//! and what the external resizer does): simulated disks grow at once; of others it is said who is waited for.

use serde_json::{Value, json};

use super::controller::{Action, Change, Controller, Enqueue, Key, Reconcile, Watches};
use super::volume_provisioner::PROVISIONER;
use apimachinery::object::{Object, split_key};
use apimachinery::options::PatchType;
use apimachinery::status::Status;
use apis::core::persistent_volume::PERSISTENT_VOLUMES;
use apis::core::persistent_volume_claim::PERSISTENT_VOLUME_CLAIMS;
use apis::resources::amounts;
use apis::tree::{annotation, at, text};
use apis::volumes::{PROVISIONED_BY, is_bound};
use client_go::ComponentContext;
use client_go::lister::Lister;

/// Makes disks larger.
pub(crate) struct VolumeExpander {
    claims: Lister,
    volumes: Lister,
}

impl VolumeExpander {
    /// With its informers.
    pub(crate) fn new(ctx: &ComponentContext) -> VolumeExpander {
        VolumeExpander {
            claims: ctx.informers.informer(&PERSISTENT_VOLUME_CLAIMS).lister(),
            volumes: ctx.informers.informer(&PERSISTENT_VOLUMES).lister(),
        }
    }

    async fn sync(&self, ctx: &Reconcile, claim: &Object) -> Result<(), Status> {
        let tree = claim.to_value();
        let Some(volume) = self.volumes.get("", text(&tree, "spec.volumeName")) else { return Ok(()) };
        let volume = volume.to_value();
        let is_ours = annotation(&volume, PROVISIONED_BY) == PROVISIONER;
        if wants_more(&tree) {
            if !is_ours {
                let message = "didn't find a plugin capable of expanding the volume; waiting for an external \
                               controller to process this PVC";
                ctx.event(&PERSISTENT_VOLUME_CLAIMS, claim, "Normal", "ExternalExpanding", message);
                return Ok(());
            }
            return grow(ctx, claim, &tree, &volume).await;
        }
        if is_ours && wants_other_attributes(&tree) {
            return modify(ctx, claim, &tree, &volume).await;
        }
        Ok(())
    }
}

impl Controller for VolumeExpander {
    const NAME: &'static str = "persistentvolume-expander";
    const EVENT_SOURCE: &'static str = "volume_expand";
    const SERVICE_ACCOUNT: &'static str = "expand-controller";
    const WORKERS: usize = 1;

    fn watches(&self) -> Watches {
        Watches::none().maps(&PERSISTENT_VOLUME_CLAIMS, |change: &Change<'_>, enqueue: &Enqueue| {
            let claim = change.object();
            let tree = claim.to_value();
            if is_bound(&tree) && !claim.is_deleting() && (wants_more(&tree) || wants_other_attributes(&tree))
            {
                enqueue.now(claim.key());
            }
        })
    }

    async fn reconcile(&self, ctx: &Reconcile, key: &Key) -> Result<Action, Status> {
        let (namespace, name) = split_key(key);
        let Some(claim) = self.claims.get(namespace, name).filter(|claim| !claim.is_deleting()) else {
            return Ok(Action::Done);
        };
        match self.sync(ctx, &claim).await {
            Err(status) if !status.is_not_found() => Err(status),
            _ => Ok(Action::Done),
        }
    }
}

/// Whether a bound claim asks for more than it has.
fn wants_more(claim: &Value) -> bool {
    let wanted = amounts(claim, "spec.resources.requests").remove("storage");
    let has = amounts(claim, "status.capacity").remove("storage");
    matches!((wanted, has), (Some(wanted), Some(has)) if wanted > has)
}

/// Whether it wants its volume to be of another VolumeAttributesClass.
fn wants_other_attributes(claim: &Value) -> bool {
    let wanted = text(claim, "spec.volumeAttributesClassName");
    !wanted.is_empty() && wanted != text(claim, "status.currentVolumeAttributesClassName")
}

async fn grow(ctx: &Reconcile, claim: &Object, tree: &Value, volume: &Value) -> Result<(), Status> {
    let (metadata, name) = (&claim.metadata, text(volume, "metadata.name"));
    let wanted = at(tree, "spec.resources.requests.storage");
    let told = |reason: &str, message: String| {
        ctx.event(&PERSISTENT_VOLUME_CLAIMS, claim, "Normal", reason, message);
    };
    told("Resizing", format!("External resizer is resizing volume {name}"));
    let has = amounts(volume, "spec.capacity").remove("storage").unwrap_or_default();
    if amounts(tree, "spec.resources.requests").remove("storage").unwrap_or_default() > has {
        let patch = json!({"spec": {"capacity": {"storage": wanted}}});
        ctx.client.patch(&PERSISTENT_VOLUMES, "", name, PatchType::Merge, &patch).await?;
    }
    let status = json!({
        "capacity": {"storage": wanted},
        "allocatedResources": {"storage": wanted},
        "allocatedResourceStatuses": null,
    });
    patch_status(ctx, &metadata.namespace, &metadata.name, status).await?;
    told("VolumeResizeSuccessful", "Resize volume succeeded".into());
    Ok(())
}

async fn modify(ctx: &Reconcile, claim: &Object, tree: &Value, volume: &Value) -> Result<(), Status> {
    let (metadata, name) = (&claim.metadata, text(volume, "metadata.name"));
    let class = text(tree, "spec.volumeAttributesClassName");
    let told = |reason: &str, message: String| {
        ctx.event(&PERSISTENT_VOLUME_CLAIMS, claim, "Normal", reason, message);
    };
    told("VolumeModify", format!("external resizer is modifying volume {} with vac {class}", metadata.name));
    let patch = json!({"spec": {"volumeAttributesClassName": class}});
    ctx.client.patch(&PERSISTENT_VOLUMES, "", name, PatchType::Merge, &patch).await?;
    let status = json!({"currentVolumeAttributesClassName": class, "modifyVolumeStatus": null});
    patch_status(ctx, &metadata.namespace, &metadata.name, status).await?;
    let message = format!("external resizer modified volume {} with vac {class} successfully", metadata.name);
    told("VolumeModifySuccessful", message);
    Ok(())
}

async fn patch_status(ctx: &Reconcile, namespace: &str, name: &str, status: Value) -> Result<(), Status> {
    let patch = json!({"status": status});
    let kind = &PERSISTENT_VOLUME_CLAIMS;
    ctx.client.patch_status(kind, namespace, name, PatchType::Merge, &patch).await.map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_wants_what_it_has_not() {
        let claim = |wanted: &str, has: &str| {
            json!({"spec": {"resources": {"requests": {"storage": wanted}}},
                "status": {"capacity": {"storage": has}}})
        };
        assert!(wants_more(&claim("2Gi", "1Gi")) && !wants_more(&claim("1Gi", "1024Mi")));
        assert!(!wants_more(&json!({"spec": {"resources": {"requests": {"storage": "1Gi"}}}})));
        let of = |class: &str| {
            json!({"spec": {"volumeAttributesClassName": class},
            "status": {"currentVolumeAttributesClassName": "gold"}})
        };
        assert!(wants_other_attributes(&of("silver")) && !wants_other_attributes(&of("gold")));
        assert!(!wants_other_attributes(&json!({})));
    }
}
