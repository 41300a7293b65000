//! `SpanStream`: the record as spans, as it is written: what is sent to whoever collects traces.
//!
//! A story is one trace: what a request led to has the trace of that request, through watches and queues,
//! and a request that comes with a `traceparent` has that of its client. A span is sent when it grows no
//! more, and what comes later of it is a span of its own below it.
//!
//! Bounds: [`MAX_OPEN_STEPS`] steps wait for their spans to end, and of [`MAX_KNOWN_STEPS`] steps it is known
//! in which span they were sent. At the first bound the oldest steps are dropped and counted; beyond the
//! second what comes of a step begins a trace of its own.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::export::otlp::{self, ParentSpan, SpanPlace};
use crate::follow::Followed;
use crate::recorded::StepId;
use crate::step::Step;
use crate::story::{Unit, UnitKind, units};
use crate::trace::TraceStep;
use crate::traceparent::TraceParent;

/// So many steps wait at most for their spans to end.
pub const MAX_OPEN_STEPS: usize = 20_000;
/// Of so many steps it is known in which span they were sent: as many as the record holds.
pub const MAX_KNOWN_STEPS: usize = 65_536;
/// So many spans are sent at once.
pub const MAX_SPANS: usize = 1_000;
/// A span that has not grown for so long has ended.
const ENDED_AFTER: u64 = 1_000_000;
/// A request that was not answered for so long is sent as it is.
const UNANSWERED_AFTER: u64 = 60_000_000;

/// What is sent in one message.
#[derive(Debug)]
pub struct SpanBatch {
    /// An `ExportTraceServiceRequest` in the JSON form of OTLP.
    pub request: Value,
    /// How many spans there are in it.
    pub spans: usize,
}

/// The record of one cluster on its way to a collector.
#[derive(Debug)]
pub struct SpanStream {
    seed: u64,
    open: Vec<TraceStep>,
    sent: BTreeMap<StepId, SpanOfStep>,
    missed: u64,
}

/// Where a step was told.
#[derive(Clone, Copy, Debug)]
struct SpanOfStep {
    trace: u128,
    span: u64,
    /// Whether it is sent at all: not where the client that began the trace sends nothing.
    is_sampled: bool,
}

impl SpanStream {
    /// Nothing yet. The seed is the cluster's, so that no two have spans of one number.
    pub fn new(seed: u64) -> SpanStream {
        SpanStream { seed, open: Vec::new(), sent: BTreeMap::new(), missed: 0 }
    }

    /// Takes what was recorded.
    pub fn add(&mut self, told: Followed) {
        self.missed += told.missed;
        self.open.extend(told.steps);
        let beyond = self.open.len().saturating_sub(MAX_OPEN_STEPS);
        self.open.drain(..beyond);
        self.missed += beyond as u64;
    }

    /// Whether there is anything that was not sent.
    pub fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// How many steps were forgotten before they could be sent.
    pub fn missed(&self) -> u64 {
        self.missed
    }

    /// The next spans that have ended at `now`, both in microseconds of the cluster's time; with `all` the
    /// others, too. `began` is when that time began, in microseconds since 1970.
    pub fn take(&mut self, began: i64, now: u64, all: bool) -> Option<SpanBatch> {
        let found = units(&self.open);
        let is_ready = |unit: &Unit<'_>| all || has_ended(unit, now);
        let ready: Vec<usize> = (0..found.len()).filter(|at| is_ready(&found[*at])).take(MAX_SPANS).collect();
        if ready.is_empty() {
            return None;
        }
        let places = self.places(&found);
        let mut told = Vec::new();
        let mut gone = BTreeMap::new();
        for at in ready {
            let unit = &found[at];
            gone.extend(unit.steps.iter().map(|step| (step.id, places[at])));
            if places[at].is_sampled {
                told.push((self.place_of(at, &found, &places), unit.clone()));
            }
        }
        let spans = told.len();
        let request = otlp::request_of(began, &told);
        self.open.retain(|step| !gone.contains_key(&step.id));
        self.remember(gone);
        Some(SpanBatch { request, spans })
    }

