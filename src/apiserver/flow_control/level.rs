//! A priority level at work: so many seats, and those who wait for one.

use std::sync::Arc;
use std::time::Duration;

use sync::{Mutex, MutexGuard};
use tokio::sync::{Notify, oneshot};

use super::demand::DemandStats;
use super::dropped::DroppedRequests;
use super::lending::Lender;
use super::metrics::FlowStats;
use super::queue::Arrival;
use super::queue_set::{Lingering, QueueSet, QueueSetOutcome, QueueSetPlace, Queuing};
use super::spec::Limits;
use clock::Clock;

/// One level.
pub struct PriorityLevel {
    /// Its name.
    pub name: Arc<str>,
    clock: Clock,
    state: Mutex<LevelState>,
    /// Wakes who takes away levels that nobody wants and nobody uses.
    drained: Arc<Notify>,
}

struct LevelState {
    set: QueueSet,
    is_exempt: bool,
    standing: Standing,
    dropped: DroppedRequests,
}

/// Its limits, and what they follow from.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Standing {
    pub limits: Limits,
    pub stats: DemandStats,
    pub target: f64,
    pub current: usize,
    pub current_r: f64,
}

/// A place among the requests of a level that are worked on; given on when it is dropped.
pub struct Seat {
    level: Arc<PriorityLevel>,
    flow: Arc<FlowStats>,
    place: QueueSetPlace,
    is_watch: bool,
    arrived: Duration,
    /// None while it waits.
    started: Option<Duration>,
}

/// A request whose turn is to come.
pub(super) struct Waiting {
    pub seat: Seat,
    pub turn: oneshot::Receiver<()>,
}

impl PriorityLevel {
    /// Without requests.
    pub(super) fn new(name: &str, clock: &Clock, drained: &Arc<Notify>) -> PriorityLevel {
        let now = clock.elapsed();
        let state = LevelState {
            set: QueueSet::new(now),
            is_exempt: false,
            standing: Standing::default(),
            dropped: DroppedRequests::default(),
        };
        PriorityLevel {
            name: name.into(),
            clock: clock.clone(),
            state: Mutex::new(state),
            drained: drained.clone(),
        }
    }

    /// How its requests wait; the limits are those of its configuration.
    pub(super) fn configure(&self, queuing: Queuing, limits: Limits, quiescing: bool) {
        let mut state = self.state();
        state.is_exempt = queuing == Queuing::Exempt;
        state.standing.limits = limits;
        state.set.quiescing = quiescing;
        state.set.set_queuing(queuing);
    }

    /// What it lends and borrows by; `ends_period` where its limits have just changed.
    pub(super) fn lender(&self, now: Duration, ends_period: bool) -> Lender {
        let mut state = self.state();
        let stats = state.set.demand_stats(now, ends_period);
        state.standing.stats = stats;
        let LevelState { is_exempt, standing: Standing { limits, current, .. }, .. } = *state;
        Lender { is_exempt, limits, stats, current }
    }

    /// So many seats from now on; who waits is let in as far as there is room. A level without any is told
    /// of as if it had a tenth of `all`.
    pub(super) fn set_current(&self, now: Duration, current: usize, target: f64, all: u64) {
        let mut state = self.state();
        (state.standing.current, state.standing.target) = (current, target);
        let tenth = (all as f64 / 10.0).round().max(1.0) as usize;
        state.set.set_limit(now, current, if current > 0 { current } else { tenth });
    }

    /// A seat at once, a place among those who wait, or neither.
    pub(super) fn arrive(self: &Arc<Self>, now: Duration, arrival: Arrival) -> Option<Result<Seat, Waiting>> {
        let flow = arrival.flow.clone();
        let is_watch = arrival.info.verb == "watch";
        let mut state = self.state();
        let is_exempt = state.is_exempt;
        let outcome = state.set.arrive(now, arrival);
        drop(state);
        let seat = |place, started| {
            let (level, flow) = (self.clone(), flow.clone());
            Seat { level, flow, place, is_watch, arrived: now, started }
        };
        if !is_exempt && !matches!(outcome, QueueSetOutcome::Waiting(..)) {
            flow.observe_wait(matches!(outcome, QueueSetOutcome::Executing(_)), Duration::ZERO);
        }
        match outcome {
            QueueSetOutcome::Refused => None,
            QueueSetOutcome::Executing(place) => Some(Ok(seat(place, Some(now)))),
            QueueSetOutcome::Waiting(place, turn) => Some(Err(Waiting { seat: seat(place, None), turn })),
        }
    }

    /// One of its requests was refused; in so many seconds it is to come again.
    pub fn note_dropped(&self) -> u64 {
        self.state().dropped.record(self.clock.elapsed())
    }

    /// Whether somebody waits or is worked on.
    pub(super) fn is_idle(&self) -> bool {
        self.state().set.is_idle()
    }

    pub(super) fn standing(&self) -> Standing {
        let state = self.state();
        Standing { current_r: state.set.current_r.as_f64(), ..state.standing }
    }

    /// Looks at its requests, while none comes or goes.
    pub(super) fn with<T>(&self, look: impl FnOnce(&mut QueueSet) -> T) -> T {
        look(&mut self.state().set)
    }

    fn leave(self: &Arc<Self>, now: Duration, place: QueueSetPlace) {
        let (lingering, is_drained) = self.with(|set| {
            let lingering = set.leave(now, place);
            (lingering, set.quiescing && set.is_idle())
        });
        if is_drained {
            self.drained.notify_one();
        }
        let Some(seats) = lingering else { return };
        let level = self.clone();
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return level.release(&seats) };
        runtime.spawn(self.clock.tracked(async move {
            level.clock.sleep(seats.time).await;
            level.release(&seats);
        }));
    }

    fn release(&self, seats: &Lingering) {
        self.with(|set| set.release(self.clock.elapsed(), seats));
    }

    fn state(&self) -> MutexGuard<'_, LevelState> {
        self.state.lock()
    }
}

impl Waiting {
    /// Its turn has come.
    pub(super) fn begin(mut self) -> Seat {
        let now = self.seat.level.clock.elapsed();
        self.seat.flow.observe_wait(true, now.saturating_sub(self.seat.arrived));
        self.seat.started = Some(now);
        self.seat
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let now = self.level.clock.elapsed();
        match self.started {
            Some(started) => self.flow.observe_execution(self.is_watch, now.saturating_sub(started)),
            // Upstream says so of those who waited in vain.
            None => self.flow.observe_wait(true, now.saturating_sub(self.arrived)),
        }
        self.level.leave(now, self.place);
    }
}
