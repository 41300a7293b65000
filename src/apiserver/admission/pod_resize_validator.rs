//! PodResizeValidator: a pod that runs may not ask for more than its node has
//! (`plugin/pkg/admission/podresize`).

use futures::future::BoxFuture;
use serde_json::Value;

use super::lister::AdmissionLister;
use super::{AdmissionPlugin, Attributes, Initializer, Operation, forbidden};
use apimachinery::quantity::Quantity;
use apimachinery::status::{Status, StatusCause};
use apis::core::node_labels::OS;
use apis::resources::{Amounts, amounts, pod_requests};
use apis::tree::{at, string_map, text};

/// Looks at `pods/resize`.
pub(super) struct PodResizeValidator {
    nodes: AdmissionLister,
}

impl PodResizeValidator {
    /// Reads nodes.
    pub(super) fn new(with: &Initializer) -> PodResizeValidator {
        PodResizeValidator { nodes: AdmissionLister::new(with, "", "v1", "nodes") }
    }

    /// # Errors
    /// Why not, and the reason that machines are told.
    async fn check(&self, pod: &Value) -> Result<(), (String, Option<&'static str>)> {
        let name = text(pod, "spec.nodeName");
        let node = match self.nodes.get("", name).await {
            Ok(Some(node)) => node.to_value(),
            Ok(None) => return Err((format!("node {name:?} not found"), None)),
            Err(status) => return Err((format!("failed to get node {name:?}: {}", status.message), None)),
        };
        match string_map(&node, "metadata.labels").get(OS).map(String::as_str) {
            None | Some("linux") => {}
            Some(os) => {
                let why = format!("pod resize is only supported on linux nodes, node {name:?} is {os:?}");
                return Err((why, Some("UnsupportedPlatform")));
            }
        }
        fits(&pod_requests(pod), &amounts(&node, "status.allocatable"))
            .map_err(|why| (why, Some("NodeCapacity")))
    }
}

impl AdmissionPlugin for PodResizeValidator {
    fn handles(&self, attributes: &Attributes) -> bool {
        attributes.operation == Operation::Update
            && attributes.subresource == "resize"
            && &*attributes.kind.plural == "pods"
            && attributes.kind.group_version.group.is_empty()
    }

    fn changes(&self) -> bool {
        false
    }

    fn validate<'a>(
        &'a self,
        attributes: &'a Attributes,
        object: Option<&'a Value>,
        old: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(async move {
            let (Some(pod), Some(old)) = (object, old) else { return Ok(()) };
            if text(pod, "spec.nodeName").is_empty() || at(pod, "spec") == at(old, "spec") {
                return Ok(());
            }
            self.check(pod).await.map_err(|(why, reason)| {
                let mut status = forbidden(attributes, object, &why);
                let cause =
                    reason.map(|reason| StatusCause { reason: reason.into(), ..StatusCause::default() });
                status.details.get_or_insert_default().causes.extend(cause);
                status
            })
        })
    }
}

fn fits(requests: &Amounts, allocatable: &Amounts) -> Result<(), String> {
    let mut missing = Vec::new();
    for name in ["cpu", "memory"] {
        let unit = if name == "cpu" { Quantity::milli_value } else { Quantity::value };
        let [requested, available] = [requests, allocatable].map(|of| of.get(name).map_or(0, unit));
        if requested > available {
            missing.push(format!("{name}, requested: {requested}, allocatable: {available}"));
        }
    }
    if missing.is_empty() {
        Ok(())
    } else {
        Err(format!("node didn't have enough allocatable resources: {}", missing.join("; ")))
    }
}
