//! The claims of a pod, by name.

use crate::framework::pod_info::PodInfo;
use apis::views::pod::Pod;
use apis::views::pod_volumes::PodClaim;

/// The names of all claims that a pod of this name uses.
pub(super) fn claims_of<'a>(name: &'a str, pod: &'a Pod) -> impl Iterator<Item = String> + 'a {
    pod.spec.claims.iter().map(move |claim| of_pod(name, claim))
}

/// The names of all claims that a pod uses.
pub(super) fn claim_names(pod: &PodInfo) -> impl Iterator<Item = String> + '_ {
    claims_of(&pod.object.metadata.name, &pod.pod)
}

/// The claim of an ephemeral volume is named after the pod, too.
pub(super) fn of_pod(pod: &str, claim: &PodClaim) -> String {
    if claim.is_ephemeral { format!("{pod}-{}", claim.name) } else { claim.name.clone() }
}
