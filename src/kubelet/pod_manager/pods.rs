//! The pods of a node and their workers (`pkg/kubelet/pod`, `pod_manager.go`). Workers are lent out to be
//! worked on, so that no lock is held while a script is played.
//!
//! Whoever has a worker has it alone; whoever else wants that one waits, and everybody who wants another
//! one does not.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use sync::{Mutex, MutexGuard};
use tokio::sync::{Notify, watch};

use super::resting::{RestingWorker, SeenPod};
use crate::admission::Rejection;
use crate::kuberuntime::context::Happening;
use crate::pod_startup::PodStartup;
use crate::pod_workers::{PodWorker, WorkerState};
use crate::status_manager::StatusManager;
use crate::volume_manager::fetch::Fetch;
use crate::volume_manager::sources::Sources;
use apimachinery::object::Object;
use apimachinery::time::Time;
use apis::views::pod::Pod;

/// The pods of one node.
#[derive(Default)]
pub(crate) struct PodManager {
    /// Held for moments only: never while a script is played.
    state: Mutex<PodManagerState>,
    /// Something is in `pending` or `ready`.
    pub(crate) changed: Notify,
}

/// What the sync loop works on.
#[derive(Default)]
pub(crate) struct PodManagerState {
    /// By uid. Bound: the pods that are bound to this node.
    pub(crate) workers: HashMap<Arc<str>, Entry>,
    /// The pods that want to be synced at a time: a uid is in here if and only if its entry has a timer.
    pub(crate) timers: BTreeSet<(Time, Arc<str>)>,
    /// What was heard of pods and not looked at yet, the newest of each. Bound: one for each pod of this
    /// node.
    pub(crate) pending: BTreeMap<Arc<str>, Option<Arc<Object>>>,
    /// The pods that want a turn now. Bound: one for each pod.
    pub(crate) ready: BTreeSet<Arc<str>>,
    pub(crate) statuses: StatusManager,
    /// The pods that wait until they are given other resources. Bound: one for each pod.
    pub(crate) deferred: BTreeSet<Arc<str>>,
    /// Pods for which it is looked what their node is like, the newest of each. Bound: one for each pod.
    pub(crate) looked_up: BTreeMap<Arc<str>, Arc<Object>>,
    /// Those of which that is known, and whether it keeps them away. Bound: one for each pod.
    pub(crate) placed: BTreeMap<Arc<str>, (Arc<Object>, Option<Rejection>)>,
    /// What is to be fetched for pods. Bound: one for each pod.
    pub(crate) fetches: Vec<Fetch>,
}

/// One pod of the node.
pub(crate) struct Entry {
    /// None while it is lent out.
    pub(crate) worker: Option<RestingWorker>,
    /// As the worker saw it when it was here.
    pub(crate) seen: SeenPod,
    pub(crate) is_terminated: bool,
    /// It is on its way out, whoever ends it.
    pub(crate) is_ending: bool,
    /// The worker is back.
    pub(crate) returned: Arc<Notify>,
    /// What came while it was away: the newest of the pod, its end, what was fetched, and that its time has
    /// come.
    pub(crate) news: Option<Arc<Object>>,
    pub(crate) is_gone: bool,
    pub(crate) sources: Option<Sources>,
    pub(crate) wants_turn: bool,
    pub(crate) timer: Option<Time>,
    /// Of the status that was written last.
    pub(crate) written: Option<u64>,
    /// The revision that the pod had with that.
    pub(crate) written_at: u64,
    /// Whether it has been seen to run.
    pub(crate) has_run: bool,
    /// What it has waited for, until it is seen to run.
    pub(crate) startup: Option<Box<PodStartup>>,
    /// Whether the last delete is on its way.
    pub(crate) is_deleted: bool,
    /// Who is told of each turn; nothing where nobody ever asked.
    turns: Option<watch::Sender<()>>,
}

