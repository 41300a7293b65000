//! Claims that ask for more than their volume has, or for other attributes (`pkg/controller/volume/expand`,
//! and what the external resizer does): simulated disks grow; of others it is said who is waited for.
//!
//! The last part of a growth is the node's (`NodeExpander`). A kubelet asks for the claims of its pods ten
//! times a second to hear of it; here who hears of claims anyway does it in its name, for the volumes of all
//! drivers.

use std::sync::Arc;

use serde_json::{Value, json};

use super::controller::{Action, Change, Controller, Enqueue, Key, Reconcile, Watches};
use super::pod_state::pods_with_claim;
use super::simulated_disks::PROVISIONER;
use super::volume_modify as modify;
use super::volume_resize::{self as resize, NO_NODE_PART};
use apimachinery::object::{Object, object_key, split_key};
use apimachinery::options::PatchType;
use apimachinery::status::Status;
use apis::core::persistent_volume::PERSISTENT_VOLUMES;
use apis::core::persistent_volume_claim::PERSISTENT_VOLUME_CLAIMS;
use apis::core::pod::PODS;
use apis::resources::amounts;
use apis::storage::storage_class::STORAGE_CLASSES;
use apis::storage::volume_attributes_class::VOLUME_ATTRIBUTES_CLASSES;
use apis::tree::{annotation, at, text};
use apis::views::pod::Pod;
use apis::volumes::{PROVISIONED_BY, claimed_by, is_bound};
use client_go::ComponentContext;
use client_go::lister::Lister;
use client_go::reference::ObjectReference;

/// On a PersistentVolume: its storage cannot make it larger, and says this.
const CANNOT_GROW: &str = "kubarium.dev/resize-error";
/// On a PersistentVolume: its node cannot make the file system larger, and says this.
const CANNOT_GROW_ON_NODE: &str = "kubarium.dev/node-resize-error";
/// A parameter of a StorageClass: with `required` disks that no pod uses wait for one, as those of most
/// drivers do.
const NODE_PART: &str = "nodeExpansion";
/// In whose name it is told what becomes of a disk: its external resizer's, with the driver that it is of.
const RESIZER: &str = "external-resizer kubarium.dev/simulated-disk";
/// Of events of kubelets (`FileSystemResizeSuccess`).
const GROWN_ON_NODE: &str = "FileSystemResizeSuccessful";

/// Makes disks larger.
pub(crate) struct VolumeExpander {
    claims: Lister,
    volumes: Lister,
    classes: Lister,
    attributes: Lister,
    pods: Lister,
}

/// A claim in the hands of one sync.
struct Growing<'a> {
    ctx: &'a Reconcile,
    claim: &'a Object,
    /// The claim.
    tree: Value,
    volume: Value,
}

impl VolumeExpander {
    /// With its informers.
    pub(crate) fn new(ctx: &ComponentContext) -> VolumeExpander {
        VolumeExpander {
            claims: ctx.informers.informer(&PERSISTENT_VOLUME_CLAIMS).lister(),
            volumes: ctx.informers.informer(&PERSISTENT_VOLUMES).lister(),
            classes: ctx.informers.informer(&STORAGE_CLASSES).lister(),
            attributes: ctx.informers.informer(&VOLUME_ATTRIBUTES_CLASSES).lister(),
            pods: ctx.informers.informer(&PODS).lister(),
        }
    }

    async fn sync(&self, ctx: &Reconcile, claim: &Object) -> Result<(), Status> {
        let tree = claim.to_value();
        let Some(volume) = self.volumes.get("", text(&tree, "spec.volumeName")) else { return Ok(()) };
        let growing = Growing { ctx, claim, tree, volume: volume.to_value() };
        let is_ours = annotation(&growing.volume, PROVISIONED_BY) == PROVISIONER;
        if matches!(resize::state(&growing.tree), "NodeResizePending" | "NodeResizeInProgress") {
            return self.grow_on_node(&growing).await;
        }
        if !wants_more(&growing.tree) {
            return if is_ours { self.modify(&growing).await } else { Ok(()) };
        }
        if !is_ours {
            let message = "didn't find a plugin capable of expanding the volume; waiting for an external \
                           controller to process this PVC";
            ctx.event(&PERSISTENT_VOLUME_CLAIMS, claim, "Normal", "ExternalExpanding", message);
            return Ok(());
        }
        if growing.is_hopeless() { Ok(()) } else { self.grow(&growing).await }
    }

