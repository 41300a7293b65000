//! What each path of the API cannot write (`ResetFieldsStrategy` of upstream's strategies): nobody comes to
//! own it by trying.

use super::kind::{Kind, Subresource};
use apimachinery::managed_fields::ResetFields;

impl Kind {
    /// What a write of the object, or of one of its subresources, leaves as it was.
    pub fn reset_fields(&self, subresource: Option<Subresource>) -> ResetFields {
        let resource = (&*self.group_version.group, &*self.plural);
        match (subresource, resource) {
            (None, ("certificates.k8s.io", "certificatesigningrequests")) => {
                ResetFields::excluding(&["spec", "status"])
            }
            // Upstream's strategy names them under a group that is not theirs, so it names none.
            (None | Some(Subresource::Status), ("networking.k8s.io", "servicecidrs")) => {
                ResetFields::default()
            }
            // It was gone before there were any.
            _ if &*self.group_version.group == "batch" && &*self.group_version.version == "v2alpha1" => {
                ResetFields::default()
            }
            (None | Some(Subresource::Finalize), _) if self.has(Subresource::Status) => {
                ResetFields::excluding(&["status"])
            }
            (Some(Subresource::Status), _) if self.is_custom => ResetFields::excluding(&["metadata", "spec"]),
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

impl Kind {
    /// Whether labels and the like stay as they were when the status is written
    /// (`metav1.ResetObjectMetaForStatus`).
    pub fn status_leaves_metadata(&self) -> bool {
        let resource = (&*self.group_version.group, &*self.plural);
        let named_elsewhere = [("networking.k8s.io", "servicecidrs"), ("resource.k8s.io", "resourceclaims")];
        named_elsewhere.contains(&resource) || beside_status(resource).contains(&"metadata")
    }
}

fn beside_status(resource: (&str, &str)) -> &'static [&'static str] {
    match resource {
        ("apps", "deployments") => &["spec", "metadata.labels"],
        ("", "pods") => &["spec", "metadata.deletionTimestamp", "metadata.ownerReferences"],
        ("certificates.k8s.io", "certificatesigningrequests") => &["spec", "status.conditions"],
        ("admissionregistration.k8s.io", "validatingadmissionpolicies")
        | ("apiregistration.k8s.io", "apiservices")
        | ("flowcontrol.apiserver.k8s.io", "flowschemas" | "prioritylevelconfigurations")
        | ("storage.k8s.io", "volumeattachments") => &["metadata", "spec"],
        _ => &["spec"],
    }
}
