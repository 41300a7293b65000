//! NodeResourcesFit: a node must have what a pod asks for; the emptier it is afterwards, the better, unless
//! another strategy is chosen.

use std::sync::Arc;

use super::args::NodeResourcesFitArgs;
use super::extended_resources::ExtendedResources;
use super::resource_scores;
use crate::framework::cluster_event::{ActionType, ClusterEvent, EventResource, Occurrence, QueueingHint};
use crate::framework::node_info::NodeInfo;
use crate::framework::plugin::{CycleState, Plugin};
use crate::framework::pod_info::PodInfo;
use crate::framework::resource::Resource;
use crate::framework::status::{Code, Status};
use apis::views::node::Node;

/// The plugin.
#[derive(Default)]
pub struct NodeResourcesFit {
    /// What it is told.
    pub args: NodeResourcesFitArgs,
    /// The extended resources that are devices.
    pub devices: ExtendedResources,
}

impl Plugin for NodeResourcesFit {
    fn name(&self) -> &'static str {
        "NodeResourcesFit"
    }

    fn events_to_register(&self) -> &'static [ClusterEvent] {
        &[
            (EventResource::AssignedPod, ActionType::Delete),
            (EventResource::AssignedPod, ActionType::UpdatePodScaleDown),
            (EventResource::TargetPod, ActionType::UpdatePodScaleDown),
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
        QueueingHint::queue_if(self.insufficient(&pod.requests, &allocatable, &nothing, 0).is_empty())
    }

    fn filter(&self, _state: &CycleState, pod: &PodInfo, node: &NodeInfo) -> Status {
        let lacks = self.insufficient(&pod.requests, &node.allocatable, &node.requested, node.pods.len());
        if lacks.is_empty() {
            return Status::success();
        }
        let is_hopeless = lacks.iter().any(|lack| lack.is_unresolvable);
        let code = if is_hopeless { Code::UnschedulableAndUnresolvable } else { Code::Unschedulable };
        Status { code, reasons: lacks.into_iter().map(|lack| lack.reason.into()).collect(), plugin: "" }
    }

    fn pre_score(&self, _: &mut CycleState, _: &PodInfo, _: &[Arc<NodeInfo>]) -> Status {
        Status::success()
    }

    fn score(&self, _state: &CycleState, pod: &PodInfo, node: &NodeInfo) -> i64 {
        let strategy = &self.args.scoring_strategy;
        let amounts: Vec<(i64, i64, i64)> =
            strategy.resources.iter().map(|it| amounts_of(&it.name, it.weight, pod, node)).collect();
        resource_scores::score(strategy, &amounts)
    }
}

/// What would be taken of a resource, what there is, and its weight (`calculateResourceAllocatableRequest`).
/// Extended resources that the pod does not ask for do not count.
fn amounts_of(name: &str, weight: i64, pod: &PodInfo, node: &NodeInfo) -> (i64, i64, i64) {
    let counts_a_little = matches!(name, "cpu" | "memory");
    let (asked, taken) = if counts_a_little {
        (&pod.non_zero_requests, &node.non_zero_requested)
    } else {
        (&pod.requests, &node.requested)
    };
    let asked = asked.amount(name);
    let is_scalar = !counts_a_little && name != "ephemeral-storage";
    if is_scalar && asked == 0 {
        return (0, 0, weight);
    }
    (taken.amount(name) + asked, node.allocatable.amount(name), weight)
}

/// What a node lacks.
struct Insufficient {
    reason: String,
    /// It would lack it even if it were empty.
    is_unresolvable: bool,
}

impl NodeResourcesFit {
    fn insufficient(
        &self,
        asked: &Resource,
        all: &Resource,
        taken: &Resource,
        pods: usize,
    ) -> Vec<Insufficient> {
        let mut lacks = Vec::new();
        if pods as i64 + 1 > all.allowed_pods {
            lacks.push(Insufficient { reason: "Too many pods".into(), is_unresolvable: false });
        }
        let counted = asked.scalar.keys().filter(|name| self.is_counted(name, all));
        let names = ["cpu", "memory", "ephemeral-storage"].into_iter().chain(counted.map(String::as_str));
        for name in names {
            let (asked, all) = (asked.amount(name), all.amount(name));
            if asked > 0 && asked > all - taken.amount(name) {
                let reason = format!("Insufficient {name}");
                lacks.push(Insufficient { reason, is_unresolvable: asked > all });
            }
        }
        lacks
    }

    /// What is ignored is not, and what the node lacks but devices may be is for DynamicResources to say.
    fn is_counted(&self, name: &str, all: &Resource) -> bool {
        let group = name.split_once('/').map_or("", |(group, _)| group);
        let is_ignored =
            self.args.ignored_resources.contains(name) || self.args.ignored_resource_groups.contains(group);
        !is_ignored && (all.amount(name) > 0 || !self.devices.is_device(name))
    }
}
