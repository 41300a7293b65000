//! Pod, as controllers, scheduler and kubelet read it.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;

use super::meta::Condition;
use super::node::Taint;
use super::pod_volumes::{ClaimedVolumes, PodResourceClaim, PodResourceClaimStatus, claims_among_volumes};
use super::probe::{Lifecycle, Probe};
use super::restart_rule::RestartRule;
use super::toleration::{self, Toleration};
use crate::core::pod::fields::place_of;
use apimachinery::object::{Object, list, nullable};
use apimachinery::time::Time;

/// `v1.Pod`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Pod {
    /// The metadata, of which readers need the annotations; the rest is beside the object.
    pub metadata: PodMetadata,
    /// The desired state, from whoever wrote the object.
    pub spec: PodSpec,
    /// The observed state, from whoever acts on the object.
    pub status: PodStatus,
}

/// `metav1.ObjectMeta`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct PodMetadata {
    /// What anybody notes about the pod.
    #[serde(deserialize_with = "nullable")]
    pub annotations: BTreeMap<String, String>,
}

const NODE_NAME: usize = place_of("spec.nodeName");
const SCHEDULER_NAME: usize = place_of("spec.schedulerName");
const PHASE: usize = place_of("status.phase");

/// The node that a pod was bound to; empty before. It is had without a view, as the other two.
pub fn node_name(pod: &Object) -> Cow<'_, str> {
    field(pod, NODE_NAME, |view| &view.spec.node_name)
}

/// Who places a pod.
pub fn scheduler_name(pod: &Object) -> Cow<'_, str> {
    field(pod, SCHEDULER_NAME, |view| &view.spec.scheduler_name)
}

/// Whether none of a pod's containers will run again.
pub fn is_terminal(pod: &Object) -> bool {
    matches!(&*field(pod, PHASE, |view| &view.status.phase), "Succeeded" | "Failed")
}

/// An object that was made without its selectable fields has a view all the same.
fn field(pod: &Object, at: usize, of_view: fn(&Pod) -> &String) -> Cow<'_, str> {
    match pod.fields.get(at) {
        Some(value) => Cow::Borrowed(value),
        None => Cow::Owned(of_view(&pod.view::<Pod>()).clone()),
    }
}

/// `v1.PodSpec`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodSpec {
    /// The node that it was bound to; empty before.
    pub node_name: String,
    /// In start order.
    #[serde(deserialize_with = "list")]
    pub containers: Vec<Container>,
    /// One after the other, before the others; those with `restartPolicy: Always` stay (sidecars).
    #[serde(deserialize_with = "list")]
    pub init_containers: Vec<Container>,
    /// Added later to look at the others.
    #[serde(deserialize_with = "list")]
    pub ephemeral_containers: Vec<Container>,
    /// `Always`, `OnFailure`, `Never`.
    pub restart_policy: String,
    /// Between the stop signal and the end.
    pub termination_grace_period_seconds: Option<i64>,
    /// The pod fails after so long.
    pub active_deadline_seconds: Option<i64>,
    /// Labels that the node must have.
    #[serde(deserialize_with = "nullable")]
    pub node_selector: BTreeMap<String, String>,
    /// Rules of attraction, as they stand.
    pub affinity: Option<Box<Value>>,
    /// Rules of spreading, as they stand.
    pub topology_spread_constraints: Option<Box<Value>>,
    /// Taints that it bears.
    #[serde(deserialize_with = "toleration::shared")]
    pub tolerations: Arc<[Toleration]>,
    /// Who places it.
    pub scheduler_name: String,
    /// Reasons not to place it yet.
    #[serde(deserialize_with = "list")]
    pub scheduling_gates: Vec<Named>,
    /// Higher goes first.
    pub priority: Option<i64>,
    /// As named.
    pub priority_class_name: String,
    /// `PreemptLowerPriority` or `Never`.
    pub preemption_policy: Option<String>,
    /// Uses the node's addresses.
    pub host_network: bool,
    /// `false` for users of its own.
    pub host_users: Option<bool>,
    /// As `default`.
    pub service_account_name: String,
    /// Secrets for the registries of its images.
    #[serde(deserialize_with = "list")]
    pub image_pull_secrets: Vec<Named>,
    /// Added to the requests of the containers.
    #[serde(deserialize_with = "nullable")]
    pub overhead: BTreeMap<String, String>,
    /// What the pod as a whole needs and may use, when that is said.
    pub resources: Option<Box<Resources>>,
    /// Conditions beside those of the containers that must be true for the pod to be ready.
    #[serde(deserialize_with = "list")]
    pub readiness_gates: Vec<ReadinessGate>,
    /// The pod's host name, when it is not its own name.
    pub hostname: String,
    /// The domain.
    pub subdomain: String,
    /// What the pod calls itself whatever else is said; no name then is that of DNS.
    pub hostname_override: Option<Box<str>>,
    /// What its containers need.
    pub os: Option<Box<Named>>,
    /// The volumes that are claims or disks; of the others nobody asks.
    #[serde(rename = "volumes", deserialize_with = "claims_among_volumes")]
    pub claims: ClaimedVolumes,
    /// The devices that it claims.
    #[serde(deserialize_with = "list")]
    pub resource_claims: Vec<PodResourceClaim>,
}