    /// The storage's part (`expandAndRecover`).
    async fn grow(&self, growing: &Growing<'_>) -> Result<(), Status> {
        let Growing { ctx, claim, tree, volume } = growing;
        let (name, now) = (text(volume, "metadata.name"), ctx.clock.now());
        let size = at(tree, "spec.resources.requests.storage");
        let begun = growing.patch_status(resize::in_progress(tree, size, now)).await?.to_value();
        growing.told("Normal", "Resizing", format!("External resizer is resizing volume {name}"));
        if let Some(why) = refusal(volume, CANNOT_GROW) {
            growing.patch_status(resize::infeasible(&begun, &why, now)).await?;
            let why = format!("resize volume {name:?} by resizer {PROVISIONER:?} failed: {why}");
            growing.told("Warning", "VolumeResizeFailed", why);
            return Ok(());
        }
        let has = amounts(volume, "spec.capacity").remove("storage").unwrap_or_default();
        if amounts(tree, "spec.resources.requests").remove("storage").unwrap_or_default() > has {
            let patch = json!({"spec": {"capacity": {"storage": size}}});
            ctx.client.patch(&PERSISTENT_VOLUMES, "", name, PatchType::Merge, &patch).await?;
        }
        if self.needs_node(claim, tree) {
            // Whoever grows it on the node hears of it by this.
            growing.patch_status(resize::pending(&begun, now)).await?;
            let message = "Require file system resize of volume on node";
            growing.told("Normal", "FileSystemResizeRequired", message);
            return Ok(());
        }
        let annotations = json!({"annotations": {NO_NODE_PART: "true"}});
        growing
            .patch(&json!({"metadata": annotations, "status": resize::finished(&begun, size, now)}))
            .await?;
        growing.told("Normal", "VolumeResizeSuccessful", "Resize volume succeeded");
        Ok(())
    }

    /// The storage is to give the volume the attributes of another class (`modifyController.modify`).
    async fn modify(&self, growing: &Growing<'_>) -> Result<(), Status> {
        let Growing { ctx, claim, tree, volume } = growing;
        let (class, now) = (text(tree, "spec.volumeAttributesClassName"), ctx.clock.now());
        let attributes = self.attributes.get("", class).map(|class| class.to_value());
        let refusal = attributes.as_ref().map(|class| modify::refusal(volume, class));
        // A class that was made anew may be one that the storage knows.
        let is_hopeless =
            modify::stands(tree, "Infeasible", class) && refusal.as_ref().is_none_or(Option::is_some);
        let is_idle = !modify::is_given_up(tree) && (!modify::is_wanted(tree) || is_hopeless);
        // A cache that has not heard of what was written would have everything told twice.
        if is_idle || !growing.is_current().await? {
            return Ok(());
        }
        if class.is_empty() {
            growing.told("Normal", "VolumeModifyCancelled", "Cancelled modify.");
            return growing.patch_status(modify::given_up(tree, now)).await.map(drop);
        }
        let Some(refusal) = refusal else {
            if modify::stands(tree, "Pending", class) {
                return Ok(());
            }
            growing.told("Warning", "VolumeModifyFailed", format!("VAC {class:?} does not exist."));
            return growing.patch_status(modify::pending(class)).await.map(drop);
        };
        let begun = growing.patch_status(modify::in_progress(tree, class, now)).await?.to_value();
        let about = &claim.metadata.name;
        let message = format!("external resizer is modifying volume {about} with vac {class}");
        growing.told("Normal", "VolumeModify", message);
        if let Some(why) = refusal {
            growing.patch_status(modify::infeasible(&begun, class, &why, now)).await?;
            growing.told("Warning", "VolumeModifyFailed", why);
            return Ok(());
        }
        let patch = json!({"spec": {"volumeAttributesClassName": class}});
        let name = text(volume, "metadata.name");
        ctx.client.patch(&PERSISTENT_VOLUMES, "", name, PatchType::Merge, &patch).await?;
        growing.patch_status(modify::finished(&begun, class, now)).await?;
        let message = format!("external resizer modified volume {about} with vac {class} successfully");
        growing.told("Normal", "VolumeModifySuccessful", message);
        Ok(())
    }

