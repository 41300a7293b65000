//! The pods of a StatefulSet by their place: those that are wanted, and those whose ordinal is not.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::identity::ordinal;
use super::work::StatefulSetWork;
use crate::history::REVISION_HASH;
use crate::pod_state::is_available;
use apimachinery::object::Object;
use apimachinery::time::Time;
use apis::views::pod::Pod;

/// The pods of one set. Places without a pod are not kept: there may be very many.
pub(super) struct Replicas {
    /// By ordinal.
    pub present: BTreeMap<i64, Arc<Object>>,
    /// Those that must go, the highest ordinal first.
    pub condemned: Vec<Arc<Object>>,
    /// How many places have no available pod.
    pub unavailable: i64,
    /// The condemned pod that may go although it is not available: the lowest such, if all that are wanted
    /// are available.
    pub first_unavailable: Option<Arc<Object>>,
}

impl Replicas {
    /// Of a set.
    pub(super) fn of(work: &StatefulSetWork, pods: &[Arc<Object>]) -> Replicas {
        let (wanted, mut condemned): (Vec<_>, Vec<_>) =
            pods.iter().cloned().partition(|pod| work.view.wants(ordinal(pod)));
        condemned.sort_by_key(|pod| Reverse(ordinal(pod)));
        let present: BTreeMap<i64, Arc<Object>> =
            wanted.into_iter().map(|pod| (ordinal(&pod), pod)).collect();
        let min_ready_seconds = work.view.spec.min_ready_seconds;
        let unavailable = |pod: &&Arc<Object>| is_unavailable(pod, min_ready_seconds, work.now);
        let available = present.values().filter(|pod| !unavailable(pod)).count();
        let unavailable_places = work.view.replicas() - i64::try_from(available).unwrap_or(i64::MAX);
        let lowest = condemned.iter().rev().find(unavailable).filter(|_| unavailable_places == 0).cloned();
        Replicas { present, condemned, unavailable: unavailable_places, first_unavailable: lowest }
    }

    /// The first ordinals that have no pod, at most `limit` of them.
    pub(super) fn missing(&self, work: &StatefulSetWork, limit: usize) -> Vec<i64> {
        let all = work.view.start()..work.view.start() + work.view.replicas();
        all.filter(|ordinal| !self.present.contains_key(ordinal)).take(limit).collect()
    }
}

/// `isRunningAndReady`
pub(super) fn is_running_and_ready(pod: &Object) -> bool {
    let view = pod.view::<Pod>();
    view.status.phase == "Running" && view.is_ready()
}

/// `isUnavailable`
pub(super) fn is_unavailable(pod: &Object, min_ready_seconds: i64, now: Time) -> bool {
    pod.is_deleting() || !is_available(pod, min_ready_seconds, now)
}

/// The name of the revision that a pod is of (`getPodRevision`).
pub(super) fn revision_of(pod: &Object) -> &str {
    pod.metadata.labels.get(REVISION_HASH).map_or("", String::as_str)
}
