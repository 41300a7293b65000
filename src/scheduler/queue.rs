//! The scheduling queue (`backend/queue.PriorityQueue`): pods that wait to be placed.
//!
//! A pod is in one of three places: *active*, to be tried next, in the order of QueueSort; *backing off*,
//! after a failed try, for one to ten seconds; or *unschedulable*, until something happens that a plugin
//! which rejected it cares about, and at the latest after five minutes. While it is being tried it is in
//! none: what happens meanwhile is noted, and looked at when it comes back.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use sync::{Mutex, MutexGuard};
use tokio::sync::Notify;

use super::backoff::PodBackoff;
use super::framework::cluster_event::{EventResource, Occurrence, QueueingHint};
use super::framework::plugin::QueueKey;
use super::framework::pod_info::{Because, PodInfo, QueuedPodInfo};
use super::framework::profiles::Profiles;
use apimachinery::time::Time;
use clock::Clock;

/// After so long an unschedulable pod is tried again whatever happened, unless
/// `--pod-max-in-unschedulable-pods-duration` says another time.
const MAX_UNSCHEDULABLE: Duration = Duration::from_secs(300);
/// What happens while a pod is tried is remembered up to here; past it the pod is simply tried again.
const MAX_NOTED: usize = 1000;

/// The queue. Bound: the pods of the cluster that are not placed.
pub struct SchedulingQueue {
    profiles: Arc<Profiles>,
    clock: Clock,
    max_unschedulable: Duration,
    backoff: PodBackoff,
    inner: Mutex<QueueInner>,
    /// Something can be popped.
    changed: Notify,
}

#[derive(Default)]
struct QueueInner {
    /// Every waiting pod, by uid.
    pods: HashMap<Arc<str>, WaitingPod>,
    /// A uid is in here if and only if its pod is active.
    active: BTreeSet<(QueueKey, Arc<str>)>,
    /// A uid is in here if and only if its pod is backing off; by when that ends.
    backoff: BTreeSet<(Time, Arc<str>)>,
    /// A uid is in here if and only if its pod is unschedulable: events look at no others.
    unschedulable: BTreeSet<Arc<str>>,
    /// Pods that are being tried, with what happened since.
    in_flight: HashMap<Arc<str>, Vec<Arc<Occurrence>>>,
    /// Pods for which room is being made, by uid, with the node.
    nominated: BTreeMap<Arc<str>, (Arc<str>, Arc<PodInfo>)>,
}

struct WaitingPod {
    info: QueuedPodInfo,
    place: QueuePlace,
}

#[derive(Clone, Copy, PartialEq)]
enum QueuePlace {
    Active(QueueKey),
    Backoff(Time),
    Unschedulable,
}

impl SchedulingQueue {
    /// An empty queue.
    pub fn new(profiles: Arc<Profiles>, clock: Clock) -> SchedulingQueue {
        SchedulingQueue {
            profiles,
            clock,
            max_unschedulable: MAX_UNSCHEDULABLE,
            backoff: PodBackoff::default(),
            inner: Mutex::default(),
            changed: Notify::new(),
        }
    }

    /// A queue whose pods back off so long.
    pub fn backing_off(self, backoff: PodBackoff) -> SchedulingQueue {
        SchedulingQueue { backoff, ..self }
    }

    /// A queue in which unschedulable pods are tried again after so long, whatever happened.
    pub fn trying_again_after(self, max_unschedulable: Duration) -> SchedulingQueue {
        SchedulingQueue { max_unschedulable, ..self }
    }

    /// A pod that is not placed has come, or has changed in what scheduling looks at.
    pub fn add(&self, pod: Arc<PodInfo>) {
        let mut inner = self.lock();
        if inner.in_flight.contains_key(pod.uid()) {
            return;
        }
        inner.take(pod.uid());
        inner.read_nomination(&pod, "");
        self.activate(&mut inner, QueuedPodInfo::new(pod, self.clock.now()));
    }

