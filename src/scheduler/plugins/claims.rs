//! The claims of a pod, by name.

use crate::framework::pod_info::PodInfo;

/// The names of all claims that a pod uses.
pub(super) fn claim_names(pod: &PodInfo) -> impl Iterator<Item = String> + '_ {
    pod.pod.spec.claims.claim_names(&pod.object.metadata.name)
}
