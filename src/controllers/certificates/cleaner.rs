//! Takes requests away that nobody will look at any more (`pkg/controller/certificates/cleaner`).

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use chrono::TimeDelta;
use serde_json::Value;
use x509_parser::pem::parse_x509_pem;

use super::super::controller::{Action, Controller, Key, Reconcile, Watches};
use super::{SERVICE_ACCOUNT, has_condition};
use apimachinery::options::DeleteOptions;
use apimachinery::status::Status;
use apimachinery::time::{Time, parse};
use apis::certificates::certificate_signing_request::CERTIFICATE_SIGNING_REQUESTS;
use apis::tree::{items, text};
use client_go::component::ComponentContext;
use client_go::lister::Lister;

/// How often each request is looked at.
const POLLING_INTERVAL: Duration = Duration::from_secs(3600);
/// How long decided requests are kept.
const DECIDED: TimeDelta = TimeDelta::hours(1);
/// How long requests wait for somebody to decide, and approved ones for a signer.
const PENDING: TimeDelta = TimeDelta::hours(24);

/// Deletes old requests.
pub(crate) struct CsrCleanerController {
    requests: Lister,
}

impl CsrCleanerController {
    /// With its informers.
    pub(crate) fn new(ctx: &ComponentContext) -> CsrCleanerController {
        CsrCleanerController { requests: ctx.informers.informer(&CERTIFICATE_SIGNING_REQUESTS).lister() }
    }
}

impl Controller for CsrCleanerController {
    const NAME: &'static str = "certificatesigningrequest-cleaner";
    const EVENT_SOURCE: &'static str = "certificatesigningrequest-cleaner-controller";
    const SERVICE_ACCOUNT: &'static str = SERVICE_ACCOUNT;
    const WORKERS: usize = 1;

    fn watches(&self) -> Watches {
        Watches::of(&CERTIFICATE_SIGNING_REQUESTS)
    }

    async fn reconcile(&self, ctx: &Reconcile, key: &Key) -> Result<Action, Status> {
        let Some(object) = self.requests.get("", key) else { return Ok(Action::Done) };
        if !is_past(&object.to_value(), object.metadata.creation_timestamp, ctx.clock.now()) {
            return Ok(Action::RequeueAfter(POLLING_INTERVAL));
        }
        match ctx.client.delete(&CERTIFICATE_SIGNING_REQUESTS, "", key, &DeleteOptions::default()).await {
            Err(status) if !status.is_not_found() => Err(status),
            _ => Ok(Action::Done),
        }
    }
}

fn is_past(request: &Value, created: Option<Time>, now: Time) -> bool {
    let issued = !text(request, "status.certificate").is_empty();
    let since = |condition_type: &str, longest: TimeDelta| {
        let mut conditions = items(request, "status.conditions").iter();
        conditions.any(|condition| {
            let at = parse(text(condition, "lastUpdateTime"));
            text(condition, "type") == condition_type && at.is_some_and(|at| now - at > longest)
        })
    };
    let undecided = !["Approved", "Denied", "Failed"].iter().any(|decided| has_condition(request, decided));
    let old = created.is_some_and(|created| now - created > PENDING);
    (undecided && old)
        || since("Denied", DECIDED)
        || since("Failed", DECIDED)
        || since("Approved", if issued { DECIDED } else { PENDING })
        || certificate_end(request).is_some_and(|end| end < now)
}

fn certificate_end(request: &Value) -> Option<Time> {
    let pem = STANDARD.decode(text(request, "status.certificate")).ok()?;
    let (_, pem) = parse_x509_pem(&pem).ok()?;
    Time::from_timestamp(pem.parse_x509().ok()?.validity().not_after.timestamp(), 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_nobody_needs_goes() {
        let now = Time::UNIX_EPOCH + TimeDelta::days(20_000);
        let ago = |hours| apimachinery::time::rfc3339(now - TimeDelta::hours(hours));
        let condition =
            |name: &str, hours| json!([{"type": name, "status": "True", "lastUpdateTime": ago(hours)}]);
        let cases = [
            (json!({}), 23, false),
            (json!({}), 25, true),
            (json!({"conditions": condition("Denied", 2)}), 2, true),
            (json!({"conditions": condition("Denied", 0)}), 2, false),
            (json!({"conditions": condition("Failed", 2)}), 2, true),
            (json!({"conditions": condition("Approved", 2)}), 2, false),
            (json!({"conditions": condition("Approved", 25)}), 25, true),
            (json!({"conditions": condition("Approved", 2), "certificate": "eA=="}), 2, true),
        ];
        for (status, hours, past) in cases {
            let request = json!({"status": status});
            let created = Some(now - TimeDelta::hours(hours));
            assert_eq!(is_past(&request, created, now), past, "{request} {hours}");
        }
    }
}
