//! CertificateSubjectRestriction: nobody asks for a client certificate of `system:masters`
//! (`plugin/pkg/admission/certificates/subjectrestriction`).

use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::Value;

use super::certificate_approval::{is_request, signer_of};
use super::{AdmissionPlugin, Attributes, Operation, forbidden};
use apimachinery::status::Status;
use apimachinery::user::MASTERS;
use apis::certificates::request::CertificateRequest;

const SIGNER: &str = "kubernetes.io/kube-apiserver-client";

/// Refuses what no authorizer could take back.
pub(super) struct CertificateSubjectRestriction;

impl AdmissionPlugin for CertificateSubjectRestriction {
    fn handles(&self, attributes: &Attributes) -> bool {
        is_request(attributes, Operation::Create, "")
    }

    fn changes(&self) -> bool {
        false
    }

    fn validate<'a>(
        &'a self,
        attributes: &'a Attributes,
        object: Option<&'a Value>,
        _old: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<(), Status>> {
        let verdict = object.filter(|object| signer_of(Some(object)) == SIGNER).map_or(Ok(()), |object| {
            let text = object["spec"]["request"].as_str().unwrap_or_default();
            let refused = |why: String| Err(forbidden(attributes, Some(object), &why));
            match CertificateRequest::parse(text) {
                Err(error) => refused(format!("failed to parse CSR: {error}")),
                Ok(request) if request.organizations.iter().any(|name| name == MASTERS) => {
                    refused(format!("use of {SIGNER} signer with {MASTERS} group is not allowed"))
                }
                Ok(_) => Ok(()),
            }
        });
        std::future::ready(verdict).boxed()
    }
}
