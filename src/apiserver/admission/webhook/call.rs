//! Asks one webhook about one request (`callAttachmentHook`), and says what a failure means.

use serde_json::Value;

use super::hook::Hook;
use super::request::{admission_request, review};
use super::response::{Answer, refusal};
use super::versions::Versions;
use crate::apimachinery::status::Status;
use crate::apis::kind::Kind;
use crate::apiserver::admission::Attributes;
use crate::entropy::Entropy;

/// Why the request does not go on.
pub enum Refusal {
    /// The webhook could not be asked; `failurePolicy` decides.
    Failed(String),
    /// It said no, or may not be asked.
    Refused(Status),
}

/// Asks, warns, annotates, and gives the answer of one that allows it.
pub async fn call(
    hook: &Hook,
    attributes: &Attributes<'_>,
    kind: &Kind,
    objects: &Versions,
    is_mutating: bool,
    entropy: &Entropy,
) -> Result<Answer, Refusal> {
    if attributes.ctx.dry_run && !hook.allows_dry_run {
        let text = format!("admission webhook {:?} does not support dry run", hook.name);
        return Err(Refusal::Refused(Status::bad_request(text)));
    }
    let failed = |why: String| Refusal::Failed(format!("failed calling webhook {:?}: {why}", hook.name));
    let client = hook.client.as_ref().map_err(|why| failed(why.clone()))?;
    let uid = entropy.uid();
    let request = admission_request(attributes, kind, Some(&objects.object).filter(|tree| !tree.is_null()));
    let body = review(hook.review_version, &uid, request, objects);
    let answer = client.call(&body, hook.timeout).await;
    let answer = answer.map_err(|error| failed(format!("failed to call webhook: {error}")))?;
    let answer = Answer::read(&answer, hook.review_version, &uid, is_mutating);
    let answer = answer.map_err(|error| failed(format!("received invalid webhook response: {error}")))?;
    for (key, value) in &answer.annotations {
        attributes.ctx.annotate(&format!("{}/{key}", hook.name), value);
    }
    answer.warnings.iter().for_each(|warning| attributes.ctx.warn(warning));
    match answer.is_allowed {
        true => Ok(answer),
        false => Err(Refusal::Refused(refusal(&hook.name, &answer.result))),
    }
}

impl Refusal {
    /// What the client hears, or nothing when a failure is to be overlooked; that is noted under `key`.
    pub fn judge(self, hook: &Hook, attributes: &Attributes, key: &str) -> Result<(), Status> {
        match self {
            Refusal::Refused(status) => Err(status),
            Refusal::Failed(why) if hook.fails_open => {
                tracing::warn!(webhook = hook.name, why, "failed calling webhook, failing open");
                attributes.ctx.annotate(key, &hook.name);
                Ok(())
            }
            Refusal::Failed(why) => {
                tracing::warn!(webhook = hook.name, why, "failed calling webhook, failing closed");
                Err(Status::internal(why))
            }
        }
    }
}

/// Whether the value of an annotation that names a hook's configuration.
pub fn hook_annotation(hook: &Hook) -> Value {
    serde_json::json!({"configuration": hook.configuration, "webhook": hook.name})
}
