//! A queue of a priority level, and the requests in it (`fairqueuing/queueset/types.go`).

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;

use super::metrics::FlowStats;
use super::seat_seconds::SeatSeconds;
use super::work_estimate::WorkEstimate;
use crate::request::RequestInfo;
use apimachinery::user::UserInfo;

/// A request as it comes.
pub(super) struct Arrival {
    pub flow: Arc<FlowStats>,
    pub distinguisher: Box<str>,
    /// Of the flow; deals its hand.
    pub hash: u64,
    pub estimate: WorkEstimate,
    pub user: Arc<UserInfo>,
    pub info: Arc<RequestInfo>,
}

/// A request that waits or is worked on.
pub(super) struct QueuedRequest {
    pub arrival: Arrival,
    pub arrived: Duration,
    pub started: Option<Duration>,
    pub id: u64,
    pub arrival_r: SeatSeconds,
    pub total_work: SeatSeconds,
    /// Wakes who waits; none when it did not have to.
    pub turn: Option<oneshot::Sender<()>>,
}

/// Requests that wait one behind the other, and those that were here and are worked on.
#[derive(Default)]
pub(super) struct FlowQueue {
    /// Bound: the level's `queueLengthLimit`, while all seats are taken; beyond it requests are refused.
    pub waiting: VecDeque<QueuedRequest>,
    pub executing: Vec<QueuedRequest>,
    pub next_dispatch_r: SeatSeconds,
    pub seats_in_use: usize,
    pub initial_seats_sum: usize,
    pub max_seats_sum: usize,
    pub work_sum: SeatSeconds,
    pub id: u64,
}

impl FlowQueue {
    pub(super) fn is_active(&self) -> bool {
        !self.waiting.is_empty() || !self.executing.is_empty()
    }

    pub(super) fn push(&mut self, request: QueuedRequest) {
        self.initial_seats_sum += request.arrival.estimate.initial_seats;
        self.max_seats_sum += request.seats();
        self.work_sum = self.work_sum.plus(request.total_work);
        self.waiting.push_back(request);
    }

    pub(super) fn remove(&mut self, index: usize) -> Option<QueuedRequest> {
        let request = self.waiting.remove(index)?;
        self.initial_seats_sum -= request.arrival.estimate.initial_seats;
        self.max_seats_sum -= request.seats();
        self.work_sum = self.work_sum.minus(request.total_work);
        Some(request)
    }

    /// A queue that cannot use what it is given must not save it up.
    pub(super) fn bound_next_dispatch(&mut self) {
        if let Some(first) = self.waiting.front() {
            self.next_dispatch_r = self.next_dispatch_r.max(first.arrival_r);
        }
    }
}

impl QueuedRequest {
    pub(super) fn seats(&self) -> usize {
        self.arrival.estimate.max_seats()
    }

    /// Its last work takes longer on fewer seats.
    pub(super) fn fit(&mut self, limit: usize) {
        let estimate = &mut self.arrival.estimate;
        if estimate.final_seats > limit {
            estimate.additional_latency = estimate.final_work().per_seat(limit as f64);
            estimate.final_seats = limit;
        }
    }
}
