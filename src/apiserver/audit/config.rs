//! What the audit log is made of (`server/options.AuditOptions`).

use std::sync::Arc;
use std::time::Duration;

use super::backend::{AuditMode, AuditSink, Backend};
use super::log::{AuditLog, LogConfig};
use super::metrics::AuditMetrics;
use super::policy::Policy;
use super::request::Audit;
use crate::registry::Registry;
use crate::webhook::{ClientConfig, ServiceResolver, WebhookClient};
use clock::Clock;
use entropy::Entropy;

/// Which requests are told of, and where. The default tells nothing.
#[derive(Clone, Default)]
pub struct AuditConfig {
    /// Without one nothing is told.
    pub policy: Option<Policy>,
    /// The log.
    pub log: Option<LogBackend>,
    /// The webhook.
    pub webhook: Option<WebhookConfig>,
}

/// A file that events are written to.
#[derive(Clone, Debug)]
pub struct LogBackend {
    /// Which, and how.
    pub config: LogConfig,
    /// Whether requests wait.
    pub mode: AuditMode,
    /// Larger events lose their bodies (`--audit-log-truncate-*`).
    pub max_event_bytes: Option<usize>,
}

/// A server that events are sent to.
#[derive(Clone)]
pub struct WebhookConfig {
    /// How it is reached.
    pub client: ClientConfig,
    /// Whether requests wait for its answer.
    pub mode: AuditMode,
    /// Larger events lose their bodies (`--audit-webhook-truncate-*`).
    pub max_event_bytes: Option<usize>,
    /// How long to wait after the first failure.
    pub initial_backoff: Duration,
}

impl std::fmt::Debug for AuditConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (log, webhook) = (self.log.as_ref().map(|log| &log.config.path), self.webhook.is_some());
        f.debug_struct("AuditConfig").field("log", &log).field("webhook", &webhook).finish_non_exhaustive()
    }
}

impl AuditConfig {
    /// The audit log; none when nothing is to be told. Needs a tokio runtime.
    pub fn start(&self, registry: &Registry, clock: &Clock, entropy: &Entropy) -> Option<Audit> {
        let policy = self.policy.clone()?;
        let metrics = Arc::new(AuditMetrics::default());
        let log = self.log.iter().map(|LogBackend { config, mode, max_event_bytes }| {
            let sink = AuditSink::Log(AuditLog::new(config.clone(), clock));
            Backend::new(sink, *mode, *max_event_bytes, clock, &metrics)
        });
        let webhook = self.webhook.iter().map(|webhook| {
            let resolver = ServiceResolver::new(registry, entropy);
            let client = WebhookClient::new(webhook.client.clone(), &resolver, clock);
            let sink = AuditSink::Webhook(Box::new(client), webhook.initial_backoff);
            Backend::new(sink, webhook.mode, webhook.max_event_bytes, clock, &metrics)
        });
        let backends: Vec<Backend> = log.chain(webhook).collect();
        let is_idle = backends.is_empty();
        (!is_idle).then(|| Audit::new(policy, backends, clock, entropy, metrics.clone()))
    }
}
