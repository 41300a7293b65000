//! The claims of a pod, by name.

use crate::framework::pod_info::PodInfo;
use apis::views::pod_volumes::PodClaim;

/// The names of all claims that a pod uses.
pub(super) fn claim_names(pod: &PodInfo) -> impl Iterator<Item = String> + '_ {
    pod.pod.spec.claims.iter().map(|claim| of_pod(pod, claim))
}

/// The claim of an ephemeral volume is named after the pod, too.
pub(super) fn of_pod(pod: &PodInfo, claim: &PodClaim) -> String {
    if claim.is_ephemeral {
        format!("{}-{}", pod.object.metadata.name, claim.name)
    } else {
        claim.name.clone()
    }
}
