//! What the scheduler makes of what it hears of pods and nodes (`pkg/scheduler/eventhandlers.go`).

use std::sync::Arc;

use super::framework::cluster_event::{ActionType, EventResource, Occurrence};
use super::framework::pod_info::PodInfo;
use super::framework::resource::pod_requests;
use super::parts::{SCHEDULER_NAME, SchedulerParts};
use apimachinery::object::Object;
use apis::core::persistent_volume::PERSISTENT_VOLUMES;
use apis::core::persistent_volume_claim::PERSISTENT_VOLUME_CLAIMS;
use apis::kind::Builtin;
use apis::storage::storage_class::STORAGE_CLASSES;
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

/// Hears of claims, volumes and their classes.
pub(crate) struct VolumeHandler {
    /// Whom it tells.
    pub parts: Arc<SchedulerParts>,
    /// Of which kind they are.
    pub resource: EventResource,
}

/// What is there beside pods and nodes that a pod may wait for.
pub(crate) const VOLUME_RESOURCES: [(&Builtin, EventResource); 3] = [
    (&PERSISTENT_VOLUME_CLAIMS, EventResource::PersistentVolumeClaim),
    (&PERSISTENT_VOLUMES, EventResource::PersistentVolume),
    (&STORAGE_CLASSES, EventResource::StorageClass),
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
        self.parts.cache.remove_node(&last.last().metadata.name);
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
        } else if scheduler_name(new) == SCHEDULER_NAME {
            self.parts.queue.add(Arc::new(PodInfo::new(new.clone())));
        }
    }

    fn on_update(&self, old: &Arc<Object>, new: &Arc<Object>) {
        if old.metadata.uid != new.metadata.uid {
            self.on_delete(&Deleted::Object(old.clone()));
            return self.on_add(new, false);
        }
        match (node_name(old).is_empty(), node_name(new).is_empty()) {
            (_, true) if scheduler_name(new) != SCHEDULER_NAME => {}
            (_, true) => {
                let occurrence = pod_change(old, new);
                self.parts.queue.update(Arc::new(PodInfo::new(new.clone())), occurrence);
            }
            (true, false) => self.parts.pod_is_assigned(new),
            (false, false) => self.update_assigned(old, new),
        }
    }

    fn on_delete(&self, last: &Deleted) {
        let object = last.last();
        self.parts.queue.remove(&object.metadata.uid);
        self.parts.cache.remove_pod(&object.metadata.uid);
        if !node_name(object).is_empty() {
            self.parts.happened(EventResource::AssignedPod, ActionType::Delete, Some(object), None);
        }
    }
}

impl ResourceEventHandler for VolumeHandler {
    fn on_add(&self, new: &Arc<Object>, _is_initial_list: bool) {
        self.parts.happened(self.resource, ActionType::Add, None, Some(new));
    }

    fn on_update(&self, old: &Arc<Object>, new: &Arc<Object>) {
        self.parts.happened(self.resource, ActionType::Update, Some(old), Some(new));
    }

    /// Nothing that goes helps a pod.
    fn on_delete(&self, _last: &Deleted) {}
}

impl PodHandler {
    fn update_assigned(&self, old: &Arc<Object>, new: &Arc<Object>) {
        self.parts.cache.update_pod(Arc::new(PodInfo::new(new.clone())));
        // Most updates are of the status, which asks for nothing.
        let is_spec_same = old.metadata.generation == new.metadata.generation && new.metadata.generation > 0;
        if !is_spec_same && asks_less(&old.view::<Pod>(), &new.view::<Pod>()) {
            let (resource, action) = (EventResource::AssignedPod, ActionType::UpdatePodScaleDown);
            self.parts.happened(resource, action, Some(old), Some(new));
        }
    }
}

fn asks_less(old: &Pod, new: &Pod) -> bool {
    let (old, new) = (pod_requests(old), pod_requests(new));
    let mut more = new.clone();
    more.set_max(&old);
    more == old && new != old
}

/// What about a waiting pod has changed that may help it.
fn pod_change(old: &Arc<Object>, new: &Arc<Object>) -> Option<Occurrence> {
    let (old_spec, new_spec) = (&old.view::<Pod>().spec, &new.view::<Pod>().spec);
    let action = if !old_spec.scheduling_gates.is_empty() && new_spec.scheduling_gates.is_empty() {
        ActionType::UpdatePodSchedulingGatesEliminated
    } else if old_spec.tolerations != new_spec.tolerations {
        ActionType::UpdatePodToleration
    } else {
        return None;
    };
    let event = (EventResource::TargetPod, action);
    Some(Occurrence { event, old: Some(old.clone()), new: Some(new.clone()) })
}
