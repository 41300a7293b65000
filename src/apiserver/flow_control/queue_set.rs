//! Fair queuing for server requests: which request of a priority level is next (`fairqueuing/queueset`).
//!
//! Each flow has a hand of queues and waits in the emptiest of them. R is how much work each queue that is
//! not empty has been given so far; the queue whose first request would be done at the smallest R is next.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;

use super::demand::{ADJUSTMENT_PERIOD, Demand, DemandStats};
use super::metrics::{FlowStats, RejectReason, Utilization};
use super::queue::{Arrival, FlowQueue, QueuedRequest};
use super::seat_seconds::SeatSeconds;
use super::shuffle_sharding::Hand;

/// What a request is taken to need before it is known.
const ESTIMATED_SERVICE_DURATION: Duration = Duration::from_millis(3);

/// What happens to requests that find no seat.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Queuing {
    /// There is always one.
    Exempt,
    /// They are refused.
    #[default]
    Reject,
    /// They wait, so many in each of so many queues, in one of a hand of them.
    Queue { queues: usize, hand_size: usize, length_limit: usize },
}

/// Where a request is found again.
#[derive(Clone, Copy, Debug)]
pub(super) struct QueueSetPlace {
    id: u64,
    queue: Option<QueueRef>,
}

/// A queue, and where it was: those before it may go.
#[derive(Clone, Copy, Debug)]
pub(super) struct QueueRef {
    at: usize,
    id: u64,
}

/// What becomes of a request that comes.
pub(super) enum QueueSetOutcome {
    Refused,
    Executing(QueueSetPlace),
    Waiting(QueueSetPlace, oneshot::Receiver<()>),
}

/// What a request leaves behind: seats that it holds for some time after it was answered.
pub(super) struct Lingering {
    pub flow: Arc<FlowStats>,
    pub seats: usize,
    pub queue: Option<QueueRef>,
    pub time: Duration,
}

/// What became of a level's requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct QueueCounts {
    /// Were given a seat.
    pub dispatched: u64,
    /// Were refused, or waited in vain.
    pub rejected: u64,
    /// Waited in vain: too long, or for a client that went away.
    pub cancelled: u64,
}

/// The requests of one level.
pub(super) struct QueueSet {
    pub counts: QueueCounts,
    /// No configuration wants it any more; it goes when nobody is left.
    pub quiescing: bool,
    pub queues: Vec<FlowQueue>,
    /// Those that are worked on without having been in a queue.
    pub queueless: Vec<QueuedRequest>,
    pub waiting: usize,
    pub executing: usize,
    pub current_r: SeatSeconds,
    pub demand: Demand,
    pub utilization: Utilization,
    queuing: Queuing,
    limit: usize,
    at: Duration,
    robin: usize,
    enqueues: usize,
    next_id: u64,
    seats_in_use: usize,
    seats_waiting: usize,
    /// Queues in which somebody waits or is worked on, and the seats that all queues use or could use.
    active_queues: usize,
    queued_seats: usize,
}

impl QueueSet {
    pub(super) fn new(now: Duration) -> QueueSet {
        let periods = now.as_nanos() / ADJUSTMENT_PERIOD.as_nanos() + 1;
        let due = ADJUSTMENT_PERIOD.saturating_mul(u32::try_from(periods).unwrap_or(u32::MAX));
        QueueSet {
            counts: QueueCounts::default(),
            quiescing: false,
            queues: vec![],
            queueless: vec![],
            waiting: 0,
            executing: 0,
            current_r: SeatSeconds::default(),
            demand: Demand::new(now, due),
            utilization: Utilization::new(now),
            queuing: Queuing::default(),
            limit: 0,
            at: now,
            robin: 0,
            enqueues: 0,
            next_id: 0,
            seats_in_use: 0,
            seats_waiting: 0,
            active_queues: 0,
            queued_seats: 0,
        }
    }

    /// Queues that are too many are used up.
    pub(super) fn set_queuing(&mut self, queuing: Queuing) {
        self.queuing = queuing;
    }

    /// So many seats from now on; utilization is told as part of `denominator`.
    pub(super) fn set_limit(&mut self, now: Duration, limit: usize, denominator: usize) {
        self.sync(now);
        self.limit = limit;
        let waiting = match self.queuing {
            Queuing::Queue { queues, length_limit, .. } => queues.saturating_mul(length_limit.max(1)),
            Queuing::Reject | Queuing::Exempt => 1,
        };
        self.utilization.set_denominators(now, waiting, denominator);
        self.dispatch_all(now, None);
        self.note(now);
    }

