//! What the scheduler makes of what it hears of pods and nodes (`pkg/scheduler/eventhandlers.go`).

use std::sync::Arc;

use super::framework::cluster_event::{ActionType, EventResource, Occurrence};
use super::framework::pod_info::PodInfo;
use super::framework::resource::{ResizedPod, Resource, pod_requests};
use super::parts::SchedulerParts;
use super::queue::{POD_ADDED, POD_DELETED, POD_UPDATED};
use apimachinery::object::Object;
use apis::core::namespace::NAMESPACES;
use apis::core::persistent_volume::PERSISTENT_VOLUMES;
use apis::core::persistent_volume_claim::PERSISTENT_VOLUME_CLAIMS;
use apis::kind::Builtin;
use apis::resource::device_class::DEVICE_CLASSES;
use apis::resource::resource_claim::RESOURCE_CLAIMS;
use apis::resource::resource_slice::RESOURCE_SLICES;
use apis::storage::csi::{CSI_DRIVERS, CSI_NODES, CSI_STORAGE_CAPACITIES};
use apis::storage::storage_class::STORAGE_CLASSES;
use apis::storage::volume_attachment::VOLUME_ATTACHMENTS;
use apis::views::node::Node;
use apis::views::pod::{Pod, node_name, scheduler_name};
use client_go::shared_informer::{Deleted, ResourceEventHandler};

/// Hears of nodes.
pub(crate) struct NodeHandler {
    /// Whom it tells.
    pub parts: Arc<SchedulerParts>,
}

/// Hears of pods that have not ended.
pub(crate) struct PodHandler {
    /// Whom it tells.
    pub parts: Arc<SchedulerParts>,
}

/// Hears of what else pods may wait for.
pub(crate) struct OtherHandler {
    /// Whom it tells.
    pub parts: Arc<SchedulerParts>,
    /// Of which kind they are.
    pub resource: EventResource,
}

/// What is there beside pods and nodes that a pod may wait for.
pub(crate) const OTHER_RESOURCES: [(&Builtin, EventResource); 11] = [
    (&PERSISTENT_VOLUME_CLAIMS, EventResource::PersistentVolumeClaim),
    (&PERSISTENT_VOLUMES, EventResource::PersistentVolume),
    (&STORAGE_CLASSES, EventResource::StorageClass),
    (&CSI_NODES, EventResource::CsiNode),
    (&CSI_DRIVERS, EventResource::CsiDriver),
    (&CSI_STORAGE_CAPACITIES, EventResource::CsiStorageCapacity),
    (&VOLUME_ATTACHMENTS, EventResource::VolumeAttachment),
    (&DEVICE_CLASSES, EventResource::DeviceClass),
    (&RESOURCE_CLAIMS, EventResource::ResourceClaim),
    (&RESOURCE_SLICES, EventResource::ResourceSlice),
    (&NAMESPACES, EventResource::Namespace),
];

impl ResourceEventHandler for NodeHandler {
    fn on_add(&self, new: &Arc<Object>, _is_initial_list: bool) {
        self.parts.cache.set_node(new);
        self.parts.happened(EventResource::Node, ActionType::Add, None, Some(new));
    }

    fn on_update(&self, old: &Arc<Object>, new: &Arc<Object>) {
        self.parts.cache.set_node(new);
        for action in node_changes(old, new) {
            self.parts.happened(EventResource::Node, action, Some(old), Some(new));
        }
    }

    fn on_delete(&self, last: &Deleted) {
        let last = last.last();
        self.parts.cache.remove_node(&last.metadata.name);
        self.parts.happened(EventResource::Node, ActionType::Delete, Some(last), None);
    }
}

/// What about a node has changed that scheduling looks at (`nodeSchedulingPropertiesChange`).
fn node_changes(old: &Arc<Object>, new: &Arc<Object>) -> Vec<ActionType> {
    let (old_node, new_node) = (old.view::<Node>(), new.view::<Node>());
    let mut changes = Vec::new();
    if old_node.status.allocatable != new_node.status.allocatable {
        changes.push(ActionType::UpdateNodeAllocatable);
    }
    if old.metadata.labels != new.metadata.labels {
        changes.push(ActionType::UpdateNodeLabel);
    }
    if old_node.status.declared_features != new_node.status.declared_features {
        changes.push(ActionType::UpdateNodeDeclaredFeature);
    }
    let (old, new) = (&old_node.spec, &new_node.spec);
    if old.taints != new.taints || old.unschedulable != new.unschedulable {
        changes.push(ActionType::UpdateNodeTaint);
    }
    changes
}

