//! VolumeZone: a pod goes where its volumes are, as far as labels of zones and regions say where that is.

use std::collections::BTreeSet;

use serde_json::Value;

use super::claims::claim_names;
use crate::framework::cluster_event::{ActionType, ClusterEvent, EventResource};
use crate::framework::node_info::NodeInfo;
use crate::framework::plugin::{CycleState, NodeSnapshot, Plugin, PreFilterResult};
use crate::framework::pod_info::PodInfo;
use crate::framework::status::Status;
use apis::core::node_labels::{OLDER_REGION, OLDER_ZONE, REGION, ZONE};
use apis::kind::Kind;
use apis::tree::text;
use client_go::lister::Lister;

const NAME: &str = "VolumeZone";
/// Labels that say where something is, the older ones with those that took their place.
const TOPOLOGY_LABELS: [(&str, &str); 4] =
    [(OLDER_ZONE, ZONE), (OLDER_REGION, REGION), (ZONE, ZONE), (REGION, REGION)];

/// The plugin.
pub struct VolumeZone {
    claims: Lister,
    volumes: Lister,
    classes: Lister,
}

/// Where one volume is.
struct VolumeTopology {
    key: &'static str,
    newer_key: &'static str,
    values: BTreeSet<String>,
}

impl VolumeZone {
    /// Reads through listers.
    pub fn new(lister: &dyn Fn(&std::sync::Arc<Kind>) -> Lister) -> VolumeZone {
        VolumeZone {
            claims: lister(&apis::core::persistent_volume_claim::PERSISTENT_VOLUME_CLAIMS),
            volumes: lister(&apis::core::persistent_volume::PERSISTENT_VOLUMES),
            classes: lister(&apis::storage::storage_class::STORAGE_CLASSES),
        }
    }

    /// `getPVbyPod`
    fn topologies(&self, pod: &PodInfo) -> Result<Vec<VolumeTopology>, Status> {
        let mut found = Vec::new();
        for name in claim_names(pod) {
            let Some(claim) = self.claims.get(&pod.object.metadata.namespace, &name) else {
                return Err(Status::unresolvable(format!("persistentvolumeclaim {name:?} not found")));
            };
            let tree = claim.to_value();
            let volume_name = text(&tree, "spec.volumeName");
            if volume_name.is_empty() {
                self.check_waits(&tree)?;
                continue;
            }
            let Some(volume) = self.volumes.get("", volume_name) else {
                return Err(Status::unresolvable(format!("persistentvolume {volume_name:?} not found")));
            };
            for (key, newer_key) in TOPOLOGY_LABELS {
                let Some(value) = volume.metadata.labels.get(key) else { continue };
                let values = value.split("__").map(str::to_owned).collect();
                found.push(VolumeTopology { key, newer_key, values });
            }
        }
        Ok(found)
    }

    /// A claim without a volume is somebody else's business if it waits for the pod.
    fn check_waits(&self, claim: &Value) -> Result<(), Status> {
        let class_name = text(claim, "spec.storageClassName");
        if class_name.is_empty() {
            let reason = "PersistentVolumeClaim had no pv name and storageClass name";
            return Err(Status::unresolvable(reason));
        }
        let Some(class) = self.classes.get("", class_name) else {
            let reason = format!("storageclass.storage.k8s.io {class_name:?} not found");
            return Err(Status::unresolvable(reason));
        };
        if text(&class.to_value(), "volumeBindingMode") == "WaitForFirstConsumer" {
            return Ok(());
        }
        Err(Status::unresolvable("PersistentVolume had no name"))
    }
}

impl Plugin for VolumeZone {
    fn name(&self) -> &'static str {
        NAME
    }

    fn events_to_register(&self) -> &'static [ClusterEvent] {
        &[
            (EventResource::StorageClass, ActionType::Add),
            (EventResource::Node, ActionType::Add),
            (EventResource::Node, ActionType::UpdateNodeLabel),
            (EventResource::PersistentVolumeClaim, ActionType::Add),
            (EventResource::PersistentVolumeClaim, ActionType::Update),
            (EventResource::PersistentVolume, ActionType::Add),
            (EventResource::PersistentVolume, ActionType::Update),
        ]
    }

    fn pre_filter(
        &self,
        state: &mut CycleState,
        pod: &PodInfo,
        _: &NodeSnapshot,
    ) -> (PreFilterResult, Status) {
        match self.topologies(pod) {
            Ok(topologies) if topologies.is_empty() => (None, Status::skip()),
            Ok(topologies) => {
                state.write(NAME, topologies);
                (None, Status::success())
            }
            Err(status) => (None, status),
        }
    }

    /// A node that says of no zone or region takes everything.
    fn filter(&self, state: &CycleState, _pod: &PodInfo, node: &NodeInfo) -> Status {
        let Some(topologies) = state.read::<Vec<VolumeTopology>>(NAME) else { return Status::success() };
        if TOPOLOGY_LABELS.iter().all(|(key, _)| node.label(key).is_none()) {
            return Status::success();
        }
        let is_there = |topology: &VolumeTopology| {
            let value = node.label(topology.key).or_else(|| node.label(topology.newer_key));
            value.is_some_and(|value| topology.values.contains(value))
        };
        if topologies.iter().all(is_there) {
            return Status::success();
        }
        Status::unresolvable("node(s) had no available volume zone")
    }
}