    /// A waiting pod has changed; `occurrence` says in what, when that may help it.
    pub fn update(&self, pod: Arc<PodInfo>, occurrence: Option<Occurrence>) {
        let mut inner = self.lock();
        if let Some(noted) = inner.in_flight.get_mut(pod.uid()) {
            noted.extend(occurrence.map(Arc::new));
            return;
        }
        let Some(mut waiting) = inner.take(pod.uid()) else {
            inner.read_nomination(&pod, "");
            return self.activate(&mut inner, QueuedPodInfo::new(pod, self.clock.now()));
        };
        inner.read_nomination(&pod, &waiting.info.pod.pod.status.nominated_node_name);
        waiting.info.pod = pod;
        match waiting.place {
            QueuePlace::Active(_) => self.activate(&mut inner, waiting.info),
            QueuePlace::Unschedulable
                if occurrence.is_some_and(|seen| self.is_worth_it(&waiting.info, &seen)) =>
            {
                self.move_on(&mut inner, QueuedPodInfo { because: Because::Itself, ..waiting.info });
            }
            place => inner.put(waiting.info, place),
        }
    }

    /// The pod is gone, or placed by somebody.
    pub fn remove(&self, uid: &str) {
        let mut inner = self.lock();
        inner.take(uid);
        inner.nominated.remove(uid);
    }

    /// The next pod to try, as soon as there is one. [`SchedulingQueue::done`] or one of the others that put
    /// it back must follow.
    pub async fn pop(&self) -> QueuedPodInfo {
        loop {
            let wait = {
                let mut inner = self.lock();
                if let Some(info) = self.try_pop(&mut inner) {
                    return info;
                }
                inner
                    .backoff
                    .first()
                    .map(|(until, _)| (*until - self.clock.now()).to_std().unwrap_or_default())
            };
            tokio::select! {
                biased;
                () = self.changed.notified() => {}
                () = self.clock.sleep(wait.unwrap_or(self.max_unschedulable)) => {}
            }
        }
    }

    /// The pod needs no more trying, or its fate is no longer the queue's: what happened meanwhile is
    /// forgotten.
    pub fn done(&self, uid: &str) {
        self.lock().in_flight.remove(uid);
    }

    /// Puts back a pod whose try was cut short by a panic, if it is in none of the places.
    pub fn recover(&self, pod: Arc<PodInfo>) {
        self.done(pod.uid());
        let mut inner = self.lock();
        if !inner.pods.contains_key(pod.uid()) {
            self.activate(&mut inner, QueuedPodInfo::new(pod, self.clock.now()));
        }
    }

    /// `AddUnschedulableIfNotPresent`: a try has failed. Without plugins that rejected it something went
    /// wrong, and it is tried again after a back-off; else it waits for what helps, unless that has happened
    /// meanwhile.
    pub fn add_unschedulable(&self, mut info: QueuedPodInfo) {
        let mut inner = self.lock();
        let noted = inner.in_flight.remove(info.pod.uid()).unwrap_or_default();
        if inner.pods.contains_key(info.pod.uid()) {
            return;
        }
        info.timestamp = self.clock.now();
        if info.unschedulable_plugins.is_empty() {
            (info.consecutive_errors, info.unschedulable_count) = (info.consecutive_errors + 1, 0);
            info.because = Because::Time;
            let until = info.timestamp + self.backoff.after(info.consecutive_errors);
            inner.put(info, QueuePlace::Backoff(until));
            self.changed.notify_one();
            return;
        }
        (info.consecutive_errors, info.unschedulable_count) = (0, info.unschedulable_count + 1);
        let helpful = noted.iter().find(|seen| self.is_worth_it(&info, seen));
        match helpful.or(noted.last().filter(|_| noted.len() >= MAX_NOTED)) {
            Some(seen) => self.move_on(&mut inner, QueuedPodInfo { because: because_of(seen), ..info }),
            None => inner.put(info, QueuePlace::Unschedulable),
        }
    }

