//! NodeVolumeLimits: how many volumes of a driver a node can have, as its CSINode says.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

use serde_json::Value;

use super::claims::{claim_names, uses_claim};
use crate::framework::cluster_event::{ActionType, ClusterEvent, EventResource, Occurrence, QueueingHint};
use crate::framework::node_info::NodeInfo;
use crate::framework::plugin::{CycleState, NodeSnapshot, Plugin, PreFilterResult};
use crate::framework::pod_info::PodInfo;
use crate::framework::status::Status;
use apimachinery::object::Object;
use apis::kind::Kind;
use apis::tree::{at, text};
use apis::views::pod::Pod;
use client_go::lister::Lister;

const NAME: &str = "NodeVolumeLimits";

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

/// What is the same for all nodes.
struct OwnVolumes {
    /// Why it can be nowhere.
    lacks: Option<Status>,
    /// The pod's; read for the first node that has limits.
    volumes: OnceLock<BTreeSet<UniqueVolume>>,
    /// What is attached, by node; read for the first node that has limits.
    attached: OnceLock<BTreeMap<String, Vec<UniqueVolume>>>,
}

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
        for (claim, name) in pod.claims.iter().zip(claim_names(pod)) {
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

    /// What is attached, by node: also what no pod there uses any more.
    fn attached(&self) -> BTreeMap<String, Vec<UniqueVolume>> {
        let mut attached: BTreeMap<String, Vec<UniqueVolume>> = BTreeMap::new();
        for attachment in self.attachments.all() {
            let tree = attachment.to_value();
            let name = text(&tree, "spec.source.persistentVolumeName");
            let Some(volume) = self.volumes.get("", name) else { continue };
            let handle = text(&volume.to_value(), "spec.csi.volumeHandle").to_owned();
            let node = text(&tree, "spec.nodeName").to_owned();
            attached.entry(node).or_default().push((text(&tree, "spec.attacher").to_owned(), handle));
        }
        attached
    }
}

impl Plugin for NodeVolumeLimits {
    fn name(&self) -> &'static str {
        NAME
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
                QueueingHint::queue_if(!gone.view::<Pod>().spec.claims.is_empty())
            }
            (EventResource::PersistentVolumeClaim, _, Some(claim)) => {
                QueueingHint::queue_if(uses_claim(pod, claim))
            }
            _ => QueueingHint::Queue,
        }
    }

    fn pre_filter(
        &self,
        state: &mut CycleState,
        pod: &PodInfo,
        _: &NodeSnapshot,
    ) -> (PreFilterResult, Status) {
        if pod.claims.is_empty() {
            return (None, Status::skip());
        }
        let own = OwnVolumes { lacks: self.lacks(pod), volumes: OnceLock::new(), attached: OnceLock::new() };
        state.write(NAME, own);
        (None, Status::success())
    }

    fn filter(&self, state: &CycleState, pod: &PodInfo, node: &NodeInfo) -> Status {
        let Some(own) = state.read::<OwnVolumes>(NAME) else { return Status::success() };
        if let Some(status) = &own.lacks {
            return status.clone();
        }
        let limits = self.limits(&node.name);
        if limits.is_empty() {
            return Status::success();
        }
        let volumes = own.volumes.get_or_init(|| self.volumes_of(pod).collect());
        if !volumes.iter().any(|(driver, _)| limits.contains_key(driver)) {
            return Status::success();
        }
        let attached = own.attached.get_or_init(|| self.attached()).get(&*node.name);
        let mut used: BTreeSet<UniqueVolume> = attached.into_iter().flatten().cloned().collect();
        used.extend(node.pods.iter().flat_map(|other| self.volumes_of(other)));
        let new: BTreeSet<UniqueVolume> = volumes.difference(&used).cloned().collect();
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