    /// Blocks have no file system, and where no pod has mounted it the storage can do it, unless the class
    /// says that it cannot.
    fn needs_node(&self, claim: &Object, tree: &Value) -> bool {
        let class = self.classes.get("", text(tree, "spec.storageClassName")).map(|class| class.to_value());
        let waits = class.is_some_and(|class| at(&class, "parameters")[NODE_PART] == "required");
        text(tree, "spec.volumeMode") != "Block" && (waits || self.user_of(claim).is_some())
    }

    /// A pod that has mounted the claim.
    fn user_of(&self, claim: &Object) -> Option<Arc<Object>> {
        let users = pods_with_claim(&self.pods, &claim.metadata.namespace, &claim.metadata.name);
        users.into_iter().find(|pod| pod.view::<Pod>().status.phase == "Running")
    }

    /// The node's part (`expandOnPlugin`), as soon as a pod has the volume there.
    async fn grow_on_node(&self, growing: &Growing<'_>) -> Result<(), Status> {
        let Growing { ctx, claim, tree, volume } = growing;
        let Some(pod) = self.user_of(claim) else { return Ok(()) };
        let (name, now) = (text(volume, "metadata.name"), ctx.clock.now());
        let recorder = ctx.recorder.named("kubelet");
        let about = ObjectReference::of(&PODS, &pod);
        if resize::state(tree) == "NodeResizePending" {
            growing.patch_status(resize::on_node()).await?;
        }
        if let Some(why) = refusal(volume, CANNOT_GROW_ON_NODE) {
            growing.patch_status(resize::infeasible_on_node(tree, &why, now)).await?;
            let why = format!("NodeExpandVolume.NodeExpandVolume failed for volume {name:?} : {why}");
            recorder.event(about, "Warning", "VolumeResizeFailed", why);
            return Ok(());
        }
        let node = &pod.view::<Pod>().spec.node_name;
        let message = format!("MountVolume.NodeExpandVolume succeeded for volume {name:?} {node}");
        recorder.event(about, "Normal", GROWN_ON_NODE, message.clone());
        let about = ObjectReference::of(&PERSISTENT_VOLUME_CLAIMS, claim);
        recorder.event(about, "Normal", GROWN_ON_NODE, message);
        let size = match at(tree, "status.allocatedResources.storage") {
            Value::Null => at(volume, "spec.capacity.storage"),
            size => size,
        };
        growing.patch_status(resize::finished(tree, size, now)).await.map(drop)
    }
}

impl Growing<'_> {
    /// It failed, and nothing has changed since that could make it go well.
    fn is_hopeless(&self) -> bool {
        let wanted = at(&self.tree, "spec.resources.requests.storage");
        let is_same = at(&self.tree, "status.allocatedResources.storage") == wanted;
        let cause = match resize::state(&self.tree) {
            "ControllerResizeInfeasible" => CANNOT_GROW,
            "NodeResizeInfeasible" => CANNOT_GROW_ON_NODE,
            _ => return false,
        };
        is_same && refusal(&self.volume, cause).is_some()
    }

    /// Whether the claim is as it stands.
    async fn is_current(&self) -> Result<bool, Status> {
        let metadata = &self.claim.metadata;
        let found =
            self.ctx.client.find(&PERSISTENT_VOLUME_CLAIMS, &metadata.namespace, &metadata.name).await?;
        Ok(found.is_some_and(|found| found.metadata.resource_version == metadata.resource_version))
    }

    /// The driver's resizer says it.
    fn told(&self, event_type: &str, reason: &str, message: impl Into<String>) {
        let about = ObjectReference::of(&PERSISTENT_VOLUME_CLAIMS, self.claim);
        self.ctx.recorder.named(RESIZER).event(about, event_type, reason, message);
    }

    async fn patch_status(&self, status: Value) -> Result<Arc<Object>, Status> {
        self.patch(&json!({"status": status})).await
    }

    async fn patch(&self, patch: &Value) -> Result<Arc<Object>, Status> {
        let (namespace, name) = (&self.claim.metadata.namespace, &self.claim.metadata.name);
        let kind = &PERSISTENT_VOLUME_CLAIMS;
        self.ctx.client.patch_status(kind, namespace, name, PatchType::Merge, patch).await
    }
}