/// Anything with a name.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Named {
    /// Its name.
    pub name: String,
}

/// `v1.PodReadinessGate`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ReadinessGate {
    /// The condition's type.
    pub condition_type: String,
}

impl PodSpec {
    /// Those that come first, the others, and those that were added later.
    pub fn all_containers(&self) -> impl Iterator<Item = &Container> {
        self.init_containers.iter().chain(&self.containers).chain(&self.ephemeral_containers)
    }

    /// The name that a pod of this name calls itself: in the network of its node the node's.
    pub fn host_name<'a>(&'a self, pod_name: &'a str) -> &'a str {
        match self.hostname.as_str() {
            _ if self.hostname_override.is_some() => self.hostname_override.as_deref().unwrap_or_default(),
            _ if self.host_network => &self.node_name,
            "" => pod_name,
            name => name,
        }
    }
}

/// `v1.Container`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Container {
    /// Unique in the pod.
    pub name: String,
    /// As `nginx:1.25`.
    pub image: String,
    /// `Always`, `IfNotPresent`, `Never`.
    pub image_pull_policy: String,
    /// Instead of the image's entrypoint.
    #[serde(deserialize_with = "list")]
    pub command: Vec<String>,
    /// Instead of the image's arguments.
    #[serde(deserialize_with = "list")]
    pub args: Vec<String>,
    /// What it listens on.
    #[serde(deserialize_with = "list")]
    pub ports: Vec<ContainerPort>,
    /// Its variables.
    #[serde(deserialize_with = "list")]
    pub env: Vec<EnvVar>,
    /// What it needs and may use.
    pub resources: Resources,
    /// Where its volumes are.
    #[serde(deserialize_with = "list")]
    pub volume_mounts: Vec<VolumeMount>,
    /// Whether its standard input is kept open.
    pub stdin: bool,
    /// Whether that ends with the first client that is attached.
    pub stdin_once: bool,
    /// Whether it has a terminal.
    pub tty: bool,
    /// Of an ephemeral container the one whose processes it sees.
    pub target_container_name: String,
    /// `Always` makes an init container a sidecar.
    pub restart_policy: Option<String>,
    /// What is done instead when it ends in some way.
    #[serde(deserialize_with = "list")]
    pub restart_policy_rules: Vec<RestartRule>,
    /// When it is ready.
    pub readiness_probe: Option<Box<Probe>>,
    /// When it is to be restarted.
    pub liveness_probe: Option<Box<Probe>>,
    /// When it has started; the others wait for that.
    pub startup_probe: Option<Box<Probe>>,
    /// What is done after its start and before its end.
    pub lifecycle: Option<Box<Lifecycle>>,
}

/// `v1.EnvVar`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct EnvVar {
    /// The variable's.
    pub name: String,
    /// May have others in it, as `$(NAME)`.
    pub value: String,
    /// Where its value is from, as it stands, when it is not given.
    pub value_from: Option<Box<Value>>,
}

/// `v1.VolumeMount`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct VolumeMount {
    /// The volume's.
    pub name: String,
    /// In the container.
    pub mount_path: String,
    /// Where in the volume that is, with variables in it.
    pub sub_path_expr: String,
    /// Whether it may not be written.
    pub read_only: bool,
}

/// `v1.ContainerPort`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ContainerPort {
    /// What a service's `targetPort` may name.
    pub name: String,
    /// In the pod.
    pub container_port: u16,
    /// On the node; 0 for none.
    pub host_port: u16,
    /// Which of the node's addresses.
    #[serde(rename = "hostIP")]
    pub host_ip: String,
    /// `TCP`, `UDP`, `SCTP`.
    pub protocol: String,
}

/// `v1.ResourceRequirements`
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Resources {
    /// What it needs.
    #[serde(deserialize_with = "nullable")]
    pub requests: BTreeMap<String, String>,
    /// What it may use.
    #[serde(deserialize_with = "nullable")]
    pub limits: BTreeMap<String, String>,
    /// Which of the pod's devices it has.
    #[serde(deserialize_with = "list")]
    pub claims: Vec<ContainerClaim>,
}

/// `v1.ResourceClaim`, by which a container has devices of its pod.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct ContainerClaim {
    /// What the pod calls the claim.
    pub name: String,
    /// A request of it; without, all.
    pub request: String,
}

