//! `SentSpans`: what became of the spans that a cluster has sent to a collector.

use std::time::Duration;

use serde::Serialize;
use sync::Mutex;
use tokio::sync::Notify;

use clock::Clock;

/// How long the end of a cluster waits for the last spans to be sent.
const LAST_PATIENCE: Duration = Duration::from_secs(2);

/// What became of the spans of a cluster.
#[derive(Default)]
pub(super) struct SentSpans {
    counts: Mutex<SpanCounts>,
    ended: Notify,
}

/// How many.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SpanCounts {
    sent_spans: u64,
    dropped_spans: u64,
    missed_steps: u64,
    last_error: Option<String>,
    #[serde(skip)]
    is_running: bool,
}

impl SentSpans {
    /// Somebody sends.
    pub(super) fn begin(&self) {
        self.counts.lock().is_running = true;
    }

    /// Nobody does any more.
    pub(super) fn end(&self) {
        self.counts.lock().is_running = false;
        self.ended.notify_waiters();
    }

    pub(super) fn counts(&self) -> SpanCounts {
        self.counts.lock().clone()
    }

    /// So many steps were forgotten before they could be sent.
    pub(super) fn missed(&self, steps: u64) {
        self.counts.lock().missed_steps = steps;
    }

    /// Waits for the last ones, which are on their way; not for long.
    pub(super) async fn flushed(&self, real: &Clock) {
        let ended = self.ended.notified();
        if self.counts.lock().is_running {
            let _ = real.timeout(LAST_PATIENCE, ended).await;
        }
    }

    /// So many were sent, or were not.
    pub(super) fn count(&self, spans: usize, outcome: Result<(), String>) {
        let mut counts = self.counts.lock();
        let spans = spans as u64;
        let Err(why) = outcome else {
            counts.sent_spans += spans;
            counts.last_error = None;
            return;
        };
        counts.dropped_spans += spans;
        let is_first = counts.last_error.is_none();
        counts.last_error = Some(why.clone());
        drop(counts);
        if is_first {
            tracing::warn!(why, spans, "spans are dropped: the OTLP endpoint does not take them");
        }
    }
}