impl Controller for VolumeExpander {
    const NAME: &'static str = "persistentvolume-expander";
    const EVENT_SOURCE: &'static str = "volume_expand";
    const SERVICE_ACCOUNT: &'static str = "expand-controller";
    const WORKERS: usize = 1;

    fn watches(&self) -> Watches {
        let (of_pods, of_volumes, of_classes) =
            (self.claims.clone(), self.claims.clone(), self.claims.clone());
        Watches::none()
            .maps(&PERSISTENT_VOLUME_CLAIMS, |change: &Change<'_>, enqueue: &Enqueue| {
                if is_to_be_looked_at(change.object()) {
                    enqueue.now(change.object().key());
                }
            })
            .maps(&PODS, move |change: &Change<'_>, enqueue: &Enqueue| {
                let pod = change.object();
                // Most pods have none and are not read: what was read of an object is kept with it.
                if of_pods.is_empty() || !(pod.mentions("persistentVolumeClaim") || pod.mentions("ephemeral"))
                {
                    return;
                }
                let view = pod.view::<Pod>();
                if view.spec.claims.is_empty() || view.status.phase != "Running" {
                    return;
                }
                let namespace = &pod.metadata.namespace;
                for name in view.spec.claims.claim_names(&pod.metadata.name) {
                    let waits =
                        |claim: Arc<Object>| resize::state(&claim.to_value()).starts_with("NodeResize");
                    if of_pods.get(namespace, &name).is_some_and(waits) {
                        enqueue.now(object_key(namespace, &name));
                    }
                }
            })
            .maps(&VOLUME_ATTRIBUTES_CLASSES, move |change: &Change<'_>, enqueue: &Enqueue| {
                let name = &change.object().metadata.name;
                let waits = |claim: &Arc<Object>| {
                    let tree = claim.to_value();
                    text(&tree, "spec.volumeAttributesClassName") == name && is_to_be_looked_at(claim)
                };
                of_classes.all().iter().filter(|claim| waits(claim)).for_each(|claim| {
                    enqueue.now(claim.key());
                });
            })
            .maps(&PERSISTENT_VOLUMES, move |change: &Change<'_>, enqueue: &Enqueue| {
                let Some(key) = claimed_by(&change.object().to_value()) else { return };
                let (namespace, name) = split_key(&key);
                if of_volumes.get(namespace, name).is_some_and(|claim| is_to_be_looked_at(&claim)) {
                    enqueue.now(key);
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

/// What a volume's annotation makes its driver answer, as gRPC says it.
fn refusal(volume: &Value, cause: &str) -> Option<String> {
    let words = annotation(volume, cause);
    (!words.is_empty()).then(|| format!("rpc error: code = OutOfRange desc = {words}"))
}

/// Whether something is to be done for a claim.
fn is_to_be_looked_at(claim: &Object) -> bool {
    let tree = claim.to_value();
    let is_growing = resize::state(&tree).starts_with("NodeResize");
    let has_wishes = || wants_more(&tree) || modify::is_wanted(&tree) || modify::is_given_up(&tree);
    is_bound(&tree) && !claim.is_deleting() && (is_growing || has_wishes())
}

/// Whether a bound claim asks for more than it has.
fn wants_more(claim: &Value) -> bool {
    let wanted = amounts(claim, "spec.resources.requests").remove("storage");
    let has = amounts(claim, "status.capacity").remove("storage");
    matches!((wanted, has), (Some(wanted), Some(has)) if wanted > has)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_resizer_is_named_after_the_driver() {
        assert_eq!(RESIZER, format!("external-resizer {PROVISIONER}"));
    }

    #[test]
    fn a_claim_wants_what_it_has_not() {
        let claim = |wanted: &str, has: &str| {
            json!({"spec": {"resources": {"requests": {"storage": wanted}}},
                "status": {"capacity": {"storage": has}}})
        };
        assert!(wants_more(&claim("2Gi", "1Gi")) && !wants_more(&claim("1Gi", "1024Mi")));
        assert!(!wants_more(&json!({"spec": {"resources": {"requests": {"storage": "1Gi"}}}})));
    }
}
