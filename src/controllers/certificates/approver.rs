//! Approves what kubelets ask for themselves, when they may (`pkg/controller/certificates/approver`): a
//! SubjectAccessReview for `certificatesigningrequests/selfnodeclient` or `nodeclient` decides.

use std::time::Duration;

use serde_json::{Value, json};

use super::super::controller::{Action, Controller, Key, Reconcile, Watches};
use super::{KUBELET_CLIENT_SIGNER, SERVICE_ACCOUNT, add_condition, has_condition, usages};
use apimachinery::status::Status;
use apis::authorization::SUBJECT_ACCESS_REVIEWS;
use apis::certificates::certificate_signing_request::CERTIFICATE_SIGNING_REQUESTS;
use apis::certificates::request::CertificateRequest;
use apis::tree::{at, flag, text};
use client_go::component::ComponentContext;
use client_go::lister::Lister;

/// When a request that was recognized and not allowed is looked at again: somebody may have been given the
/// permission.
const AGAIN: Duration = Duration::from_secs(10);

/// Approves client certificates of kubelets.
pub(crate) struct CsrApprovingController {
    requests: Lister,
}

impl CsrApprovingController {
    /// With its informers.
    pub(crate) fn new(ctx: &ComponentContext) -> CsrApprovingController {
        CsrApprovingController { requests: ctx.informers.informer(&CERTIFICATE_SIGNING_REQUESTS).lister() }
    }
}

impl Controller for CsrApprovingController {
    const NAME: &'static str = "certificatesigningrequest-approving";
    const EVENT_SOURCE: &'static str = "certificatesigningrequest-approving-controller";
    const SERVICE_ACCOUNT: &'static str = SERVICE_ACCOUNT;

    fn watches(&self) -> Watches {
        Watches::of(&CERTIFICATE_SIGNING_REQUESTS)
    }

    async fn reconcile(&self, ctx: &Reconcile, key: &Key) -> Result<Action, Status> {
        let Some(object) = self.requests.get("", key) else { return Ok(Action::Done) };
        let mut request = object.to_value();
        let is_decided = has_condition(&request, "Approved") || has_condition(&request, "Denied");
        if is_decided || !text(&request, "status.certificate").is_empty() {
            return Ok(Action::Done);
        }
        let recognized = recognized(&request);
        for (subresource, message) in &recognized {
            if is_allowed(ctx, &request, subresource).await? {
                add_condition(&mut request, "Approved", "AutoApproved", message, ctx.clock.now());
                let kind = &CERTIFICATE_SIGNING_REQUESTS;
                ctx.client.update_subresource(kind, "", key, "approval", request).await?;
                return Ok(Action::Done);
            }
        }
        Ok(if recognized.is_empty() { Action::Done } else { Action::RequeueAfter(AGAIN) })
    }
}

/// What a request may be, and the permission that it needs then: a kubelet that asks for its own next
/// certificate, or somebody who asks for a kubelet's first one.
fn recognized(request: &Value) -> Vec<(&'static str, &'static str)> {
    if text(request, "spec.signerName") != KUBELET_CLIENT_SIGNER {
        return vec![];
    }
    let Ok(parsed) = CertificateRequest::parse(text(request, "spec.request")) else { return vec![] };
    if parsed.check_kubelet_client(&usages(request)).is_err() {
        return vec![];
    }
    let mut recognized = vec![];
    if parsed.common_name == text(request, "spec.username") {
        let message = "Auto approving self kubelet client certificate after SubjectAccessReview.";
        recognized.push(("selfnodeclient", message));
    }
    let message = "Auto approving kubelet client certificate after SubjectAccessReview.";
    recognized.push(("nodeclient", message));
    recognized
}

async fn is_allowed(ctx: &Reconcile, request: &Value, subresource: &str) -> Result<bool, Status> {
    let review = json!({
        "metadata": {},
        "spec": {
            "user": text(request, "spec.username"),
            "uid": text(request, "spec.uid"),
            "groups": at(request, "spec.groups"),
            "extra": at(request, "spec.extra"),
            "resourceAttributes": {
                "group": "certificates.k8s.io",
                "resource": "certificatesigningrequests",
                "verb": "create",
                "subresource": subresource,
                "version": "*",
            },
        },
    });
    let answer = ctx.client.review(&SUBJECT_ACCESS_REVIEWS, review).await?;
    Ok(flag(&answer, "status.allowed"))
}
