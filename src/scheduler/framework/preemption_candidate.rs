//! `PreemptionCandidate`: a node where room can be made for a pod, and what that costs
//! (`framework/preemption.Candidate`).

use std::cmp::Reverse;
use std::sync::Arc;

use super::pod_info::PodInfo;
use apimachinery::time::Time;

/// A node that would have room, and who would have to go.
#[derive(Clone, Debug)]
pub struct PreemptionCandidate {
    /// Which node.
    pub node: Arc<str>,
    /// The most important first.
    pub victims: Vec<Arc<PodInfo>>,
    /// How many of them break a disruption budget.
    pub violations: usize,
}

impl PreemptionCandidate {
    /// What is compared between nodes, the least first: how many budgets are broken, the highest priority
    /// among the victims, the sum of their priorities, how many they are, and how long the most important
    /// one of them has run.
    pub fn cost(&self) -> (usize, i64, i64, usize, Reverse<Time>) {
        let first = self.victims.first();
        let highest = first.map_or(i64::MIN, |victim| victim.priority);
        // Shifted so that every victim adds to the sum, whatever the sign of its priority.
        let shifted = self.victims.iter().map(|victim| victim.priority + i64::from(i32::MAX) + 1);
        let since = first.map_or(Time::MAX_UTC, |victim| importance(victim).1);
        (self.violations, highest, shifted.sum(), self.victims.len(), Reverse(since))
    }
}

/// `MoreImportantPod`: higher priority, then running longer; the smaller key is more important.
pub(crate) fn importance(pod: &PodInfo) -> (Reverse<i64>, Time) {
    (Reverse(pod.priority), pod.start_time.unwrap_or(Time::MAX_UTC))
}
