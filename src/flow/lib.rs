//! flow: the causal record of what happened in a cluster, and why.
//!
//! Comes in: one [`Step`] at a time, with the step that caused it. Goes out: the [`Trace`] of an object,
//! which `/flowz` answers, and its [`TraceStory`], a line for each stage, which `kubarium trace` prints.
//! Upstream has nothing like it in one place; the nearest are audit logs, Events and OpenTelemetry spans.
//!
//! A cause crosses from writer to reader as nothing but a resourceVersion: whoever sees an object at a
//! revision can ask which write made it. Must not know: what any component does. Only machinery mentions it
//! (the handler chain, the store, the client, informers, queues and the component loops): a controller or a
//! plugin never does.
//!
//! Bounds: the last 65,536 steps, and beside them 1,024 sorts of traffic that policies judged. At the bound
//! the oldest step is forgotten, and with it its revision; a [`Trace`] says how many were. Successful reads
//! are not recorded, but for people's questions what is served ([`Step::Discovered`]) and what a client
//! traces while spans are sent to a collector, nor are renewals of leases (see [`is_renewal`]): there is no
//! end of them, and they would push out everything else.

#![warn(missing_docs, unreachable_pub)]

mod beginning;
mod breakpoint;
mod exchange;
mod export;
mod follow;
mod gate;
mod held;
mod lane;
mod parts;
mod recorded;
mod render;
mod rounds;
mod spans;
mod step;
pub mod story;
mod trace;
mod traceparent;
mod traffic;
mod uid;
mod wanted;
mod words;
pub mod wrap;
mod writings;

#[cfg(test)]
mod handwritten;

use std::collections::{HashMap, HashSet, VecDeque};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use chrono::{DateTime, SecondsFormat, Utc};
use clock::Clock;
use foldhash::fast::RandomState;
use sync::{Mutex, MutexGuard};

use beginning::Beginning;
use follow::Followers;
use recorded::Recorded;
use traffic::TrafficBook;

pub use breakpoint::Breakpoint;
pub use exchange::{
    BodyReader, BodyText, Exchange, ExchangeText, Exchanges, KeepsExchanges, MAX_BODY_BYTES,
    MAX_ENTRIES_A_SECOND, MAX_EXCHANGES, MAX_HEADERS, MAX_VALUED_WRITES_A_SECOND, MessageText, PassingBytes,
    ReadableBody, SentBody, SentHeaders, SentMessage,
};
pub use export::TraceExportError;
pub use follow::Followed;
pub use gate::{Gate, LetThrough, MAX_BREAKPOINTS, MAX_GONE, TooManyBreakpoints};
pub use held::{HeldStage, HeldStep};
pub use lane::{Lane, is_renewal};
pub use parts::{
    CacheEntry, Callback, CalledWebhook, ComparedCount, DecodedObject, DeltaType, EventHost, FieldFromTo,
    FitRefusal, NodeScore, PassedOnRequest, RoutedRequest,
};
pub use recorded::StepId;
pub use spans::{MAX_KNOWN_STEPS, MAX_OPEN_STEPS, MAX_SPANS, SpanBatch, SpanStream};
pub use step::{Step, WriteOperation};
pub use story::TraceStory;
pub use trace::{Life, ListedResource, StoragePlace, Trace, TraceStep, TracedObject};
pub use traceparent::TraceParent;
pub use traffic::{JudgedTraffic, MAX_TRAFFIC, TrafficSort};
pub use uid::Uid;
pub use wanted::WantedSteps;
pub use writings::Writings;

/// How many steps are remembered.
pub const CAPACITY: usize = 65_536;
/// Whose traffic is told, as errors name them.
const PODS: &str = "pods";
const NETWORK_POLICIES: &str = "networkpolicies.networking.k8s.io";
/// How many names are interned; further ones are shared by nobody.
const NAMES: usize = 4_096;

/// A cluster's causal record. Cloning shares it; switched off it costs one branch a step.
#[derive(Clone)]
pub struct Flow {
    record: Option<Arc<FlowRecord>>,
}

struct FlowRecord {
    clock: Clock,
    beginning: Beginning,
    ring: Mutex<Ring>,
    names: Mutex<HashSet<Arc<str>, RandomState>>,
    followers: Followers,
    traffic: Mutex<TrafficBook>,
    exchanges: Exchanges,
    /// Somebody sends spans to a collector.
    collects_spans: AtomicBool,
    gate: Gate,
}

/// Invariant: a revision is in `stored` or `informed` if and only if the step that says so is in `steps`.
#[derive(Default)]
struct Ring {
    /// The id of `steps[0]`, less one.
    forgotten: u64,
    steps: VecDeque<Recorded>,
    stored: HashMap<u64, StepId, RandomState>,
    informed: HashMap<(u64, Arc<str>), StepId, RandomState>,
}