impl PodManager {
    pub(crate) fn state(&self) -> MutexGuard<'_, PodManagerState> {
        self.state.lock()
    }

    /// All pods have a turn: what their probes know is to be looked at.
    pub(crate) fn wake_all(&self) {
        let mut state = self.state();
        let PodManagerState { workers, ready, .. } = &mut *state;
        ready.extend(workers.keys().cloned());
    }

    /// Told of each turn that a pod has had, until it is gone; nothing when it is not here.
    pub(crate) fn turns_of(&self, uid: &Arc<str>) -> Option<watch::Receiver<()>> {
        let mut state = self.state();
        let entry = state.workers.get_mut(uid)?;
        Some(entry.turns.get_or_insert_with(|| watch::Sender::new(())).subscribe())
    }

    /// A pod has a turn as soon as may be.
    pub(crate) fn wake(&self, uid: &Arc<str>) {
        self.state().ready.insert(uid.clone());
        self.changed.notify_one();
    }
}

impl Entry {
    /// A pod of which the worker is about to be made.
    pub(crate) fn new(object: Arc<Object>) -> Entry {
        let pod = object.view::<Pod>();
        Entry {
            worker: None,
            startup: PodStartup::of(&pod),
            has_run: !matches!(pod.status.phase.as_str(), "" | "Pending"),
            seen: SeenPod::of_object(object),
            is_terminated: false,
            is_ending: false,
            returned: Arc::new(Notify::new()),
            news: None,
            is_gone: false,
            sources: None,
            wants_turn: false,
            timer: None,
            written: None,
            written_at: 0,
            is_deleted: false,
            turns: None,
        }
    }
}

impl Entry {
    /// Its fields, as the worker saw them when it was here.
    pub(crate) fn pod(&self) -> Arc<Pod> {
        self.seen.fields()
    }

    /// The pod's namespace.
    pub(crate) fn namespace(&self) -> &str {
        &self.seen.object.metadata.namespace
    }

    /// The pod's name.
    pub(crate) fn name(&self) -> &str {
        &self.seen.object.metadata.name
    }

    /// Both, for who lets go of the lock before the pod is asked for.
    pub(crate) fn namespace_and_name(&self) -> (String, String) {
        (self.namespace().to_owned(), self.name().to_owned())
    }

    /// The worker, unless it is lent out, without the fields of its pod.
    pub(crate) fn resting(&self) -> Option<&PodWorker> {
        self.worker.as_ref().map(RestingWorker::without_fields)
    }

    /// Looks at the worker, unless it is lent out.
    pub(crate) fn look<T>(&mut self, look: impl FnOnce(&PodWorker) -> T) -> Option<T> {
        let Entry { worker, seen, .. } = self;
        worker.as_mut().map(|worker| worker.look(seen, look))
    }

    /// Works on the worker where it is, unless it is lent out.
    pub(crate) fn work<T>(&mut self, work: impl FnOnce(&mut PodWorker) -> T) -> Option<T> {
        let Entry { worker, seen, .. } = self;
        worker.as_mut().map(|worker| worker.work(seen, work))
    }

    /// Lends the worker out.
    pub(crate) fn take_worker(&mut self) -> Option<Box<PodWorker>> {
        self.worker.take().map(|worker| worker.wake(&self.seen))
    }

    /// The worker comes, or is back.
    pub(crate) fn put_worker(&mut self, worker: Box<PodWorker>) {
        let (seen, worker) = RestingWorker::rest(worker);
        (self.seen, self.worker) = (seen, Some(worker));
    }

    /// What happened in a turn, as long as the pod has not been seen to run.
    pub(crate) fn note_startup(&mut self, happenings: &[Happening], now: Time) {
        if let Some(startup) = &mut self.startup {
            happenings.iter().for_each(|happening| startup.note(happening, now));
        }
    }

    /// Tells whoever waits for that of a turn.
    pub(crate) fn tell_of_turn(&self) {
        if let Some(turns) = &self.turns {
            turns.send_replace(());
        }
    }
}

/// Sets when a pod wants to be synced.
pub(crate) fn set_timer(
    entry: &mut Entry,
    timers: &mut BTreeSet<(Time, Arc<str>)>,
    uid: &Arc<str>,
    due: Option<Time>,
) {
    if entry.timer != due {
        if let Some(timer) = entry.timer {
            timers.remove(&(timer, uid.clone()));
        }
        entry.timer = due;
        timers.extend(due.map(|due| (due, uid.clone())));
    }
}

