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
use super::framework::cluster_event::{EventResource, Occurrence, QueueingHint, label};
use super::framework::plugin::ActiveQueueKey;
use super::framework::pod_info::{Because, PodInfo, QueuedPodInfo};
use super::framework::profiles::Profiles;
use apimachinery::time::Time;
use clock::Clock;
use component_base::metrics::Family;

/// After so long an unschedulable pod is tried again whatever happened, unless
/// `--pod-max-in-unschedulable-pods-duration` says another time.
const MAX_UNSCHEDULABLE: Duration = Duration::from_secs(300);
/// What happens while a pod is tried is remembered up to here; past it the pod is simply tried again.
const MAX_NOTED: usize = 1000;

/// What puts pods into the queue, beside events of the cluster, as metrics call it.
pub(super) const POD_ADDED: &str = "UnschedulablePodAdd";
pub(super) const POD_UPDATED: &str = "UnschedulablePodUpdate";
pub(super) const POD_DELETED: &str = "UnschedulablePodDelete";
const ATTEMPT_FAILED: &str = "ScheduleAttemptFailure";
const BACKOFF_OVER: &str = "BackoffComplete";
const TIMED_OUT: &str = "UnschedulableTimeout";
const FORCED: &str = "ForceActivate";
/// A pod that is being tried, as what is in flight is counted (`PodPoppedInFlightEvent`).
const POD_POPPED: &str = "PodPopped";

/// The queue. Bound: the pods of the cluster that are not placed.
pub struct SchedulingQueue {
    profiles: Arc<Profiles>,
    clock: Clock,
    max_unschedulable: Duration,
    backoff: PodBackoff,
    inner: Mutex<QueueInner>,
    /// Something can be popped.
    changed: Notify,
    /// A pod is unschedulable.
    left_over: Notify,
    /// Pods by where they were put, and what for.
    incoming: Family<2>,
}

#[derive(Default)]
struct QueueInner {
    /// Every waiting pod, by uid.
    pods: HashMap<Arc<str>, WaitingPod>,
    /// A uid is in here if and only if its pod is active.
    active: BTreeSet<(ActiveQueueKey, Arc<str>)>,
    /// A uid is in here if and only if its pod is backing off; by when that ends.
    backoff: BTreeSet<(Time, Arc<str>)>,
    /// A uid is in here if and only if its pod is unschedulable: events look at no others.
    unschedulable: BTreeSet<Arc<str>>,
    /// Pods that are being tried, with what happened since.
    in_flight: HashMap<Arc<str>, Vec<Arc<Occurrence>>>,
    /// Pods for which room is being made, by uid, with the node.
    nominated: BTreeMap<Arc<str>, (Arc<str>, Arc<PodInfo>)>,
    /// The plugins that were seen to hold pods back, with the profile. Bound: the plugins of all profiles.
    known_to_hold: BTreeSet<(&'static str, Arc<str>)>,
}

struct WaitingPod {
    info: QueuedPodInfo,
    place: QueuePlace,
}

#[derive(Clone, Copy, PartialEq)]
enum QueuePlace {
    Active(ActiveQueueKey),
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
            left_over: Notify::new(),
            incoming: Family::counter(
                "scheduler_queue_incoming_pods_total",
                "[STABLE] Number of pods added to scheduling queues by event and queue type.",
                ["event", "queue"],
            ),
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
        self.activate(&mut inner, QueuedPodInfo::new(pod, self.clock.now()), POD_ADDED);
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
            return self.activate(&mut inner, QueuedPodInfo::new(pod, self.clock.now()), POD_ADDED);
        };
        inner.read_nomination(&pod, &waiting.info.pod.pod().status.nominated_node_name);
        waiting.info.pod = pod;
        match waiting.place {
            QueuePlace::Active(_) => self.activate(&mut inner, waiting.info, POD_UPDATED),
            QueuePlace::Unschedulable
                if occurrence.is_some_and(|seen| self.is_worth_it(&waiting.info, &seen)) =>
            {
                let info = QueuedPodInfo { because: Because::Itself, ..waiting.info };
                self.move_on(&mut inner, info, POD_UPDATED);
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
                () = self.clock.sleep(wait.unwrap_or_default()), if wait.is_some() => {}
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
            self.activate(&mut inner, QueuedPodInfo::new(pod, self.clock.now()), POD_ADDED);
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
        (info.timestamp, info.was_flushed) = (self.clock.now(), false);
        if info.unschedulable_plugins.is_empty() {
            (info.consecutive_errors, info.unschedulable_count) = (info.consecutive_errors + 1, 0);
            info.because = Because::Time;
            let until = info.timestamp + self.backoff.after(info.consecutive_errors);
            inner.put(info, QueuePlace::Backoff(until));
            self.incoming.count([ATTEMPT_FAILED, "backoff"]);
            self.changed.notify_one();
            return;
        }
        (info.consecutive_errors, info.unschedulable_count) = (0, info.unschedulable_count + 1);
        let helpful = noted.iter().find(|seen| self.is_worth_it(&info, seen));
        match helpful.or(noted.last().filter(|_| noted.len() >= MAX_NOTED)) {
            Some(seen) => {
                let info = QueuedPodInfo { because: because_of(seen), ..info };
                self.move_on(&mut inner, info, ATTEMPT_FAILED);
            }
            None => {
                inner.put(info, QueuePlace::Unschedulable);
                self.incoming.count([ATTEMPT_FAILED, "unschedulable"]);
                self.left_over.notify_one();
            }
        }
    }

    /// `Activate`: a pod that waits is tried next, whatever it waits for.
    pub(super) fn activate_now(&self, uid: &str) {
        let mut inner = self.lock();
        if let Some(waiting) = inner.take(uid) {
            let info = QueuedPodInfo { because: Because::Time, ..waiting.info };
            self.activate(&mut inner, info, FORCED);
        }
    }

    /// The pods of less importance than one for which room is made on its node, too
    /// (`getLowerPriorityNominatedPods`).
    pub(super) fn nominated_after(&self, pod: &PodInfo, node: &str) -> Vec<Arc<PodInfo>> {
        let inner = self.lock();
        let others = inner.nominated.values().filter(|(own, _)| **own == *node).map(|(_, other)| other);
        others.filter(|other| other.priority < pod.priority).cloned().collect()
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
            let info = QueuedPodInfo { because: because_of(&occurrence), ..info };
            self.move_on(&mut inner, info, &label(occurrence.event));
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
            let info = QueuedPodInfo { because: Because::Time, was_flushed: true, ..info };
            self.move_on(&mut inner, info, TIMED_OUT);
        }
    }