impl Flow {
    /// A record that remembers, and takes its times from `clock`.
    pub fn new(clock: Clock) -> Flow {
        let gate = Gate::new(clock.clone());
        let record = FlowRecord {
            beginning: Beginning::of(&clock),
            clock,
            ring: Mutex::default(),
            names: Mutex::default(),
            followers: Followers::default(),
            traffic: Mutex::default(),
            exchanges: Exchanges::default(),
            collects_spans: AtomicBool::new(false),
            gate,
        };
        Flow { record: Some(Arc::new(record)) }
    }

    /// A record that remembers nothing.
    pub fn off() -> Flow {
        Flow { record: None }
    }

    /// Whether anything is remembered: ask before making a step that is costly to make.
    pub fn is_on(&self) -> bool {
        self.record.is_some()
    }

    /// What holds the cluster between two steps; none where nothing is remembered.
    pub fn stepping(&self) -> Option<&Gate> {
        self.record.as_ref().map(|record| &record.gate)
    }

    /// Whether steps may be held. Where nobody steps this is a relaxed load.
    pub fn is_stepped(&self) -> bool {
        self.stepping().is_some_and(Gate::is_active)
    }

    /// Returns when the step that `make` tells of may be taken: at once, where nobody steps. Never to be
    /// awaited with a lock in hand.
    pub async fn gate(&self, make: impl FnOnce() -> HeldStep) {
        let Some(gate) = self.stepping().filter(|gate| gate.is_active()) else { return };
        let step = make();
        if !self.request_of(step.cause).is_some_and(|request| gate.is_let_through(request)) {
            // On the heap, so that who is never held is no larger for it.
            Box::pin(gate.pass(step)).await;
        }
    }