    /// `MoveAllToActiveOrBackoffQueue`: something happened. Pods whose rejecting plugins think it worth a
    /// try move on.
    pub fn move_all(&self, occurrence: Occurrence) {
        let occurrence = Arc::new(occurrence);
        let mut inner = self.lock();
        for noted in inner.in_flight.values_mut().filter(|noted| noted.len() < MAX_NOTED) {
            noted.push(occurrence.clone());
        }
        for info in inner.unschedulable(|info| self.is_worth_it(info, &occurrence)) {
            inner.take(info.pod.uid());
            self.move_on(&mut inner, QueuedPodInfo { because: because_of(&occurrence), ..info });
        }
    }

    /// `flushUnschedulablePodsLeftover`: pods that have waited too long are tried again.
    pub fn flush_leftover(&self) {
        let (mut inner, now) = (self.lock(), self.clock.now());
        let is_stale = |info: &QueuedPodInfo| {
            let age = (now - info.timestamp).to_std();
            info.gated_by.is_none() && age.is_ok_and(|age| age > self.max_unschedulable)
        };
        for info in inner.unschedulable(is_stale) {
            inner.take(info.pod.uid());
            self.move_on(&mut inner, QueuedPodInfo { because: Because::Time, ..info });
        }
    }

    /// Room is being made for the pod on the node; none: no longer.
    pub fn nominate(&self, pod: &Arc<PodInfo>, node: Option<Arc<str>>) {
        let uid: Arc<str> = pod.uid().into();
        let mut inner = self.lock();
        match node {
            Some(node) => drop(inner.nominated.insert(uid, (node, pod.clone()))),
            None => drop(inner.nominated.remove(&uid)),
        }
    }

    /// The pods, other than `pod` and not less important, for which room is being made, with their nodes.
    pub fn nominated_before(&self, pod: &PodInfo) -> Vec<(Arc<str>, Arc<PodInfo>)> {
        let inner = self.lock();
        let goes_first = |(_, other): &&(Arc<str>, Arc<PodInfo>)| {
            other.priority >= pod.priority && other.uid() != pod.uid()
        };
        inner.nominated.values().filter(goes_first).cloned().collect()
    }

    /// From the active pods or, when there is none, from those that back off without an error: waiting out a
    /// back-off while there is nothing else to do helps nobody (`SchedulerPopFromBackoffQ`).
    fn try_pop(&self, inner: &mut QueueInner) -> Option<QueuedPodInfo> {
        let now = self.clock.now();
        while let Some((_, uid)) = inner.backoff.first().filter(|(until, _)| *until <= now).cloned() {
            if let Some(waiting) = inner.take(&uid) {
                self.activate(inner, waiting.info);
            }
        }
        let uid = match inner.active.first() {
            Some((_, uid)) => uid.clone(),
            None => {
                let is_patient = |uid: &&Arc<str>| inner.pods[*uid].info.consecutive_errors == 0;
                inner.backoff.iter().map(|(_, uid)| uid).find(is_patient)?.clone()
            }
        };
        let mut info = inner.take(&uid)?.info;
        info.attempts += 1;
        info.unschedulable_plugins.clear();
        inner.in_flight.insert(uid, Vec::new());
        Some(info)
    }

    fn activate(&self, inner: &mut QueueInner, mut info: QueuedPodInfo) {
        info.gated_by = self.profiles.of(&info.pod).run_pre_enqueue(&info.pod);
        if let Some(gate) = info.gated_by {
            info.unschedulable_plugins.insert(gate);
            return inner.put(info, QueuePlace::Unschedulable);
        }
        let key = self.profiles.first().queue_key(&info);
        inner.put(info, QueuePlace::Active(key));
        self.changed.notify_one();
    }

    /// To the active pods, or to those that back off while its back-off lasts.
    fn move_on(&self, inner: &mut QueueInner, info: QueuedPodInfo) {
        let until = info.timestamp + self.backoff.after(info.unschedulable_count);
        if info.gated_by.is_some() || until <= self.clock.now() {
            return self.activate(inner, info);
        }
        inner.put(info, QueuePlace::Backoff(until));
        self.changed.notify_one();
    }

    fn is_worth_it(&self, info: &QueuedPodInfo, occurrence: &Occurrence) -> bool {
        let profile = self.profiles.of(&info.pod);
        profile.hint(&info.pod, &info.unschedulable_plugins, occurrence) == QueueingHint::Queue
    }

