//! A DaemonSet in the hands of one sync: what it wants, and the pods that it has.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::eligibility::Placement;
use super::template::target_node;
use crate::controller::Reconcile;
use crate::controller_ref::CONTROLLER_INDEX;
use apimachinery::labels::Selector;
use apimachinery::object::Object;
use apimachinery::time::Time;
use apis::apps::daemon_set::DAEMON_SETS;
use apis::views::daemon_set::DaemonSet;
use apis::views::pod::Pod;
use client_go::lister::Lister;

/// The pods of a set by the node that they are on, or for.
pub(super) type PodsByNode = BTreeMap<String, Vec<Arc<Object>>>;

/// A set that is being synced.
pub(super) struct DaemonSetWork {
    /// As the cache has it.
    pub object: Arc<Object>,
    /// What was read of it.
    pub view: Arc<DaemonSet>,
    /// Which pods are its own.
    pub selector: Selector,
    /// Every node, and what the set wants there.
    pub placements: Vec<(Arc<Object>, Placement)>,
    /// When the sync began.
    pub now: Time,
}

impl DaemonSetWork {
    /// Tells people of something about the set.
    pub(super) fn event(&self, ctx: &Reconcile, event_type: &str, reason: &str, message: impl Into<String>) {
        ctx.event(&DAEMON_SETS, &self.object, event_type, reason, message);
    }

    /// The set's uid.
    pub(super) fn uid(&self) -> &str {
        &self.object.metadata.uid
    }

    /// Whether a node should run a pod.
    pub(super) fn should_run(&self, node: &str) -> bool {
        let placement = self.placements.iter().find(|(object, _)| object.metadata.name == node);
        placement.is_some_and(|(_, placement)| placement.should_run)
    }

    /// The nodes that should run a pod.
    pub(super) fn desired(&self) -> impl Iterator<Item = &str> {
        let desired = self.placements.iter().filter(|(_, placement)| placement.should_run);
        desired.map(|(node, _)| node.metadata.name.as_str())
    }

    /// The pods of a set, as the cache has them now.
    pub(super) fn pods(&self, pods: &Lister) -> Vec<Arc<Object>> {
        let mut pods = pods.by_index(CONTROLLER_INDEX, self.uid());
        pods.retain(|pod| self.selector.matches(&pod.metadata.labels));
        pods
    }

    /// The pods by node (`getNodesToDaemonPods`); pods that ended and are being deleted count no more.
    pub(super) fn pods_by_node(&self, pods: &Lister) -> PodsByNode {
        let mut by_node = PodsByNode::new();
        for pod in self.pods(pods) {
            let view = pod.view::<Pod>();
            if view.is_terminal() && pod.is_deleting() {
                continue;
            }
            if let Some(node) = target_node(&view) {
                by_node.entry(node).or_default().push(pod);
            }
        }
        by_node
    }
}

/// The order of pods on a node: bound before unbound, then old before young
/// (`podByCreationTimestampAndPhase`).
pub(super) fn seniority(pod: &Object) -> impl Ord + use<> {
    let is_bound = !pod.view::<Pod>().spec.node_name.is_empty();
    (!is_bound, pod.metadata.creation_timestamp, pod.metadata.name.clone())
}
