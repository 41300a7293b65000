//! A pod with what the scheduler computes of it once (`framework.PodInfo`, `framework.QueuedPodInfo`).

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use super::pod_affinity::PodAffinity;
use super::resource::{ResizedPod, Resource, non_zero_requests, pod_requests};
use super::topology_spread::SpreadConstraint;
use apimachinery::object::Object;
use apimachinery::time::Time;
use apis::views::node_affinity::NodeAffinity;
use apis::views::pod::{self, Container, Pod};
use apis::views::pod_volumes::ClaimedVolumes;
use apis::views::toleration::Toleration;

/// A port of the node that a pod wants: address, protocol, number.
pub type HostPort = (String, String, u16);

/// A pod as the plugins see it.
#[derive(Debug)]
pub struct PodInfo {
    /// The pod.
    pub object: Arc<Object>,
    /// Labels that its node must have.
    pub node_selector: BTreeMap<String, String>,
    /// The taints that it bears.
    pub tolerations: Arc<[Toleration]>,
    /// The volumes that it claims.
    pub claims: ClaimedVolumes,
    /// What it asks for.
    pub requests: Resource,
    /// See [`non_zero_requests`].
    pub non_zero_requests: Resource,
    /// The ports of the node that it wants.
    pub host_ports: Vec<HostPort>,
    /// Which nodes it wants.
    pub affinity: NodeAffinity,
    /// Which pods it wants near, and which not.
    pub pod_affinity: PodAffinity,
    /// How it wants to be spread.
    pub spread: Vec<SpreadConstraint>,
    /// What a kubelet must be able to do that not every one can (see `NodeDeclaredFeatures`).
    pub needed_features: Vec<&'static str>,
    /// A hash of its namespace and labels, which pods share that differ in neither.
    pub label_hash: u64,
    /// Higher goes first.
    pub priority: i64,
    /// When its kubelet took it up.
    pub start_time: Option<Time>,
}

/// A pod in the queue.
#[derive(Clone, Debug)]
pub struct QueuedPodInfo {
    /// The pod.
    pub pod: Arc<PodInfo>,
    /// When it came into the queue it is in.
    pub timestamp: Time,
    /// When it came first.
    pub came_at: Time,
    /// How often it was tried.
    pub attempts: u32,
    /// How often in a row it was not found unschedulable, but something went wrong.
    pub consecutive_errors: u32,
    /// How often in a row it was found unschedulable.
    pub unschedulable_count: u32,
    /// The plugins that said no.
    pub unschedulable_plugins: BTreeSet<&'static str>,
    /// The PreEnqueue plugin that holds it back.
    pub gated_by: Option<&'static str>,
    /// Why it is tried, or will be.
    pub because: Because,
    /// Whether it is tried for having waited too long, not for something that happened.
    pub was_flushed: bool,
}

/// Why a pod is tried.
#[derive(Clone, Debug)]
pub enum Because {
    /// It has come, or has changed itself.
    Itself,
    /// Something else has changed, which a plugin that had said no cares about: this is it.
    Other(Arc<Object>),
    /// It has waited long enough.
    Time,
}

impl PodInfo {
    /// Reads a pod.
    pub fn new(object: Arc<Object>) -> PodInfo {
        let pod = object.view::<Pod>();
        let resized = ResizedPod::of(&object);
        PodInfo {
            requests: pod_requests(&pod, resized.as_deref()),
            non_zero_requests: non_zero_requests(&pod, resized.as_deref()),
            host_ports: host_ports(&pod),
            affinity: NodeAffinity::of(&pod),
            pod_affinity: PodAffinity::of(&pod, &object.metadata.namespace),
            spread: SpreadConstraint::of(&pod, &object.metadata.labels),
            needed_features: needed_features(&pod),
            label_hash: label_hash(&object),
            priority: pod.spec.priority.unwrap_or(0),
            start_time: pod.status.start_time,
            node_selector: pod.spec.node_selector.clone(),
            tolerations: pod.spec.tolerations.clone(),
            claims: pod.spec.claims.clone(),
            object,
        }
    }

    /// Its fields. Pods that have their node are many, and few are looked at so closely: of a pod at rest
    /// they are read again. What is asked of each pod of a node stands in a field of its own.
    pub fn pod(&self) -> Arc<Pod> {
        self.object.view()
    }

    /// The node that it was bound to; empty before.
    pub fn node_name(&self) -> Cow<'_, str> {
        pod::node_name(&self.object)
    }

    /// Who places it.
    pub fn scheduler_name(&self) -> Cow<'_, str> {
        pod::scheduler_name(&self.object)
    }

    /// Its uid.
    pub fn uid(&self) -> &str {
        &self.object.metadata.uid
    }
}

impl QueuedPodInfo {
    /// A pod that was not tried yet.
    pub fn new(pod: Arc<PodInfo>, now: Time) -> QueuedPodInfo {
        QueuedPodInfo {
            pod,
            timestamp: now,
            came_at: now,
            attempts: 0,
            consecutive_errors: 0,
            unschedulable_count: 0,
            unschedulable_plugins: BTreeSet::new(),
            gated_by: None,
            because: Because::Itself,
            was_flushed: false,
        }
    }
}

/// A hash of its namespace and labels, which pods share that differ in neither.
fn label_hash(pod: &Object) -> u64 {
    let mut hasher = DefaultHasher::new();
    pod.metadata.namespace.hash(&mut hasher);
    pod.metadata.labels.hash(&mut hasher);
    hasher.finish()
}

/// `InferForScheduling` of each feature that a pod's spec can ask for.
fn needed_features(pod: &Pod) -> Vec<&'static str> {
    let spec = &pod.spec;
    let restarts_all = |container: &Container| {
        container.restart_policy_rules.iter().any(|rule| rule.action == "RestartAllContainers")
    };
    let features = [
        ("RestartAllContainersOnContainerExits", spec.all_containers().any(restarts_all)),
        ("UserNamespacesHostNetworkSupport", spec.host_network && spec.host_users == Some(false)),
    ];
    features.into_iter().filter(|(_, is_needed)| *is_needed).map(|(name, _)| name).collect()
}

/// Of containers and sidecars; without an address it is every address.
fn host_ports(pod: &Pod) -> Vec<HostPort> {
    let sidecars =
        pod.spec.init_containers.iter().filter(|init| init.restart_policy.as_deref() == Some("Always"));
    let ports = pod.spec.containers.iter().chain(sidecars).flat_map(|container| &container.ports);
    let or = |text: &str, default: &str| if text.is_empty() { default.to_owned() } else { text.to_owned() };
    let wanted = ports.filter(|port| port.host_port != 0);
    wanted.map(|port| (or(&port.host_ip, "0.0.0.0"), or(&port.protocol, "TCP"), port.host_port)).collect()
}