    pub(super) fn is_idle(&self) -> bool {
        self.waiting == 0 && self.executing == 0
    }

    /// How many queues there are, whether or not somebody was ever in one.
    pub(super) fn queue_count(&self) -> usize {
        self.queues.len().max(self.desired())
    }

    pub(super) fn demand_stats(&mut self, now: Duration, ends_early: bool) -> DemandStats {
        if ends_early { self.demand.end_period(now) } else { self.demand.stats(now) }
    }

    pub(super) fn arrive(&mut self, now: Duration, arrival: Arrival) -> QueueSetOutcome {
        self.sync(now);
        let outcome = match self.queuing {
            Queuing::Queue { queues, hand_size, length_limit } => {
                self.queues.resize_with(self.queues.len().max(queues), FlowQueue::default);
                self.enqueue(now, arrival, [queues, hand_size, length_limit])
            }
            Queuing::Exempt | Queuing::Reject => self.execute_or_reject(now, arrival),
        };
        self.note(now);
        outcome
    }

    /// A request is done, or goes away while it waits. What it says are seats that are held for a while.
    pub(super) fn leave(&mut self, now: Duration, place: QueueSetPlace) -> Option<Lingering> {
        self.sync(now);
        let queue = place.queue.and_then(|queue| self.find_queue(queue));
        let lingering = match queue {
            Some(at) if self.give_up(at, place.id) => None,
            _ => self.finish(now, place, queue),
        };
        self.dispatch_all(now, None);
        self.note(now);
        lingering
    }

    /// Seats that were held are free.
    pub(super) fn release(&mut self, now: Duration, seats: &Lingering) {
        self.sync(now);
        self.free(seats);
        self.dispatch_all(now, None);
        self.note(now);
    }

    fn desired(&self) -> usize {
        match self.queuing {
            Queuing::Queue { queues, .. } => queues,
            Queuing::Exempt | Queuing::Reject => 0,
        }
    }

    /// Brings R up to now: what happened since was done as things stand.
    fn sync(&mut self, now: Duration) {
        let passed = now.saturating_sub(self.at);
        self.at = self.at.max(now);
        if self.active_queues > 0 {
            let ratio = self.queued_seats.min(self.limit) as f64 / self.active_queues as f64;
            self.current_r = self.current_r.plus(SeatSeconds::of(ratio, passed));
        }
    }

    /// What is counted of all queues at once is what they hold. Looked at after each change, in debug builds.
    fn check(&self) {
        if !cfg!(debug_assertions) {
            return;
        }
        let sum = |of: fn(&FlowQueue) -> usize| self.queues.iter().map(of).sum::<usize>();
        debug_assert_eq!(self.waiting, sum(|queue| queue.waiting.len()), "who waits is in a queue");
        debug_assert_eq!(
            self.seats_waiting,
            sum(|queue| queue.max_seats_sum),
            "seats are waited for in queues"
        );
        let executing = sum(|queue| queue.executing.len()) + self.queueless.len();
        debug_assert_eq!(self.executing, executing, "who is worked on was in a queue, or never in any");
        let active = sum(|queue| usize::from(queue.is_active()));
        debug_assert_eq!(self.active_queues, active, "a queue is active as long as it holds somebody");
    }

    fn note(&mut self, now: Duration) {
        self.check();
        let seats = self.seats_in_use + self.seats_waiting;
        self.demand.set(now, seats);
        self.utilization.set(now, [self.waiting, self.executing, self.seats_in_use, seats]);
    }

    fn has_room_for(&self, seats: usize) -> bool {
        match self.queuing {
            Queuing::Exempt => true,
            // What never fits goes alone.
            _ if seats > self.limit => self.executing == 0,
            _ => self.seats_in_use + seats <= self.limit,
        }
    }

    fn request(&mut self, now: Duration, arrival: Arrival) -> QueuedRequest {
        self.next_id += 1;
        let estimate = &arrival.estimate;
        let first = SeatSeconds::of(estimate.initial_seats as f64, ESTIMATED_SERVICE_DURATION);
        let total_work = first.plus(estimate.final_work());
        let arrival_r = self.current_r;
        QueuedRequest {
            arrival,
            arrived: now,
            started: None,
            id: self.next_id,
            arrival_r,
            total_work,
            turn: None,
        }
    }

    fn refuse(&mut self, flow: &FlowStats, reason: RejectReason) -> QueueSetOutcome {
        self.counts.rejected += 1;
        flow.reject(reason);
        QueueSetOutcome::Refused
    }