impl ResourceEventHandler for PodHandler {
    fn on_add(&self, new: &Arc<Object>, _is_initial_list: bool) {
        if !node_name(new).is_empty() {
            self.parts.pod_is_assigned(new);
        } else if self.parts.profiles.has(&scheduler_name(new)) {
            let pod = Arc::new(PodInfo::new(new.clone()));
            self.parts.handling(POD_ADDED, || self.parts.queue.add(pod));
        }
    }

    fn on_update(&self, old: &Arc<Object>, new: &Arc<Object>) {
        if old.metadata.uid != new.metadata.uid {
            self.on_delete(&Deleted::Object(old.clone()));
            return self.on_add(new, false);
        }
        match (node_name(old).is_empty(), node_name(new).is_empty()) {
            (_, true) if !self.parts.profiles.has(&scheduler_name(new)) => {}
            (_, true) => {
                let occurrence = pod_change(old, new);
                let pod = Arc::new(PodInfo::new(new.clone()));
                self.parts.handling(POD_UPDATED, || self.parts.queue.update(pod, occurrence));
            }
            (true, false) => self.parts.pod_is_assigned(new),
            (false, false) => self.update_assigned(old, new),
        }
    }

    fn on_delete(&self, last: &Deleted) {
        let object = last.last();
        let uid = &object.metadata.uid;
        self.parts.cache.remove_pod(uid);
        if node_name(object).is_empty() {
            return self.parts.handling(POD_DELETED, || self.parts.queue.remove(uid));
        }
        self.parts.queue.remove(uid);
        self.parts.happened(EventResource::AssignedPod, ActionType::Delete, Some(object), None);
    }
}

impl ResourceEventHandler for OtherHandler {
    fn on_add(&self, new: &Arc<Object>, _is_initial_list: bool) {
        self.parts.happened(self.resource, ActionType::Add, None, Some(new));
    }

    /// Of a namespace only its labels matter.
    fn on_update(&self, old: &Arc<Object>, new: &Arc<Object>) {
        let is_same = old.metadata.labels == new.metadata.labels;
        if self.resource != EventResource::Namespace || !is_same {
            self.parts.happened(self.resource, ActionType::Update, Some(old), Some(new));
        }
    }

    /// What is gone helps when it took room, or kept something from being used.
    fn on_delete(&self, last: &Deleted) {
        self.parts.happened(self.resource, ActionType::Delete, Some(last.last()), None);
    }
}

impl PodHandler {
    fn update_assigned(&self, old: &Arc<Object>, new: &Arc<Object>) {
        self.parts.cache.update_pod(Arc::new(PodInfo::new(new.clone())));
        if asks_less(old, new) {
            let (resource, action) = (EventResource::AssignedPod, ActionType::UpdatePodScaleDown);
            self.parts.happened(resource, action, Some(old), Some(new));
        }
        if old.metadata.labels != new.metadata.labels {
            let (resource, action) = (EventResource::AssignedPod, ActionType::UpdatePodLabel);
            self.parts.happened(resource, action, Some(old), Some(new));
        }
    }
}

fn asks_less(old: &Arc<Object>, new: &Arc<Object>) -> bool {
    // Most updates are of the status of a pod that nobody resizes.
    if new.metadata.generation == 1 && old.metadata.generation == 1 {
        return false;
    }
    let (old, new) = (requests(old), requests(new));
    let mut more = new.clone();
    more.set_max(&old);
    more == old && new != old
}

fn requests(pod: &Object) -> Resource {
    let view = pod.view::<Pod>();
    pod_requests(&view, ResizedPod::of(pod).as_deref())
}

/// What about a waiting pod has changed that may help it.
fn pod_change(old: &Arc<Object>, new: &Arc<Object>) -> Option<Occurrence> {
    let (old_pod, new_pod) = (old.view::<Pod>(), new.view::<Pod>());
    let (old_spec, new_spec) = (&old_pod.spec, &new_pod.spec);
    let action = if !old_spec.scheduling_gates.is_empty() && new_spec.scheduling_gates.is_empty() {
        ActionType::UpdatePodSchedulingGatesEliminated
    } else if old_spec.tolerations != new_spec.tolerations {
        ActionType::UpdatePodToleration
    } else if old_pod.status.resource_claim_statuses != new_pod.status.resource_claim_statuses {
        ActionType::UpdatePodGeneratedResourceClaim
    } else if asks_less(old, new) {
        ActionType::UpdatePodScaleDown
    } else if old.metadata.labels != new.metadata.labels {
        ActionType::UpdatePodLabel
    } else {
        return None;
    };
    let event = (EventResource::TargetPod, action);
    Some(Occurrence { event, old: Some(old.clone()), new: Some(new.clone()) })
}
