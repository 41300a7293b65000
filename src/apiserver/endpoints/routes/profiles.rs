//! Go's named profiles, as far as something true can be said of this process, and how all of them are
//! answered (`net/http/pprof.handler`, `runtime/pprof.Profile`).
//!
//! - `goroutine`: the tasks that live by the clock, by component and name, and how many others the runtime
//!   has;
//! - `threadcreate`: the threads of the process, by name;
//! - `heap` and `allocs`: what is kept, as far as whoever keeps it says so, and what else is resident. Of
//!   what is gone nobody has kept count: what is in use is all that is known to have been allocated;
//! - `block`: with `--contention-profiling` how often the runtime's threads waited, and how long, since then;
//!   without it, and `mutex` always, nothing is counted, as upstream.

use std::time::Duration;

use axum::body::Body;
use http::header::{CONTENT_DISPOSITION, CONTENT_TYPE, HeaderName, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderValue, StatusCode};

use super::kept_memory::{HeapCount, KeptMemory, KeptShare};
use super::pprof::{ELSEWHERE, PprofProfile, ProfileShape, nanoseconds};
use super::{pprof_text, process};
use crate::endpoints::query::Query;
use apimachinery::wire::{ApiResponse, text_response};
use clock::{Clock, CpuProfile, FrameName, RuntimeWaits};

/// Says to `go tool pprof` that the text is for its user.
const GO_PPROF: HeaderName = HeaderName::from_static("x-go-pprof");
/// Threads whose names are too many to read.
const UNNAMED: &str = "(too many threads)";

const CPU: ProfileShape = ProfileShape {
    values: &[("samples", "count"), ("cpu", "nanoseconds")],
    period: ("cpu", "nanoseconds"),
    shown: None,
};
const GOROUTINE: ProfileShape =
    ProfileShape { values: &[("goroutine", "count")], period: ("goroutine", "count"), shown: None };
const THREADCREATE: ProfileShape =
    ProfileShape { values: &[("threadcreate", "count")], period: ("threadcreate", "count"), shown: None };
const HEAP: ProfileShape = ProfileShape {
    values: &[
        ("alloc_objects", "count"),
        ("alloc_space", "bytes"),
        ("inuse_objects", "count"),
        ("inuse_space", "bytes"),
    ],
    period: ("space", "bytes"),
    shown: None,
};
const ALLOCS: ProfileShape =
    ProfileShape { values: HEAP.values, period: HEAP.period, shown: Some("alloc_space") };
const CONTENTION: ProfileShape = ProfileShape {
    values: &[("contentions", "count"), ("delay", "nanoseconds")],
    period: ("contentions", "count"),
    shown: None,
};

/// One of Go's profiles that have a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NamedProfile {
    Allocs,
    Block,
    Goroutine,
    Heap,
    Mutex,
    Threadcreate,
}

/// Whom the profiles are of.
#[derive(Clone, Copy)]
pub(super) struct Profiled<'a> {
    pub(super) clock: &'a Clock,
    pub(super) memory: Option<&'a KeptMemory>,
    /// None where waits are not counted.
    pub(super) waits: Option<&'a RuntimeWaits>,
}

impl NamedProfile {
    pub(super) const ALL: &[NamedProfile] = &[
        NamedProfile::Allocs,
        NamedProfile::Block,
        NamedProfile::Goroutine,
        NamedProfile::Heap,
        NamedProfile::Mutex,
        NamedProfile::Threadcreate,
    ];

