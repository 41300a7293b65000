//! NodePorts: two pods cannot have the same port of a node.

use crate::framework::cluster_event::{ActionType, ClusterEvent, EventResource, Occurrence, QueueingHint};
use crate::framework::node_info::NodeInfo;
use crate::framework::plugin::{CycleState, NodeSnapshot, Plugin, PreFilterResult};
use crate::framework::pod_info::{HostPort, PodInfo};
use crate::framework::status::Status;

const ANY_ADDRESS: &str = "0.0.0.0";

/// The plugin.
pub struct NodePorts;

impl Plugin for NodePorts {
    fn name(&self) -> &'static str {
        "NodePorts"
    }

    fn events_to_register(&self) -> &'static [ClusterEvent] {
        &[(EventResource::AssignedPod, ActionType::Delete), (EventResource::Node, ActionType::Add)]
    }

    fn queueing_hint(&self, pod: &PodInfo, occurrence: &Occurrence) -> QueueingHint {
        let Some(gone) = occurrence.old.as_ref().filter(|_| occurrence.event.1 == ActionType::Delete) else {
            return QueueingHint::Queue;
        };
        let freed = PodInfo::new(gone.clone()).host_ports;
        let wanted = |port: &HostPort| freed.iter().any(|freed| conflict(port, freed));
        QueueingHint::queue_if(pod.host_ports.iter().any(wanted))
    }

    fn pre_filter(&self, _: &mut CycleState, pod: &PodInfo, _: &NodeSnapshot) -> (PreFilterResult, Status) {
        (None, if pod.host_ports.is_empty() { Status::skip() } else { Status::success() })
    }

    fn filter(&self, _state: &CycleState, pod: &PodInfo, node: &NodeInfo) -> Status {
        let taken = |port: &HostPort| node.used_ports().any(|used| conflict(port, used));
        if pod.host_ports.iter().any(taken) {
            return Status::unschedulable("node(s) didn't have free ports for the requested pod ports");
        }
        Status::success()
    }
}

/// Ports that cannot stand together: one protocol and number, on one address or on every address.
fn conflict(a: &HostPort, b: &HostPort) -> bool {
    let addresses = a.0 == b.0 || a.0 == ANY_ADDRESS || b.0 == ANY_ADDRESS;
    addresses && (&a.1, a.2) == (&b.1, b.2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_on_every_address_conflicts_with_all() {
        let port = |address: &str, protocol: &str, number| (address.to_owned(), protocol.to_owned(), number);
        let cases = [
            (port("0.0.0.0", "TCP", 80), port("10.0.0.1", "TCP", 80), true),
            (port("10.0.0.1", "TCP", 80), port("10.0.0.1", "TCP", 80), true),
            (port("10.0.0.1", "TCP", 80), port("10.0.0.2", "TCP", 80), false),
            (port("0.0.0.0", "TCP", 80), port("0.0.0.0", "UDP", 80), false),
            (port("0.0.0.0", "TCP", 80), port("0.0.0.0", "TCP", 81), false),
        ];
        for (a, b, expected) in cases {
            assert_eq!(conflict(&a, &b), expected, "{a:?} {b:?}");
        }
    }
}
