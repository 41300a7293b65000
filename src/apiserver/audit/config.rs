//! What the audit log is made of (`server/options.AuditOptions`).

use std::time::Duration;

use super::Audit;
use super::backend::{Backend, BatchConfig, Sink};
use super::log::{Log, LogConfig};
use super::policy::Policy;
use crate::apiserver::registry::Registry;
use crate::apiserver::webhook::{ClientConfig, ServiceResolver, WebhookClient};
use crate::clock::Clock;
use crate::entropy::Entropy;

/// Which requests are told of, and where. The default tells nothing.
#[derive(Clone, Default)]
pub struct AuditConfig {
    /// Without one nothing is told.
    pub policy: Option<Policy>,
    /// The log, and its buffer; without one every request waits for its line.
    pub log: Option<(LogConfig, Option<BatchConfig>)>,
    /// The webhook.
    pub webhook: Option<WebhookConfig>,
}

/// A server that events are sent to.
#[derive(Clone)]
pub struct WebhookConfig {
    /// How it is reached.
    pub client: ClientConfig,
    /// Its buffer; without one every request waits for its answer.
    pub batch: Option<BatchConfig>,
    /// How long to wait after the first failure.
    pub initial_backoff: Duration,
}

impl std::fmt::Debug for AuditConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (log, webhook) = (self.log.as_ref().map(|log| &log.0.path), self.webhook.is_some());
        f.debug_struct("AuditConfig").field("log", &log).field("webhook", &webhook).finish_non_exhaustive()
    }
}

impl AuditConfig {
    /// The audit log; none when nothing is to be told. Needs a tokio runtime.
    pub fn start(&self, registry: &Registry, clock: &Clock, entropy: &Entropy) -> Option<Audit> {
        let policy = self.policy.clone()?;
        let with = |sink: Sink, batch: Option<BatchConfig>| match batch {
            Some(batch) => Backend::batched(sink, batch, clock),
            None => Backend::Blocking(sink),
        };
        let log = self.log.iter().map(|(log, batch)| with(Sink::Log(Log::new(log.clone(), clock)), *batch));
        let webhook = self.webhook.iter().map(|webhook| {
            let resolver = ServiceResolver::new(registry, entropy);
            let client = WebhookClient::new(webhook.client.clone(), &resolver, clock);
            with(Sink::Webhook(Box::new(client), webhook.initial_backoff), webhook.batch)
        });
        let backends: Vec<Backend> = log.chain(webhook).collect();
        Some(Audit::new(policy, backends, clock, entropy)).filter(|audit| !audit.is_idle())
    }
}
