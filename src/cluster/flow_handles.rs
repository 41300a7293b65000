//! The causal record as it is written, over HTTP: what a live view reads.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use futures::stream::{self, Stream};
use http::HeaderValue;
use http::header::CONTENT_TYPE;
use serde::Serialize;
use serde_json::json;
use tokio::sync::watch;

use super::inside::Inside;
use apimachinery::status::Status;
use apimachinery::wire::MayRead;
use apiserver::request::hide_unreadable;
use clock::Clock;
use flow::{Exchanges, Flow, Followed, Gate, KeepsExchanges, Step, StepId, TraceStep};
use handles::{ClusterHandle, HandleCall, Handles};

/// Steps in one line of the answer.
const MAX_STEPS: usize = 2_000;
/// Who follows is told so often at most, in real time: steps come in crowds.
const PAUSE: Duration = Duration::from_millis(25);

/// So often while there is a crowd: what is not told yet waits in the record, and who looks on holds up
/// nothing of what they look at.
const CROWDED_PAUSE: Duration = Duration::from_millis(250);
/// As many new steps between two lines are a crowd.
const CROWD: u64 = 500;

/// So seldom, where that is enough for who follows: while nothing comes but rounds of controllers. Whoever
/// draws what they are told then sleeps in between.
const ROUNDS_PAUSE: Duration = Duration::from_secs(5);

/// Who wants to know that there still is somebody who tells is told a line at least so often.
const BEAT: Duration = Duration::from_secs(5);

/// A line of the answer.
#[derive(Serialize)]
struct RecordLine {
    steps: Vec<ToldStep>,
    /// Where to go on after a break.
    next: StepId,
    /// How many were forgotten before they could be told.
    missed: u64,
    /// How many have happened since, which the next lines tell.
    behind: u64,
    /// How often anything has changed of who is held between two steps (see /step).
    stepping: u64,
}

#[derive(Serialize)]
struct ToldStep {
    #[serde(flatten)]
    step: TraceStep,
    #[serde(skip_serializing_if = "Option::is_none")]
    component: Option<String>,
    words: String,
}

/// The record.
pub(super) fn add(handles: Handles, inside: &Arc<Inside>) -> Handles {
    let read = ClusterHandle::get("/flow", "The steps of the causal record, as lines of JSON.")
        .query("since", "From this step on; else from the oldest that is remembered. `now`: what comes.")
        .query("follow", "true: goes on with what comes, until the client ends it.")
        .query(
            "rounds",
            "seldom: a line that only tells what controllers look at from time to time waits for others.",
        )
        .query(
            "beats",
            "true: every 5 s without news there is a line without steps, which says that all is well.",
        )
        .query("bodies", "true: headers and bodies of writes are kept meanwhile (see /exchanges).");
    let integer = json!({"type": "integer"});
    let line = json!({
        "type": "object",
        "properties": {
            "steps": {"type": "array", "items": {"type": "object"}}, "next": integer, "missed": integer,
            "behind": integer, "stepping": integer,
        },
    });
    let inside = Arc::downgrade(inside);
    handles.with(read.answers(line), move |call: HandleCall| {
        let inside = inside.upgrade().ok_or_else(|| Status::internal("the cluster has ended"));
        let answered = inside
            .and_then(|inside| respond(inside.flow.clone(), inside.for_handles.ending.subscribe(), &call));
        std::future::ready(answered)
    })
}

fn respond(flow: Flow, ending: watch::Receiver<bool>, call: &HandleCall) -> Result<Response, Status> {
    let since = match call.query("since") {
        None | Some("") => StepId::NONE,
        Some("now") => flow.newest(),
        Some(text) => StepId(text.parse().map_err(|_| {
            Status::bad_request(format!("since: {text:?} is neither the number of a step nor now"))
        })?),
    };
    let seldom_rounds = match call.query("rounds") {
        None | Some("") => false,
        Some("seldom") => true,
        Some(text) => return Err(Status::bad_request(format!("rounds: {text:?} is not seldom"))),
    };
    let is_true = |name: &str| call.query(name) == Some("true");
    let keeps = flow.exchanges().filter(|_| is_true("bodies")).map(Exchanges::ask);
    let newest = flow.newest();
    let stepping = flow.stepping().map(Gate::changes);
    let reader = RecordReader {
        flow,
        may_read: call.may_read.clone(),
        _keeps: keeps,
        newest,
        stepping,
        seldom_rounds,
        beats: is_true("beats"),
    };
    let lines = lines(reader, ending, since, is_true("follow"));
    let mut response = Response::new(Body::from_stream(lines));
    let lines = HeaderValue::from_static("application/x-ndjson");
    response.headers_mut().insert(CONTENT_TYPE, lines);
    Ok(response)
}

