//! Backends: where events go, at once or in batches (`audit.Backend`, `plugin/pkg/audit/buffered`).

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::json;
use tokio::sync::mpsc::{Receiver, Sender, channel};

use super::event::AuditEvent;
use super::log::AuditLog;
use super::metrics::AuditMetrics;
use crate::webhook::WebhookClient;
use clock::Clock;

/// A webhook may take so long for a batch (`webhook.DefaultRetryBackoff`'s request timeout).
const WEBHOOK_TIMEOUT: Duration = Duration::from_secs(30);
/// A batch is sent so often before it is given up.
const WEBHOOK_ATTEMPTS: u32 = 5;

/// How events are batched.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BatchConfig {
    /// So many wait at most; further ones are dropped, which the log says.
    pub buffer_size: usize,
    /// So many go together.
    pub max_batch_size: usize,
    /// The first of a batch waits so long at most.
    pub max_batch_wait: Duration,
    /// So many batches a second, when they are held back.
    pub throttle_qps: Option<f64>,
    /// So many at once before they are.
    pub throttle_burst: u32,
}

/// A place where events go.
pub(super) enum AuditSink {
    /// A file.
    Log(AuditLog),
    /// A server, which is sent an EventList; and how long to wait after a failure.
    Webhook(Box<WebhookClient>, Duration),
}

/// Whether requests wait (`--audit-log-mode`, `--audit-webhook-mode`).
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum AuditMode {
    /// The request goes on.
    Batch(BatchConfig),
    /// It waits until the event is written, and goes on if that fails.
    Blocking,
    /// It waits, and fails when the event that it has come cannot be written.
    BlockingStrict,
}

/// A sink, and how it is reached.
pub(super) struct Backend {
    way: Way,
    /// Larger events are sent without bodies, and not at all if that is not enough (`plugin/audit/truncate`).
    /// It stands in front of the buffer and meets one event at a time, as upstream: there, too, the largest
    /// size of a batch is only checked for being as large as an event's.
    max_event_bytes: Option<usize>,
    metrics: Arc<AuditMetrics>,
}

enum Way {
    /// The request waits; whether it depends on the outcome.
    Blocking(AuditSink, bool),
    /// The request goes on.
    Batch(Batch),
}

/// The near end of a buffer. When it is dropped, what is in the buffer is still delivered.
pub(super) struct Batch {
    events: Sender<AuditEvent>,
    dropped: Arc<AtomicU64>,
}

impl Backend {
    /// Of a sink. Needs a tokio runtime.
    pub(super) fn new(
        sink: AuditSink,
        mode: AuditMode,
        max_event_bytes: Option<usize>,
        clock: &Clock,
        metrics: &Arc<AuditMetrics>,
    ) -> Backend {
        let way = match mode {
            AuditMode::Blocking => Way::Blocking(sink, false),
            AuditMode::BlockingStrict => Way::Blocking(sink, true),
            AuditMode::Batch(config) => {
                let (events, receiver) = channel(config.buffer_size.max(1));
                clock.spawn(deliver(
                    sink,
                    config,
                    clock.named("apiserver: audit"),
                    receiver,
                    metrics.clone(),
                ));
                Way::Batch(Batch { events, dropped: Arc::default() })
            }
        };
        Backend { way, max_event_bytes, metrics: metrics.clone() }
    }

    /// Hands an event over; says whether the request may go on.
    pub(super) async fn process(&self, event: &AuditEvent, clock: &Clock) -> bool {
        let Some(event) = self.fitting(event) else { return true };
        match &self.way {
            Way::Blocking(sink, is_strict) => {
                let is_written = sink.send(std::slice::from_ref(&*event), clock, &self.metrics).await;
                is_written || !is_strict
            }
            Way::Batch(batch) => {
                if batch.events.try_send(event.into_owned()).is_err() {
                    let dropped = batch.dropped.fetch_add(1, Ordering::Relaxed) + 1;
                    self.metrics.failed("buffered", 1);
                    tracing::error!(dropped, "audit backend's buffer is full: an event was dropped");
                }
                true
            }
        }
    }