    fn lock(&self) -> MutexGuard<'_, QueueInner> {
        self.inner.lock()
    }
}

impl QueueInner {
    fn unschedulable(&self, is_wanted: impl Fn(&QueuedPodInfo) -> bool) -> Vec<QueuedPodInfo> {
        let infos = self.unschedulable.iter().map(|uid| &self.pods[uid].info);
        infos.filter(|info| is_wanted(info)).cloned().collect()
    }

    /// A pod may have been nominated by somebody else, or before this scheduler began (`updatePodNominator`).
    fn read_nomination(&mut self, pod: &Arc<PodInfo>, before: &str) {
        let node = pod.pod.status.nominated_node_name.as_str();
        if node == before {
            return;
        }
        if node.is_empty() {
            self.nominated.remove(pod.uid());
        } else {
            self.nominated.insert(pod.uid().into(), (node.into(), pod.clone()));
        }
    }

    fn put(&mut self, info: QueuedPodInfo, place: QueuePlace) {
        let uid: Arc<str> = info.pod.uid().into();
        match place {
            QueuePlace::Active(key) => drop(self.active.insert((key, uid.clone()))),
            QueuePlace::Backoff(until) => drop(self.backoff.insert((until, uid.clone()))),
            QueuePlace::Unschedulable => drop(self.unschedulable.insert(uid.clone())),
        }
        self.pods.insert(uid, WaitingPod { info, place });
    }

    fn take(&mut self, uid: &str) -> Option<WaitingPod> {
        let (uid, waiting) = self.pods.remove_entry(uid)?;
        match waiting.place {
            QueuePlace::Active(key) => drop(self.active.remove(&(key, uid))),
            QueuePlace::Backoff(until) => drop(self.backoff.remove(&(until, uid))),
            QueuePlace::Unschedulable => drop(self.unschedulable.remove(&uid)),
        }
        Some(waiting)
    }
}

