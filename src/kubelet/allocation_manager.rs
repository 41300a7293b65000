//! Whether pods of the node can have other resources while they run (`pkg/kubelet/allocation`,
//! `allocation_manager.go`): looked at when they ask, and again when others have gone.

use std::cmp::Reverse;
use std::sync::Arc;

use super::admission;
use super::allocation::{self, ResizeVerdict, differ};
use super::kubelet::Kubelet;
use super::memory_limits;
use super::pod_manager::pods::{Entry, PodManagerState};
use super::pod_workers::{PodWorker, WorkerState};
use apimachinery::object::Object;
use apis::core::pod::qos::QosClass;
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
        Some(self.allocate(state, uid, new))
    }

    fn allocate(&self, state: &PodManagerState, uid: &Arc<str>, new: &Object) -> ResizeVerdict {
        let wanted = &*new.view::<Pod>();
        let allocatable = &self.shared.node.allocatable;
        if let Some(why) = admission::over_capacity(wanted, allocatable) {
            return ResizeVerdict::Infeasible(why);
        }
        let is_other = |(other, entry): &(&Arc<str>, &Entry)| *other != uid && !entry.is_terminated;
        let others = state.workers.iter().filter(is_other);
        let others: Vec<Arc<Pod>> = others.map(|(_, entry)| entry.pod()).collect();
        match admission::short_of(wanted, others.iter().map(|other| &**other), allocatable) {
            Some(short) => ResizeVerdict::Deferred(short.message),
            None => self.actuate(state, uid, new),
        }
    }

    /// Whether its containers can be given it, as they run.
    fn actuate(&self, state: &PodManagerState, uid: &Arc<str>, new: &Object) -> ResizeVerdict {
        let Some(entry) = state.workers.get(uid) else { return ResizeVerdict::Fits };
        let Some(worker) = entry.resting() else { return ResizeVerdict::Fits };
        let pod = entry.pod();
        let restarted = allocation::restarted(&pod, new);
        let (runtime, now) = (&*self.shared.node.runtime, self.shared.context.clock.now());
        let why = memory_limits::too_low((worker, &pod), &new.view::<Pod>(), &restarted, runtime, now);
        why.map_or(ResizeVerdict::Fits, ResizeVerdict::Fails)
    }

    /// The pod has had a turn: it may have ended, or have begun to wait.
    pub(crate) fn note_resize(&self, state: &mut PodManagerState, uid: &Arc<str>, has_ended: bool) {
        let worker = state.workers.get(uid).and_then(Entry::resting);
        let is_deferred = worker.is_some_and(|worker| {
            worker.state() == WorkerState::Sync
                && worker.resize.as_ref().is_some_and(|resize| resize.is_deferred())
        });
        let is_failing = worker.is_some_and(PodWorker::is_resize_failing);
        let is_new = is_deferred && state.deferred.insert(uid.clone());
        if !is_deferred && worker.is_some() {
            state.deferred.remove(uid);
        }
        if is_new || has_ended || is_failing {
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
        let was_failing = worker.is_some_and(PodWorker::is_resize_failing);
        let verdict = self.allocate(state, uid, &object);
        // It has been told, and is looked at again.
        if was_failing && matches!(verdict, ResizeVerdict::Fails(_)) {
            return;
        }
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

fn rank(pod: &Pod) -> (Reverse<i64>, Reverse<QosClass>) {
    (Reverse(pod.spec.priority.unwrap_or(0)), Reverse(QosClass::of_pod(pod)))
}