    /// What comes of the request is not held, for as long as the answer lives; `step` is one of it.
    pub fn let_through(&self, step: Option<StepId>) -> Option<LetThrough<'_>> {
        Some(self.stepping()?.let_through(self.request_of(step)?))
    }

    /// Where a request was held that gave up, by its first step.
    pub fn held_up(&self, request: StepId) -> Option<HeldStep> {
        let gone = self.stepping()?.gone();
        gone.into_iter().find(|step| self.request_of(step.cause) == Some(request))
    }

    /// Whether a step is part of a request, as far as that is remembered.
    pub fn is_of_request(&self, step: Option<StepId>) -> bool {
        self.request_of(step).is_some()
    }

    /// The path of the request that a step is part of; none where that is forgotten.
    pub fn asked_path(&self, step: Option<StepId>) -> Option<Arc<str>> {
        let request = self.request_of(step)?;
        match &self.record.as_ref()?.ring().get(request)?.step {
            Step::RequestReceived { path, .. } => Some(path.clone()),
            _ => None,
        }
    }

    /// What was sent to and fro; none where nothing is remembered.
    pub fn exchanges(&self) -> Option<&Exchanges> {
        self.record.as_ref().map(|record| &record.exchanges)
    }

    /// Whether headers and bodies are to be kept: where nobody asks these are two relaxed loads.
    pub fn keeps_exchanges(&self) -> bool {
        self.exchanges().is_some_and(Exchanges::are_asked_for) || self.is_stepped()
    }

    /// Whether from what to what fields change is told of a write of a component, too: while somebody looks.
    pub fn tells_values_of_component(&self) -> bool {
        self.record.as_ref().is_some_and(|record| record.exchanges.takes_write(self.passing_time(record)))
    }

    /// Whether it is told what a cache holds of an object: while somebody looks.
    pub fn tells_cache_entry(&self) -> bool {
        self.record.as_ref().is_some_and(|record| record.exchanges.takes_entry(self.passing_time(record)))
    }

    /// None where it stands while things happen.
    fn passing_time(&self, record: &FlowRecord) -> Option<Duration> {
        let stands = record.clock.is_stepped() || self.is_stepped();
        (!stands).then(|| record.clock.elapsed())
    }

    /// From now on somebody sends spans to a collector, until the cluster ends.
    pub fn collect_spans(&self) {
        if let Some(record) = &self.record {
            record.collects_spans.store(true, Ordering::Relaxed);
        }
    }

    /// Whether reads of clients that send spans of their own are recorded, too: where nobody sends ours
    /// anywhere that is a relaxed load.
    pub fn collects_spans(&self) -> bool {
        self.record.as_ref().is_some_and(|record| record.collects_spans.load(Ordering::Relaxed))
    }

    /// The request that a step is part of; none where it is part of none, or that is forgotten.
    fn request_of(&self, step: Option<StepId>) -> Option<StepId> {
        let ring = self.record.as_ref()?.ring();
        let mut next = step;
        while let Some(id) = next {
            let recorded = ring.get(id)?;
            if matches!(recorded.step, Step::RequestReceived { .. }) {
                return Some(id);
            }
            next = recorded.cause.cause();
        }
        None
    }

    /// Remembers `step`, which `cause` led to.
    pub fn record(&self, cause: Option<StepId>, step: Step) -> StepId {
        let Some(record) = &self.record else { return StepId::NONE };
        let at = record.clock.elapsed();
        let id = record.ring().push(Recorded { at, cause: cause.unwrap_or_default(), step });
        record.followers.tell();
        id
    }

    /// Remembers what `make` makes; switched off, it is not called.
    pub fn record_with(&self, cause: Option<StepId>, make: impl FnOnce() -> Step) -> StepId {
        if self.is_on() { self.record(cause, make()) } else { StepId::NONE }
    }

    /// The shared text of a name out of a small vocabulary (components, resources, verbs), so that a step
    /// that mentions it allocates nothing.
    pub fn name(&self, text: &str) -> Arc<str> {
        let Some(record) = &self.record else { return text.into() };
        let mut names = record.names.lock();
        if let Some(name) = names.get(text) {
            return name.clone();
        }
        let name: Arc<str> = text.into();
        if names.len() < NAMES {
            names.insert(name.clone());
        }
        name
    }

    /// The [`Step::Stored`] of a revision, while it is remembered.
    pub fn stored(&self, revision: u64) -> Option<StepId> {
        self.record.as_ref()?.ring().stored.get(&revision).copied()
    }

    /// The [`Step::InformerUpdated`] by which `component` saw a revision, while it is remembered: the cause
    /// of whatever the component does about the object at that revision.
    pub fn informed(&self, component: &Arc<str>, revision: u64) -> Option<StepId> {
        self.record.as_ref()?.ring().informed.get(&(revision, component.clone())).copied()
    }

    /// Everything that is remembered, as lines of JSON.
    pub fn all(&self) -> String {
        let Some(record) = &self.record else { return String::new() };
        let (first, steps) = record.ring().snapshot();
        let lines = trace::all(first, steps).into_iter().map(|step| serde_json::to_string(&step));
        lines.flatten().map(|line| line + "\n").collect()
    }

    /// How many steps are remembered, and the bytes of the places in which they stand; names and texts, which
    /// many of them share, not counted.
    pub fn held(&self) -> (usize, usize) {
        let Some(record) = &self.record else { return (0, 0) };
        let ring = record.ring();
        (ring.steps.len(), ring.steps.capacity() * size_of::<Recorded>())
    }

    /// When the time began from which steps are measured, in microseconds since 1970; 0 where nothing is
    /// remembered.
    pub fn began_unix_microseconds(&self) -> i64 {
        self.record.as_ref().map(|record| record.beginning.microseconds(&record.clock)).unwrap_or_default()
    }

    /// The step that comes next.
    pub fn newest(&self) -> StepId {
        let Some(record) = &self.record else { return StepId::NONE };
        record.ring().next()
    }

    /// At most `limit` steps from `since` on. An id that is not there yet, as [`Flow::newest`]'s, is where
    /// the next step will be.
    pub fn since(&self, since: StepId, limit: usize) -> Followed {
        let Some(record) = &self.record else { return Followed { next: since, ..Followed::default() } };
        record.ring().since(since, limit)
    }

    /// Waits until the step `id` is there; for ever if nothing is recorded.
    pub async fn until(&self, id: StepId) {
        let Some(record) = &self.record else { return std::future::pending().await };
        record.followers.until(|| record.ring().next() > id).await;
    }

    /// Which objects were written from a step on, and by whom; the most often written first. Renewals of
    /// leases do not count.
    pub fn writings(&self, since: StepId) -> Vec<Writings> {
        let Some(record) = &self.record else { return vec![] };
        let (first, steps) = record.ring().snapshot();
        writings::of(first, &steps, since)
    }

    /// What came of every remembered write to one object, the newest of its name; `resource` as in errors:
    /// `deployments.apps`, `pods`.
    pub fn trace(&self, resource: &str, namespace: &str, name: &str) -> Trace {
        self.trace_of(&TracedObject { resource, namespace, name, uid: "" })
    }

    /// What came of the writes to the object, or of the requests, that `subject` says.
    pub fn trace_of(&self, subject: &TracedObject<'_>) -> Trace {
        let Some(record) = &self.record else { return Trace::default() };
        let (first, steps) = record.ring().snapshot();
        let trace = record.dated(trace::of(first, steps, subject));
        Trace { traffic: self.traffic_of(subject), ..trace }
    }

    /// Remembers what policies said of traffic. Where no policy says anything nobody calls this.
    pub fn judged(&self, sort: TrafficSort) {
        let Some(record) = &self.record else { return };
        let now = u64::try_from(record.clock.elapsed().as_micros()).unwrap_or(u64::MAX);
        record.traffic.lock().add(sort, now);
    }

    /// What policies said of the traffic of a pod, and what a policy said.
    pub fn traffic_of(&self, subject: &TracedObject<'_>) -> Vec<JudgedTraffic> {
        let is_policy = subject.resource == NETWORK_POLICIES;
        let Some(record) = self.record.as_ref().filter(|_| is_policy || subject.resource == PODS) else {
            return vec![];
        };
        record.traffic.lock().about(is_policy, &format!("{}/{}", subject.namespace, subject.name))
    }

    /// Everything that is remembered, as one trace.
    pub fn trace_all(&self) -> Trace {
        let Some(record) = &self.record else { return Trace::default() };
        let (first, steps) = record.ring().snapshot();
        record.dated(trace::whole(first, steps))
    }
}