/// What happened to the waiting pod itself is its own affair.
fn because_of(occurrence: &Occurrence) -> Because {
    let Occurrence { event: (resource, _), old, new } = occurrence;
    match new.as_ref().or(old.as_ref()).filter(|_| *resource != EventResource::TargetPod) {
        Some(object) => Because::Other(object.clone()),
        None => Because::Itself,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{node, pod};
    use crate::framework::cluster_event::ActionType;
    use crate::framework::runtime::Framework;
    use crate::plugins::default_plugins;
    use client_go::indexer::Indexer;
    use client_go::lister::Lister;
    use serde_json::json;

    fn queue() -> (SchedulingQueue, Clock) {
        let clock = Clock::stepped(Time::UNIX_EPOCH);
        let plugins = default_plugins(&|_| Lister::new(Arc::new(Indexer::new())), &clock);
        let profiles = Profiles::new(Framework::new("default-scheduler", plugins), Vec::new());
        (SchedulingQueue::new(Arc::new(profiles), clock.clone()), clock)
    }

    #[test]
    fn the_option_says_after_how_long_a_pod_is_tried_again() {
        let (queue, clock) = queue();
        let queue = queue.trying_again_after(Duration::from_secs(30));
        queue.add(pod("impatient", json!({})));
        reject(&queue, pop(&queue).unwrap(), "NodeAffinity");
        clock.advance(Duration::from_secs(29));
        queue.flush_leftover();
        assert!(pop(&queue).is_none());
        clock.advance(Duration::from_secs(2));
        queue.flush_leftover();
        assert!(pop(&queue).is_some());
    }

    fn pop(queue: &SchedulingQueue) -> Option<QueuedPodInfo> {
        queue.try_pop(&mut queue.lock())
    }

    fn node_added(cpu: &str) -> Occurrence {
        let new = node("new", json!({"status": {"allocatable": {"cpu": cpu}}}));
        Occurrence { event: (EventResource::Node, ActionType::Add), old: None, new: Some(new) }
    }

    fn reject(queue: &SchedulingQueue, mut info: QueuedPodInfo, plugin: &'static str) {
        info.unschedulable_plugins = [plugin].into();
        queue.add_unschedulable(info);
    }

    #[test]
    fn important_pods_go_first_then_those_that_came_first() {
        let (queue, clock) = queue();
        for (name, priority) in [("b", 0), ("a", 0), ("system", 2000), ("c", 0)] {
            queue.add(pod(name, json!({"priority": priority})));
            clock.advance(Duration::from_millis(1));
        }
        let order: Vec<String> =
            std::iter::from_fn(|| pop(&queue)).map(|info| info.pod.uid().to_owned()).collect();
        assert_eq!(order, ["system", "b", "a", "c"]);
    }

    #[test]
    fn a_rejected_pod_waits_for_what_helps_it() {
        let (queue, _) = queue();
        queue.add(pod("big", json!({"containers": [{"resources": {"requests": {"cpu": "6"}}}]})));
        let info = pop(&queue).unwrap();
        reject(&queue, info, "NodeResourcesFit");
        assert!(pop(&queue).is_none());
        queue.move_all(node_added("4"));
        assert!(pop(&queue).is_none(), "too small a node helps nobody");
        queue.move_all(node_added("8"));
        let info = pop(&queue).expect("with nothing else to do a back-off is not waited out");
        assert_eq!(info.attempts, 2);
        let Because::Other(node) = &info.because else { panic!("{:?}", info.because) };
        assert_eq!(node.metadata.name, "new", "what woke it");
        reject(&queue, info, "NodeAffinity");
        queue.move_all(Occurrence {
            event: (EventResource::AssignedPod, ActionType::Delete),
            old: Some(pod("gone", json!({})).object.clone()),
            new: None,
        });
        assert!(pop(&queue).is_none(), "a pod that leaves changes no labels");
    }

    #[test]
    fn what_happens_during_an_attempt_counts_afterwards() {
        let (queue, _) = queue();
        queue.add(pod("big", json!({"containers": [{"resources": {"requests": {"cpu": "6"}}}]})));
        let info = pop(&queue).unwrap();
        queue.move_all(node_added("8"));
        reject(&queue, info, "NodeResourcesFit");
        assert!(pop(&queue).is_some());
    }

    #[test]
    fn errors_back_off_for_one_to_ten_seconds() {
        let (queue, clock) = queue();
        queue.add(pod("unlucky", json!({})));
        let mut pauses = Vec::new();
        for _ in 0..6 {
            queue.add_unschedulable(pop(&queue).unwrap());
            let mut seconds = 0;
            while queue.lock().backoff.first().is_some_and(|(until, _)| *until > clock.now()) {
                assert!(pop(&queue).is_none());
                clock.advance(Duration::from_secs(1));
                seconds += 1;
            }
            pauses.push(seconds);
        }
        assert_eq!(pauses, [1, 2, 4, 8, 10, 10]);
    }

    #[test]
    fn nobody_waits_longer_than_five_minutes() {
        let (queue, clock) = queue();
        queue.add(pod("patient", json!({})));
        reject(&queue, pop(&queue).unwrap(), "NodeAffinity");
        clock.advance(Duration::from_secs(299));
        queue.flush_leftover();
        assert!(pop(&queue).is_none());
        clock.advance(Duration::from_secs(2));
        queue.flush_leftover();
        assert!(pop(&queue).is_some());
    }

    #[test]
    fn a_gated_pod_is_tried_when_its_last_gate_is_gone() {
        let (queue, clock) = queue();
        queue.add(pod("gated", json!({"schedulingGates": [{"name": "example.com/wait"}]})));
        clock.advance(Duration::from_secs(1000));
        queue.flush_leftover();
        assert!(pop(&queue).is_none());
        let event = (EventResource::TargetPod, ActionType::UpdatePodSchedulingGatesEliminated);
        queue.update(pod("gated", json!({})), Some(Occurrence { event, old: None, new: None }));
        assert!(pop(&queue).is_some());
    }

    #[test]
    fn a_pod_that_goes_is_forgotten() {
        let (queue, _) = queue();
        queue.add(pod("a", json!({})));
        queue.remove("a");
        assert!(pop(&queue).is_none());
        assert!(queue.lock().active.is_empty());
    }
}
