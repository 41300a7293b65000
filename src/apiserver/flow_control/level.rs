//! PriorityLevelConfiguration at work: so many requests at once, the others wait in turn of their flows
//! (`util/flowcontrol/fairqueuing`).

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use http::HeaderValue;
use serde::Deserialize;
use tokio::sync::oneshot;

use crate::clock::Clock;

/// How long a request waits at most for a seat: a quarter of the time that one has, as upstream.
const MAX_WAIT: Duration = Duration::from_secs(15);

/// What is read of a PriorityLevelConfiguration.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct PriorityLevelView {
    /// Its spec.
    pub spec: PriorityLevelSpec,
}

/// `PriorityLevelConfigurationSpec`
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct PriorityLevelSpec {
    r#type: String,
    exempt: Shares,
    limited: Limited,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Shares {
    nominal_concurrency_shares: u64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Limited {
    nominal_concurrency_shares: u64,
    limit_response: LimitResponse,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct LimitResponse {
    r#type: String,
    queuing: Queuing,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Queuing {
    queues: usize,
    hand_size: usize,
    queue_length_limit: usize,
}

/// What holds for a level now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Requests at once; none is without end.
    seats: Option<usize>,
    /// Requests of one flow that may wait; with more the next is refused.
    waiting_of_flow: usize,
    /// Requests that may wait, all together.
    waiting: usize,
}

/// One level.
pub struct PriorityLevel {
    /// Its name.
    pub name: String,
    /// Which object of that name.
    pub uid: String,
    /// The uid, as answers show it.
    pub header: HeaderValue,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    limits: Limits,
    executing: usize,
    /// Who waits, by flow. Bound: `limits.waiting`; beyond it requests are refused.
    flows: BTreeMap<String, VecDeque<oneshot::Sender<Seat>>>,
    waiting: usize,
    /// The flow that was last served.
    served: String,
    counts: Counts,
}

/// What became of its requests.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    /// Were given a seat.
    pub dispatched: u64,
    /// Were refused because too many waited.
    pub rejected: u64,
    /// Waited too long.
    pub timed_out: u64,
    /// Went away while they waited.
    pub cancelled: u64,
}

/// How a level is just now.
pub struct Snapshot {
    /// Flows in which requests wait.
    pub active_queues: usize,
    /// Requests that wait.
    pub waiting: usize,
    /// Requests that are worked on.
    pub executing: usize,
    /// What became of all others.
    pub counts: Counts,
}

/// A place among the requests of a level that are worked on; given on when it is dropped.
pub struct Seat {
    level: Option<Arc<PriorityLevel>>,
}

/// A request that waits; told apart from one that was served when it is dropped.
struct Waiting<'l> {
    level: &'l PriorityLevel,
    is_over: bool,
}

impl PriorityLevelSpec {
    /// Its part of what the server does at once.
    pub fn shares(&self) -> u64 {
        if self.is_exempt() {
            self.exempt.nominal_concurrency_shares
        } else {
            self.limited.nominal_concurrency_shares
        }
    }

    fn is_exempt(&self) -> bool {
        self.r#type == "Exempt"
    }

    /// What that comes to, with `all` requests at once for `shares` of all levels.
    pub fn limits(&self, all: u64, shares: u64) -> Limits {
        if self.is_exempt() {
            return Limits::default();
        }
        let seats = (all * self.shares()).div_ceil(shares.max(1));
        let queuing = &self.limited.limit_response.queuing;
        let is_queued = self.limited.limit_response.r#type == "Queue";
        Limits {
            seats: usize::try_from(seats).ok(),
            waiting_of_flow: if is_queued {
                queuing.hand_size.saturating_mul(queuing.queue_length_limit)
            } else {
                0
            },
            waiting: if is_queued { queuing.queues.saturating_mul(queuing.queue_length_limit) } else { 0 },
        }
    }
}

impl PriorityLevel {
    /// Without requests.
    pub fn new(name: &str, uid: &str) -> PriorityLevel {
        let header = HeaderValue::from_str(uid).unwrap_or(HeaderValue::from_static(""));
        PriorityLevel { name: name.into(), uid: uid.into(), header, state: Mutex::default() }
    }

    /// A bound of requests at once, where nobody waits; 0 is none.
    pub fn bounded(name: &str, most: u64) -> Arc<PriorityLevel> {
        let level = Arc::new(PriorityLevel::new(name, ""));
        let seats = usize::try_from(most).ok().filter(|most| *most > 0);
        level.set_limits(Limits { seats, ..Limits::default() });
        level
    }

    /// A seat, if there is one now.
    pub fn try_acquire(self: &Arc<Self>) -> Option<Seat> {
        let mut state = self.state();
        state.has_room().then(|| self.seat(&mut state))
    }

    /// Other limits; who waits is let in as far as there is room now.
    pub fn set_limits(self: &Arc<Self>, limits: Limits) {
        let mut state = self.state();
        state.limits = limits;
        while state.has_room() && self.dispatch_next(&mut state) {}
    }

    /// A seat for a request of a flow, at once or when it is the flow's turn; none when too many wait, or it
    /// has waited too long.
    pub async fn acquire(self: &Arc<Self>, flow: &str, clock: &Clock) -> Option<Seat> {
        let turn = {
            let mut state = self.state();
            if state.has_room() && state.waiting == 0 {
                return Some(self.seat(&mut state));
            }
            let of_flow = state.flows.get(flow).map_or(0, VecDeque::len);
            if of_flow >= state.limits.waiting_of_flow || state.waiting >= state.limits.waiting {
                state.counts.rejected += 1;
                return None;
            }
            let (sender, turn) = oneshot::channel();
            state.flows.entry(flow.to_owned()).or_default().push_back(sender);
            state.waiting += 1;
            turn
        };
        let mut waiting = Waiting { level: self, is_over: false };
        let seat = clock.timeout(MAX_WAIT, turn).await;
        waiting.is_over = true;
        match seat {
            Ok(seat) => seat.ok(),
            Err(_) => {
                self.state().counts.timed_out += 1;
                self.forget_gone();
                None
            }
        }
    }

    /// How it is.
    pub fn snapshot(&self) -> Snapshot {
        let state = self.state();
        Snapshot {
            active_queues: state.flows.len(),
            waiting: state.waiting,
            executing: state.executing,
            counts: state.counts.clone(),
        }
    }

    fn seat(self: &Arc<Self>, state: &mut State) -> Seat {
        state.executing += 1;
        state.counts.dispatched += 1;
        Seat { level: Some(self.clone()) }
    }

    fn release(self: &Arc<Self>) {
        let mut state = self.state();
        state.executing -= 1;
        while state.has_room() && self.dispatch_next(&mut state) {}
    }

    /// Gives a seat to the first of the flow after the one that was served last; false when nobody waits.
    fn dispatch_next(self: &Arc<Self>, state: &mut State) -> bool {
        while let Some((flow, sender)) = state.next_in_turn() {
            state.served = flow;
            let seat = self.seat(state);
            match sender.send(seat) {
                Ok(()) => return true,
                // It went away: nobody sits there. The seat must not be given back by being dropped.
                Err(mut seat) => {
                    seat.level = None;
                    state.executing -= 1;
                    state.counts.dispatched -= 1;
                }
            }
        }
        false
    }

    /// Those who do not wait any more make room for others.
    fn forget_gone(&self) {
        let mut state = self.state();
        let state = &mut *state;
        for queue in state.flows.values_mut() {
            let before = queue.len();
            queue.retain(|sender| !sender.is_closed());
            state.waiting -= before - queue.len();
        }
        state.flows.retain(|_, queue| !queue.is_empty());
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl State {
    fn has_room(&self) -> bool {
        self.limits.seats.is_none_or(|seats| self.executing < seats)
    }

    fn next_in_turn(&mut self) -> Option<(String, oneshot::Sender<Seat>)> {
        let after = (std::ops::Bound::Excluded(self.served.clone()), std::ops::Bound::Unbounded);
        let next = self.flows.range::<String, _>(after).next().or_else(|| self.flows.iter().next());
        let flow = next?.0.clone();
        let queue = self.flows.get_mut(&flow)?;
        let sender = queue.pop_front()?;
        self.waiting -= 1;
        if queue.is_empty() {
            self.flows.remove(&flow);
        }
        Some((flow, sender))
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        if let Some(level) = self.level.take() {
            level.release();
        }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            self.level.state().counts.cancelled += 1;
            // The receiver is dropped after this: it is found closed by whoever comes to its turn.
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    fn level(seats: usize, waiting_of_flow: usize) -> Arc<PriorityLevel> {
        let level = Arc::new(PriorityLevel::new("l", "u"));
        level.set_limits(Limits { seats: Some(seats), waiting_of_flow, waiting: 100 });
        level
    }

    #[tokio::test]
    async fn beyond_the_seats_flows_take_turns_and_too_many_are_refused() {
        let (level, clock) = (level(1, 2), Clock::stepped(Default::default()));
        let first = level.acquire("a", &clock).await.unwrap();
        let mut of_a = [Box::pin(level.acquire("a", &clock)), Box::pin(level.acquire("a", &clock))];
        let mut of_b = Box::pin(level.acquire("b", &clock));
        of_a.iter_mut().for_each(|waiting| assert!(waiting.now_or_never().is_none()));
        assert!((&mut of_b).now_or_never().is_none());
        assert!(level.acquire("a", &clock).await.is_none(), "two of a flow may wait");
        drop(first);
        // The turn is of whoever comes first in the order of flows, and then of the other.
        let [mut one, mut two] = of_a;
        let first = (&mut one).now_or_never().flatten().unwrap();
        assert!((&mut of_b).now_or_never().is_none());
        drop(first);
        let second = (&mut of_b).now_or_never().flatten().unwrap();
        assert!((&mut two).now_or_never().is_none());
        drop(second);
        assert!((&mut two).now_or_never().flatten().is_some());
        let counts = level.snapshot().counts;
        assert_eq!((counts.dispatched, counts.rejected), (4, 1));
    }

    #[tokio::test]
    async fn who_goes_away_or_waits_too_long_holds_no_seat() {
        let (level, clock) = (level(1, 2), Clock::stepped(Default::default()));
        let first = level.acquire("", &clock).await.unwrap();
        let mut gone = Box::pin(level.acquire("", &clock));
        assert!((&mut gone).now_or_never().is_none());
        drop(gone);
        let mut slow = Box::pin(level.acquire("", &clock));
        assert!((&mut slow).now_or_never().is_none());
        clock.advance(MAX_WAIT);
        assert!(slow.await.is_none());
        drop(first);
        assert!(level.acquire("", &clock).await.is_some());
        let Snapshot { waiting, executing, counts, .. } = level.snapshot();
        assert_eq!((waiting, executing, counts.cancelled, counts.timed_out), (0, 0, 1, 1));
    }

    #[test]
    fn limits_are_shares_of_what_the_server_does_at_once() {
        let read = |text: &str| serde_json::from_str::<PriorityLevelSpec>(text).unwrap();
        let exempt = read(r#"{"type": "Exempt", "exempt": {}}"#);
        assert_eq!(exempt.limits(600, 245), Limits::default());
        let limited = r#"{"type": "Limited", "limited": {"nominalConcurrencyShares": 20, "limitResponse":
            {"type": "Queue", "queuing": {"queues": 128, "handSize": 6, "queueLengthLimit": 50}}}}"#;
        let expected = Limits { seats: Some(49), waiting_of_flow: 300, waiting: 6400 };
        assert_eq!(read(limited).limits(600, 245), expected);
    }
}
