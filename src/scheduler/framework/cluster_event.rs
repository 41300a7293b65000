//! What happens in the cluster and may make a pod schedulable (`framework.ClusterEvent`).

use std::sync::Arc;

use apimachinery::object::Object;

/// What it happened to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventResource {
    /// A node.
    Node,
    /// A pod on a node.
    AssignedPod,
    /// The waiting pod itself.
    TargetPod,
    /// A claim.
    PersistentVolumeClaim,
    /// A volume.
    PersistentVolume,
    /// A class of volumes.
    StorageClass,
    /// What drivers a node has.
    CsiNode,
    /// A driver.
    CsiDriver,
    /// What room a driver has.
    CsiStorageCapacity,
    /// A volume at a node.
    VolumeAttachment,
    /// A claim of devices.
    ResourceClaim,
    /// Devices that there are.
    ResourceSlice,
    /// A class of devices.
    DeviceClass,
    /// Which devices nobody shall use.
    DeviceTaintRule,
    /// A namespace, whose labels terms of affinity may name.
    Namespace,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ActionType {
    /// It came.
    Add,
    /// It went.
    Delete,
    /// It changed.
    Update,
    /// A node has more or fewer resources.
    UpdateNodeAllocatable,
    /// A node's labels changed.
    UpdateNodeLabel,
    /// A node's taints changed, or whether it is cordoned.
    UpdateNodeTaint,
    /// A node's kubelet says that it can do more or less.
    UpdateNodeDeclaredFeature,
    /// A pod's labels changed.
    UpdatePodLabel,
    /// The claims that were made for a pod are known.
    UpdatePodGeneratedResourceClaim,
    /// A pod asks for less.
    UpdatePodScaleDown,
    /// A pod bears other taints.
    UpdatePodToleration,
    /// The last scheduling gate of a pod is gone.
    UpdatePodSchedulingGatesEliminated,
}

/// An event that a plugin wants to hear of.
pub type ClusterEvent = (EventResource, ActionType);

/// As metrics call an event (`ClusterEvent.Label`).
pub fn label((resource, action): ClusterEvent) -> String {
    let resource = match resource {
        EventResource::StorageClass => "storage.k8s.io/StorageClass".to_owned(),
        EventResource::CsiNode => "storage.k8s.io/CSINode".to_owned(),
        EventResource::CsiDriver => "storage.k8s.io/CSIDriver".to_owned(),
        EventResource::CsiStorageCapacity => "storage.k8s.io/CSIStorageCapacity".to_owned(),
        EventResource::VolumeAttachment => "storage.k8s.io/VolumeAttachment".to_owned(),
        other => format!("{other:?}"),
    };
    format!("{resource}{action:?}")
}

/// An event that happened.
#[derive(Clone, Debug)]
pub struct Occurrence {
    /// To what, and what.
    pub event: ClusterEvent,
    /// The object before the change.
    pub old: Option<Arc<Object>>,
    /// The object after the change.
    pub new: Option<Arc<Object>>,
}

/// Whether an event is worth another try (`framework.QueueingHint`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueingHint {
    /// It may fit now.
    Queue,
    /// It changes nothing for this pod.
    Skip,
}

impl QueueingHint {
    /// Worth a try if.
    pub fn queue_if(worth_it: bool) -> QueueingHint {
        if worth_it { QueueingHint::Queue } else { QueueingHint::Skip }
    }
}