impl Default for Flow {
    fn default() -> Flow {
        Flow::off()
    }
}

impl fmt::Debug for Flow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_on() { "Flow(on)" } else { "Flow(off)" })
    }
}

impl FlowRecord {
    /// With the time of its beginning, and how long ago that is.
    fn dated(&self, (start, trace): (Duration, Trace)) -> Trace {
        let age = self.clock.elapsed().saturating_sub(start);
        let now = u64::try_from(age.as_micros()).unwrap_or(u64::MAX);
        let start = i64::try_from(start.as_micros()).unwrap_or(i64::MAX);
        let unix = self.beginning.microseconds(&self.clock).saturating_add(start);
        let began = DateTime::<Utc>::from_timestamp_micros(unix).unwrap_or_default();
        let text = began.to_rfc3339_opts(SecondsFormat::Micros, true);
        Trace { began: text, began_unix_microseconds: unix, now_microseconds: now, ..trace }
    }

    fn ring(&self) -> MutexGuard<'_, Ring> {
        self.ring.lock()
    }
}

impl Ring {
    /// The id of the step that comes next.
    fn next(&self) -> StepId {
        StepId(self.forgotten + self.steps.len() as u64 + 1)
    }

    fn get(&self, id: StepId) -> Option<&Recorded> {
        self.steps.get(usize::try_from(id.0.checked_sub(self.forgotten + 1)?).ok()?)
    }

    fn since(&self, since: StepId, limit: usize) -> Followed {
        let oldest = self.forgotten + 1;
        let wanted = since.0.max(1);
        let first = wanted.clamp(oldest, self.next().0);
        let skip = usize::try_from(first - oldest).unwrap_or(usize::MAX);
        let told = self.steps.iter().skip(skip).take(limit);
        let steps: Vec<TraceStep> =
            (first..).zip(told).map(|(id, recorded)| self.followed(StepId(id), recorded)).collect();
        let next = StepId(first + steps.len() as u64);
        Followed { steps, next, missed: first.saturating_sub(wanted) }
    }

    /// A step that saw a revision is caused by the write that made it, as in a trace.
    fn followed(&self, id: StepId, recorded: &Recorded) -> TraceStep {
        let of_write = || self.stored.get(&recorded.step.revision_seen()?).copied();
        TraceStep {
            id,
            cause: recorded.cause.cause().or_else(of_write),
            at_microseconds: u64::try_from(recorded.at.as_micros()).unwrap_or(u64::MAX),
            step: recorded.step.clone(),
        }
    }

    fn push(&mut self, recorded: Recorded) -> StepId {
        if self.steps.len() == CAPACITY {
            self.forget_oldest();
        }
        let id = self.next();
        match &recorded.step {
            Step::Stored { revision, .. } => {
                self.stored.insert(*revision, id);
            }
            Step::InformerUpdated { component, revision, .. } => {
                self.informed.insert((*revision, component.clone()), id);
            }
            _ => {}
        }
        self.steps.push_back(recorded);
        id
    }

    fn forget_oldest(&mut self) {
        let Some(oldest) = self.steps.pop_front() else { return };
        self.forgotten += 1;
        let id = StepId(self.forgotten);
        match oldest.step {
            // Two informers of one component may see one revision; the entry is the younger step's.
            Step::Stored { revision, .. } if self.stored.get(&revision) == Some(&id) => {
                self.stored.remove(&revision);
            }
            Step::InformerUpdated { component, revision, .. } => {
                let key = (revision, component);
                if self.informed.get(&key) == Some(&id) {
                    self.informed.remove(&key);
                }
            }
            _ => {}
        }
    }

    /// The id of the first remembered step, and all of them.
    fn snapshot(&self) -> (u64, Vec<Recorded>) {
        (self.forgotten + 1, self.steps.iter().cloned().collect())
    }
}

#[cfg(test)]
mod tests;
