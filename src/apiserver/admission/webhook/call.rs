//! Asks one webhook about one request (`callAttachmentHook`), and says what a failure means.

use std::time::Duration;

use super::hook::AdmissionHook;
use super::request::{admission_request, review};
use super::response::{WebhookAnswer, check_type, refusal};
use super::versions::Versions;
use crate::admission::metrics::WebhookOutcome;
use crate::admission::{AdmissionMetrics, Attributes};
use apimachinery::names::qualified_name;
use apimachinery::status::Status;
use apis::kind::Kind;
use entropy::Entropy;

/// Why the request does not go on.
pub(super) enum WebhookRefusal {
    /// The webhook could not be asked; `failurePolicy` decides.
    Failed {
        /// For the client.
        why: String,
        /// What its server answered, for the metrics.
        code: u16,
    },
    /// It said no, or may not be asked.
    Refused(Status),
}

/// Asks, warns, annotates, and gives the answer of one that allows it.
pub(super) async fn call(
    hook: &AdmissionHook,
    attributes: &Attributes<'_>,
    kind: &Kind,
    objects: &Versions,
    is_mutating: bool,
    entropy: &Entropy,
) -> Result<WebhookAnswer, WebhookRefusal> {
    if attributes.ctx.dry_run && !hook.allows_dry_run {
        let text = format!("admission webhook {:?} does not support dry run", hook.name);
        return Err(WebhookRefusal::Refused(Status::bad_request(text)));
    }
    let failed = |why: String| WebhookRefusal::failed(hook, &why);
    let client = hook.client.as_ref().map_err(|why| failed(why.to_string()))?;
    let uid = entropy.uid();
    let request = admission_request(attributes, kind, Some(&objects.object).filter(|tree| !tree.is_null()));
    let body = review(hook.review_version, &uid, request, objects);
    let is_silent = attributes.ctx.disturbance.as_ref().is_some_and(|told| told.silences(&hook.name));
    let answer =
        if is_silent { Err(client.timed_out(hook.timeout)) } else { client.call(&body, hook.timeout).await };
    let answer = answer.map_err(|error| WebhookRefusal::Failed {
        why: format!("failed calling webhook {:?}: failed to call webhook: {error}", hook.name),
        code: error.code.unwrap_or(503),
    })?;
    check_type(&answer, hook.review_version)
        .map_err(|error| failed(format!("failed to call webhook: {error}")))?;
    let answer = WebhookAnswer::read(&answer, hook.review_version, &uid, is_mutating);
    let answer = answer.map_err(|error| failed(format!("received invalid webhook response: {error}")))?;
    for (key, value) in &answer.annotations {
        let key = format!("{}/{key}", hook.name);
        // What is no name of an annotation is left out (`admission.checkKeyFormat`).
        if qualified_name(&key).is_empty() {
            attributes.ctx.annotate(&key, value);
        }
    }
    answer.warnings.iter().for_each(|warning| attributes.ctx.warn(warning));
    if answer.is_allowed {
        Ok(answer)
    } else {
        Err(WebhookRefusal::Refused(refusal(&hook.name, &answer.result)))
    }
}

impl WebhookRefusal {
    /// Nothing can be made of what it answered.
    pub(super) fn failed(hook: &AdmissionHook, why: &str) -> WebhookRefusal {
        WebhookRefusal::Failed { why: format!("failed calling webhook {:?}: {why}", hook.name), code: 503 }
    }

    /// What the client hears, or nothing when a failure is to be overlooked; that is noted under `key`.
    pub(super) fn judge(
        self,
        hook: &AdmissionHook,
        attributes: &Attributes,
        key: &str,
    ) -> Result<(), Status> {
        match self {
            WebhookRefusal::Refused(status) => Err(status),
            WebhookRefusal::Failed { why, .. } if hook.fails_open => {
                tracing::warn!(webhook = hook.name, why, "failed calling webhook, failing open");
                attributes.ctx.annotate(key, &hook.name);
                Ok(())
            }
            WebhookRefusal::Failed { why, .. } => {
                tracing::warn!(webhook = hook.name, why, "failed calling webhook, failing closed");
                Err(Status::internal(why))
            }
        }
    }
}

/// Counts what came of asking a webhook, and tells of it.
pub(super) fn count(
    metrics: &AdmissionMetrics,
    hook: &AdmissionHook,
    phase: &'static str,
    attributes: &Attributes,
    outcome: Result<(), &WebhookRefusal>,
    duration: Duration,
) {
    let (code, rejected) = match outcome {
        Ok(()) => (200, None),
        Err(WebhookRefusal::Refused(status)) => (status.code, Some("no_error")),
        Err(WebhookRefusal::Failed { code, .. }) if hook.fails_open => {
            metrics.failed_open(&hook.name, phase);
            (*code, None)
        }
        Err(WebhookRefusal::Failed { code, .. }) => (*code, Some("calling_webhook_error")),
    };
    let verdict = match outcome {
        Ok(()) => "allowed it",
        Err(WebhookRefusal::Refused(status)) => &status.message,
        Err(WebhookRefusal::Failed { why, .. }) => why,
    };
    let kind = if phase == "validating" { "Validating" } else { "Mutating" };
    let configuration = format!("{kind}WebhookConfiguration {}", hook.configuration);
    attributes.ctx.tell_webhook(&hook.name, &configuration, duration, verdict);
    let (name, operation) = (&*hook.name, attributes.operation);
    metrics.webhook(&WebhookOutcome { name, phase, operation, code, rejected, duration });
}