    /// Waits until there is an unschedulable pod that may be tried again.
    pub async fn wait_for_leftover(&self) {
        while !self.lock().has_leftover() {
            self.left_over.notified().await;
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
                self.activate(inner, waiting.info, BACKOFF_OVER);
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

    fn activate(&self, inner: &mut QueueInner, info: QueuedPodInfo, event: &str) {
        let Some(info) = self.let_in(inner, info, event) else { return };
        self.incoming.count([event, "active"]);
        let key = self.profiles.first().queue_key(&info);
        inner.put(info, QueuePlace::Active(key));
        self.changed.notify_one();
    }

    /// The pod, unless a plugin holds it back: then it is put where it waits for that plugin.
    fn let_in(&self, inner: &mut QueueInner, mut info: QueuedPodInfo, event: &str) -> Option<QueuedPodInfo> {
        info.gated_by = self.profiles.of(&info.pod).run_pre_enqueue(&info.pod);
        let Some(gate) = info.gated_by else { return Some(info) };
        info.unschedulable_plugins.insert(gate);
        self.incoming.count([event, "gated"]);
        inner.put(info, QueuePlace::Unschedulable);
        None
    }

    /// To the active pods, or to those that back off while its back-off lasts. From these, too, it may be
    /// popped any time, so that nobody comes there who is held back.
    fn move_on(&self, inner: &mut QueueInner, info: QueuedPodInfo, event: &str) {
        let until = info.timestamp + self.backoff.after(info.unschedulable_count);
        if info.gated_by.is_some() || until <= self.clock.now() {
            return self.activate(inner, info, event);
        }
        let Some(info) = self.let_in(inner, info, event) else { return };
        self.incoming.count([event, "backoff"]);
        inner.put(info, QueuePlace::Backoff(until));
        self.changed.notify_one();
    }

    fn is_worth_it(&self, info: &QueuedPodInfo, occurrence: &Occurrence) -> bool {
        let profile = self.profiles.of(&info.pod);
        profile.hint(&info.pod, &info.unschedulable_plugins, occurrence) == QueueingHint::Queue
    }

    /// How many pods wait, and where.
    pub(super) fn sizes(&self) -> [(&'static str, usize); 4] {
        let inner = self.lock();
        let is_gated = |uid: &&Arc<str>| inner.pods[*uid].info.gated_by.is_some();
        let gated = inner.unschedulable.iter().filter(is_gated).count();
        let (active, backoff) = (inner.active.len(), inner.backoff.len());
        let unschedulable = inner.unschedulable.len() - gated;
        [("active", active), ("backoff", backoff), ("gated", gated), ("unschedulable", unschedulable)]
    }

    /// The pods that plugins hold back, by plugin and profile; a pod counts for each that does. Who held any
    /// when somebody looked before stays among them, though it may hold none now.
    pub(super) fn held_back(&self) -> BTreeMap<(&'static str, Arc<str>), usize> {
        let mut inner = self.lock();
        let mut held: BTreeMap<(&'static str, Arc<str>), usize> =
            inner.known_to_hold.iter().map(|known| (known.clone(), 0)).collect();
        for info in inner.unschedulable.iter().map(|uid| &inner.pods[uid].info) {
            let profile = &self.profiles.of(&info.pod).name;
            for plugin in &info.unschedulable_plugins {
                *held.entry((*plugin, profile.clone())).or_default() += 1;
            }
        }
        inner.known_to_hold = held.keys().cloned().collect();
        held
    }

    /// The pods that are being tried, and what happened meanwhile, by event.
    pub(super) fn in_flight(&self) -> BTreeMap<String, usize> {
        let inner = self.lock();
        let mut counted = BTreeMap::from([(POD_POPPED.to_owned(), inner.in_flight.len())]);
        // Each pod that was being tried then has noted the same event.
        let noted: HashMap<*const Occurrence, &Occurrence> =
            inner.in_flight.values().flatten().map(|seen| (Arc::as_ptr(seen), &**seen)).collect();
        for seen in noted.values() {
            *counted.entry(label(seen.event)).or_default() += 1;
        }
        counted
    }

    /// How many were put where, in Prometheus' text format.
    pub(super) fn render(&self, out: &mut String) {
        self.incoming.render(out);
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

    fn has_leftover(&self) -> bool {
        self.unschedulable.iter().any(|uid| self.pods[uid].info.gated_by.is_none())
    }

    /// A pod may have been nominated by somebody else, or before this scheduler began (`updatePodNominator`).
    fn read_nomination(&mut self, pod: &Arc<PodInfo>, before: &str) {
        let view = pod.pod();
        let node = view.status.nominated_node_name.as_str();
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
#[path = "queue_tests.rs"]
mod tests;
