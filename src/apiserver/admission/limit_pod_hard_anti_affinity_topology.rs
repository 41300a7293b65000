//! LimitPodHardAntiAffinityTopology: pods may keep others off a node, but not off a whole zone
//! (`plugin/pkg/admission/antiaffinity`).

use futures::future::BoxFuture;
use serde_json::Value;

use super::{AdmissionPlugin, Attributes, forbidden};
use apimachinery::status::Status;
use apis::core::node_labels::HOSTNAME;
use apis::tree::{items, text};

const REQUIRED: &str = "spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution";

/// Refuses required anti-affinity by any other topology.
pub(super) struct LimitPodHardAntiAffinityTopology;

impl AdmissionPlugin for LimitPodHardAntiAffinityTopology {
    fn handles(&self, attributes: &Attributes) -> bool {
        attributes.writes("", "pods")
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
        let keys =
            object.into_iter().flat_map(|pod| items(pod, REQUIRED)).map(|term| text(term, "topologyKey"));
        let wrong = keys.into_iter().find(|key| *key != HOSTNAME);
        let refusal = wrong.map(|key| {
            let why = format!(
                "affinity.PodAntiAffinity.RequiredDuringScheduling has TopologyKey {key} but only key \
                 {HOSTNAME} is allowed"
            );
            forbidden(attributes, object, &why)
        });
        Box::pin(std::future::ready(refusal.map_or(Ok(()), Err)))
    }
}
