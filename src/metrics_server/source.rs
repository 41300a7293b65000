//! Where what pods and nodes use comes from: the kubelets' `/metrics/resource`, as values.

use std::time::Duration;

use futures::future::BoxFuture;

/// What a pod uses.
#[derive(Clone, Debug, PartialEq)]
pub struct PodSample {
    /// Over how long the CPU was measured.
    pub window: Duration,
    /// Each container that runs.
    pub containers: Vec<ContainerSample>,
}

/// What a container uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContainerSample {
    /// The container's name.
    pub name: String,
    /// Of the CPU, in billionths of a core.
    pub cpu_nano_cores: u64,
    /// Of the memory (the working set).
    pub memory_bytes: u64,
}

/// What a node uses.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeSample {
    /// Over how long the CPU was measured.
    pub window: Duration,
    /// Of the CPU, in billionths of a core.
    pub cpu_nano_cores: u64,
    /// Of the memory (the working set).
    pub memory_bytes: u64,
}

/// Who knows what pods and nodes use.
pub trait UsageSource: Send + Sync {
    /// What a pod of a node uses; nothing while that is not known: it must have run for some seconds.
    fn pod<'a>(&'a self, node: &'a str, uid: &'a str) -> BoxFuture<'a, Option<PodSample>>;

    /// What a node uses; nothing when its kubelet does not run.
    fn node<'a>(&'a self, node: &'a str) -> BoxFuture<'a, Option<NodeSample>>;
}
