//! What templates may ask of the cluster: `Now`, `NodeIPWith`, `PodIPsWith` and their like (kwok's
//! `pod_controller.go`, `node_controller.go`, `gotpl/funcs.go`).

use std::sync::Arc;

use serde_json::{Value, json};

use super::template::TemplateHost;
use apimachinery::object::Object;
use apimachinery::time::{Time, rfc3339_micro};
use entropy::Entropy;

/// What kwok says of itself; part of the versions that its nodes show.
const VERSION: &str = "kubarium";
/// Texts of chance are no longer.
const MAX_RANDOM: u64 = 1024;

/// The simulated nodes, as stages see them.
pub trait Machines: Send + Sync {
    /// Whether a Node is simulated here: others are not touched.
    fn has_node(&self, name: &str) -> bool;

    /// The address of a node; none where its kubelet does not run.
    fn node_address(&self, name: &str) -> Option<String>;

    /// The address of a pod on a node: `current` if it can have that, or a free one from now on until the pod
    /// is gone.
    fn pod_address(&self, node: &str, pod_uid: &str, current: &str) -> Option<String>;
}

/// What the template of one object may ask.
pub(crate) struct TemplateSurroundings<'a> {
    pub(crate) object: &'a Object,
    pub(crate) tree: &'a Value,
    pub(crate) machines: &'a Arc<dyn Machines>,
    pub(crate) now: Time,
    pub(crate) started: Time,
    pub(crate) entropy: &'a Entropy,
}

impl TemplateSurroundings<'_> {
    fn node_address(&self, node: &str) -> Option<Value> {
        self.machines.node_address(node).map(Value::from)
    }

    /// Node, whether it is on the host's network, uid, name, namespace.
    fn pod_address(&self, arguments: &[Value]) -> Option<Value> {
        let node = text(arguments, 0);
        if arguments.get(1).and_then(Value::as_bool) == Some(true) {
            return self.node_address(node);
        }
        let uid = Some(text(arguments, 2)).filter(|uid| !uid.is_empty());
        let current = self.tree["status"]["podIP"].as_str().unwrap_or_default();
        let uid = uid.unwrap_or(&self.object.metadata.uid);
        self.machines.pod_address(node, uid, current).map(Value::from)
    }

    fn random(&self, length: &Value) -> Value {
        self.entropy.suffix(length.as_u64().unwrap_or(0).min(MAX_RANDOM) as usize).into()
    }
}

impl TemplateHost for TemplateSurroundings<'_> {
    fn call(&self, function: &str, arguments: &[Value]) -> Option<Value> {
        let name = &self.object.metadata.name;
        let or_empty = |found: Option<Value>| found.unwrap_or_else(|| "".into());
        let listed = |found: Option<Value>| found.into_iter().collect::<Value>();
        let at = |index: usize| arguments.get(index).unwrap_or(&Value::Null);
        Some(match function {
            "Now" | "now" => rfc3339_micro(self.now).into(),
            "StartTime" => rfc3339_micro(self.started).into(),
            "Version" => VERSION.into(),
            "NodeConditions" => node_conditions(),
            "NodeName" => name.as_str().into(),
            "NodeIP" => or_empty(self.node_address(name)),
            "NodePort" => 10250.into(),
            "NodeIPWith" => or_empty(self.node_address(text(arguments, 0))),
            "NodeIPsWith" => listed(self.node_address(text(arguments, 0))),
            "PodIPWith" => or_empty(self.pod_address(arguments)),
            "PodIPsWith" => listed(self.pod_address(arguments)),
            "uuidv4" => self.entropy.uid().into(),
            "randAlphaNum" | "randAlpha" | "randNumeric" => self.random(at(0)),
            "randInt" => {
                let (least, most) = (at(0).as_i64().unwrap_or(0), at(1).as_i64().unwrap_or(0));
                let range = usize::try_from(most.saturating_sub(least)).unwrap_or(0);
                least.saturating_add(self.entropy.below(range) as i64).into()
            }
            _ => return None,
        })
    }
}

fn text(arguments: &[Value], index: usize) -> &str {
    arguments.get(index).and_then(Value::as_str).unwrap_or_default()
}

/// The conditions of a node that is well.
pub fn node_conditions() -> Value {
    let condition = |(kind, status, reason, message): (&str, &str, &str, &str)| {
        json!({
            "type": kind, "status": status, "reason": reason, "message": message,
            "lastHeartbeatTime": null, "lastTransitionTime": null,
        })
    };
    let all = [
        ("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
        ("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
        ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
        ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
        ("NetworkUnavailable", "False", "RouteCreated", "RouteController created a route"),
    ];
    all.into_iter().map(condition).collect()
}
