//! How many seats a request takes (`util/flowcontrol/request`): a list by what it loads, a write by how many
//! watches it wakes.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use super::seat_seconds::SeatSeconds;
use super::watches::WatchTracker;
use crate::registry::Registry;
use crate::request::{RequestInfo, query_value};
use apimachinery::options::ListOptions;
use apis::kind::Kind;
use apis::scheme::Scheme;
use clock::Clock;
use sync::Mutex;

const MAX_LIST_SEATS: usize = 100;
const MAX_MUTATING_SEATS: usize = 10;
const WATCHES_PER_SEAT: usize = 10;
/// What an event takes beyond the request, on one seat for so many watches.
const EVENT_TIME: Duration = Duration::from_millis(5);
const BYTES_PER_SEAT: usize = 100_000;
/// What a custom object is taken to have: a hundred of them make a seat, as where sizes are not known.
const CUSTOM_OBJECT_BYTES: usize = 1000;
/// More is not in memory at once: what comes from the cache is sent as a stream.
const MAX_STREAMED_BYTES: usize = 1_000_000;
/// How long a count of objects is good for: as often as upstream's storage counts its own.
const COUNT_TTL: Duration = Duration::from_secs(60);
/// Kinds whose objects were counted; with more all are counted anew.
const MAX_COUNTED: usize = 1000;

/// What a request needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WorkEstimate {
    /// While it is worked on.
    pub initial_seats: usize,
    /// Afterwards, for the time that follows.
    pub final_seats: usize,
    /// Nobody waits for it but those who come next.
    pub additional_latency: Duration,
}

/// Estimates how much work a request is (`flowcontrol/request.WorkEstimatorFunc`).
pub(super) struct WorkEstimator {
    registry: Registry,
    scheme: Arc<Scheme>,
    clock: Clock,
    watches: Arc<WatchTracker>,
    /// When, how many, and how big on average, by storage prefix. Bound: [`MAX_COUNTED`].
    counted: Mutex<HashMap<Arc<str>, (Duration, usize, usize)>>,
}

impl WorkEstimate {
    const ONE: WorkEstimate = WorkEstimate::seats(1);

    const fn seats(initial_seats: usize) -> WorkEstimate {
        WorkEstimate { initial_seats, final_seats: 0, additional_latency: Duration::ZERO }
    }

    /// Of both of its phases.
    pub(super) fn max_seats(&self) -> usize {
        self.initial_seats.max(self.final_seats)
    }

    /// What is left to do when it is answered.
    pub(super) fn final_work(&self) -> SeatSeconds {
        SeatSeconds::of(self.final_seats as f64, self.additional_latency)
    }
}

impl WorkEstimator {
    pub(super) fn new(
        registry: &Registry,
        scheme: &Arc<Scheme>,
        clock: &Clock,
        watches: &Arc<WatchTracker>,
    ) -> WorkEstimator {
        WorkEstimator {
            registry: registry.clone(),
            scheme: scheme.clone(),
            clock: clock.clone(),
            watches: watches.clone(),
            counted: Mutex::default(),
        }
    }

    /// Of a request at a level where none may take more than `max_seats`; 0 is the server's own bound. With
    /// it how many watches a write wakes.
    pub(super) async fn estimate(
        &self,
        info: &RequestInfo,
        query: &str,
        max_seats: usize,
    ) -> (WorkEstimate, Option<usize>) {
        let bounded = |own: usize| if max_seats == 0 { own } else { max_seats.min(own) };
        match info.verb.as_str() {
            "list" | "watch" => (self.of_list(info, query, bounded(MAX_LIST_SEATS)).await, None),
            "create" | "update" | "patch" | "delete" if !is_without_event(info) => {
                let watches = self.watches.interested_in(info);
                (of_write(watches, bounded(MAX_MUTATING_SEATS)), Some(watches))
            }
            _ => (WorkEstimate::ONE, None),
        }
    }

    async fn of_list(&self, info: &RequestInfo, query: &str, max_seats: usize) -> WorkEstimate {
        let Some(kind) = self.scheme.resource(&info.group, &info.version, &info.resource) else {
            return WorkEstimate::ONE;
        };
        let Some(list) = Listing::of(info, query) else { return WorkEstimate::seats(max_seats) };
        if info.verb == "watch" && !list.begins_with_all {
            return WorkEstimate::ONE;
        }
        let (count, size) = self.count(&kind).await;
        WorkEstimate::seats(list.bytes(count, size).div_ceil(BYTES_PER_SEAT).clamp(1, max_seats.max(1)))
    }

    /// How many objects there are of a kind, and how big one is.
    async fn count(&self, kind: &Arc<Kind>) -> (usize, usize) {
        let now = self.clock.elapsed();
        let key: Arc<str> = kind.storage_kind().storage_prefix().clone();
        let known = self.counted().get(&key).copied();
        if let Some((_, count, size)) = known.filter(|(at, ..)| now.saturating_sub(*at) < COUNT_TTL) {
            return (count, size);
        }
        let Some((count, size)) = self.look(kind).await else { return (0, 0) };
        let mut counted = self.counted();
        if counted.len() >= MAX_COUNTED {
            counted.clear();
        }
        counted.insert(key, (now, count, size));
        (count, size)
    }

    /// Custom objects are only counted: to list them may be to have them converted.
    async fn look(&self, kind: &Arc<Kind>) -> Option<(usize, usize)> {
        if kind.custom.is_some() {
            return Some((self.registry.count(kind.storage_kind()).await.ok()?, CUSTOM_OBJECT_BYTES));
        }
        let list = Box::pin(self.registry.list(kind, "", &ListOptions::default())).await.ok()?;
        let bytes: usize = list.items.iter().map(|object| object.size_bytes()).sum();
        Some((list.items.len(), bytes.checked_div(list.items.len()).unwrap_or(0)))
    }

