//! The node's CSINode: which storage drivers have a part on it, and how many of their volumes it takes
//! (`pkg/volume/csi/nodeinfomanager`). None registers with a simulated kubelet; whoever plays one writes here
//! what the scheduler is to go by.

use serde_json::json;

use super::dependencies::Dependencies;
use apimachinery::object::Object;
use apis::storage::csi::CSI_NODES;

/// On a CSINode: the drivers of old that others stand in for (`MigratedPluginsAnnotationKey`).
const MIGRATED: &str = "storage.alpha.kubernetes.io/migrated-plugins";
/// All that there were.
const MIGRATED_PLUGINS: &str = "kubernetes.io/aws-ebs,kubernetes.io/azure-disk,kubernetes.io/azure-file,\
    kubernetes.io/cinder,kubernetes.io/gce-pd,kubernetes.io/portworx-volume,kubernetes.io/vsphere-volume";

/// Makes the CSINode of a node that is registered. Says whether there is one now.
pub(crate) async fn create(kubelet: &Dependencies, node: &Object) -> bool {
    let (name, uid) = (&node.metadata.name, &node.metadata.uid);
    let owner = json!({"apiVersion": "v1", "kind": "Node", "name": name, "uid": uid});
    let csi_node = json!({
        "metadata": {"name": name, "annotations": {MIGRATED: MIGRATED_PLUGINS}, "ownerReferences": [owner]},
        "spec": {"drivers": []},
    });
    match kubelet.context.client.create(&CSI_NODES, "", csi_node).await {
        Err(status) if !status.is_already_exists() => {
            tracing::debug!(node = name, status = %status.message, "initializing CSINode");
            false
        }
        _ => true,
    }
}
