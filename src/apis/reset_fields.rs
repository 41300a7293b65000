//! What each path of the API cannot write (`ResetFieldsStrategy` of upstream's strategies): nobody comes to
//! own it by trying.

use super::kind::{Kind, Subresource};
use crate::apimachinery::managed_fields::ResetFields;

impl Kind {
    /// What a write of the object, or of one of its subresources, leaves as it was.
    pub fn reset_fields(&self, subresource: Option<Subresource>) -> ResetFields {
        let resource = (&*self.group_version.group, &*self.plural);
        match (subresource, resource) {
            (None, ("certificates.k8s.io", "certificatesigningrequests")) => {
                ResetFields::excluding(&["spec", "status"])
            }
            (None | Some(Subresource::Finalize), _) if self.has(Subresource::Status) => {
                ResetFields::excluding(&["status"])
            }
            (Some(Subresource::Status), resource) => ResetFields::excluding(beside_status(resource)),
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

fn beside_status(resource: (&str, &str)) -> &'static [&'static str] {
    match resource {
        ("apps", "deployments") => &["spec", "metadata.labels"],
        ("", "pods") => &["spec", "metadata.deletionTimestamp", "metadata.ownerReferences"],
        ("certificates.k8s.io", "certificatesigningrequests") => &["spec", "status.conditions"],
        ("storage.k8s.io", "volumeattachments") => &["metadata", "spec"],
        _ => &["spec"],
    }
}