    fn execute_or_reject(&mut self, now: Duration, arrival: Arrival) -> QueueSetOutcome {
        if !self.has_room_for(arrival.estimate.max_seats()) {
            return self.refuse(&arrival.flow, RejectReason::ConcurrencyLimit);
        }
        let mut request = self.request(now, arrival);
        self.start(now, &mut request);
        let place = QueueSetPlace { id: request.id, queue: None };
        self.queueless.push(request);
        QueueSetOutcome::Executing(place)
    }

    fn enqueue(
        &mut self,
        now: Duration,
        arrival: Arrival,
        [queues, hand_size, limit]: [usize; 3],
    ) -> QueueSetOutcome {
        let at = self.choose_queue(arrival.hash, queues, hand_size);
        if self.seats_in_use >= self.limit && self.queues[at].waiting.len() >= limit {
            return self.refuse(&arrival.flow, RejectReason::QueueFull);
        }
        let request = self.request(now, arrival);
        let (id, flow, seats) = (request.id, request.arrival.flow.clone(), request.seats());
        let (is_idle, r) = (!self.queues[at].is_active(), self.current_r);
        let queue = &mut self.queues[at];
        if is_idle {
            (queue.next_dispatch_r, queue.id) = (r, if queue.id == 0 { id } else { queue.id });
        }
        let place = QueueSetPlace { id, queue: Some(QueueRef { at, id: queue.id }) };
        queue.push(request);
        flow.observe_queue_length(queue.waiting.len());
        queue.bound_next_dispatch();
        self.active_queues += usize::from(is_idle);
        self.queued_seats += seats;
        self.waiting += 1;
        self.seats_waiting += seats;
        self.dispatch_all(now, Some(at));
        // It may be at work already, and its queue empty.
        match self.queues[at].waiting.iter_mut().rfind(|request| request.id == id) {
            None => QueueSetOutcome::Executing(place),
            Some(request) => {
                let (turn, woken) = oneshot::channel();
                request.turn = Some(turn);
                flow.add_waiting(seats);
                QueueSetOutcome::Waiting(place, woken)
            }
        }
    }

    fn choose_queue(&mut self, hash: u64, queues: usize, hand_size: usize) -> usize {
        let hand = Hand::deal(hash, queues, hand_size);
        let offset = self.enqueues % hand_size.max(1);
        self.enqueues = self.enqueues.wrapping_add(1);
        hand.from(offset).min_by_key(|at| self.queues[*at].work_sum).unwrap_or_default()
    }

    /// `newest` is where the last request came, if one has.
    fn dispatch_all(&mut self, now: Duration, newest: Option<usize>) {
        while self.waiting > 0 && self.seats_in_use < self.limit && self.dispatch(now, newest) {}
    }

    /// Whether there was a next one for which there is room.
    fn dispatch(&mut self, now: Duration, newest: Option<usize>) -> bool {
        let only = newest.filter(|at| self.waiting == self.queues[*at].waiting.len());
        let Some(at) = only.or_else(|| self.next_queue()) else { return false };
        let Some(seats) = self.queues[at].waiting.front().map(|request| request.seats()) else {
            return false;
        };
        if !self.has_room_for(seats) {
            self.queues[at]
                .waiting
                .front()
                .iter()
                .for_each(|request| request.arrival.flow.no_accommodation());
            return false;
        }
        let bounds = self.dispatch_bounds(only);
        let Some(mut request) = self.queues[at].remove(0) else { return false };
        self.utilization.note_dispatch(self.current_r, self.queues[at].next_dispatch_r, bounds);
        self.robin = at;
        self.waiting -= 1;
        self.seats_waiting -= seats;
        self.queued_seats -= seats;
        request.fit(self.limit);
        if let Some(turn) = request.turn.take() {
            request.arrival.flow.remove_waiting(seats);
            // Who went away meanwhile leaves as from work.
            let _ = turn.send(());
        }
        self.start(now, &mut request);
        let (seats, queue) = (request.seats(), &mut self.queues[at]);
        queue.seats_in_use += seats;
        queue.next_dispatch_r = queue.next_dispatch_r.plus(request.total_work);
        queue.executing.push(request);
        queue.bound_next_dispatch();
        self.queued_seats += seats;
        true
    }

    fn start(&mut self, now: Duration, request: &mut QueuedRequest) {
        let seats = request.seats();
        request.started = Some(now);
        self.executing += 1;
        self.seats_in_use += seats;
        self.counts.dispatched += 1;
        request.arrival.flow.add_executing(seats);
    }

