//! The flags of the audit log (`options.AuditOptions`).

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Args};

use super::policy::Policy;
use super::{AuditConfig, AuditMode, BatchConfig, LogBackend, LogConfig, WebhookConfig};
use crate::webhook::ClientConfig;
use apimachinery::duration::parse_flag;
use component_base::flags::defaults;

golang::text_error! {
    /// What is wrong with the flags of auditing, or with a file that they name; in upstream's words.
    pub struct BadAuditConfig;
}

/// The only version of events that there still is.
const VERSION: &str = "audit.k8s.io/v1";

/// Who did what.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Audit")]
pub struct AuditOptions {
    /// A file with an audit policy: how much of which request is told.
    #[arg(long, value_name = "FILE")]
    pub audit_policy_file: Option<PathBuf>,
    /// Where events go, a line each; '-' is the standard output.
    #[arg(long, value_name = "FILE")]
    pub audit_log_path: Option<PathBuf>,
    /// How a line is written: json, or legacy.
    #[arg(long, default_value = "json", value_parser = ["json", "legacy"])]
    pub audit_log_format: String,
    /// So many megabytes, and the file is renamed; 0 is without bound.
    #[arg(long, default_value_t = 0, value_name = "MB")]
    pub audit_log_maxsize: u64,
    /// So many renamed files are kept; 0 is all.
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub audit_log_maxbackup: usize,
    /// So many days they are kept; 0 is for ever.
    #[arg(long, default_value_t = 0, value_name = "DAYS")]
    pub audit_log_maxage: i64,
    /// Whether requests wait for the log: blocking, blocking-strict, or batch.
    #[arg(
        long,
        default_value = "blocking",
        value_parser = ["batch", "blocking", "blocking-strict"]
    )]
    pub audit_log_mode: String,
    /// Whether full files are compressed.
    #[arg(long, default_value_t = false, action = ArgAction::Set,
        num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub audit_log_compress: bool,
    /// The version in which events are written.
    #[arg(long, default_value = VERSION, value_parser = [VERSION])]
    pub audit_log_version: String,
    /// Events that wait for the log in batch mode; further ones are dropped.
    #[arg(long, default_value_t = 10_000, value_name = "N")]
    pub audit_log_batch_buffer_size: usize,
    /// So many events are written together in batch mode.
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub audit_log_batch_max_size: usize,
    /// The first event of a batch waits so long at most.
    #[arg(long, default_value = "0s", value_parser = parse_flag)]
    pub audit_log_batch_max_wait: Duration,
    /// Whether batches are held back.
    #[arg(long, default_value_t = false,
        action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub audit_log_batch_throttle_enable: bool,
    /// So many batches a second.
    #[arg(long, default_value_t = 0.0)]
    pub audit_log_batch_throttle_qps: f64,
    /// So many batches at once before they are held back.
    #[arg(long, default_value_t = 0)]
    pub audit_log_batch_throttle_burst: u32,
    /// Whether events that are too large lose their bodies.
    #[arg(long, default_value_t = false, action = ArgAction::Set,
        num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub audit_log_truncate_enabled: bool,
    /// From how many bytes on an event is too large.
    #[arg(long, default_value_t = 100 << 10)]
    pub audit_log_truncate_max_event_size: usize,
    /// Has to be as large as an event may be, and bounds nothing else: events are measured one by one, before
    /// they are put together, so no batch is cut.
    #[arg(long, default_value_t = 10 << 20)]
    pub audit_log_truncate_max_batch_size: usize,
    /// A kubeconfig that names the webhook that events are sent to.
    #[arg(long, value_name = "FILE")]
    pub audit_webhook_config_file: Option<PathBuf>,
    /// Whether requests wait for the webhook: batch, blocking, or blocking-strict.
    #[arg(
        long,
        default_value = "batch",
        value_parser = ["batch", "blocking", "blocking-strict"]
    )]
    pub audit_webhook_mode: String,
    /// Events that wait for the webhook; further ones are dropped.
    #[arg(long, default_value_t = 10_000, value_name = "N")]
    pub audit_webhook_batch_buffer_size: usize,
    /// So many events are sent together.
    #[arg(long, default_value_t = 400, value_name = "N")]
    pub audit_webhook_batch_max_size: usize,
    /// The first event of a batch waits so long at most.
    #[arg(long, default_value = "30s", value_parser = parse_flag)]
    pub audit_webhook_batch_max_wait: Duration,
    /// Whether batches are held back.
    #[arg(
        long,
        default_value_t = true,
        action = ArgAction::Set
    )]
    pub audit_webhook_batch_throttle_enable: bool,
    /// So many batches a second.
    #[arg(long, default_value_t = 10.0)]
    pub audit_webhook_batch_throttle_qps: f64,
    /// So many batches at once before they are held back.
    #[arg(long, default_value_t = 15)]
    pub audit_webhook_batch_throttle_burst: u32,
    /// Whether events that are too large lose their bodies.
    #[arg(long, default_value_t = false,
        action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub audit_webhook_truncate_enabled: bool,
    /// From how many bytes on an event is too large.
    #[arg(long, default_value_t = 100 << 10)]
    pub audit_webhook_truncate_max_event_size: usize,
    /// Has to be as large as an event may be, and bounds nothing else: events are measured one by one, before
    /// they are put together, so no batch is cut.
    #[arg(long, default_value_t = 10 << 20)]
    pub audit_webhook_truncate_max_batch_size: usize,
    /// The version in which events are sent.
    #[arg(long, default_value = VERSION, value_parser = [VERSION])]
    pub audit_webhook_version: String,
    /// How long to wait after the first failure to send a batch.
    #[arg(long, default_value = "10s", value_parser = parse_flag)]
    pub audit_webhook_initial_backoff: Duration,
    /// What is told, made by hand: then the flags say nothing.
    #[arg(skip)]
    pub made: Option<AuditConfig>,
}