    fn counted(&self) -> sync::MutexGuard<'_, HashMap<Arc<str>, (Duration, usize, usize)>> {
        self.counted.lock()
    }
}

/// A token makes nothing happen to its service account.
fn is_without_event(info: &RequestInfo) -> bool {
    info.resource == "serviceaccounts" && info.subresource == "token"
}

/// One seat, and afterwards one for each so many watches: fewer for longer where that is too many.
fn of_write(watches: usize, max_seats: usize) -> WorkEstimate {
    if watches < WATCHES_PER_SEAT {
        return WorkEstimate::ONE;
    }
    let seats = watches.div_ceil(WATCHES_PER_SEAT);
    let (work, final_seats) = (SeatSeconds::of(seats as f64, EVENT_TIME), seats.min(max_seats));
    let additional_latency = work.per_seat(final_seats as f64);
    WorkEstimate { initial_seats: 1, final_seats, additional_latency }
}

/// What a list loads.
#[derive(Debug, Default, PartialEq, Eq)]
struct Listing {
    /// A watch that begins with what there is.
    begins_with_all: bool,
    is_of_one: bool,
    is_from_cache: bool,
    is_selected: bool,
    limit: usize,
}

impl Listing {
    /// None when it will be refused.
    fn of(info: &RequestInfo, query: &str) -> Option<Listing> {
        let value = |key: &str| query_value(query, key).unwrap_or_default();
        let limit = match value("limit").as_str() {
            "" => 0,
            text => text.parse::<i64>().ok()?,
        };
        let sends_initial_events = !matches!(value("sendInitialEvents").as_str(), "" | "false" | "0");
        let (version, matching) = (value("resourceVersion"), value("resourceVersionMatch"));
        let is_any = matches!(version.as_str(), "" | "0");
        // Exact states and later pages are read from the store.
        let is_stored = match matching.as_str() {
            "" => !value("continue").is_empty() || limit > 0 && !is_any,
            other => other != "NotOlderThan",
        };
        Some(Listing {
            begins_with_all: sends_initial_events || is_any,
            is_of_one: !info.name.is_empty(),
            is_from_cache: info.verb == "watch" || !is_stored,
            is_selected: !info.field_selector.is_empty() || !info.label_selector.is_empty(),
            limit: usize::try_from(limit).unwrap_or(0),
        })
    }

    /// Of so many objects of that size, what is in memory at once.
    fn bytes(&self, count: usize, size: usize) -> usize {
        let limited = if self.limit > 0 { self.limit.min(count) } else { count };
        let objects = match self {
            Listing { is_of_one: true, .. } => 1,
            Listing { is_from_cache: false, is_selected: true, .. } => limited.max(count / 2),
            _ => limited,
        };
        let bytes = objects.saturating_mul(size);
        if self.is_from_cache { bytes.min(MAX_STREAMED_BYTES) } else { bytes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seats(path: &str, count: usize, size: usize) -> Option<usize> {
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let info = RequestInfo::new(&http::Method::GET, path, query).unwrap();
        let list = Listing::of(&info, query)?;
        let is_short = info.verb == "watch" && !list.begins_with_all;
        Some(if is_short { 1 } else { list.bytes(count, size).div_ceil(BYTES_PER_SEAT) })
    }

    #[test]
    fn lists_take_seats_by_what_they_load() {
        let pods = "/api/v1/pods";
        for (query, count, size, expected) in [
            ("", 799, 1_000, Some(8)),
            ("", 5_000, 10_000, Some(10)),
            ("?limit=399", 5_000, 1_000, Some(4)),
            ("?limit=399&resourceVersion=7", 5_000, 10_000, Some(40)),
            ("?limit=10&continue=x&labelSelector=a%3Db", 799, 1_000, Some(4)),
            ("?limit=10&continue=x", 799, 1_000, Some(1)),
            ("?resourceVersionMatch=Exact&resourceVersion=7", 5_000, 10_000, Some(500)),
            ("?resourceVersionMatch=NotOlderThan&resourceVersion=7", 5_000, 10_000, Some(10)),
            ("?fieldSelector=metadata.name%3Da", 5_000, 10_000, Some(1)),
            ("?watch=1", 799, 1_000, Some(8)),
            ("?watch=1&resourceVersion=7", 799, 1_000, Some(1)),
            ("?watch=1&resourceVersion=7&sendInitialEvents=true", 799, 1_000, Some(8)),
            ("?limit=many", 1, 1, None),
        ] {
            assert_eq!(seats(&format!("{pods}{query}"), count, size), expected, "{query}");
        }
    }

    #[test]
    fn writes_take_seats_for_those_who_watch() {
        let milliseconds = Duration::from_millis;
        for (watches, max_seats, final_seats, latency) in [
            (9, 10, 0, milliseconds(0)),
            (10, 10, 1, milliseconds(5)),
            (25, 10, 3, milliseconds(5)),
            (100, 10, 10, milliseconds(5)),
            (200, 10, 10, milliseconds(10)),
            (25, 1, 1, milliseconds(15)),
        ] {
            let estimate = of_write(watches, max_seats);
            assert_eq!(
                (estimate.final_seats, estimate.additional_latency),
                (final_seats, latency),
                "{watches}"
            );
        }
    }
}
