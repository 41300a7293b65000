//! Flags of the audit log.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use crate::apimachinery::duration::parse_flag;
use crate::apiserver::audit::policy::Policy;
use crate::apiserver::audit::{AuditConfig, BatchConfig, LogConfig, WebhookConfig};
use crate::apiserver::webhook::ClientConfig;
use crate::cli::Failure;

/// Who did what.
#[derive(Args)]
#[command(next_help_heading = "Audit")]
pub struct AuditFlags {
    /// A file with an audit policy: how much of which request is told.
    #[arg(long, value_name = "FILE", env = "KUBARIUM_AUDIT_POLICY_FILE")]
    pub audit_policy_file: Option<PathBuf>,
    /// Where events go, a line each; '-' is the standard output.
    #[arg(long, value_name = "FILE", env = "KUBARIUM_AUDIT_LOG_PATH")]
    pub audit_log_path: Option<PathBuf>,
    /// How a line is written: json, or legacy.
    #[arg(long, default_value = "json", value_parser = ["json", "legacy"], env = "KUBARIUM_AUDIT_LOG_FORMAT")]
    pub audit_log_format: String,
    /// So many megabytes, and the file is renamed; 0 is without bound.
    #[arg(long, default_value_t = 0, value_name = "MB", env = "KUBARIUM_AUDIT_LOG_MAXSIZE")]
    pub audit_log_maxsize: u64,
    /// So many renamed files are kept; 0 is all.
    #[arg(long, default_value_t = 0, value_name = "N", env = "KUBARIUM_AUDIT_LOG_MAXBACKUP")]
    pub audit_log_maxbackup: usize,
    /// So many days they are kept; 0 is for ever.
    #[arg(long, default_value_t = 0, value_name = "DAYS", env = "KUBARIUM_AUDIT_LOG_MAXAGE")]
    pub audit_log_maxage: i64,
    /// Whether requests wait for the log: blocking, blocking-strict, or batch.
    #[arg(
        long,
        default_value = "blocking",
        value_parser = ["batch", "blocking", "blocking-strict"],
        env = "KUBARIUM_AUDIT_LOG_MODE"
    )]
    pub audit_log_mode: String,
    /// Events that wait for the log in batch mode; further ones are dropped.
    #[arg(long, default_value_t = 10_000, value_name = "N", env = "KUBARIUM_AUDIT_LOG_BATCH_BUFFER_SIZE")]
    pub audit_log_batch_buffer_size: usize,
    /// A kubeconfig that names the webhook that events are sent to.
    #[arg(long, value_name = "FILE", env = "KUBARIUM_AUDIT_WEBHOOK_CONFIG_FILE")]
    pub audit_webhook_config_file: Option<PathBuf>,
    /// Whether requests wait for the webhook: batch, blocking, or blocking-strict.
    #[arg(
        long,
        default_value = "batch",
        value_parser = ["batch", "blocking", "blocking-strict"],
        env = "KUBARIUM_AUDIT_WEBHOOK_MODE"
    )]
    pub audit_webhook_mode: String,
    /// Events that wait for the webhook; further ones are dropped.
    #[arg(
        long,
        default_value_t = 10_000,
        value_name = "N",
        env = "KUBARIUM_AUDIT_WEBHOOK_BATCH_BUFFER_SIZE"
    )]
    pub audit_webhook_batch_buffer_size: usize,
    /// So many events are sent together.
    #[arg(long, default_value_t = 400, value_name = "N", env = "KUBARIUM_AUDIT_WEBHOOK_BATCH_MAX_SIZE")]
    pub audit_webhook_batch_max_size: usize,
    /// The first event of a batch waits so long at most.
    #[arg(long, default_value = "30s", value_parser = parse_flag, env = "KUBARIUM_AUDIT_WEBHOOK_BATCH_MAX_WAIT")]
    pub audit_webhook_batch_max_wait: Duration,
    /// Whether batches are held back.
    #[arg(
        long,
        default_value_t = true,
        action = clap::ArgAction::Set,
        env = "KUBARIUM_AUDIT_WEBHOOK_BATCH_THROTTLE_ENABLE"
    )]
    pub audit_webhook_batch_throttle_enable: bool,
    /// So many batches a second.
    #[arg(long, default_value_t = 10.0, env = "KUBARIUM_AUDIT_WEBHOOK_BATCH_THROTTLE_QPS")]
    pub audit_webhook_batch_throttle_qps: f64,
    /// So many batches at once before they are held back.
    #[arg(long, default_value_t = 15, env = "KUBARIUM_AUDIT_WEBHOOK_BATCH_THROTTLE_BURST")]
    pub audit_webhook_batch_throttle_burst: u32,
    /// How long to wait after the first failure to send a batch.
    #[arg(long, default_value = "10s", value_parser = parse_flag, env = "KUBARIUM_AUDIT_WEBHOOK_INITIAL_BACKOFF")]
    pub audit_webhook_initial_backoff: Duration,
}

impl AuditFlags {
    /// What the flags say.
    pub fn audit(&self) -> Result<AuditConfig, Failure> {
        let webhook = self.audit_webhook_config_file.as_ref().map(|path| {
            let client = ClientConfig::from_kubeconfig(path);
            client.map_err(|error| Failure::new("initializing audit webhook", error))
        });
        let webhook = webhook.transpose()?.map(|client| WebhookConfig {
            client,
            batch: (self.audit_webhook_mode == "batch").then(|| self.webhook_batch()),
            initial_backoff: self.audit_webhook_initial_backoff,
        });
        let config = AuditConfig { policy: self.policy()?, log: self.log(), webhook };
        if config.policy.is_none() && (config.log.is_some() || config.webhook.is_some()) {
            tracing::warn!("no audit policy file provided, no events will be recorded");
        }
        Ok(config)
    }

    fn policy(&self) -> Result<Option<Policy>, Failure> {
        let Some(path) = &self.audit_policy_file else { return Ok(None) };
        let shown = path.display();
        let failed = |error: String| Failure::new(format!("loading audit policy file {shown}"), error);
        let text = fs::read_to_string(path).map_err(|error| failed(error.to_string()))?;
        Policy::parse(&text).map(Some).map_err(failed)
    }

    fn log(&self) -> Option<(LogConfig, Option<BatchConfig>)> {
        let config = LogConfig {
            path: self.audit_log_path.clone()?,
            is_legacy: self.audit_log_format == "legacy",
            max_size_bytes: self.audit_log_maxsize << 20,
            max_backups: self.audit_log_maxbackup,
            max_age_days: self.audit_log_maxage,
        };
        let batch = BatchConfig {
            buffer_size: self.audit_log_batch_buffer_size,
            max_batch_size: 1,
            max_batch_wait: Duration::ZERO,
            throttle_qps: None,
            throttle_burst: 0,
        };
        Some((config, (self.audit_log_mode == "batch").then_some(batch)))
    }

    fn webhook_batch(&self) -> BatchConfig {
        BatchConfig {
            buffer_size: self.audit_webhook_batch_buffer_size,
            max_batch_size: self.audit_webhook_batch_max_size,
            max_batch_wait: self.audit_webhook_batch_max_wait,
            throttle_qps: self
                .audit_webhook_batch_throttle_enable
                .then_some(self.audit_webhook_batch_throttle_qps),
            throttle_burst: self.audit_webhook_batch_throttle_burst,
        }
    }
}
