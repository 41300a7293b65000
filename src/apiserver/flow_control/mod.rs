//! API priority and fairness (`k8s.io/apiserver/pkg/util/flowcontrol`): which level a request belongs to, and
//! when it is its turn.
//!
//! In comes who asks and what for; out goes the FlowSchema that fits, its priority level, and a seat there.
//! FlowSchemas and levels are read when somebody first asks over the wire, and followed by a watch from then
//! on. It must not know what a request does, beyond how much work that is likely to be.

pub mod config;

mod configuration;
mod follow;

mod rules;
mod spec;

mod level;
mod queue;
mod queue_set;
mod seat_seconds;
mod shuffle_sharding;

mod allocation;
mod demand;
mod lending;

mod watches;
mod work_estimate;

mod dropped;
mod dump;
mod level_metrics;
mod metrics;
mod timing_ratio;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OnceCell, OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinHandle;

use crate::registry::Registry;
use crate::request::RequestInfo;
use apimachinery::user::UserInfo;
use apis::scheme::Scheme;
use clock::Clock;

use config::FlowControlOptions;
pub use configuration::{FlowSchema, GROUP, LevelConfiguration};
pub use dump::Dump;
use follow::Follower;
use level::Waiting;
pub use level::{PriorityLevel, Seat};
pub use metrics::FlowStats;
use metrics::{FlowControlMetrics, RequestPhase};
use queue::Arrival;
use queue_set::Queuing;
use watches::WatchTracker;
pub use watches::Watching;
use work_estimate::WorkEstimator;

/// Says for each request where it belongs. Dropped, its watches end.
pub struct FlowControl {
    /// What bounds reads and writes where there are no levels.
    in_flight: Option<[Option<Arc<Semaphore>>; 2]>,
    follower: Follower,
    clock: Clock,
    followed: OnceCell<JoinHandle<()>>,
    watches: Arc<WatchTracker>,
    estimator: WorkEstimator,
    metrics: Arc<FlowControlMetrics>,
}

/// A read or a write while it is worked on.
pub struct InFlight {
    control: Arc<FlowControl>,
    is_mutating: bool,
    _place: Option<OwnedSemaphorePermit>,
}

impl FlowControl {
    /// Reads nothing yet.
    pub fn new(
        config: FlowControlOptions,
        registry: &Registry,
        scheme: &Arc<Scheme>,
        clock: &Clock,
    ) -> FlowControl {
        let FlowControlOptions { max_requests, max_mutating_requests, .. } = config;
        let bound = |most: u64| {
            let most = usize::try_from(most).unwrap_or(usize::MAX).min(Semaphore::MAX_PERMITS);
            (most > 0).then(|| Arc::new(Semaphore::new(most)))
        };
        let in_flight = [max_requests, max_mutating_requests].map(bound);
        let (watches, metrics) = (Arc::default(), Arc::new(FlowControlMetrics::new(clock.elapsed())));
        let all = max_requests + max_mutating_requests;
        FlowControl {
            in_flight: (!config.priority_and_fairness).then_some(in_flight),
            follower: Follower::new(all, registry, scheme, clock, &metrics),
            clock: clock.clone(),
            followed: OnceCell::new(),
            estimator: WorkEstimator::new(registry, scheme, clock, &watches),
            watches,
            metrics,
        }
    }

    /// Whether there are levels.
    pub fn is_enabled(&self) -> bool {
        self.in_flight.is_none()
    }

    /// Counts a request among the reads or writes that are worked on. Where there are no levels there may be
    /// only so many; none when those are there already.
    pub fn enter(self: &Arc<Self>, info: &RequestInfo) -> Option<InFlight> {
        let is_mutating = !info.is_read_only();
        let bound = self.in_flight.as_ref().and_then(|bounds| bounds[usize::from(is_mutating)].clone());
        let place = match bound {
            Some(bound) => Some(bound.try_acquire_owned().ok()?),
            None => None,
        };
        self.metrics.enter(self.clock.elapsed(), RequestPhase::Executing, is_mutating);
        Some(InFlight { control: self.clone(), is_mutating, _place: place })
    }

    /// By what it measures how long somebody waits.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// The first FlowSchema that matches; none where even `catch-all` is not served.
    pub async fn classify(&self, user: &UserInfo, info: &RequestInfo) -> Option<Arc<FlowSchema>> {
        if !self.followed.initialized() {
            // A server that is just asked whether it is there has time for the rest later.
            if is_probe(info) {
                return None;
            }
            self.start().await;
        }
        let configuration = self.follower.current();
        let mut schemas = configuration.schemas.iter();
        let found = schemas.find(|schema| schema.spec.matches(user, info));
        found.or_else(|| configuration.schemas.iter().rfind(|schema| &*schema.name == "catch-all")).cloned()
    }

