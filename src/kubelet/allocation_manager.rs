//! Whether pods of the node can have other resources while they run (`pkg/kubelet/allocation`,
//! `allocation_manager.go`): looked at when they ask, and again when others have gone.

use std::cmp::Reverse;
use std::sync::Arc;

use super::admission;
use super::allocation::{ResizeVerdict, differ};
use super::kubelet::Kubelet;
use super::pod_importance::quality;
use super::pod_manager::pods::{Entry, PodManagerState};
use super::pod_workers::WorkerState;
use apimachinery::object::Object;
use apis::views::pod::Pod;

impl Kubelet {
    /// What becomes of a change of a pod that runs here; nothing when it wants no other resources than
    /// before.
    pub(crate) fn verdict(
        &self,
        state: &PodManagerState,
        uid: &Arc<str>,
        new: &Object,
    ) -> Option<ResizeVerdict> {
        let entry = state.workers.get(uid)?;
        let worker = entry.resting()?;
        if worker.state() != WorkerState::Sync || worker.object.metadata.generation == new.metadata.generation
        {
            return None;
        }
        let wanted = new.view::<Pod>();
        self.shared.counted.resizes.requested(&worker.object.view::<Pod>(), &wanted);
        if !differ(&entry.pod(), &wanted) {
            return worker.resize.as_ref().map(|_| ResizeVerdict::Same);
        }
        Some(self.allocate(state, uid, &wanted))
    }

    fn allocate(&self, state: &PodManagerState, uid: &Arc<str>, wanted: &Pod) -> ResizeVerdict {
        let allocatable = &self.shared.node.allocatable;
        if let Some(why) = admission::over_capacity(wanted, allocatable) {
            return ResizeVerdict::Infeasible(why);
        }
        let is_other = |(other, entry): &(&Arc<str>, &Entry)| *other != uid && !entry.is_terminated;
        let others = state.workers.iter().filter(is_other);
        let others: Vec<Arc<Pod>> = others.map(|(_, entry)| entry.pod()).collect();
        match admission::short_of(wanted, others.iter().map(|other| &**other), allocatable) {
            Some(short) => ResizeVerdict::Deferred(short.message),
            None => ResizeVerdict::Fits,
        }
    }

    /// The pod has had a turn: it may have ended, or have begun to wait.
    pub(crate) fn note_resize(&self, state: &mut PodManagerState, uid: &Arc<str>, has_ended: bool) {
        let worker = state.workers.get(uid).and_then(Entry::resting);
        let is_deferred = worker.is_some_and(|worker| {
            worker.state() == WorkerState::Sync
                && worker.resize.as_ref().is_some_and(|resize| resize.is_deferred())
        });
        let is_new = is_deferred && state.deferred.insert(uid.clone());
        if !is_deferred && worker.is_some() {
            state.deferred.remove(uid);
        }
        if is_new || has_ended {
            self.retry_resizes(state);
        }
    }

    /// The most important first, of those the ones with guarantees (`sortPendingResizes`).
    pub(crate) fn retry_resizes(&self, state: &mut PodManagerState) {
        if state.deferred.is_empty() {
            return;
        }
        let mut waiting: Vec<Arc<str>> = state.deferred.iter().cloned().collect();
        waiting.sort_by_cached_key(|uid| state.workers.get(uid).map(|entry| rank(&entry.pod())));
        for uid in waiting {
            self.retry_resize(state, &uid);
        }
    }

    fn retry_resize(&self, state: &mut PodManagerState, uid: &Arc<str>) {
        let worker = state.workers.get(uid).and_then(Entry::resting);
        // One that is lent out is looked at after its turn.
        let Some(object) = worker.map(|worker| worker.object.clone()) else { return };
        let verdict = self.allocate(state, uid, &object.view::<Pod>());
        let is_given = verdict == ResizeVerdict::Fits;
        let Some(entry) = state.workers.get_mut(uid) else { return };
        entry.work(|worker| {
            worker.resize(&object, verdict);
            worker.update(object);
        });
        if is_given {
            state.deferred.remove(uid);
        }
        state.ready.insert(uid.clone());
        self.pods.changed.notify_one();
    }
}

fn rank(pod: &Pod) -> (Reverse<i64>, Reverse<u8>) {
    (Reverse(pod.spec.priority.unwrap_or(0)), Reverse(quality(pod)))
}
