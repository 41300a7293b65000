//! VolumeRestrictions: disks that only one pod, or only one node, may use at once.

use serde_json::Value;

use crate::framework::cluster_event::{ActionType, ClusterEvent, EventResource, Occurrence, QueueingHint};
use crate::framework::node_info::NodeInfo;
use crate::framework::plugin::{CycleState, NodeSnapshot, Plugin, PreFilterResult};
use crate::framework::pod_info::PodInfo;
use crate::framework::status::Status;
use apis::core::persistent_volume_claim::PERSISTENT_VOLUME_CLAIMS;
use apis::tree::{at, text, texts};
use apis::views::pod::Pod;
use apis::views::pod_volumes::ClaimedVolumes;
use client_go::lister::Lister;

use super::claims::{claim_names, uses_claim};

const NAME: &str = "VolumeRestrictions";

/// The plugin.
pub struct VolumeRestrictions {
    /// Of PersistentVolumeClaims.
    pub claims: Lister,
}

/// Whether another pod uses a claim that only one may use (`preFilterState`).
struct ExclusiveConflict(bool);

impl Plugin for VolumeRestrictions {
    fn name(&self) -> &'static str {
        NAME
    }

    fn events_to_register(&self) -> &'static [ClusterEvent] {
        &[
            (EventResource::AssignedPod, ActionType::Delete),
            (EventResource::Node, ActionType::Add),
            (EventResource::PersistentVolumeClaim, ActionType::Add),
            (EventResource::PersistentVolumeClaim, ActionType::Update),
        ]
    }

    /// A pod that leaves helps whoever wants the same disk or claim; of claims only its own matter to a pod.
    fn queueing_hint(&self, pod: &PodInfo, occurrence: &Occurrence) -> QueueingHint {
        let own_namespace = &pod.object.metadata.namespace;
        match (occurrence.event.0, &occurrence.old, &occurrence.new) {
            (EventResource::PersistentVolumeClaim, _, Some(claim)) => {
                QueueingHint::queue_if(uses_claim(pod, claim))
            }
            (EventResource::AssignedPod, Some(gone), _) => {
                let (metadata, view) = (&gone.metadata, gone.view::<Pod>());
                let shares = metadata.namespace == *own_namespace
                    && view
                        .spec
                        .claims
                        .claim_names(&metadata.name)
                        .any(|name| claim_names(pod).any(|own| own == name));
                QueueingHint::queue_if(shares || conflicts(&pod.claims, &view.spec.claims))
            }
            _ => QueueingHint::Queue,
        }
    }

    fn pre_filter(
        &self,
        state: &mut CycleState,
        pod: &PodInfo,
        snapshot: &NodeSnapshot,
    ) -> (PreFilterResult, Status) {
        let own = match self.exclusive_claims(pod) {
            Ok(own) => own,
            Err(status) => return (None, status),
        };
        if own.is_empty() && pod.claims.disks.is_empty() {
            return (None, Status::skip());
        }
        if !own.is_empty() {
            let namespace = &pod.object.metadata.namespace;
            let uses = |other: &PodInfo| {
                other.object.metadata.namespace == *namespace
                    && other.uid() != pod.uid()
                    && claim_names(other).any(|name| own.contains(&name))
            };
            let is_used = snapshot.iter().any(|node| node.pods.iter().any(|other| uses(other)));
            state.looks_at_other_nodes = true;
            state.write(NAME, ExclusiveConflict(is_used));
        }
        (None, Status::success())
    }

    fn filter(&self, state: &CycleState, pod: &PodInfo, node: &NodeInfo) -> Status {
        if node.pods.iter().any(|other| conflicts(&pod.claims, &other.claims)) {
            return Status::unschedulable("node(s) had no available disk");
        }
        if state.read::<ExclusiveConflict>(NAME).is_some_and(|conflict| conflict.0) {
            let text = "node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode";
            return Status::unschedulable(text);
        }
        Status::success()
    }
}

impl VolumeRestrictions {
    /// The claims of a pod that only one pod may use; one that is made for the pod is no other's.
    fn exclusive_claims(&self, pod: &PodInfo) -> Result<Vec<String>, Status> {
        let mut found = Vec::new();
        for name in pod.claims.iter().filter(|it| !it.is_ephemeral).map(|it| &it.name) {
            let Some(claim) = self.claims.get(&pod.object.metadata.namespace, name) else {
                let resource = &PERSISTENT_VOLUME_CLAIMS.singular;
                return Err(Status::unresolvable(format!("{resource} {name:?} not found")));
            };
            let tree = claim.to_value();
            if texts(&tree, "spec.accessModes").contains(&"ReadWriteOncePod") {
                found.push(name.clone());
            }
        }
        Ok(found)
    }
}

/// `isVolumeConflict` of any two of their disks.
fn conflicts(pod: &ClaimedVolumes, other: &ClaimedVolumes) -> bool {
    pod.disks.iter().any(|own| other.disks.iter().any(|other| is_same_disk(own, other)))
}

fn is_same_disk(own: &Value, other: &Value) -> bool {
    let both = |kind: &str, field: &str| {
        let (own, other) = (text(at(own, kind), field), text(at(other, kind), field));
        !own.is_empty() && own == other
    };
    let both_read = |kind: &str| {
        let reads = |disk: &Value| at(at(disk, kind), "readOnly") == &Value::Bool(true);
        reads(own) && reads(other)
    };
    let pool = |disk: &Value| match text(at(disk, "rbd"), "pool") {
        "" => "rbd".to_owned(),
        pool => pool.to_owned(),
    };
    let monitors = |disk: &Value| -> Vec<String> {
        texts(at(disk, "rbd"), "monitors").into_iter().map(str::to_owned).collect()
    };
    let shares_monitor = || monitors(own).iter().any(|monitor| monitors(other).contains(monitor));
    both("gcePersistentDisk", "pdName") && !both_read("gcePersistentDisk")
        || both("awsElasticBlockStore", "volumeID")
        || both("iscsi", "iqn") && !both_read("iscsi")
        || both("rbd", "image") && pool(own) == pool(other) && shares_monitor() && !both_read("rbd")
}
