//! The claims of a pod.

use crate::framework::pod_info::PodInfo;
use apimachinery::object::Object;

/// The names of all claims that a pod uses.
pub(super) fn claim_names(pod: &PodInfo) -> impl Iterator<Item = String> + '_ {
    pod.claims.claim_names(&pod.object.metadata.name)
}

/// Whether a pod uses a claim.
pub(super) fn uses_claim(pod: &PodInfo, claim: &Object) -> bool {
    let own = &pod.object.metadata;
    claim.metadata.namespace == own.namespace && pod.claims.has(&own.name, &claim.metadata.name)
}
