//! How priority levels, their queues and their requests are at a moment (`apf_controller_debug.go`): rows of
//! cells.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};

use super::configuration::{FlowConfiguration, LevelConfiguration};
use super::queue::{FlowQueue, QueuedRequest};
use apimachinery::duration;
use clock::Clock;

/// What is told, of the levels in the order of their names.
pub struct Dump {
    levels: Vec<Arc<LevelConfiguration>>,
    now: DateTime<Utc>,
    elapsed: Duration,
}

type DumpRow = Vec<String>;

impl Dump {
    pub(super) fn of(configuration: &FlowConfiguration, clock: &Clock) -> Dump {
        let levels = configuration.levels.values().cloned().collect();
        Dump { levels, now: clock.now(), elapsed: clock.elapsed() }
    }

    /// A row for each level.
    pub fn priority_levels(&self) -> Vec<DumpRow> {
        let headings = "PriorityLevelName ActiveQueues IsIdle IsQuiescing WaitingRequests ExecutingRequests \
            DispatchedRequests RejectedRequests TimedoutRequests CancelledRequests";
        let mut rows = vec![cells(headings)];
        for level in &self.levels {
            rows.push(level.requests.with(|set| {
                let active = set.queues.iter().filter(|queue| !queue.waiting.is_empty()).count();
                let counts = set.counts;
                vec![
                    level.requests.name.to_string(),
                    active.to_string(),
                    set.is_idle().to_string(),
                    level.is_quiescing.to_string(),
                    set.waiting.to_string(),
                    set.executing.to_string(),
                    counts.dispatched.to_string(),
                    counts.rejected.to_string(),
                    // Upstream never counts any.
                    "0".into(),
                    counts.cancelled.to_string(),
                ]
            }));
        }
        rows
    }

    /// A row for each queue.
    pub fn queues(&self) -> Vec<DumpRow> {
        let headings = "PriorityLevelName Index PendingRequests ExecutingRequests SeatsInUse NextDispatchR \
            InitialSeatsSum MaxSeatsSum TotalWorkSum";
        let mut rows = vec![cells(headings)];
        for level in &self.levels {
            level.requests.with(|set| {
                let unused = FlowQueue::default();
                for at in 0..set.queue_count() {
                    let queue = set.queues.get(at).unwrap_or(&unused);
                    rows.push(vec![
                        level.requests.name.to_string(),
                        at.to_string(),
                        queue.waiting.len().to_string(),
                        queue.executing.len().to_string(),
                        queue.seats_in_use.to_string(),
                        queue.next_dispatch_r.to_string(),
                        queue.initial_seats_sum.to_string(),
                        queue.max_seats_sum.to_string(),
                        queue.work_sum.to_string(),
                    ]);
                }
            });
        }
        rows
    }

    /// A row for each request; `with_details` says who asks what.
    pub fn requests(&self, with_details: bool) -> Vec<DumpRow> {
        let headings = "PriorityLevelName FlowSchemaName QueueIndex RequestIndexInQueue FlowDistingsher \
            ArriveTime InitialSeats FinalSeats AdditionalLatency StartTime";
        let details = " UserName Verb APIPath Namespace Name APIVersion Resource SubResource";
        let mut rows = vec![cells(&format!("{headings}{}", if with_details { details } else { "" }))];
        for level in &self.levels {
            level.requests.with(|set| {
                let queues = set.queues.iter().enumerate().map(|(at, queue)| (at as i64, queue));
                for (at, queue) in queues {
                    for (index, request) in queue.waiting.iter().enumerate() {
                        rows.push(self.request(level, [at, index as i64], request, with_details));
                    }
                    let executing = queue.executing.iter();
                    rows.extend(
                        executing.map(|request| self.request(level, [at, -1], request, with_details)),
                    );
                }
                let queueless = set.queueless.iter();
                rows.extend(queueless.map(|request| self.request(level, [-1, -1], request, with_details)));
            });
        }
        rows
    }

    fn request(
        &self,
        level: &LevelConfiguration,
        [queue, index]: [i64; 2],
        request: &QueuedRequest,
        with_details: bool,
    ) -> DumpRow {
        let (arrival, estimate) = (&request.arrival, &request.arrival.estimate);
        let started = request.started.map(|started| self.time(started));
        let mut row = vec![
            level.requests.name.to_string(),
            arrival.flow.schema.to_string(),
            queue.to_string(),
            index.to_string(),
            arrival.distinguisher.to_string(),
            self.time(request.arrived),
            estimate.initial_seats.to_string(),
            estimate.final_seats.to_string(),
            duration::format(estimate.additional_latency),
            started.unwrap_or_else(|| "0001-01-01T00:00:00Z".into()),
        ];
        if with_details {
            let info = &arrival.info;
            let version = match info.group.as_str() {
                "" => info.version.clone(),
                group => format!("{group}/{}", info.version),
            };
            let words = [&*arrival.user.name, &info.verb, &info.path, &info.namespace, &info.name, &version];
            row.extend(words.into_iter().chain([&*info.resource, &*info.subresource]).map(String::from));
        }
        row
    }

    /// As Go writes it to the nanosecond, without zeros at the end.
    fn time(&self, elapsed: Duration) -> String {
        let time = self.now - self.elapsed.saturating_sub(elapsed);
        let text = time.format("%Y-%m-%dT%H:%M:%S%.9f").to_string();
        format!("{}Z", text.trim_end_matches('0').trim_end_matches('.'))
    }
}

fn cells(words: &str) -> DumpRow {
    words.split_whitespace().map(String::from).collect()
}
