//! TaintNodesByCondition: a new node takes no pods until it is known to be ready
//! (`plugin/pkg/admission/nodetaint`).

use futures::future::BoxFuture;
use serde_json::{Value, json};

use super::{AdmissionPlugin, Attributes, Operation};
use apimachinery::status::Status;

const NOT_READY: &str = "node.kubernetes.io/not-ready";

/// Adds the `not-ready:NoSchedule` taint to new nodes; the node lifecycle controller takes it away.
pub(super) struct TaintNodesByCondition;

impl AdmissionPlugin for TaintNodesByCondition {
    fn handles(&self, attributes: &Attributes) -> bool {
        attributes.operation == Operation::Create
            && attributes.subresource.is_empty()
            && attributes.kind.group_version.group.is_empty()
            && &*attributes.kind.plural == "nodes"
    }

    fn validates(&self) -> bool {
        false
    }

    fn admit<'a>(
        &'a self,
        _attributes: &'a Attributes,
        object: Option<&'a mut Value>,
        _old: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<(), Status>> {
        if let Some(node) = object {
            add_taint(node);
        }
        Box::pin(std::future::ready(Ok(())))
    }
}

fn add_taint(node: &mut Value) {
    let has = |taint: &Value| taint["key"] == NOT_READY && taint["effect"] == "NoSchedule";
    if node["spec"]["taints"].as_array().is_some_and(|taints| taints.iter().any(has)) {
        return;
    }
    let taint = json!({"key": NOT_READY, "effect": "NoSchedule"});
    if node["spec"].is_null() {
        node["spec"] = json!({});
    }
    let Some(spec) = node["spec"].as_object_mut() else { return };
    match spec.get_mut("taints").and_then(Value::as_array_mut) {
        Some(taints) => taints.push(taint),
        None => {
            spec.insert("taints".into(), json!([taint]));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_tainted_once() {
        let mut node = json!({"metadata": {"name": "n"}});
        add_taint(&mut node);
        add_taint(&mut node);
        assert_eq!(node["spec"]["taints"], json!([{"key": NOT_READY, "effect": "NoSchedule"}]));
    }
}
