//! NodeVolumeLimits: how many volumes of a driver a node can have, as its CSINode says.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use super::claims::claim_names;
use crate::framework::cluster_event::{ActionType, ClusterEvent, EventResource, Occurrence, QueueingHint};
use crate::framework::node_info::NodeInfo;
use crate::framework::plugin::{CycleState, Plugin, PreFilterResult, Snapshot};
use crate::framework::pod_info::PodInfo;
use crate::framework::status::Status;
use apimachinery::object::Object;
use apis::kind::Kind;
use apis::tree::{at, text};
use client_go::lister::Lister;

/// The plugin.
pub struct NodeVolumeLimits {
    claims: Lister,
    volumes: Lister,
    classes: Lister,
    nodes: Lister,
    attachments: Lister,
}

/// A volume, or what will become one: its driver and what tells it apart.
type UniqueVolume = (String, String);

impl NodeVolumeLimits {
    /// Reads through listers.
    pub fn new(lister: &dyn Fn(&Arc<Kind>) -> Lister) -> NodeVolumeLimits {
        NodeVolumeLimits {
            claims: lister(&apis::core::persistent_volume_claim::PERSISTENT_VOLUME_CLAIMS),
            volumes: lister(&apis::core::persistent_volume::PERSISTENT_VOLUMES),
            classes: lister(&apis::storage::storage_class::STORAGE_CLASSES),
            nodes: lister(&apis::storage::csi::CSI_NODES),
            attachments: lister(&apis::storage::volume_attachment::VOLUME_ATTACHMENTS),
        }
    }

    /// The volumes of a pod that a driver of CSI attaches (`filterAttachableVolumes`).
    fn volumes_of<'a>(&'a self, pod: &'a PodInfo) -> impl Iterator<Item = UniqueVolume> + 'a {
        let namespace = &pod.object.metadata.namespace;
        claim_names(pod).filter_map(|name| self.unique_volume(&*self.claims.get(namespace, &name)?))
    }

    /// A pod that is to be placed cannot run without its claims (`newPod`).
    fn lacks(&self, pod: &PodInfo) -> Option<Status> {
        let metadata = &pod.object.metadata;
        let namespace = &metadata.namespace;
        for (claim, name) in pod.pod.spec.claims.iter().zip(claim_names(pod)) {
            let Some(found) = self.claims.get(namespace, &name) else {
                let why =
                    format!("looking up PVC {namespace}/{name}: persistentvolumeclaims {name:?} not found");
                return Some(Status::unresolvable(why));
            };
            let is_owner = found.controller().is_some_and(|owner| *owner.uid == *metadata.uid);
            if claim.is_ephemeral && !is_owner {
                let pod = pod.object.key();
                let why = format!("PVC {namespace}/{name} was not created for pod {pod} (pod is not owner)");
                return Some(Status::error(why));
            }
        }
        None
    }

    /// A claim without a volume counts as one of the driver that will make it.
    fn unique_volume(&self, claim: &Object) -> Option<UniqueVolume> {
        let tree = claim.to_value();
        let volume = match text(&tree, "spec.volumeName") {
            "" => None,
            name => self.volumes.get("", name),
        };
        let Some(volume) = volume else {
            let class = self.classes.get("", text(&tree, "spec.storageClassName"))?.to_value();
            let driver = text(&class, "provisioner").to_owned();
            return Some((driver, claim.key()));
        };
        let volume = volume.to_value();
        let csi = at(&volume, "spec.csi");
        let driver = text(csi, "driver").to_owned();
        (!csi.is_null()).then(|| (driver, text(csi, "volumeHandle").to_owned()))
    }

    /// What the node's drivers can have at most; a driver that says nothing can have any number.
    fn limits(&self, node: &str) -> BTreeMap<String, i64> {
        let Some(node) = self.nodes.get("", node) else { return BTreeMap::new() };
        let tree = node.to_value();
        let limit = |driver: &Value| {
            let count = at(driver, "allocatable.count").as_i64()?;
            Some((text(driver, "name").to_owned(), count))
        };
        at(&tree, "spec.drivers").as_array().into_iter().flatten().filter_map(limit).collect()
    }

    /// What is attached though no pod on the node uses it any more.
    fn attached(&self, node: &str) -> Vec<UniqueVolume> {
        let handle = |attachment: Arc<Object>| {
            let tree = attachment.to_value();
            if text(&tree, "spec.nodeName") != node {
                return None;
            }
            let volume = self.volumes.get("", text(&tree, "spec.source.persistentVolumeName"))?.to_value();
            let handle = text(&volume, "spec.csi.volumeHandle").to_owned();
            Some((text(&tree, "spec.attacher").to_owned(), handle))
        };
        self.attachments.all().into_iter().filter_map(handle).collect()
    }
}

impl Plugin for NodeVolumeLimits {
    fn name(&self) -> &'static str {
        "NodeVolumeLimits"
    }

    fn events_to_register(&self) -> &'static [ClusterEvent] {
        &[
            (EventResource::CsiNode, ActionType::Add),
            (EventResource::CsiNode, ActionType::Update),
            (EventResource::AssignedPod, ActionType::Delete),
            (EventResource::PersistentVolumeClaim, ActionType::Add),
            (EventResource::VolumeAttachment, ActionType::Delete),
        ]
    }

    /// A pod that leaves helps when it had claims.
    fn queueing_hint(&self, pod: &PodInfo, occurrence: &Occurrence) -> QueueingHint {
        match (occurrence.event.0, &occurrence.old, &occurrence.new) {
            (EventResource::AssignedPod, Some(gone), _) => {
                QueueingHint::queue_if(!PodInfo::new(gone.clone()).pod.spec.claims.is_empty())
            }
            (EventResource::PersistentVolumeClaim, _, Some(claim)) => QueueingHint::queue_if(
                claim.metadata.namespace == pod.object.metadata.namespace
                    && claim_names(pod).any(|name| name == claim.metadata.name),
            ),
            _ => QueueingHint::Queue,
        }
    }

    fn pre_filter(&self, _: &mut CycleState, pod: &PodInfo, _: &Snapshot) -> (PreFilterResult, Status) {
        (None, if pod.pod.spec.claims.is_empty() { Status::skip() } else { Status::success() })
    }

    fn filter(&self, _state: &CycleState, pod: &PodInfo, node: &NodeInfo) -> Status {
        if let Some(status) = self.lacks(pod) {
            return status;
        }
        let limits = self.limits(&node.name);
        if limits.is_empty() {
            return Status::success();
        }
        let mut used: BTreeSet<UniqueVolume> = self.attached(&node.name).into_iter().collect();
        used.extend(node.pods.iter().flat_map(|other| self.volumes_of(other)));
        let new: BTreeSet<UniqueVolume> = self.volumes_of(pod).filter(|it| !used.contains(it)).collect();
        let of = |volumes: &BTreeSet<UniqueVolume>, driver: &str| {
            volumes.iter().filter(|(of, _)| of == driver).count() as i64
        };
        let is_full = |(driver, limit): (&String, &i64)| {
            of(&new, driver) > 0 && of(&used, driver) + of(&new, driver) > *limit
        };
        if limits.iter().any(is_full) {
            return Status::unschedulable("node(s) exceed max volume count");
        }
        Status::success()
    }
}
