//! Sends the record as spans to a collector of OpenTelemetry (`--otlp-endpoint`): OTLP over HTTP, in JSON.
//!
//! Upstream's components send spans of their own with `--tracing-config-file`; nothing there connects what
//! they do because of a watch. Here a story is one trace.
//!
//! Bounds: what waits to be sent is bounded in [`SpanStream`] and, before that, by the record. A collector
//! that is away, refuses, or does not answer for [`PATIENCE`] gets that message never again; what is lost is
//! counted, and the first loss of a row is logged.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use http::Request;
use http::header::CONTENT_TYPE;
use serde_json::json;

use super::inside::Inside;
use super::otlp_endpoint::{CollectorClient, OtlpEndpoint};
use apimachinery::status::Status;
use entropy::Entropy;
use flow::{SpanBatch, SpanStream, StepId};
use handles::{ClusterHandle, Handles, answer};

/// How often spans are sent, in real time, while there are any.
const PERIOD: Duration = Duration::from_millis(500);
/// How long a collector may take for one message, in real time.
const PATIENCE: Duration = Duration::from_secs(10);
/// Steps that are read from the record at once.
const MAX_STEPS: usize = 2_000;

/// How many were sent.
pub(super) fn add(handles: Handles, inside: &Arc<Inside>) -> Handles {
    let integer = json!({"type": "integer"});
    let text = json!({"type": "string"});
    let state =
        ClusterHandle::get("/tracing", "Where spans are sent (--otlp-endpoint), and what became of them.");
    let state = state.answers(json!({
        "type": "object",
        "properties": {
            "endpoint": text, "sentSpans": integer, "droppedSpans": integer, "missedSteps": integer,
            "lastError": text,
        },
    }));
    let inside = Arc::downgrade(inside);
    handles.with(state, move |_| {
        let told =
            inside.upgrade().ok_or_else(|| Status::internal("the cluster has ended")).and_then(|inside| {
                let mut told = json!(inside.for_handles.spans.counts());
                told["endpoint"] = json!(inside.config.otlp_endpoint.as_ref().map(OtlpEndpoint::to_string));
                answer(&told)
            });
        std::future::ready(told)
    })
}

/// Sends until the cluster ends.
pub(super) async fn send(inside: Arc<Inside>, endpoint: OtlpEndpoint) {
    inside.for_handles.spans.begin();
    inside.flow.collect_spans();
    // Of its own: what the cluster draws is the same with and without a collector.
    let seed = u64::from_str_radix(&Entropy::from_system().hex(16), 16).unwrap_or_default();
    let client = match endpoint.client() {
        Ok(client) => client,
        Err(why) => {
            inside.for_handles.spans.count(0, Err(why.to_string()));
            return inside.for_handles.spans.end();
        }
    };
    let mut sender =
        SpanSender { inside, endpoint, client, stream: SpanStream::new(seed), next: StepId::NONE };
    sender.run().await;
    sender.inside.for_handles.spans.end();
}

struct SpanSender {
    inside: Arc<Inside>,
    endpoint: OtlpEndpoint,
    client: CollectorClient,
    stream: SpanStream,
    next: StepId,
}

impl SpanSender {
    async fn run(&mut self) {
        let mut ending = self.inside.for_handles.ending.subscribe();
        loop {
            let is_ending = tokio::select! {
                biased;
                _ = ending.changed() => true,
                () = self.wait() => false,
            };
            self.read();
            while let Some(batch) = self.take(is_ending) {
                let outcome = self.post(&batch).await;
                self.inside.for_handles.spans.count(batch.spans, outcome);
            }
            if is_ending {
                return;
            }
        }
    }

    /// For the next step, and while spans grow for no longer than a period. Collectors live in real time.
    async fn wait(&self) {
        if self.stream.is_empty() {
            self.inside.flow.until(self.next).await;
        }
        self.inside.for_handles.time.real.sleep(PERIOD).await;
    }

    fn read(&mut self) {
        loop {
            let told = self.inside.flow.since(self.next, MAX_STEPS);
            let is_all = told.steps.len() < MAX_STEPS;
            self.next = told.next;
            self.stream.add(told);
            if is_all {
                break;
            }
        }
        self.inside.for_handles.spans.missed(self.stream.missed());
    }

    fn take(&mut self, all: bool) -> Option<SpanBatch> {
        let now = self.inside.clock.elapsed();
        let began = self.inside.flow.began_unix_microseconds();
        self.stream.take(began, u64::try_from(now.as_micros()).unwrap_or(u64::MAX), all)
    }

    async fn post(&self, batch: &SpanBatch) -> Result<(), String> {
        if batch.spans == 0 {
            return Ok(());
        }
        let request = Request::post(self.endpoint.uri().clone())
            .header(CONTENT_TYPE, "application/json")
            .body(Body::from(batch.request.to_string()))
            .map_err(|error| error.to_string())?;
        let answered =
            self.inside.for_handles.time.real.timeout(PATIENCE, self.client.request(request)).await;
        match answered {
            Ok(Ok(response)) if response.status().is_success() => Ok(()),
            Ok(Ok(response)) => Err(format!("{} answered {}", self.endpoint, response.status())),
            Ok(Err(error)) => Err(format!("{}: {}", self.endpoint, whole(&error))),
            Err(_) => Err(format!("{} did not answer within {PATIENCE:?}", self.endpoint)),
        }
    }
}

/// An error with what led to it: that of a client says only that it could not connect.
fn whole(error: &dyn std::error::Error) -> String {
    let mut told = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        told += &format!(": {error}");
        cause = error.source();
    }
    told
}