    /// From the one after the last, in turn: the first of those that would be done soonest.
    fn next_queue(&self) -> Option<usize> {
        let count = self.queues.len();
        let in_turn = (1..=count).map(|step| (self.robin + step) % count);
        let finish = |at: &usize| {
            let queue = &self.queues[*at];
            queue
                .waiting
                .front()
                .map_or(SeatSeconds::MAX, |first| queue.next_dispatch_r.plus(first.total_work))
        };
        in_turn.filter(|at| !self.queues[*at].waiting.is_empty()).min_by_key(finish)
    }

    /// The smallest and the biggest R at which a queue is next, as they are and without what is being worked
    /// on.
    fn dispatch_bounds(&self, only: Option<usize>) -> [f64; 4] {
        let mut bounds = [f64::MAX, 0.0, f64::MAX, 0.0];
        let queues = only.map_or(&self.queues[..], |at| &self.queues[at..=at]);
        for queue in queues.iter().filter(|queue| !queue.waiting.is_empty()) {
            let next = queue.next_dispatch_r.as_f64();
            let in_work = queue.seats_in_use as f64 * ESTIMATED_SERVICE_DURATION.as_secs_f64();
            for (at, value) in [(0, next), (2, next - in_work)] {
                bounds[at] = bounds[at].min(value);
                bounds[at + 1] = bounds[at + 1].max(value);
            }
        }
        bounds
    }

    /// Whether it waited.
    fn give_up(&mut self, at: usize, id: u64) -> bool {
        let Some(index) = self.queues[at].waiting.iter().position(|request| request.id == id) else {
            return false;
        };
        let Some(request) = self.queues[at].remove(index) else { return false };
        let (seats, flow) = (request.seats(), &request.arrival.flow);
        self.queues[at].bound_next_dispatch();
        self.active_queues -= usize::from(!self.queues[at].is_active());
        self.waiting -= 1;
        self.seats_waiting -= seats;
        self.queued_seats -= seats;
        self.counts.rejected += 1;
        self.counts.cancelled += 1;
        flow.reject(RejectReason::TimeOut);
        flow.remove_waiting(seats);
        true
    }

    fn finish(&mut self, now: Duration, place: QueueSetPlace, queue: Option<usize>) -> Option<Lingering> {
        let executing = match queue {
            Some(at) => &mut self.queues[at].executing,
            None => &mut self.queueless,
        };
        let index = executing.iter().position(|request| request.id == place.id)?;
        let request = executing.swap_remove(index);
        self.executing -= 1;
        request.arrival.flow.remove_executing();
        if let Some(at) = queue {
            // What it was taken to need is replaced by what it needed.
            let initial_seats = request.arrival.estimate.initial_seats as f64;
            let took = now.saturating_sub(request.started.unwrap_or(now));
            let queue = &mut self.queues[at];
            let start =
                queue.next_dispatch_r.minus(SeatSeconds::of(initial_seats, ESTIMATED_SERVICE_DURATION));
            queue.next_dispatch_r = start.plus(SeatSeconds::of(initial_seats, took));
            queue.bound_next_dispatch();
            self.active_queues -= usize::from(!queue.is_active());
        }
        let time = request.arrival.estimate.additional_latency;
        let seats = request.seats();
        let lingering = Lingering { flow: request.arrival.flow, seats, queue: place.queue, time };
        if !lingering.time.is_zero() {
            return Some(lingering);
        }
        self.free(&lingering);
        None
    }

    fn free(&mut self, lingering: &Lingering) {
        let seats = lingering.seats;
        self.seats_in_use -= seats;
        lingering.flow.remove_seats(seats);
        let Some(at) = lingering.queue.and_then(|queue| self.find_queue(queue)) else { return };
        let queue = &mut self.queues[at];
        queue.seats_in_use -= seats;
        self.queued_seats -= seats;
        if self.queues.len() > self.desired() && !self.queues[at].is_active() {
            self.queued_seats -= self.queues.remove(at).seats_in_use;
            // The next one after it stays the next.
            if self.robin >= at {
                self.robin = self.robin.checked_sub(1).unwrap_or(self.queues.len().saturating_sub(1));
            }
        }
    }

    fn find_queue(&self, QueueRef { at, id }: QueueRef) -> Option<usize> {
        let is_there = self.queues.get(at).is_some_and(|queue| queue.id == id);
        if is_there { Some(at) } else { self.queues.iter().position(|queue| queue.id == id) }
    }
}

#[cfg(test)]
#[path = "queue_set_tests.rs"]
mod tests;
