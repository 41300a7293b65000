//! PodTopologyLabels: a pod that is bound gets its node's zone and region as labels
//! (`plugin/pkg/admission/podtopologylabels`).

use futures::future::BoxFuture;
use serde_json::Value;

use super::lister::AdmissionLister;
use super::{AdmissionPlugin, Attributes, Initializer, Operation};
use apimachinery::status::Status;
use apis::core::node_labels::{REGION, ZONE};
use apis::tree::{object_mut, text};

const LABELS: [&str; 2] = [REGION, ZONE];

/// Puts the labels into the Binding, from where they come to the pod; or into a pod that names its node.
pub(super) struct PodTopologyLabels {
    nodes: AdmissionLister,
}

impl PodTopologyLabels {
    /// Reads nodes.
    pub(super) fn new(with: &Initializer) -> PodTopologyLabels {
        PodTopologyLabels { nodes: AdmissionLister::new(with, "", "v1", "nodes") }
    }
}

impl AdmissionPlugin for PodTopologyLabels {
    fn handles(&self, attributes: &Attributes) -> bool {
        attributes.operation == Operation::Create
            && attributes.kind.group_version.group.is_empty()
            && &*attributes.kind.plural == "pods"
            && matches!(attributes.subresource, "" | "binding")
    }

    fn validates(&self) -> bool {
        false
    }

    fn admit<'a>(
        &'a self,
        attributes: &'a Attributes,
        object: Option<&'a mut Value>,
        _old: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(async move {
            let Some(object) = object else { return Ok(()) };
            let node = match attributes.subresource {
                "" => text(object, "spec.nodeName"),
                _ if matches!(text(object, "target.kind"), "" | "Node") => text(object, "target.name"),
                _ => "",
            };
            if node.is_empty() {
                return Ok(());
            }
            let Some(node) = self.nodes.get("", node).await? else { return Ok(()) };
            for name in LABELS {
                if let Some(value) = node.metadata.labels.get(name) {
                    object_mut(object, "metadata.labels").insert(name.into(), value.as_str().into());
                }
            }
            Ok(())
        })
    }
}
