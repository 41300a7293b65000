//! What each path of the API cannot write (`ResetFieldsStrategy` of upstream's strategies): nobody comes to
//! own it by trying.

use super::kind::{Kind, Subresource};
use apimachinery::managed_fields::ResetFields;

impl Kind {
    /// What a write of the object, or of one of its subresources, leaves as it was.
    pub fn reset_fields(&self, subresource: Option<Subresource>) -> ResetFields {
        match (subresource, self.resets) {
            (None, Some(fields)) => ResetFields::excluding(fields),
            (None | Some(Subresource::Finalize), _) if self.has(Subresource::Status) => {
                ResetFields::excluding(&["status"])
            }
            (Some(Subresource::Status), _) => ResetFields::excluding(self.status_resets),
            (Some(Subresource::Approval), _) => ResetFields::excluding(&["spec", "status.certificate"]),
            (Some(Subresource::EphemeralContainers), _) => {
                ResetFields::all_but(&["spec.ephemeralContainers"])
            }
            (Some(Subresource::Resize), _) => ResetFields::all_but(&[
                "spec.containers.*.resources",
                "spec.containers.*.resizePolicy",
                "spec.initContainers.*.resources",
                "spec.initContainers.*.resizePolicy",
            ]),
            _ => ResetFields::default(),
        }
    }
}