    pub(super) fn named(name: &str) -> Option<NamedProfile> {
        NamedProfile::ALL.iter().copied().find(|one| one.name() == name)
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            NamedProfile::Allocs => "allocs",
            NamedProfile::Block => "block",
            NamedProfile::Goroutine => "goroutine",
            NamedProfile::Heap => "heap",
            NamedProfile::Mutex => "mutex",
            NamedProfile::Threadcreate => "threadcreate",
        }
    }

    /// As it is just now; none where the machine does not say it.
    fn take(self, of: Profiled<'_>) -> Option<PprofProfile> {
        // Whatever the clock says: it is for who looks at the process.
        let at = of.clock.machine_now().timestamp_nanos_opt().unwrap_or_default();
        match self {
            NamedProfile::Allocs => Some(heap(&ALLOCS, of.memory, at)),
            NamedProfile::Heap => Some(heap(&HEAP, of.memory, at)),
            NamedProfile::Goroutine => Some(goroutines(of.clock, at)),
            NamedProfile::Threadcreate => threads(at),
            NamedProfile::Block => Some(waits(of.waits, at)),
            NamedProfile::Mutex => Some(PprofProfile::new(&CONTENTION, at)),
        }
    }

    /// How many the index says there are.
    pub(super) fn count(self, of: Profiled<'_>) -> i64 {
        let Some(profile) = self.take(of) else { return 0 };
        match self {
            NamedProfile::Goroutine | NamedProfile::Threadcreate => profile.total(0),
            _ => i64::try_from(profile.stacks()).unwrap_or(i64::MAX),
        }
    }

    fn text(self, profile: &PprofProfile, of: Profiled<'_>) -> String {
        match self {
            NamedProfile::Allocs | NamedProfile::Heap => {
                let resident = process::resident_memory().map_or_else(String::new, |resident| {
                    format!("\n# resident = {}\n# MaxRSS = {}\n", resident.now, resident.most)
                });
                pprof_text::heap(profile) + &resident
            }
            NamedProfile::Goroutine | NamedProfile::Threadcreate => pprof_text::counts(self.name(), profile),
            NamedProfile::Mutex => pprof_text::contention("mutex", profile),
            NamedProfile::Block => {
                let queued = of.waits.map_or_else(String::new, |waits| {
                    format!("# tasks that no thread has taken up yet = {}\n", waits.queued_tasks())
                });
                pprof_text::contention("contention", profile) + &queued
            }
        }
    }

    /// The answer to a request for it.
    pub(super) async fn respond(self, query: &Query, of: Profiled<'_>) -> ApiResponse {
        let debug = query.get("debug").and_then(|debug| debug.parse::<i64>().ok()).unwrap_or(0);
        if let Some(seconds) = query.text("seconds") {
            return self.change(seconds, debug, of).await;
        }
        if self == NamedProfile::Goroutine && debug > 1 {
            return text_response(StatusCode::OK, pprof_text::dump(&of.clock.work().live_tasks()));
        }
        match self.take(of) {
            None => self.unknown(),
            Some(profile) if debug != 0 => text_response(StatusCode::OK, self.text(&profile, of)),
            Some(profile) => file(self.name(), &profile),
        }
    }

    /// What has become more or less of it in some seconds of real time (`serveDeltaProfile`).
    async fn change(self, seconds: &str, debug: i64, of: Profiled<'_>) -> ApiResponse {
        let seconds = seconds.parse::<i64>().ok().filter(|seconds| *seconds > 0);
        let Some(seconds) = seconds.map(i64::unsigned_abs) else {
            let text = "invalid value for \"seconds\" - must be a positive integer";
            return refused(StatusCode::BAD_REQUEST, text);
        };
        if debug != 0 {
            return refused(StatusCode::BAD_REQUEST, "seconds and debug params are incompatible");
        }
        let Some(before) = self.take(of) else { return self.unknown() };
        Clock::real().sleep(Duration::from_secs(seconds)).await;
        let Some(now) = self.take(of) else { return self.unknown() };
        file(&format!("{}-delta", self.name()), &now.since(&before))
    }

    fn unknown(self) -> ApiResponse {
        let text = format!("this machine does not say what the profile {:?} is: Linux does", self.name());
        refused(StatusCode::NOT_IMPLEMENTED, &text)
    }
}

