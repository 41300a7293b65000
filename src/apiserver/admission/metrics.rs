//! How long admission takes, and what it refuses (`admission/metrics`, `policy/validating/metrics`,
//! `cel/metrics`).

use std::sync::OnceLock;
use std::time::Duration;

use super::operation::Operation;
use crate::metrics::heading;
use component_base::metrics::{DEFAULT_BUCKETS, Family, Histogram};

/// Buckets of steps and plugins.
const BUCKETS: [f64; 6] = [0.005, 0.025, 0.1, 0.5, 1.0, 2.5];
/// Webhooks may take longer.
const WEBHOOK_BUCKETS: [f64; 8] = [0.005, 0.025, 0.1, 0.5, 1.0, 2.5, 10.0, 25.0];
/// Match conditions take less.
const CONDITION_BUCKETS: [f64; 7] = [0.001, 0.005, 0.01, 0.025, 0.1, 0.2, 0.25];
/// A validation of a policy takes less yet.
const CHECK_BUCKETS: [f64; 5] = [0.000_000_5, 0.001, 0.01, 0.1, 1.0];
/// Larger codes of webhooks are counted as this one.
const MAX_CODE: u16 = 600;

/// Of the two phases, as labels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Objects are changed.
    Admit,
    /// Objects are looked at.
    Validate,
}

/// One histogram for each phase, operation and outcome, made with its first sample.
#[derive(Default)]
pub struct Durations([OnceLock<Histogram>; 16]);

/// Counters of one apiserver.
pub struct AdmissionMetrics {
    step: Durations,
    webhook: Family<4>,
    webhook_requests: Family<5>,
    webhook_rejections: Family<5>,
    webhook_fail_open: Family<2>,
    condition_errors: Family<4>,
    condition_exclusions: Family<4>,
    condition_seconds: Family<4>,
    checks: Family<4>,
    check_seconds: Family<4>,
    evaluations: Histogram,
    pod_security: Family<7>,
    pod_security_exempt: Family<3>,
}

/// What came of asking a webhook.
pub struct WebhookOutcome<'a> {
    /// Its name.
    pub name: &'a str,
    /// `admit` or `validating`.
    pub phase: &'static str,
    /// What is done.
    pub operation: Operation,
    /// The HTTP code of its word, or of its server.
    pub code: u16,
    /// Whether it said no itself (`no_error`), could not be asked (`calling_webhook_error`), or something
    /// else went wrong (`apiserver_internal_error`); nothing when the request goes on.
    pub rejected: Option<&'static str>,
    /// How long it took.
    pub duration: Duration,
}

impl Phase {
    fn name(self) -> &'static str {
        match self {
            Phase::Admit => "admit",
            Phase::Validate => "validate",
        }
    }
}

const OPERATIONS: [Operation; 4] =
    [Operation::Create, Operation::Update, Operation::Delete, Operation::Connect];

impl Durations {
    /// One more.
    pub fn observe(&self, phase: Phase, operation: Operation, is_rejected: bool, duration: Duration) {
        let at = (phase as usize * 4 + operation as usize) * 2 + usize::from(is_rejected);
        self.0[at].get_or_init(|| Histogram::new(&BUCKETS)).observe(duration);
    }

    /// The samples; `label` of the plugin in front of the others, or nothing.
    pub fn render(&self, out: &mut String, name: &str, label: &str) {
        for phase in [Phase::Admit, Phase::Validate] {
            for operation in OPERATIONS {
                for is_rejected in [false, true] {
                    let at = (phase as usize * 4 + operation as usize) * 2 + usize::from(is_rejected);
                    let Some(histogram) = self.0[at].get() else { continue };
                    let (phase, operation) = (phase.name(), operation.name());
                    let labels =
                        format!("{label}operation={operation:?},rejected=\"{is_rejected}\",type={phase:?}");
                    histogram.render(out, name, &labels);
                }
            }
        }
    }
}

/// The labels of match conditions, and those of checks.
const OF_CONDITION: [&str; 4] = ["name", "kind", "type", "operation"];
const OF_CHECK: [&str; 4] = ["policy", "policy_binding", "error_type", "enforcement_action"];

impl Default for AdmissionMetrics {
    fn default() -> AdmissionMetrics {
        AdmissionMetrics {
            step: Durations::default(),
            webhook: Family::histogram(
                "apiserver_admission_webhook_admission_duration_seconds",
                "[STABLE] Admission webhook latency histogram in seconds, identified by name and broken out for each \
                 operation and API resource and type (validate or admit).",
                ["name", "type", "operation", "rejected"],
                &WEBHOOK_BUCKETS,
            ),
            webhook_requests: Family::counter(
                "apiserver_admission_webhook_request_total",
                "[ALPHA] Admission webhook request total, identified by name and broken out for each admission type \
                 and operation, by whether the request was rejected and by HTTP status code.",
                ["name", "type", "operation", "code", "rejected"],
            ),
            webhook_rejections: Family::counter(
                "apiserver_admission_webhook_rejection_count",
                "[ALPHA] Admission webhook rejection count, identified by name and broken out for each admission \
                 type and operation, by the type of error and by HTTP status code.",
                ["name", "type", "operation", "error_type", "rejection_code"],
            ),
            webhook_fail_open: Family::counter(
                "apiserver_admission_webhook_fail_open_count",
                "[ALPHA] Admission webhook fail open count, identified by name and broken out for each admission type.",
                ["name", "type"],
            ),
            condition_errors: Family::counter(
                "apiserver_admission_match_condition_evaluation_errors_total",
                "[ALPHA] Admission match condition evaluation errors count.",
                OF_CONDITION,
            ),
            condition_exclusions: Family::counter(
                "apiserver_admission_match_condition_exclusions_total",
                "[ALPHA] Admission match condition evaluation exclusions count.",
                OF_CONDITION,
            ),
            condition_seconds: Family::histogram(
                "apiserver_admission_match_condition_evaluation_seconds",
                "[ALPHA] Admission match condition evaluation time in seconds.",
                OF_CONDITION,
                &CONDITION_BUCKETS,
            ),
            checks: Family::counter(
                "apiserver_validating_admission_policy_check_total",
                "[BETA] Validation admission policy check total, labeled by policy and further identified by \
                 binding and enforcement action taken.",
                OF_CHECK,
            ),
            check_seconds: Family::histogram(
                "apiserver_validating_admission_policy_check_duration_seconds",
                "[BETA] Validation admission latency for individual validation expressions in seconds, labeled by \
                 policy and further including binding and enforcement action taken.",
                OF_CHECK,
                &CHECK_BUCKETS,
            ),
            evaluations: Histogram::new(&DEFAULT_BUCKETS),
            pod_security: pod_security(),
            pod_security_exempt: pod_security_exempt(),
        }
    }
}

