//! CertificateSigning: who issues a certificate must be allowed to speak for the signer
//! (`plugin/pkg/admission/certificates/signing`).

use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::Value;

use super::certificate_approval::{is_request, may, signer_of};
use super::{AdmissionPlugin, Attributes, Authorizer, Operation, forbidden};
use apimachinery::status::Status;

/// Asks whether the user may `sign` for the signer, when the certificate or a condition changes.
pub(super) struct CertificateSigning(Arc<dyn Authorizer>);

impl CertificateSigning {
    /// Asks `authorizer`.
    pub(super) fn new(authorizer: Arc<dyn Authorizer>) -> CertificateSigning {
        CertificateSigning(authorizer)
    }
}

impl AdmissionPlugin for CertificateSigning {
    fn handles(&self, attributes: &Attributes) -> bool {
        is_request(attributes, Operation::Update, "status")
    }

    fn changes(&self) -> bool {
        false
    }

    fn validate<'a>(
        &'a self,
        attributes: &'a Attributes,
        object: Option<&'a Value>,
        old: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<(), Status>> {
        async move {
            let part = |tree: Option<&Value>, name: &str| {
                tree.map(|tree| tree["status"][name].clone()).unwrap_or_default()
            };
            if ["certificate", "conditions"].iter().all(|name| part(object, name) == part(old, name)) {
                return Ok(());
            }
            let signer = signer_of(old);
            if may(&*self.0, attributes, "sign", signer).await {
                Ok(())
            } else {
                let why = format!("user not permitted to sign requests with signerName {signer:?}");
                Err(forbidden(attributes, old, &why))
            }
        }
        .boxed()
    }
}