/// What the processor's time went to; `at` is when somebody began to look.
pub(super) fn cpu(profile: &CpuProfile, at: i64) -> PprofProfile {
    let mut told = PprofProfile::new(&CPU, at);
    told.elapsed = profile.elapsed;
    for share in &profile.shares {
        let polls = i64::try_from(share.polls).unwrap_or(i64::MAX);
        told.add(share.stack.clone(), &[polls, nanoseconds(share.cpu)]);
    }
    told.add(vec![FrameName::Static(ELSEWHERE)], &[0, nanoseconds(profile.elsewhere)]);
    told
}

/// Refuses with a text that `go tool pprof` shows its user (`serveError`).
pub(super) fn refused(code: StatusCode, text: &str) -> ApiResponse {
    let mut response = text_response(code, format!("{text}\n"));
    response.headers_mut().insert(GO_PPROF, HeaderValue::from_static("1"));
    response
}

/// A profile as a file of that name.
pub(super) fn file(name: &str, profile: &PprofProfile) -> ApiResponse {
    let mut response = ApiResponse::new(Body::from(profile.encoded()));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    let disposition = HeaderValue::try_from(format!("attachment; filename=\"{name}\""));
    headers.extend(disposition.ok().map(|disposition| (CONTENT_DISPOSITION, disposition)));
    response
}

fn goroutines(clock: &Clock, at: i64) -> PprofProfile {
    let mut profile = PprofProfile::new(&GOROUTINE, at);
    clock.work().live_tasks().into_iter().for_each(|task| profile.add(task.stack, &[1]));
    let all = tokio::runtime::Handle::try_current().map_or(0, |one| one.metrics().num_alive_tasks());
    let elsewhere = i64::try_from(all).unwrap_or(i64::MAX) - profile.total(0);
    add_elsewhere(&mut profile, &[elsewhere]);
    profile
}

fn threads(at: i64) -> Option<PprofProfile> {
    let threads = process::threads()?;
    let mut profile = PprofProfile::new(&THREADCREATE, at);
    threads.names.into_iter().for_each(|name| profile.add(vec![FrameName::Shared(name.into())], &[1]));
    if threads.unnamed > 0 {
        let unnamed = i64::try_from(threads.unnamed).unwrap_or(i64::MAX);
        profile.add(vec![FrameName::Static(UNNAMED)], &[unnamed]);
    }
    Some(profile)
}

fn heap(shape: &'static ProfileShape, memory: Option<&KeptMemory>, at: i64) -> PprofProfile {
    let mut count = HeapCount::default();
    memory.iter().for_each(|KeptMemory(memory)| memory(&mut count));
    let mut profile = PprofProfile::new(shape, at);
    for (stack, KeptShare { objects, bytes }) in count.shares() {
        let [objects, bytes] = [objects, bytes].map(|one| i64::try_from(one).unwrap_or(i64::MAX));
        profile.add(stack, &[objects, bytes, objects, bytes]);
    }
    let resident = process::resident_memory().map_or(0, |resident| resident.now);
    let elsewhere = resident - profile.total(3);
    add_elsewhere(&mut profile, &[0, elsewhere, 0, elsewhere]);
    profile
}

/// What is nobody's, if there is something.
fn add_elsewhere(profile: &mut PprofProfile, values: &[i64]) {
    if values.last().is_some_and(|last| *last > 0) {
        profile.add(vec![FrameName::Static(ELSEWHERE)], values);
    }
}

fn waits(waits: Option<&RuntimeWaits>, at: i64) -> PprofProfile {
    let mut profile = PprofProfile::new(&CONTENTION, at);
    let threads = waits.map(RuntimeWaits::of_threads).unwrap_or_default();
    for (number, thread) in threads.iter().enumerate() {
        let stack = [FrameName::Static("runtime"), FrameName::Shared(format!("thread {number}").into())];
        let times = i64::try_from(thread.times).unwrap_or(i64::MAX);
        profile.add(stack.to_vec(), &[times, nanoseconds(thread.waited)]);
    }
    profile
}