    /// A seat for a request that was classified; none when it is to come again later. It waits for one as
    /// long as `wait_limit` says.
    pub async fn admit(
        &self,
        schema: &FlowSchema,
        (user, info): (&Arc<UserInfo>, &Arc<RequestInfo>),
        query: &str,
        wait_limit: impl FnOnce() -> Duration,
    ) -> Option<Seat> {
        let (level, flow) = (&schema.level, schema.stats.clone());
        let (estimate, watches) = self.estimator.estimate(info, query, level.max_seats).await;
        watches.into_iter().for_each(|count| flow.observe_watch_count(count));
        flow.observe_estimated_seats(estimate.max_seats());
        let is_dealt = matches!(level.queuing, Queuing::Queue { queues, .. } if queues > 1);
        let distinguisher = if is_dealt { schema.spec.flow_of(user, info) } else { "" };
        let hash = if is_dealt { shuffle_sharding::hash_flow(&schema.name, distinguisher) } else { 0 };
        let (distinguisher, user, info) = (distinguisher.into(), user.clone(), info.clone());
        let now = self.clock.elapsed();
        self.follower.lend_if_due(now);
        let is_mutating = !info.is_read_only();
        let arrival = Arrival { flow, distinguisher, hash, estimate, user, info };
        match level.requests.arrive(now, arrival)? {
            Ok(seat) => Some(seat),
            // Seldom, and so kept out of what every request carries along.
            Err(waiting) => Box::pin(self.wait(waiting, is_mutating, now + wait_limit())).await,
        }
    }

    /// A watch that has been let in, while it lasts.
    pub fn watching(&self, info: &RequestInfo) -> Option<Watching> {
        self.watches.register(info)
    }

    /// How the levels are, in the order of their names, with limits as of now.
    pub async fn dump(&self) -> Dump {
        self.start().await;
        self.follower.lend_if_due(self.clock.elapsed());
        Dump::of(&self.follower.current(), &self.clock)
    }

    /// What it counts, in Prometheus' text format.
    pub fn render(&self, out: &mut String) {
        let now = self.clock.elapsed();
        self.follower.lend_if_due(now);
        let levels = &self.follower.current().levels;
        let levels: Vec<Arc<PriorityLevel>> = levels.values().map(|level| level.requests.clone()).collect();
        level_metrics::render(&levels, now, out);
        self.metrics.render(now, out);
    }

    async fn start(&self) {
        self.followed.get_or_init(|| Box::pin(self.follower.start())).await;
    }

    /// Wakes with every adjustment of limits as well: while somebody waits, nobody else may come to look.
    async fn wait(&self, waiting: Waiting, is_mutating: bool, deadline: Duration) -> Option<Seat> {
        let _counted = Queued::new(self, is_mutating);
        let mut waiting = waiting;
        loop {
            let until = deadline.min(follow::next_lending(self.clock.elapsed()));
            tokio::select! {
                biased;
                turn = &mut waiting.turn => return turn.ok().map(|()| waiting.begin()),
                () = self.clock.sleep_until(until) => {}
            }
            let now = self.clock.elapsed();
            self.follower.lend_if_due(now);
            if now >= deadline {
                return waiting.turn.try_recv().ok().map(|()| waiting.begin());
            }
        }
    }
}

impl Drop for FlowControl {
    fn drop(&mut self) {
        if let Some(follower) = self.followed.get() {
            follower.abort();
        }
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        let FlowControl { clock, metrics, .. } = &*self.control;
        metrics.exit(clock.elapsed(), RequestPhase::Executing, self.is_mutating);
    }
}

/// A read or a write while it waits.
struct Queued<'c> {
    control: &'c FlowControl,
    is_mutating: bool,
}

impl<'c> Queued<'c> {
    fn new(control: &'c FlowControl, is_mutating: bool) -> Queued<'c> {
        control.metrics.enter(control.clock.elapsed(), RequestPhase::Waiting, is_mutating);
        Queued { control, is_mutating }
    }
}

impl Drop for Queued<'_> {
    fn drop(&mut self) {
        let FlowControl { clock, metrics, .. } = self.control;
        metrics.exit(clock.elapsed(), RequestPhase::Waiting, self.is_mutating);
    }
}

fn is_probe(info: &RequestInfo) -> bool {
    let root = info.path.trim_start_matches('/').split('/').next().unwrap_or_default();
    !info.is_resource_request && matches!(root, "healthz" | "livez" | "readyz")
}