/// Who reads the record.
struct RecordReader {
    flow: Flow,
    may_read: MayRead,
    /// For as long as they read.
    _keeps: Option<KeepsExchanges>,
    /// The step that came next when they were told the last line.
    newest: StepId,
    /// How often something has changed of who is held.
    stepping: Option<watch::Receiver<u64>>,
    /// Whether rounds may wait.
    seldom_rounds: bool,
    /// Whether lines come though there is no news.
    beats: bool,
}

impl RecordReader {
    /// How many steps there are from `next` on.
    fn behind(&self, next: StepId) -> u64 {
        self.flow.newest().0.saturating_sub(next.0)
    }

    /// Returns when there is something to tell of what comes from `next` on, or a beat is due; false when the
    /// cluster ends.
    async fn has_news(&mut self, next: StepId, ending: &mut watch::Receiver<bool>, clock: &Clock) -> bool {
        let mut stepping = self.stepping.clone();
        let stepped = async {
            let Some(changes) = &mut stepping else { return std::future::pending().await };
            // A gate that is gone changes no more.
            if changes.changed().await.is_err() {
                std::future::pending().await
            }
        };
        tokio::select! {
            () = self.steps_come(next, clock) => true,
            () = stepped => true,
            () = clock.sleep(BEAT), if self.beats => true,
            _ = ending.changed() => false,
        }
    }

    async fn steps_come(&self, next: StepId, clock: &Clock) {
        self.flow.until(next).await;
        if !self.seldom_rounds {
            return;
        }
        let mut late = std::pin::pin!(clock.sleep(ROUNDS_PAUSE));
        let mut looked_at = next;
        loop {
            // Asked for before looking, so that nothing that comes in between is passed over.
            let newest = self.flow.newest();
            if !self.flow.are_rounds(looked_at) {
                return;
            }
            looked_at = newest;
            tokio::select! {
                () = self.flow.until(newest) => {}
                () = &mut late => return,
            }
        }
    }

    fn stepping_changes(&mut self) -> u64 {
        self.stepping.as_mut().map_or(0, |changes| *changes.borrow_and_update())
    }

    /// Until the next line, which begins at `next`. When the crowd is over the rest of it comes as fast as it
    /// is read; so does what would be forgotten else.
    fn pause(&mut self, next: StepId) -> Duration {
        let before = std::mem::replace(&mut self.newest, self.flow.newest());
        let came = self.newest.0.saturating_sub(before.0);
        if came < CROWD || self.behind(next) > flow::CAPACITY as u64 / 2 { PAUSE } else { CROWDED_PAUSE }
    }
}

/// Nothing is kept for who follows: what they have not read yet stands in the record, and is forgotten with
/// it.
fn lines(
    reader: RecordReader,
    ending: watch::Receiver<bool>,
    since: StepId,
    follow: bool,
) -> impl Stream<Item = Result<Bytes, std::io::Error>> {
    // Sockets live in real time, whatever the cluster's.
    let clock = Clock::real();
    stream::unfold(Some((reader, since, true)), move |state| {
        let (clock, mut ending) = (clock.clone(), ending.clone());
        async move {
            let (mut reader, since, is_first) = state?;
            if follow && !is_first {
                if !reader.has_news(since, &mut ending, &clock).await {
                    return None;
                }
                clock.sleep(reader.pause(since)).await;
            }
            let mut told = reader.flow.since(since, MAX_STEPS);
            hide_unreadable(&reader.flow, &mut told.steps, &reader.may_read).await;
            let is_end = !follow && told.steps.len() < MAX_STEPS;
            let next = told.next;
            let (behind, stepping) = (reader.behind(next), reader.stepping_changes());
            Some((line(told, behind, stepping), (!is_end).then_some((reader, next, false))))
        }
    })
}