impl Default for AuditOptions {
    fn default() -> AuditOptions {
        defaults()
    }
}

impl AuditOptions {
    /// What the flags say.
    ///
    /// # Errors
    /// What is wrong with them, or with a file that they name.
    pub fn complete(&self) -> Result<AuditConfig, BadAuditConfig> {
        if let Some(made) = &self.made {
            return Ok(made.clone());
        }
        let webhook = self.audit_webhook_config_file.as_ref().map(|path| {
            let client = ClientConfig::from_kubeconfig(path);
            client.map_err(|error| format!("initializing audit webhook: {error}"))
        });
        let webhook = webhook.transpose()?.map(|client| WebhookConfig {
            client,
            mode: mode(&self.audit_webhook_mode, self.webhook_batch()),
            max_event_bytes: self
                .audit_webhook_truncate_enabled
                .then_some(self.audit_webhook_truncate_max_event_size),
            initial_backoff: self.audit_webhook_initial_backoff,
        });
        self.check(webhook.is_some())?;
        let config = AuditConfig { policy: self.policy()?, log: self.log(), webhook };
        if config.policy.is_none() && (config.log.is_some() || config.webhook.is_some()) {
            tracing::warn!("no audit policy file provided, no events will be recorded");
        }
        Ok(config)
    }

    fn policy(&self) -> Result<Option<Policy>, String> {
        let Some(path) = &self.audit_policy_file else { return Ok(None) };
        let shown = path.display();
        let failed = |error: String| format!("loading audit policy file {shown}: {error}");
        let text = fs::read_to_string(path).map_err(|error| failed(error.to_string()))?;
        Policy::parse(&text).map(Some).map_err(|why| failed(why.into()))
    }

    fn log(&self) -> Option<LogBackend> {
        let config = LogConfig {
            path: self.audit_log_path.clone()?,
            is_legacy: self.audit_log_format == "legacy",
            max_size_bytes: self.audit_log_maxsize << 20,
            max_backups: self.audit_log_maxbackup,
            max_age_days: self.audit_log_maxage,
            compresses: self.audit_log_compress,
        };
        let max_event_bytes =
            self.audit_log_truncate_enabled.then_some(self.audit_log_truncate_max_event_size);
        Some(LogBackend { config, mode: mode(&self.audit_log_mode, self.log_batch()), max_event_bytes })
    }

