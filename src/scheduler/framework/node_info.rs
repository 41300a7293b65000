//! A node with what its pods have taken of it (`framework.NodeInfo`).

use std::sync::Arc;

use super::images::NodeImages;
use super::label_groups::LabelGroups;
use super::pod_info::{HostPort, PodInfo};
use super::resource::Resource;
use apimachinery::object::Object;
use apis::core::node_labels::{HOSTNAME, ZONE};
use apis::views::node::Node;

const SPREAD_LABELS: [&str; 2] = [HOSTNAME, ZONE];

/// A node as the plugins see it.
#[derive(Clone, Debug, Default)]
pub struct NodeInfo {
    /// Its name.
    pub name: Arc<str>,
    /// The node; none while only pods on it are known.
    pub object: Option<Arc<Object>>,
    /// Its fields.
    pub node: Arc<Node>,
    /// The labels that nearly every pod is spread by, each of many nodes: found without a search.
    pub(crate) spread_labels: [Option<Box<str>>; SPREAD_LABELS.len()],
    /// The pods on it, those on their way included.
    pub pods: Vec<Arc<PodInfo>>,
    /// How many of them want other pods near or not: most nodes need no closer look.
    pub pods_with_affinity: usize,
    /// What they ask for.
    pub requested: Resource,
    /// What they count for (see [`super::resource::non_zero_requests`]).
    pub non_zero_requested: Resource,
    /// What there is for pods.
    pub allocatable: Resource,
    /// The images that it has.
    pub images: NodeImages,
    /// Its pods by their labels.
    pub label_groups: LabelGroups,
    /// Another one each time that it has changed in the cache; 0 when it was changed elsewhere.
    pub generation: u64,
}

impl NodeInfo {
    /// A node of which nothing is known yet.
    pub fn new(name: Arc<str>) -> NodeInfo {
        NodeInfo { name, ..NodeInfo::default() }
    }

    /// The node has come or changed.
    pub fn set_node(&mut self, object: Arc<Object>) {
        self.generation = 0;
        self.node = object.view::<Node>();
        self.allocatable = Resource::of(&self.node.status.allocatable);
        let labels = &object.metadata.labels;
        self.spread_labels = SPREAD_LABELS.map(|key| labels.get(key).map(|value| value.as_str().into()));
        self.object = Some(object);
    }

    /// The node has gone; its pods are still there.
    pub fn remove_node(&mut self) {
        self.generation = 0;
        (self.object, self.node, self.allocatable) = (None, Arc::default(), Resource::default());
        self.images = NodeImages::default();
        self.spread_labels = Default::default();
    }

    /// The value of a label of the node.
    pub fn label(&self, key: &str) -> Option<&str> {
        if let Some(at) = SPREAD_LABELS.iter().position(|known| *known == key) {
            return self.spread_labels[at].as_deref();
        }
        self.object.as_ref()?.metadata.labels.get(key).map(String::as_str)
    }

    /// A pod comes.
    pub fn add_pod(&mut self, pod: Arc<PodInfo>) {
        self.generation = 0;
        self.requested.add(&pod.requests, 1);
        self.non_zero_requested.add(&pod.non_zero_requests, 1);
        self.pods_with_affinity += usize::from(!pod.pod_affinity.is_empty());
        self.label_groups.add(&pod);
        self.pods.push(pod);
    }

    /// A pod leaves.
    pub fn remove_pod(&mut self, uid: &str) {
        let Some(at) = self.pods.iter().position(|pod| pod.uid() == uid) else { return };
        self.generation = 0;
        let pod = self.pods.swap_remove(at);
        self.label_groups.remove(&pod, &self.pods);
        self.pods_with_affinity -= usize::from(!pod.pod_affinity.is_empty());
        self.requested.add(&pod.requests, -1);
        self.non_zero_requested.add(&pod.non_zero_requests, -1);
    }

    /// The host ports that are taken.
    pub fn used_ports(&self) -> impl Iterator<Item = &HostPort> {
        self.pods.iter().flat_map(|pod| &pod.host_ports)
    }

    /// Whether there is nothing to remember of it.
    pub fn is_empty(&self) -> bool {
        self.object.is_none() && self.pods.is_empty()
    }
}
