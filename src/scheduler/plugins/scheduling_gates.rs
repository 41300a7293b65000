//! SchedulingGates: a pod with gates is not tried until somebody has removed them all.

use crate::framework::cluster_event::{ActionType, ClusterEvent, EventResource};
use crate::framework::plugin::Plugin;
use crate::framework::pod_info::PodInfo;
use crate::framework::status::Status;

/// The plugin.
pub struct SchedulingGates;

impl Plugin for SchedulingGates {
    fn name(&self) -> &'static str {
        "SchedulingGates"
    }

    fn pre_enqueue(&self, pod: &PodInfo) -> Status {
        let view = pod.pod();
        let gates: Vec<&str> = view.spec.scheduling_gates.iter().map(|gate| gate.name.as_str()).collect();
        if gates.is_empty() {
            return Status::success();
        }
        Status::unresolvable(format!("waiting for scheduling gates: [{}]", gates.join(" ")))
    }

    fn events_to_register(&self) -> &'static [ClusterEvent] {
        &[(EventResource::TargetPod, ActionType::UpdatePodSchedulingGatesEliminated)]
    }
}
