//! CertificateApproval: who approves a request must be allowed to speak for its signer
//! (`plugin/pkg/admission/certificates/approval`).

use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::Value;

use super::{AdmissionPlugin, Attributes, Authorizer, Operation, forbidden};
use crate::request::RequestInfo;
use apimachinery::status::Status;

const GROUP: &str = "certificates.k8s.io";

/// Asks whether the user may `approve` for the signer.
pub(super) struct CertificateApproval(Arc<dyn Authorizer>);

impl CertificateApproval {
    /// Asks `authorizer`.
    pub(super) fn new(authorizer: Arc<dyn Authorizer>) -> CertificateApproval {
        CertificateApproval(authorizer)
    }
}

impl AdmissionPlugin for CertificateApproval {
    fn handles(&self, attributes: &Attributes) -> bool {
        is_request(attributes, Operation::Update, "approval")
    }

    fn changes(&self) -> bool {
        false
    }

    fn validate<'a>(
        &'a self,
        attributes: &'a Attributes,
        _object: Option<&'a Value>,
        old: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<(), Status>> {
        async move {
            // The old one: nobody gets by with a signer that the change itself names.
            let signer = signer_of(old);
            if may(&*self.0, attributes, "approve", signer).await {
                Ok(())
            } else {
                let why = format!("user not permitted to approve requests with signerName {signer:?}");
                Err(forbidden(attributes, old, &why))
            }
        }
        .boxed()
    }
}

/// Whether it is a certificate signing request, or a subresource of one.
pub(super) fn is_request(attributes: &Attributes, operation: Operation, subresource: &str) -> bool {
    attributes.operation == operation
        && attributes.subresource == subresource
        && &*attributes.kind.plural == "certificatesigningrequests"
        && &*attributes.kind.group_version.group == GROUP
}

/// As `kubernetes.io/kubelet-serving`.
pub(super) fn signer_of(request: Option<&Value>) -> &str {
    request.and_then(|request| request["spec"]["signerName"].as_str()).unwrap_or_default()
}

/// `IsAuthorizedForSignerName`: for the signer, or for all signers of its domain.
pub(super) async fn may(
    authorizer: &dyn Authorizer,
    attributes: &Attributes<'_>,
    verb: &str,
    signer: &str,
) -> bool {
    let domain = signer.split('/').next().unwrap_or_default();
    for name in [signer.to_owned(), format!("{domain}/*")] {
        let info = RequestInfo {
            is_resource_request: true,
            verb: verb.into(),
            group: GROUP.into(),
            version: "*".into(),
            resource: "signers".into(),
            name: name.clone(),
            ..RequestInfo::default()
        };
        if name == signer {
            attributes.ctx.second_checks.note(&info);
        }
        if authorizer.authorize(&attributes.ctx.user, &info).wait().await.is_allowed() {
            return true;
        }
    }
    false
}