/// `v1.PodStatus`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodStatus {
    /// `Pending`, `Running`, `Succeeded`, `Failed`.
    pub phase: String,
    /// `PodScheduled`, `Ready`, ...
    #[serde(deserialize_with = "list")]
    pub conditions: Vec<Condition>,
    /// Why it is in this phase.
    pub reason: String,
    /// For people.
    pub message: String,
    /// The node's address.
    #[serde(rename = "hostIP")]
    pub host_ip: String,
    /// Its address.
    #[serde(rename = "podIP")]
    pub pod_ip: String,
    /// All its addresses.
    #[serde(rename = "podIPs", deserialize_with = "list")]
    pub pod_ips: Vec<PodIp>,
    /// When the kubelet took it up.
    pub start_time: Option<Time>,
    /// Where preemption makes room for it.
    pub nominated_node_name: String,
    /// One per container.
    #[serde(deserialize_with = "list")]
    pub container_statuses: Vec<ContainerStatus>,
    /// One per init container.
    #[serde(deserialize_with = "list")]
    pub init_container_statuses: Vec<ContainerStatus>,
    /// One per ephemeral container.
    #[serde(deserialize_with = "list")]
    pub ephemeral_container_statuses: Vec<ContainerStatus>,
    /// The claims that were made from templates.
    #[serde(deserialize_with = "list")]
    pub resource_claim_statuses: Vec<PodResourceClaimStatus>,
    /// The claim that was made for extended resources which are devices.
    pub extended_resource_claim_status: Option<Box<Value>>,
}

/// `v1.PodIP`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct PodIp {
    /// The address.
    pub ip: String,
}

/// `v1.ContainerStatus`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ContainerStatus {
    /// The container's.
    pub name: String,
    /// Passed its readiness probe.
    pub ready: bool,
    /// How often it was restarted.
    pub restart_count: i64,
    /// As `containerd://...`.
    #[serde(rename = "containerID")]
    pub container_id: String,
    /// Passed its startup probe.
    pub started: Option<bool>,
    /// The state that it is in now.
    pub state: ContainerState,
    /// Before the last restart.
    pub last_state: ContainerState,
}

/// `v1.ContainerState`: at most one is there. Of thousands of pods most run: what else there may be has no
/// room in them.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct ContainerState {
    /// Not yet started.
    pub waiting: Option<Box<Reason>>,
    /// Since when it runs, when it does.
    pub running: Option<Running>,
    /// How it ended, when it has.
    pub terminated: Option<Box<Terminated>>,
}

/// Why a container waits.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Reason {
    /// As `ContainerCreating`.
    pub reason: String,
    /// For people.
    pub message: String,
}

/// `v1.ContainerStateRunning`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Running {
    /// Since when.
    pub started_at: Option<Time>,
}

/// `v1.ContainerStateTerminated`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Terminated {
    /// Of the process.
    pub exit_code: i32,
    /// The signal that ended it, if any.
    pub signal: Option<i32>,
    /// `Completed`, `Error`, ...
    pub reason: String,
    /// When it started.
    pub started_at: Option<Time>,
    /// When it ended.
    pub finished_at: Option<Time>,
    /// What it left as its last word.
    pub message: String,
    /// As `containerd://...`.
    #[serde(rename = "containerID")]
    pub container_id: String,
}

impl Pod {
    /// Whether it has ended, well or badly (`podutil.IsPodTerminal`).
    pub fn is_terminal(&self) -> bool {
        matches!(self.status.phase.as_str(), "Succeeded" | "Failed")
    }

    /// Whether its `Ready` condition is true (`podutil.IsPodReady`).
    pub fn is_ready(&self) -> bool {
        super::meta::is_true(&self.status.conditions, "Ready")
    }
}

/// The first taint with one of `effects` that is not tolerated (`FindMatchingUntoleratedTaint`).
pub fn untolerated<'a>(
    taints: &'a [Taint],
    tolerations: &[Toleration],
    effects: &[&str],
) -> Option<&'a Taint> {
    let repels = |taint: &&Taint| {
        effects.contains(&taint.effect.as_str()) && !tolerations.iter().any(|it| it.tolerates(taint))
    };
    taints.iter().find(repels)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::pod::PODS;
    use serde_json::json;

    #[test]
    fn selectable_fields_are_where_they_are_looked_for() {
        let tree = json!({"metadata": {"name": "a"}, "spec": {"nodeName": "n", "schedulerName": "s"},
            "status": {"phase": "Failed"}});
        let stored = apimachinery::object::encode_for_storage(&tree).unwrap();
        let with_fields = PODS.object(stored, 1).unwrap();
        let without = Object::from_value(&tree, vec![]).unwrap();
        for pod in [with_fields, without] {
            assert_eq!((&*node_name(&pod), &*scheduler_name(&pod), is_terminal(&pod)), ("n", "s", true));
        }
    }
}
