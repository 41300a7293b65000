//! Backends: where events go, at once or in batches (`audit.Backend`, `plugin/pkg/audit/buffered`).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::json;
use tokio::sync::mpsc::{Receiver, Sender, channel};

use super::event::Event;
use super::log::Log;
use crate::apiserver::webhook::WebhookClient;
use crate::clock::Clock;

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
pub enum Sink {
    /// A file.
    Log(Log),
    /// A server, which is sent an EventList; and how long to wait after a failure.
    Webhook(Box<WebhookClient>, Duration),
}

/// A sink, and how it is reached.
pub enum Backend {
    /// The request waits until it is written.
    Blocking(Sink),
    /// The request goes on.
    Batch(Batch),
}

/// The near end of a buffer. When it is dropped, what is in the buffer is still delivered.
pub struct Batch {
    events: Sender<Event>,
    dropped: Arc<AtomicU64>,
}

impl Backend {
    /// With a buffer. Needs a tokio runtime.
    pub fn batched(sink: Sink, config: BatchConfig, clock: &Clock) -> Backend {
        let (events, receiver) = channel(config.buffer_size.max(1));
        tokio::spawn(deliver(sink, config, clock.clone(), receiver));
        Backend::Batch(Batch { events, dropped: Arc::default() })
    }

    /// Hands an event over. Whether it arrives is not the request's concern.
    pub async fn process(&self, event: &Event, clock: &Clock) {
        match self {
            Backend::Blocking(sink) => sink.send(std::slice::from_ref(event), clock).await,
            Backend::Batch(batch) => {
                if batch.events.try_send(event.clone()).is_err() {
                    let dropped = batch.dropped.fetch_add(1, Ordering::Relaxed) + 1;
                    tracing::error!(dropped, "audit backend's buffer is full: an event was dropped");
                }
            }
        }
    }

    /// The same from where nothing can be waited for.
    pub fn process_now(&self, event: &Event) {
        match self {
            Backend::Blocking(Sink::Log(log)) => say(log.write(event)),
            Backend::Blocking(Sink::Webhook(..)) => {}
            Backend::Batch(batch) => drop(batch.events.try_send(event.clone())),
        }
    }
}

impl Sink {
    async fn send(&self, events: &[Event], clock: &Clock) {
        match self {
            Sink::Log(log) => events.iter().for_each(|event| say(log.write(event))),
            Sink::Webhook(client, initial_backoff) => {
                let list = json!({"kind": "EventList", "apiVersion": "audit.k8s.io/v1", "metadata": {},
                    "items": events});
                let mut pause = *initial_backoff;
                for attempt in 1..=WEBHOOK_ATTEMPTS {
                    match client.call(&list, WEBHOOK_TIMEOUT).await {
                        // Nobody has to answer with anything.
                        Ok(_) => return,
                        Err(error) if error.is_unreadable() => return,
                        Err(error) if attempt == WEBHOOK_ATTEMPTS => {
                            tracing::error!(%error, events = events.len(), "unable to deliver audit events");
                        }
                        Err(_) => {
                            clock.sleep(pause).await;
                            pause = pause.mul_f64(1.5);
                        }
                    }
                }
            }
        }
    }
}

fn say(written: std::io::Result<()>) {
    if let Err(error) = written {
        tracing::error!(%error, "unable to write to the audit log");
    }
}

/// Takes events until the near end is gone and the buffer is empty.
async fn deliver(sink: Sink, config: BatchConfig, clock: Clock, mut events: Receiver<Event>) {
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
        sink.send(&batch, &clock).await;
    }
}
