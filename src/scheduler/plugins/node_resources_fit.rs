//! NodeResourcesFit: a node must have what a pod asks for; the emptier it is afterwards, the better
//! (`LeastAllocated`, by CPU and memory alike).

use std::sync::Arc;

use crate::framework::cluster_event::{ActionType, ClusterEvent, EventResource, Occurrence, QueueingHint};
use crate::framework::node_info::NodeInfo;
use crate::framework::plugin::{CycleState, MAX_NODE_SCORE, Plugin};
use crate::framework::pod_info::PodInfo;
use crate::framework::resource::Resource;
use crate::framework::status::{Code, Status};
use apis::views::node::Node;

/// The plugin.
pub struct NodeResourcesFit;

impl Plugin for NodeResourcesFit {
    fn name(&self) -> &'static str {
        "NodeResourcesFit"
    }

    fn events_to_register(&self) -> &'static [ClusterEvent] {
        &[
            (EventResource::AssignedPod, ActionType::Delete),
            (EventResource::AssignedPod, ActionType::UpdatePodScaleDown),
            (EventResource::Node, ActionType::Add),
            (EventResource::Node, ActionType::UpdateNodeAllocatable),
        ]
    }

    /// A node is worth a try when the pod would fit on it if it were empty.
    fn queueing_hint(&self, pod: &PodInfo, occurrence: &Occurrence) -> QueueingHint {
        let Some(new) = occurrence.new.as_ref().filter(|_| occurrence.event.0 == EventResource::Node) else {
            return QueueingHint::Queue;
        };
        let allocatable = Resource::of(&new.view::<Node>().status.allocatable);
        let nothing = Resource::default();
        QueueingHint::queue_if(insufficient(&pod.requests, &allocatable, &nothing, 0).is_empty())
    }

    fn filter(&self, _state: &CycleState, pod: &PodInfo, node: &NodeInfo) -> Status {
        let lacks = insufficient(&pod.requests, &node.allocatable, &node.requested, node.pods.len());
        if lacks.is_empty() {
            return Status::success();
        }
        let is_hopeless = lacks.iter().any(|lack| lack.is_unresolvable);
        let code = if is_hopeless { Code::UnschedulableAndUnresolvable } else { Code::Unschedulable };
        Status { code, reasons: lacks.into_iter().map(|lack| lack.reason).collect(), plugin: "" }
    }

    fn pre_score(&self, _: &mut CycleState, _: &PodInfo, _: &[Arc<NodeInfo>]) -> Status {
        Status::success()
    }

    fn score(&self, _state: &CycleState, pod: &PodInfo, node: &NodeInfo) -> i64 {
        let (asked, taken, all) = (&pod.non_zero_requests, &node.non_zero_requested, &node.allocatable);
        let resources =
            [(all.milli_cpu, taken.milli_cpu + asked.milli_cpu), (all.memory, taken.memory + asked.memory)];
        let known: Vec<i64> = resources
            .iter()
            .filter(|(all, _)| *all > 0)
            .map(|(all, taken)| least_allocated(*all, *taken))
            .collect();
        if known.is_empty() { 0 } else { known.iter().sum::<i64>() / known.len() as i64 }
    }
}

/// What a node lacks.
struct Insufficient {
    reason: String,
    /// It would lack it even if it were empty.
    is_unresolvable: bool,
}

fn insufficient(asked: &Resource, all: &Resource, taken: &Resource, pods: usize) -> Vec<Insufficient> {
    let mut lacks = Vec::new();
    if pods as i64 + 1 > all.allowed_pods {
        lacks.push(Insufficient { reason: "Too many pods".into(), is_unresolvable: false });
    }
    let scalar = |resource: &Resource, name: &str| resource.scalar.get(name).copied().unwrap_or(0);
    let amounts = [
        ("cpu", asked.milli_cpu, all.milli_cpu, taken.milli_cpu),
        ("memory", asked.memory, all.memory, taken.memory),
        ("ephemeral-storage", asked.ephemeral_storage, all.ephemeral_storage, taken.ephemeral_storage),
    ];
    let others = asked
        .scalar
        .keys()
        .map(|name| (name.as_str(), scalar(asked, name), scalar(all, name), scalar(taken, name)));
    for (name, asked, all, taken) in amounts.into_iter().chain(others) {
        if asked > 0 && asked > all - taken {
            lacks.push(Insufficient { reason: format!("Insufficient {name}"), is_unresolvable: asked > all });
        }
    }
    lacks
}

fn least_allocated(all: i64, taken: i64) -> i64 {
    if taken > all {
        0
    } else {
        (i128::from(all - taken) * i128::from(MAX_NODE_SCORE) / i128::from(all)) as i64
    }
}