    /// Tells of an event from where nothing can be waited for.
    pub(super) fn process_now(&self, event: &AuditEvent) {
        let Some(event) = self.fitting(event) else { return };
        match &self.way {
            Way::Blocking(AuditSink::Log(log), _) => drop(say(log.write(&event), &self.metrics)),
            Way::Blocking(AuditSink::Webhook(..), _) => {}
            Way::Batch(batch) => drop(batch.events.try_send(event.into_owned())),
        }
    }

    /// The event as it may be sent.
    fn fitting<'a>(&self, event: &'a AuditEvent) -> Option<Cow<'a, AuditEvent>> {
        let Some(most) = self.max_event_bytes.filter(|most| event.size() > *most) else {
            return Some(Cow::Borrowed(event));
        };
        let truncated = Some(event).filter(|event| event.has_bodies()).map(AuditEvent::truncated);
        let fitting = truncated.filter(|event| event.size() <= most);
        if fitting.is_none() {
            self.metrics.failed("truncate", 1);
            tracing::error!("an audit event was dropped: event is too large even after truncating");
        }
        fitting.map(Cow::Owned)
    }
}

impl AuditSink {
    /// Whether all were taken.
    async fn send(&self, events: &[AuditEvent], clock: &Clock, metrics: &AuditMetrics) -> bool {
        match self {
            // Each is tried, whatever becomes of the one before.
            AuditSink::Log(log) => events.iter().filter(|event| !say(log.write(event), metrics)).count() == 0,
            AuditSink::Webhook(client, initial_backoff) => {
                let list = json!({"kind": "EventList", "apiVersion": "audit.k8s.io/v1", "metadata": {},
                    "items": events});
                let mut pause = *initial_backoff;
                for attempt in 1..=WEBHOOK_ATTEMPTS {
                    match client.call(&list, WEBHOOK_TIMEOUT).await {
                        // Nobody has to answer with anything.
                        Ok(_) => return true,
                        Err(error) if error.is_unreadable() => return true,
                        Err(error) if attempt == WEBHOOK_ATTEMPTS => {
                            metrics.failed("webhook", events.len());
                            tracing::error!(%error, events = events.len(), "unable to deliver audit events");
                        }
                        Err(_) => {
                            clock.sleep(pause).await;
                            pause = pause.mul_f64(1.5);
                        }
                    }
                }
                false
            }
        }
    }
}

/// Whether it was written; else the log says why not.
fn say(written: std::io::Result<()>, metrics: &AuditMetrics) -> bool {
    match written {
        Ok(()) => true,
        Err(error) => {
            metrics.failed("log", 1);
            tracing::error!(%error, "unable to write to the audit log");
            false
        }
    }
}

/// Takes events until the near end is gone and the buffer is empty.
async fn deliver(
    sink: AuditSink,
    config: BatchConfig,
    clock: Clock,
    mut events: Receiver<AuditEvent>,
    metrics: Arc<AuditMetrics>,
) {
    let mut tokens = f64::from(config.throttle_burst.max(1));
    let mut last = clock.elapsed();
    while let Some(first) = events.recv().await {
        let mut batch = vec![first];
        let until = clock.elapsed() + config.max_batch_wait;
        while batch.len() < config.max_batch_size {
            let left = until.saturating_sub(clock.elapsed());
            match clock.timeout(left, events.recv()).await {
                Ok(Some(event)) => batch.push(event),
                Ok(None) | Err(_) => break,
            }
        }
        if let Some(qps) = config.throttle_qps.filter(|qps| *qps > 0.0) {
            let now = clock.elapsed();
            let most = f64::from(config.throttle_burst.max(1));
            tokens = (tokens + (now - last).as_secs_f64() * qps).min(most);
            last = now;
            if tokens < 1.0 {
                clock.sleep(Duration::from_secs_f64((1.0 - tokens) / qps)).await;
                tokens = 1.0;
                last = clock.elapsed();
            }
            tokens -= 1.0;
        }
        sink.send(&batch, &clock, &metrics).await;
    }
}
