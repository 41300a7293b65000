//! DenyServiceExternalIPs: no new `externalIPs` on services
//! (`plugin/pkg/admission/network/denyserviceexternalips`).

use futures::future::BoxFuture;
use serde_json::Value;

use super::{AdmissionPlugin, Attributes, forbidden};
use apimachinery::status::Status;
use apis::tree::texts;

/// Refuses addresses that were not there before: whoever sets them takes their traffic.
pub(super) struct DenyServiceExternalIps;

impl AdmissionPlugin for DenyServiceExternalIps {
    fn handles(&self, attributes: &Attributes) -> bool {
        attributes.writes("", "services")
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
        let before = old.map(|old| texts(old, "spec.externalIPs")).unwrap_or_default();
        let addresses = object.map(|service| texts(service, "spec.externalIPs")).unwrap_or_default();
        let outcome = if addresses.iter().all(|address| before.contains(address)) {
            Ok(())
        } else {
            let why = "Use of external IPs is denied by admission control.";
            Err(forbidden(attributes, object, why))
        };
        Box::pin(std::future::ready(outcome))
    }
}
