//! AlwaysAdmit and AlwaysDeny: the two plugins that look at nothing (`plugin/pkg/admission/admit`, `deny`).

use futures::future::BoxFuture;
use serde_json::Value;

use super::{AdmissionPlugin, Attributes, forbidden};
use apimachinery::status::Status;

/// Admits everything; it is there so that its name may be said.
pub(super) struct AlwaysAdmit;

impl AdmissionPlugin for AlwaysAdmit {
    fn handles(&self, _: &Attributes) -> bool {
        false
    }
}

/// Refuses everything; for tests of those who write.
pub(super) struct AlwaysDeny;

impl AdmissionPlugin for AlwaysDeny {
    fn handles(&self, _: &Attributes) -> bool {
        true
    }

    fn admit<'a>(
        &'a self,
        attributes: &'a Attributes,
        object: Option<&'a mut Value>,
        _old: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<(), Status>> {
        let why = "admission control is denying all modifications";
        Box::pin(std::future::ready(Err(forbidden(attributes, object.as_deref(), why))))
    }
}
