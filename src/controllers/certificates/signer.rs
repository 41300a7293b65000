//! Signs approved requests of Kubernetes' own signers (`pkg/controller/certificates/signer`): client
//! certificates, client and serving certificates of kubelets, and whatever `legacy-unknown` is asked for.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::super::controller::{Action, Controller, Key, Reconcile, Watches};
use super::{KUBELET_CLIENT_SIGNER, SERVICE_ACCOUNT, add_condition, has_condition, is_approved, usages};
use apimachinery::status::Status;
use apis::certificates::certificate_signing_request::CERTIFICATE_SIGNING_REQUESTS;
use apis::certificates::request::{BadSigningRequest, CertificateRequest, check_apiserver_client};
use apis::tree::{at, set, text};
use client_go::component::ComponentContext;
use client_go::lister::Lister;

/// The shortest: certificates are valid from five minutes before they were made.
const MIN_DURATION: Duration = Duration::from_secs(10 * 60);

/// An authority that signs.
pub trait CertificateAuthority: Send + Sync {
    /// A certificate in PEM for a PKCS#10 request in DER.
    ///
    /// # Errors
    /// Why it cannot sign.
    fn sign(&self, request: &[u8], usages: &[&str], lifetime: Duration) -> Result<String, String>;
}

/// Signs with the cluster's own authority.
pub(crate) struct CsrSigningController {
    requests: Lister,
    authority: Arc<dyn CertificateAuthority>,
    duration: Duration,
}

impl CsrSigningController {
    /// With its informers.
    pub(crate) fn new(
        ctx: &ComponentContext,
        authority: Arc<dyn CertificateAuthority>,
        duration: Duration,
    ) -> CsrSigningController {
        let requests = ctx.informers.informer(&CERTIFICATE_SIGNING_REQUESTS).lister();
        CsrSigningController { requests, authority, duration }
    }

    fn lifetime(&self, request: &Value) -> Duration {
        match at(request, "spec.expirationSeconds").as_u64() {
            None => self.duration,
            Some(seconds) => Duration::from_secs(seconds).min(self.duration).max(MIN_DURATION),
        }
    }
}

impl Controller for CsrSigningController {
    const NAME: &'static str = "certificatesigningrequest-signing";
    const EVENT_SOURCE: &'static str = "certificatesigningrequest-signing-controller";
    const SERVICE_ACCOUNT: &'static str = SERVICE_ACCOUNT;

    fn watches(&self) -> Watches {
        Watches::of(&CERTIFICATE_SIGNING_REQUESTS)
    }

    async fn reconcile(&self, ctx: &Reconcile, key: &Key) -> Result<Action, Status> {
        let Some(object) = self.requests.get("", key) else { return Ok(Action::Done) };
        let mut request = object.to_value();
        let is_done = !text(&request, "status.certificate").is_empty() || has_condition(&request, "Failed");
        if is_done || !is_approved(&request) {
            return Ok(Action::Done);
        }
        let parsed = CertificateRequest::parse(text(&request, "spec.request"))
            .map_err(|error| Status::internal(format!("unable to parse csr {key:?}: {error}")))?;
        match check(&parsed, &request) {
            None => return Ok(Action::Done),
            Some(Err(why)) => {
                add_condition(&mut request, "Failed", "SignerValidationFailure", &why, ctx.clock.now());
            }
            Some(Ok(())) => {
                let signed = self.authority.sign(&parsed.der, &usages(&request), self.lifetime(&request));
                let signed =
                    signed.map_err(|error| Status::internal(format!("error auto signing csr: {error}")))?;
                set(&mut request, "status.certificate", STANDARD.encode(signed));
            }
        }
        ctx.client.update_status(&CERTIFICATE_SIGNING_REQUESTS, "", key, request).await?;
        Ok(Action::Done)
    }
}

/// Whether the signer that is named may sign it; nothing for signers that are not ours.
fn check(parsed: &CertificateRequest, request: &Value) -> Option<Result<(), BadSigningRequest>> {
    let usages = usages(request);
    match text(request, "spec.signerName") {
        "kubernetes.io/kubelet-serving" => Some(parsed.check_kubelet_serving(&usages)),
        KUBELET_CLIENT_SIGNER => Some(parsed.check_kubelet_client(&usages)),
        "kubernetes.io/kube-apiserver-client" => Some(check_apiserver_client(&usages)),
        "kubernetes.io/legacy-unknown" => Some(Ok(())),
        _ => None,
    }
}