/// A worker that goes back when this is dropped; also when whoever has it panics.
pub(crate) struct Loan {
    manager: Arc<PodManager>,
    pub(crate) uid: Arc<str>,
    /// None before it is made.
    pub(crate) worker: Option<Box<PodWorker>>,
}

impl Loan {
    pub(crate) fn new(manager: Arc<PodManager>, uid: Arc<str>, worker: Option<Box<PodWorker>>) -> Loan {
        Loan { manager, uid, worker }
    }
}

impl Deref for Loan {
    type Target = PodWorker;

    fn deref(&self) -> &PodWorker {
        self.worker.as_deref().expect("it is made before it is looked at")
    }
}

impl DerefMut for Loan {
    fn deref_mut(&mut self) -> &mut PodWorker {
        self.worker.as_deref_mut().expect("it is made before it is looked at")
    }
}

impl Drop for Loan {
    fn drop(&mut self) {
        let worker = self.worker.take();
        let is_wanted = self.manager.state().give_back(&self.uid, worker);
        if is_wanted {
            self.manager.changed.notify_one();
        }
    }
}

impl PodManagerState {
    /// A status was written, and the pod has this revision since. What somebody else has written over it
    /// meanwhile was not looked at: it is now.
    pub(crate) fn finish_write(&mut self, uid: &Arc<str>, revision: u64) {
        let is_written = self.statuses.has_written(uid);
        let Some(entry) = self.workers.get_mut(uid) else { return };
        entry.written_at = entry.written_at.max(revision);
        let written_at = entry.written_at;
        if is_written && entry.look(|worker| worker.needs_reconcile(written_at)) == Some(true) {
            self.ready.insert(uid.clone());
        }
    }

    /// One that could not be made leaves no entry behind. Whether it is wanted again.
    fn give_back(&mut self, uid: &Arc<str>, worker: Option<Box<PodWorker>>) -> bool {
        let Some(entry) = self.workers.get_mut(uid) else { return false };
        let Some(worker) = worker else {
            entry.returned.notify_one();
            self.workers.remove(uid);
            return false;
        };
        entry.is_terminated = worker.state() == WorkerState::Terminated;
        entry.is_ending |= worker.state() != WorkerState::Sync || worker.object.is_deleting();
        entry.put_worker(worker);
        entry.returned.notify_one();
        if entry.is_gone {
            self.pending.insert(uid.clone(), None);
        } else if let Some(news) = entry.news.take() {
            self.pending.entry(uid.clone()).or_insert(Some(news));
        }
        if entry.wants_turn {
            self.ready.insert(uid.clone());
        }
        self.pending.contains_key(uid) || self.ready.contains(uid)
    }

    fn entry_of(&mut self, pod: Sought<'_>) -> Option<(Arc<str>, &mut Entry)> {
        let uid = match pod {
            Sought::Uid(uid) => uid.clone(),
            Sought::Named(namespace, name) => {
                let is_it = |entry: &Entry| entry.namespace() == namespace && entry.name() == name;
                self.workers.iter().find(|(_, entry)| is_it(entry))?.0.clone()
            }
        };
        let entry = self.workers.get_mut(&uid)?;
        Some((uid, entry))
    }
}

/// Which pod is meant.
#[derive(Clone, Copy)]
enum Sought<'a> {
    /// Namespace and name.
    Named(&'a str, &'a str),
    Uid(&'a Arc<str>),
}

/// What became of an attempt to get hold of a worker.
enum Attempt<T> {
    Done(T),
    /// Somebody has it.
    Wait(Arc<tokio::sync::Notify>),
    /// The pod is not here.
    None,
}

impl PodManager {
    /// The worker of a pod, to work on it, as soon as nobody else does; none when the pod is not here.
    pub(crate) async fn borrow(self: &Arc<Self>, namespace: &str, name: &str) -> Option<Loan> {
        self.borrow_it(Sought::Named(namespace, name)).await
    }

