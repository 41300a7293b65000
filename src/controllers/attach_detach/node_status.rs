//! What the status of a node says of its volumes (`statusupdater`): what is attached, what its pods use.

use std::time::Duration;

use serde_json::{Value, json};

use crate::controller::Reconcile;
use apimachinery::options::PatchType;
use apimachinery::status::Status;
use apis::core::node::NODES;
use apis::tree::{annotation, items, text, texts};

/// On nodes whose volumes this controller attaches; kubelets write it (`ControllerManagedAttachAnnotation`).
const MANAGED: &str = "volumes.kubernetes.io/controller-managed-attach-detach";
const OUT_OF_SERVICE: &str = "node.kubernetes.io/out-of-service";
/// So long a node that is not well may go on using what it has (`ReconcilerMaxWaitForUnmountDuration`).
pub(super) const MAX_WAIT_FOR_UNMOUNT: Duration = Duration::from_secs(360);

/// A node, as far as volumes are concerned.
pub(super) struct NodeVolumes(pub(super) Value);

impl NodeVolumes {
    /// The node as it is now; none when it is gone.
    pub(super) async fn get(ctx: &Reconcile, node: &str) -> Result<Option<NodeVolumes>, Status> {
        Ok(ctx.client.find(&NODES, "", node).await?.map(|node| NodeVolumes(node.to_value())))
    }

    /// Whether its kubelet leaves attaching to this controller.
    pub(super) fn is_managed(&self) -> bool {
        annotation(&self.0, MANAGED) == "true"
    }

    pub(super) fn has_attached(&self, volume: &str) -> bool {
        items(&self.0, "status.volumesAttached").iter().any(|attached| text(attached, "name") == volume)
    }

    pub(super) fn uses(&self, volume: &str) -> bool {
        texts(&self.0, "status.volumesInUse").contains(&volume)
    }

    /// Whether whoever runs the cluster says that it is off.
    pub(super) fn is_out_of_service(&self) -> bool {
        items(&self.0, "spec.taints").iter().any(|taint| text(taint, "key") == OUT_OF_SERVICE)
    }

    pub(super) fn is_ready(&self) -> bool {
        let is_it = |condition: &&Value| text(condition, "type") == "Ready";
        let ready = items(&self.0, "status.conditions").iter().find(is_it);
        ready.is_some_and(|ready| text(ready, "status") == "True")
    }

    /// Writes that it has a volume.
    pub(super) async fn add(&self, ctx: &Reconcile, volume: &str) -> Result<(), Status> {
        let mut attached = items(&self.0, "status.volumesAttached").to_vec();
        attached.push(json!({"name": volume, "devicePath": ""}));
        self.write(ctx, attached).await
    }

    /// Writes that it has it no more.
    pub(super) async fn remove(&self, ctx: &Reconcile, volume: &str) -> Result<(), Status> {
        let attached = items(&self.0, "status.volumesAttached").iter();
        self.write(ctx, attached.filter(|it| text(it, "name") != volume).cloned().collect()).await
    }

    async fn write(&self, ctx: &Reconcile, attached: Vec<Value>) -> Result<(), Status> {
        let attached = if attached.is_empty() { Value::Null } else { attached.into() };
        let patch = json!({"metadata": {"uid": text(&self.0, "metadata.uid")},
            "status": {"volumesAttached": attached}});
        let name = text(&self.0, "metadata.name");
        ctx.client.patch_status(&NODES, "", name, PatchType::Merge, &patch).await.map(drop)
    }
}