    fn log_batch(&self) -> BatchConfig {
        BatchConfig {
            buffer_size: self.audit_log_batch_buffer_size,
            max_batch_size: self.audit_log_batch_max_size,
            max_batch_wait: self.audit_log_batch_max_wait,
            throttle_qps: self.audit_log_batch_throttle_enable.then_some(self.audit_log_batch_throttle_qps),
            throttle_burst: self.audit_log_batch_throttle_burst,
        }
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

    /// What is wrong with the numbers of those that are used, in upstream's words.
    fn check(&self, has_webhook: bool) -> Result<(), String> {
        let log = (self.audit_log_truncate_max_event_size, self.audit_log_truncate_max_batch_size);
        let webhook =
            (self.audit_webhook_truncate_max_event_size, self.audit_webhook_truncate_max_batch_size);
        let used = [
            ("log", self.audit_log_path.is_some(), &self.audit_log_mode, self.log_batch(), log),
            ("webhook", has_webhook, &self.audit_webhook_mode, self.webhook_batch(), webhook),
        ];
        for (name, _, mode, batch, (event, all)) in used.into_iter().filter(|(_, is_used, ..)| *is_used) {
            let problem = match mode.as_str() {
                "batch" => wrong_batch(name, &batch),
                _ => None,
            };
            let problem = problem.or_else(|| {
                let head = format!("invalid audit truncate {name} max");
                (event == 0).then(|| format!("{head} event size {event}, must be a positive number")).or_else(
                    || {
                        let why = format!("must be greater than max event size ({event})");
                        (all < event).then(|| format!("{head} batch size {all}, {why}"))
                    },
                )
            });
            if let Some(problem) = problem {
                return Err(problem);
            }
        }
        Ok(())
    }
}

fn mode(name: &str, batch: BatchConfig) -> AuditMode {
    match name {
        "batch" => AuditMode::Batch(batch),
        "blocking-strict" => AuditMode::BlockingStrict,
        _ => AuditMode::Blocking,
    }
}

fn wrong_batch(name: &str, batch: &BatchConfig) -> Option<String> {
    let wrong = |what: &str, value: &dyn std::fmt::Display| {
        Some(format!("invalid audit batch {name} {what} {value}, must be a positive number"))
    };
    match batch {
        BatchConfig { buffer_size: 0, .. } => wrong("buffer size", &0),
        BatchConfig { max_batch_size: 0, .. } => wrong("max batch size", &0),
        BatchConfig { throttle_qps: Some(qps), .. } if *qps <= 0.0 => wrong("throttle QPS", qps),
        BatchConfig { throttle_qps: Some(_), throttle_burst: 0, .. } => wrong("throttle burst", &0),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Only {
        #[command(flatten)]
        flags: AuditOptions,
    }

    fn audit(arguments: &[&str]) -> Result<AuditConfig, BadAuditConfig> {
        let arguments = ["up"].iter().chain(arguments).copied();
        Only::parse_from(arguments).flags.complete()
    }

    #[test]
    fn numbers_that_are_used_are_checked() {
        let log = "--audit-log-path=audit.log";
        let config = audit(&[log, "--audit-log-mode=blocking-strict", "--audit-log-truncate-enabled"]);
        let config = config.unwrap().log.unwrap();
        assert_eq!((config.mode, config.max_event_bytes), (AuditMode::BlockingStrict, Some(100 << 10)));
        assert!(audit(&["--audit-log-mode=batch", "--audit-log-batch-buffer-size=0"]).is_ok(), "unused");
        let cases: [(&[&str], &str); 3] = [
            (
                &[log, "--audit-log-mode=batch", "--audit-log-batch-buffer-size=0"],
                "invalid audit batch log buffer size 0, must be a positive number",
            ),
            (
                &[log, "--audit-log-mode=batch", "--audit-log-batch-throttle-enable"],
                "invalid audit batch log throttle QPS 0, must be a positive number",
            ),
            (
                &[log, "--audit-log-truncate-max-batch-size=5"],
                "invalid audit truncate log max batch size 5, must be greater than max event size (102400)",
            ),
        ];
        for (arguments, wanted) in cases {
            assert_eq!(audit(arguments).err().unwrap(), wanted);
        }
    }

    #[test]
    fn the_help_says_that_no_batch_is_cut() {
        let command = <Only as clap::CommandFactory>::command();
        for name in ["audit_log_truncate_max_batch_size", "audit_webhook_truncate_max_batch_size"] {
            let flag = command.get_arguments().find(|flag| flag.get_id() == name).unwrap();
            assert!(flag.get_help().unwrap().to_string().contains("no batch is cut"), "{name}");
        }
    }
}