fn line(told: Followed, behind: u64, stepping: u64) -> Result<Bytes, std::io::Error> {
    let Followed { steps, next, missed } = told;
    // What names its component itself is not told of it twice.
    let component = |step: &Step| if step.names_component() { None } else { step.component() };
    let tell = |step: TraceStep| ToldStep { component: component(&step.step), words: step.words(), step };
    let line = RecordLine { steps: steps.into_iter().map(tell).collect(), next, missed, behind, stepping };
    let mut bytes = serde_json::to_vec(&line)?;
    bytes.push(b'\n');
    Ok(bytes.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Somebody who may read everything, from now on.
    fn reader_of(flow: &Flow) -> RecordReader {
        RecordReader {
            flow: flow.clone(),
            may_read: MayRead(Arc::new(|_: &str, _: &str, _: &str| Box::pin(std::future::ready(true)))),
            _keeps: None,
            newest: flow.newest(),
            stepping: flow.stepping().map(Gate::changes),
            seldom_rounds: false,
            beats: false,
        }
    }

    #[test]
    fn a_crowd_is_told_at_leisure_and_its_rest_at_once() {
        let flow = Flow::new(Clock::stepped(chrono::DateTime::UNIX_EPOCH));
        let mut reader = reader_of(&flow);
        let mut come = |count: u64, next| {
            for _ in 0..count {
                flow.record(None, Step::VALIDATED);
            }
            reader.pause(next)
        };
        let first = StepId(1);
        let paused = (come(CROWD - 1, first), come(CROWD, first), come(CROWD * 9, first));
        assert_eq!(paused, (PAUSE, CROWDED_PAUSE, CROWDED_PAUSE));
        assert_eq!(come(0, first), PAUSE);
        // Who is far behind must get on, or what they have not read is forgotten.
        assert_eq!(come(flow::CAPACITY as u64 / 2, first), PAUSE);
        assert_eq!(come(CROWD, flow.newest()), CROWDED_PAUSE);
        let newest = flow.newest();
        assert_eq!([reader.behind(newest), reader.behind(first)], [0, newest.0 - 1]);
    }

    /// Of lines that rounds alone are told in nobody need be woken by each.
    #[tokio::test]
    async fn rounds_wait_for_news_where_that_is_enough() {
        let flow = Flow::new(Clock::stepped(chrono::DateTime::UNIX_EPOCH));
        let mut reader = RecordReader { seldom_rounds: true, ..reader_of(&flow) };
        let newest = reader.newest;
        let (_lives, mut ending) = watch::channel(false);
        let clock = Clock::stepped(chrono::DateTime::UNIX_EPOCH);
        let round = || Step::Enqueued {
            queue: "node-lifecycle".into(),
            key: "node-1".into(),
            retries: 0,
            delay_milliseconds: 5000,
        };
        let mut told = Box::pin(reader.has_news(newest, &mut ending, &clock));
        flow.record(None, round());
        assert!(futures::poll!(&mut told).is_pending());
        flow.record(None, round());
        assert!(futures::poll!(&mut told).is_pending());
        flow.record(None, Step::VALIDATED);
        assert!(told.await);
        let next = flow.newest();
        let mut told = Box::pin(reader.has_news(next, &mut ending, &clock));
        flow.record(None, round());
        assert!(futures::poll!(&mut told).is_pending());
        clock.advance(ROUNDS_PAUSE);
        assert!(told.await, "it is told all the same");
        // Who is held is told though no step happens.
        let next = flow.newest();
        let before = reader.stepping_changes();
        let mut told = Box::pin(reader.has_news(next, &mut ending, &clock));
        assert!(futures::poll!(&mut told).is_pending());
        flow.stepping().unwrap().close();
        assert!(told.await);
        assert!(reader.stepping_changes() > before);
    }

    /// Else who reads takes a process that is stopped for one that has nothing to tell.
    #[tokio::test]
    async fn who_wants_beats_is_told_that_there_is_no_news() {
        let flow = Flow::new(Clock::stepped(chrono::DateTime::UNIX_EPOCH));
        let mut reader = RecordReader { beats: true, ..reader_of(&flow) };
        let next = reader.newest;
        let (_lives, mut ending) = watch::channel(false);
        let clock = Clock::stepped(chrono::DateTime::UNIX_EPOCH);
        let mut told = Box::pin(reader.has_news(next, &mut ending, &clock));
        assert!(futures::poll!(&mut told).is_pending());
        clock.advance(BEAT);
        assert!(told.await);
        reader.beats = false;
        let mut told = Box::pin(reader.has_news(next, &mut ending, &clock));
        assert!(futures::poll!(&mut told).is_pending());
        clock.advance(BEAT);
        assert!(futures::poll!(&mut told).is_pending());
    }
}