    /// [`PodManager::borrow`] the worker of the pod of a uid.
    pub(crate) async fn borrow_by_uid(self: &Arc<Self>, uid: &Arc<str>) -> Option<Loan> {
        self.borrow_it(Sought::Uid(uid)).await
    }

    async fn borrow_it(self: &Arc<Self>, pod: Sought<'_>) -> Option<Loan> {
        let take = |uid: &Arc<str>, entry: &mut Entry| {
            entry.take_worker().map(|worker| Loan::new(self.clone(), uid.clone(), Some(worker)))
        };
        self.when_back(pod, take).await
    }

    /// Looks at the worker of a pod as soon as nobody works on it; none when the pod is not here.
    pub(crate) async fn look<T>(
        &self,
        namespace: &str,
        name: &str,
        look: impl Fn(&PodWorker) -> T,
    ) -> Option<T> {
        self.look_at(Sought::Named(namespace, name), look).await
    }

    /// [`PodManager::look`] at the pod of a uid, which is found at once among however many.
    pub(crate) async fn look_by_uid<T>(&self, uid: &Arc<str>, look: impl Fn(&PodWorker) -> T) -> Option<T> {
        self.look_at(Sought::Uid(uid), look).await
    }

    async fn look_at<T>(&self, pod: Sought<'_>, look: impl Fn(&PodWorker) -> T) -> Option<T> {
        self.when_back(pod, |_, entry| {
            let seen = entry.look(&look)?;
            // The next one who waits may look, too.
            entry.returned.notify_one();
            Some(seen)
        })
        .await
    }

    async fn when_back<T>(
        &self,
        pod: Sought<'_>,
        attempt: impl Fn(&Arc<str>, &mut Entry) -> Option<T>,
    ) -> Option<T> {
        let mut waited: Option<Arc<tokio::sync::Notify>> = None;
        loop {
            let outcome = match self.state().entry_of(pod) {
                None => Attempt::None,
                Some((uid, entry)) => match attempt(&uid, entry) {
                    Some(done) => Attempt::Done(done),
                    None => Attempt::Wait(entry.returned.clone()),
                },
            };
            match outcome {
                Attempt::Done(done) => return Some(done),
                Attempt::Wait(returned) => {
                    returned.notified().await;
                    waited = Some(returned);
                }
                Attempt::None => {
                    // All others who wait for it are to hear of it as well.
                    waited.iter().for_each(|returned| returned.notify_one());
                    return None;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::status_manager::GONE;
    use crate::stories::{node, object};

    /// A pod at a revision, ready or not.
    fn pod(revision: u64, ready: &str) -> Arc<Object> {
        let conditions = json!([{"type": "Ready", "status": ready}]);
        object(&json!({"metadata": {"name": "p", "uid": "u", "resourceVersion": revision.to_string()},
            "spec": {"containers": []}, "status": {"phase": "Running", "conditions": conditions}}))
    }

    /// Whether a pod has a turn when the write of its status has ended, which was that revision, and the next
    /// is under way or not.
    fn has_turn(seen: Arc<Object>, has_more: bool, revision: u64) -> bool {
        let mut state = PodManagerState::default();
        let uid: Arc<str> = "u".into();
        let mut worker = PodWorker::new(pod(5, "True"), &node(), Time::UNIX_EPOCH);
        worker.update(seen.clone());
        let mut entry = Entry::new(seen);
        entry.put_worker(Box::new(worker));
        state.workers.insert(uid.clone(), entry);
        if has_more {
            state.statuses.begin(&uid);
        }
        state.finish_write(&uid, revision);
        state.ready.contains(&uid)
    }

    #[test]
    fn what_came_while_a_status_was_on_its_way_is_looked_at_when_it_is_written() {
        assert!(has_turn(pod(8, "False"), false, 7));
        assert!(!has_turn(pod(8, "True"), false, 7), "nothing to put back");
        assert!(!has_turn(pod(6, "False"), false, 7), "it was before the write");
        assert!(!has_turn(pod(8, "False"), true, 7), "the next write puts it back");
        assert!(!has_turn(pod(8, "False"), false, GONE), "the watch has not told yet that it is gone");
    }
}