    /// The trace and span of each unit; that of what led to it comes first.
    fn places(&self, found: &[Unit<'_>]) -> Vec<SpanOfStep> {
        let mut places: Vec<Option<SpanOfStep>> = vec![None; found.len()];
        for at in 0..found.len() {
            let mut way = vec![at];
            while let Some(parent) = way.last().and_then(|at| found[*at].parent) {
                if places[parent].is_some() || way.len() > found.len() {
                    break;
                }
                way.push(parent);
            }
            for at in way.into_iter().rev() {
                let led_by = found[at].parent.and_then(|parent| places[parent]);
                places[at] = Some(self.place(&found[at], led_by));
            }
        }
        places.into_iter().flatten().collect()
    }

    fn place(&self, unit: &Unit<'_>, led_by: Option<SpanOfStep>) -> SpanOfStep {
        let first = unit.first();
        let span = otlp::hash(&first.id.to_string(), self.seed).max(1);
        let before = led_by.or_else(|| self.sent.get(&first.cause?).copied());
        match (before, client(unit)) {
            (Some(before), _) => SpanOfStep { span, ..before },
            (None, Some(TraceParent { trace, is_sampled, .. })) => SpanOfStep { trace, span, is_sampled },
            (None, None) => {
                let other_half = otlp::hash(&first.id.to_string(), !self.seed);
                let trace = (u128::from(other_half) << 64) | u128::from(span);
                SpanOfStep { trace, span, is_sampled: true }
            }
        }
    }

    fn place_of(&self, at: usize, found: &[Unit<'_>], places: &[SpanOfStep]) -> SpanPlace {
        let (unit, SpanOfStep { trace, span, .. }) = (&found[at], places[at]);
        let in_batch = unit.parent.map(|parent| ParentSpan {
            span: places[parent].span,
            is_elsewhere: otlp::component(&found[parent]) != otlp::component(unit),
        });
        let before = || {
            let sent = self.sent.get(&unit.first().cause?)?;
            Some(ParentSpan { span: sent.span, is_elsewhere: unit.kind != UnitKind::Other })
        };
        let of_client = || client(unit).map(|parent| ParentSpan { span: parent.span, is_elsewhere: false });
        SpanPlace { trace, span, parent: in_batch.or_else(before).or_else(of_client) }
    }

    fn remember(&mut self, gone: BTreeMap<StepId, SpanOfStep>) {
        self.sent.extend(gone);
        while self.sent.len() > MAX_KNOWN_STEPS {
            self.sent.pop_first();
        }
    }
}

/// The span of the client that sent the request, if it said so.
fn client(unit: &Unit<'_>) -> Option<TraceParent> {
    unit.steps.iter().find_map(|step| match &step.step {
        Step::TraceContinued { traceparent } => TraceParent::parse(traceparent),
        _ => None,
    })
}

fn has_ended(unit: &Unit<'_>, now: u64) -> bool {
    let is_answer = |step: &&TraceStep| {
        matches!(step.step, Step::Responded { .. } | Step::Refused { .. } | Step::DryRun { .. })
    };
    let is_answered = unit.kind != UnitKind::Request || unit.steps.iter().any(is_answer);
    let quiet = if is_answered { ENDED_AFTER } else { UNANSWERED_AFTER };
    unit.until().saturating_add(quiet) <= now
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::handwritten::deployment;

    fn spans(batch: &SpanBatch) -> Vec<&Value> {
        let resources = batch.request["resourceSpans"].as_array().unwrap();
        let scopes = resources.iter().flat_map(|one| one["scopeSpans"].as_array().unwrap());
        scopes.flat_map(|scope| scope["spans"].as_array().unwrap()).collect()
    }

    #[test]
    fn what_a_request_led_to_is_one_trace_also_in_a_later_message() {
        let flow = deployment().flow;
        let mut stream = SpanStream::new(7);
        let told = flow.since(StepId::NONE, MAX_KNOWN_STEPS);
        let (early, late): (Vec<TraceStep>, Vec<TraceStep>) =
            told.steps.clone().into_iter().partition(|step| step.id.0 * 2 < told.next.0);
        stream.add(Followed { steps: early, ..Followed::default() });
        let first = stream.take(0, 0, true).unwrap();
        assert!(stream.take(0, 0, true).is_none() && stream.is_empty());
        stream.add(Followed { steps: late, ..Followed::default() });
        assert!(stream.take(0, 0, false).is_none(), "it may still grow");
        let second = stream.take(0, u64::MAX, false).unwrap();
        assert_eq!((first.spans, second.spans), (spans(&first).len(), spans(&second).len()));
        let all: Vec<&Value> = spans(&first).into_iter().chain(spans(&second)).collect();
        let ids: Vec<&Value> = all.iter().map(|span| &span["spanId"]).collect();
        let linked = all.iter().find(|span| span.get("links").is_some()).expect("a cause through a watch");
        let trace = &linked["traceId"];
        assert_eq!(&linked["links"][0]["traceId"], trace);
        let story: Vec<&&Value> = all.iter().filter(|span| &span["traceId"] == trace).collect();
        for span in &story {
            assert!(span.get("parentSpanId").is_none_or(|parent| ids.contains(&parent)), "{span}");
        }
        assert_eq!(story.iter().filter(|span| span.get("parentSpanId").is_none()).count(), 1);
        let is_told_in = |batch| spans(batch).iter().any(|span| &span["traceId"] == trace);
        assert!(is_told_in(&first) && is_told_in(&second));
    }

    #[test]
    fn steps_beyond_the_bound_are_dropped_and_counted() {
        let step =
            |id: u64| TraceStep { id: StepId(id), cause: None, at_microseconds: 0, step: Step::VALIDATED };
        let mut stream = SpanStream::new(7);
        let steps = (1..=MAX_OPEN_STEPS as u64 + 5).map(step).collect();
        stream.add(Followed { steps, missed: 2, ..Followed::default() });
        assert_eq!((stream.missed(), stream.open.len()), (7, MAX_OPEN_STEPS));
        assert_eq!(stream.take(0, 0, true).unwrap().spans, MAX_SPANS);
    }

    #[test]
    fn a_client_that_sends_nothing_is_followed_by_nothing() {
        let received = Step::RequestReceived { user: "".into(), verb: "create".into(), path: "/".into() };
        let header = |flags: &str| format!("00-{:032x}-{:016x}-{flags}", 5, 6);
        let continued = |flags: &str| Step::TraceContinued { traceparent: header(flags).into() };
        let steps = |flags: &str| {
            let first = TraceStep { id: StepId(1), cause: None, at_microseconds: 0, step: received.clone() };
            let second =
                TraceStep { id: StepId(2), cause: Some(StepId(1)), step: continued(flags), ..first.clone() };
            Followed { steps: vec![first, second], ..Followed::default() }
        };
        let mut stream = SpanStream::new(7);
        stream.add(steps("00"));
        assert_eq!(stream.take(0, 0, true).unwrap().spans, 0);
        let mut stream = SpanStream::new(7);
        stream.add(steps("01"));
        let batch = stream.take(0, 0, true).unwrap();
        let span = spans(&batch)[0];
        assert_eq!(span["traceId"], format!("{:032x}", 5));
        assert_eq!(span["parentSpanId"], format!("{:016x}", 6));
    }
}