impl AdmissionMetrics {
    /// A whole phase of one request.
    pub fn step(&self, phase: Phase, operation: Operation, is_rejected: bool, duration: Duration) {
        self.step.observe(phase, operation, is_rejected, duration);
    }

    /// A webhook was asked.
    pub fn webhook(&self, outcome: &WebhookOutcome) {
        let WebhookOutcome { name, phase, operation, rejected, duration, .. } = *outcome;
        let (operation, code) = (operation.name(), outcome.code.min(MAX_CODE).to_string());
        let is_rejected = if rejected.is_some() { "true" } else { "false" };
        self.webhook_requests.count([name, phase, operation, &code, is_rejected]);
        self.webhook.observe([name, phase, operation, is_rejected], duration);
        if let Some(why) = rejected {
            self.webhook_rejections.count([name, phase, operation, why, &code]);
        }
    }

    /// A webhook that could not be asked was overlooked.
    pub fn failed_open(&self, name: &str, phase: &str) {
        self.webhook_fail_open.count([name, phase]);
    }

    /// The match conditions of a webhook or a policy were looked at; the labels in the order of the metric.
    pub fn conditions_evaluated(&self, labels: [&str; 4], duration: Duration) {
        self.condition_seconds.observe(labels, duration);
    }

    /// One of them could not be evaluated.
    pub fn condition_failed(&self, labels: [&str; 4]) {
        self.condition_errors.count(labels);
    }

    /// A webhook is not asked, as they say.
    pub fn excluded(&self, labels: [&str; 4]) {
        self.condition_exclusions.count(labels);
    }

    /// A validation of a policy did not hold, or the policy holds as a whole; and what follows from it.
    pub fn check(&self, policy: &str, binding: &str, error: &str, action: &str, duration: Duration) {
        let labels = [policy, binding, error, action];
        self.checks.count(labels);
        self.check_seconds.observe(labels, duration);
    }

    /// Expressions were evaluated.
    pub fn evaluated(&self, duration: Duration) {
        self.evaluations.observe(duration);
    }

    /// A pod, or a workload's, was judged; the labels in the order of the metric.
    pub fn pod_security_evaluated(&self, labels: [&str; 7]) {
        self.pod_security.count(labels);
    }

    /// One was not, because it is exempt.
    pub fn pod_security_exempt(&self, operation: Operation, resource: &str, subresource: &str) {
        let operation = operation.name().to_lowercase();
        self.pod_security_exempt.count([&operation, resource, subresource]);
    }

    /// In Prometheus' text format; `plugins` with what each has taken.
    pub fn render<'p>(&self, out: &mut String, plugins: impl Iterator<Item = (&'static str, &'p Durations)>) {
        let name = "apiserver_admission_controller_admission_duration_seconds";
        let help = "[STABLE] Admission controller latency histogram in seconds, identified by name and broken out for \
                    each operation and API resource and type (validate or admit).";
        heading(out, name, "histogram", help);
        for (plugin, durations) in plugins {
            durations.render(out, name, &format!("name={plugin:?},"));
        }
        let name = "apiserver_admission_step_admission_duration_seconds";
        let help = "[STABLE] Admission sub-step latency histogram in seconds, broken out for each operation and API \
                    resource and step type (validate or admit).";
        heading(out, name, "histogram", help);
        self.step.render(out, name, "");
        self.webhook.render(out);
        self.webhook_requests.render(out);
        self.webhook_rejections.render(out);
        self.webhook_fail_open.render(out);
        for family in [&self.condition_errors, &self.condition_exclusions, &self.condition_seconds] {
            family.render(out);
        }
        self.checks.render(out);
        self.check_seconds.render(out);
        let name = "apiserver_cel_evaluation_duration_seconds";
        heading(out, name, "histogram", "[BETA] CEL evaluation time in seconds.");
        self.evaluations.render(out, name, "");
        self.pod_security.render(out);
        self.pod_security_exempt.render(out);
    }
}

fn pod_security() -> Family<7> {
    Family::counter(
        "pod_security_evaluations_total",
        "[ALPHA] Number of policy evaluations that occurred, not counting ignored or exempt requests.",
        [
            "decision",
            "mode",
            "policy_level",
            "policy_version",
            "request_operation",
            "resource",
            "subresource",
        ],
    )
}

fn pod_security_exempt() -> Family<3> {
    Family::counter(
        "pod_security_exemptions_total",
        "[ALPHA] Number of exempt requests, not counting ignored or out of scope requests.",
        ["request_operation", "resource", "subresource"],
    )
}
