//! NodeDeclaredFeatureValidator: a pod that runs is only changed in ways that its node says it can follow
//! (`plugin/pkg/admission/nodedeclaredfeatures`).

use futures::future::BoxFuture;
use serde_json::Value;

use super::lister::AdmissionLister;
use super::{AdmissionPlugin, Attributes, Initializer, Operation, forbidden};
use apimachinery::status::Status;
use apis::tree::{at, items, text, texts};

/// Resources of the pod as a whole may change while it runs.
const POD_LEVEL_RESOURCES: &str = "InPlacePodLevelResourcesVerticalScaling";
/// Those of containers that run before the others may, too.
const INIT_CONTAINERS: &str = "InPlacePodVerticalScalingInitContainers";

/// Looks at changes of pods that have a node.
pub(super) struct NodeDeclaredFeatureValidator {
    nodes: AdmissionLister,
}

impl NodeDeclaredFeatureValidator {
    /// Reads nodes.
    pub(super) fn new(with: &Initializer) -> NodeDeclaredFeatureValidator {
        NodeDeclaredFeatureValidator { nodes: AdmissionLister::new(with, "", "v1", "nodes") }
    }

    async fn check(&self, name: &str, required: &[&'static str]) -> Result<(), String> {
        let node = match self.nodes.get("", name).await {
            Ok(Some(node)) => node.to_value(),
            Ok(None) => return Err(format!("node {name:?} not found")),
            Err(status) => return Err(format!("failed to get node {name:?}: {}", status.message)),
        };
        let declared = texts(&node, "status.declaredFeatures");
        let missing: Vec<&str> = required.iter().copied().filter(|name| !declared.contains(name)).collect();
        if missing.is_empty() {
            return Ok(());
        }
        let missing = missing.join(", ");
        Err(format!("pod update requires features {missing} which are not available on node {name:?}"))
    }
}

impl AdmissionPlugin for NodeDeclaredFeatureValidator {
    fn handles(&self, attributes: &Attributes) -> bool {
        attributes.operation == Operation::Update
            && matches!(attributes.subresource, "" | "resize")
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
            let node = text(pod, "spec.nodeName");
            let required = if node.is_empty() { vec![] } else { required(pod, old) };
            if required.is_empty() {
                return Ok(());
            }
            self.check(node, &required).await.map_err(|why| forbidden(attributes, object, &why))
        })
    }
}

/// What a node must know for a pod to become another (`InferForPodUpdate`).
fn required(new: &Value, old: &Value) -> Vec<&'static str> {
    let mut required = Vec::new();
    if at(new, "spec.resources") != at(old, "spec.resources") {
        required.push(POD_LEVEL_RESOURCES);
    }
    let containers = items(old, "spec.initContainers").iter().zip(items(new, "spec.initContainers"));
    let ordinary = containers.filter(|(old, _)| text(old, "restartPolicy") != "Always");
    if ordinary.into_iter().any(|(old, new)| old["resources"] != new["resources"]) {
        required.push(INIT_CONTAINERS);
    }
    required
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_a_node_must_know_depends_on_what_changes() {
        let pod = |own: &str, init: &str, sidecar: &str| {
            let resources = |cpu: &str| json!({"requests": {"cpu": cpu}});
            json!({"spec": {"resources": resources(own), "initContainers": [
                {"name": "a", "resources": resources(init)},
                {"name": "b", "restartPolicy": "Always", "resources": resources(sidecar)}]}})
        };
        let old = pod("1", "1", "1");
        for (new, wanted) in [
            (pod("1", "1", "2"), &[][..]),
            (pod("2", "1", "1"), &[POD_LEVEL_RESOURCES]),
            (pod("2", "2", "1"), &[POD_LEVEL_RESOURCES, INIT_CONTAINERS]),
        ] {
            assert_eq!(required(&new, &old), wanted);
        }
    }
}
