//! What the pods of the node use, as far as it was measured: for `/metrics/resource`, `/stats/summary` and
//! whoever asks in process.

use std::sync::Arc;
use std::time::Duration;

use super::pods::{PodHere, RunningHere};
use crate::container_runtime::services::RuntimeService;
use crate::container_runtime::stats::{ContainerStats, CpuThrottling, PodSandboxStats};
use crate::container_runtime::used::WINDOW_SECONDS;
use crate::eviction_manager::PodUse;
use crate::kubelet::Kubelet;
use apimachinery::time::Time;
use apis::tree::{items, text};

/// What a node uses beside its pods: the kubelet, the runtime and the system.
const NODE_NANO_CORES: u64 = 50_000_000;
const NODE_BYTES: u64 = 512 << 20;
/// A container that has not run for so long was not measured twice, so what it uses is not known
/// (metrics-server's `freshContainerMinMetricsResolution`).
const FRESH: Duration = Duration::from_secs(10);

/// A pod of the node, and what it uses.
#[derive(Clone, Debug)]
pub(crate) struct MeasuredPod {
    pub(super) here: PodHere,
    /// Of its containers that run, in their order.
    pub(super) containers: Vec<ContainerStats>,
    pub(super) sandbox: PodSandboxStats,
}

/// What is used in all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UsageTotal {
    /// Of the CPU lately, in billionths of a core.
    pub cpu_nano_cores: u64,
    /// Of the CPU since the start.
    pub cpu_core_nanoseconds: u64,
    /// Of the memory now.
    pub memory_bytes: u64,
    /// Of the disk now.
    pub disk_bytes: u64,
}

/// What a pod uses by container, and over how long its CPU was measured.
#[derive(Clone, Debug, PartialEq)]
pub struct PodUsage {
    /// How long the youngest of its containers has run, at most the window.
    pub window: Duration,
    /// By name.
    pub containers: Vec<(String, ContainerStats)>,
}

impl UsageTotal {
    pub(super) fn add(&mut self, stats: &ContainerStats) {
        self.cpu_nano_cores = self.cpu_nano_cores.saturating_add(stats.cpu_nano_cores);
        self.cpu_core_nanoseconds = self.cpu_core_nanoseconds.saturating_add(stats.cpu_core_nanoseconds);
        self.memory_bytes = self.memory_bytes.saturating_add(stats.memory_bytes);
        self.disk_bytes = self.disk_bytes.saturating_add(stats.disk_bytes);
    }

    /// What all pods of a node use, and the node itself.
    pub(super) fn of_node(pods: &[MeasuredPod], up: Duration) -> UsageTotal {
        let mut total = UsageTotal::of_system(10, up);
        pods.iter().flat_map(|pod| &pod.containers).for_each(|stats| total.add(stats));
        total
    }

    /// So many tenths of what the node uses without its pods.
    pub(super) fn of_system(tenths: u64, up: Duration) -> UsageTotal {
        let own = u64::try_from(up.as_millis()).unwrap_or(u64::MAX) / 1000 * NODE_NANO_CORES;
        UsageTotal {
            cpu_nano_cores: NODE_NANO_CORES / 10 * tenths,
            cpu_core_nanoseconds: own / 10 * tenths,
            memory_bytes: NODE_BYTES * tenths / 10,
            disk_bytes: 0,
        }
    }

    /// That of all pods together.
    pub(super) fn of_pods(pods: &[MeasuredPod]) -> UsageTotal {
        let mut total = UsageTotal::default();
        pods.iter().flat_map(|pod| &pod.containers).for_each(|stats| total.add(stats));
        total
    }
}

impl MeasuredPod {
    /// Asks the runtime.
    pub(super) fn measure(here: PodHere, runtime: &dyn RuntimeService, now: Time) -> MeasuredPod {
        let of = |running: &RunningHere| {
            let measured = here.measured(running);
            measured.map(|measured| runtime.container_stats(&measured, now)).unwrap_or_default()
        };
        let containers = here.running.iter().map(of).collect();
        let sandbox = runtime.pod_sandbox_stats(&here.pod, here.start_time, now);
        MeasuredPod { here, containers, sandbox }
    }

    /// How each of its containers that run was held back; the runtime works it out for whoever shows it.
    pub(super) fn throttling(&self, runtime: &dyn RuntimeService, now: Time) -> Vec<Option<CpuThrottling>> {
        let of = |running: &RunningHere| runtime.cpu_throttling(&self.here.measured(running)?, now);
        self.here.running.iter().map(of).collect()
    }

    pub(crate) fn uid(&self) -> &str {
        &self.here.object.metadata.uid
    }

    /// What it uses of what its node may run out of.
    pub(crate) fn in_use(&self, runtime: &dyn RuntimeService, now: Time) -> PodUse {
        let bytes = |bytes: u64| i64::try_from(bytes).unwrap_or(i64::MAX);
        let total = self.total();
        let metadata = &self.here.object.metadata;
        let named = self.here.running.iter().zip(&self.containers);
        let container = |(running, stats): (&RunningHere, &ContainerStats)| {
            (running.name.clone(), bytes(stats.memory_bytes), bytes(stats.disk_bytes))
        };
        PodUse {
            namespace: metadata.namespace.clone(),
            name: metadata.name.clone(),
            pod: self.here.pod.clone(),
            memory: bytes(total.memory_bytes),
            disk: bytes(total.disk_bytes).saturating_add(bytes(self.volume_bytes(runtime, now))),
            // A container is one process, unless somebody says otherwise.
            pids: self.counted(runtime, ("pids", 1), now),
            inodes: self.counted(runtime, ("inodes", 0), now),
            containers: named.map(container).collect(),
        }
    }

    /// What is in its empty directories.
    fn volume_bytes(&self, runtime: &dyn RuntimeService, now: Time) -> u64 {
        let PodHere { object, pod, start_time, .. } = &self.here;
        if !runtime.fills_storage(pod) {
            return 0;
        }
        let tree = object.to_value();
        let volumes = items(&tree, "spec.volumes").iter().filter(|volume| !volume["emptyDir"].is_null());
        let filled = volumes.map(|volume| runtime.volume_bytes(pod, text(volume, "name"), *start_time, now));
        filled.flatten().fold(0, u64::saturating_add)
    }

    /// How many of something its containers have, each at least so many.
    fn counted(&self, runtime: &dyn RuntimeService, (resource, least): (&str, i64), now: Time) -> i64 {
        let of = |running: &RunningHere| {
            let measured = self.here.measured(running);
            measured.map_or(0, |measured| runtime.resource_use(&measured, resource, now).now as i64)
        };
        self.here.running.iter().map(|running| of(running).max(least)).sum()
    }

    pub(super) fn total(&self) -> UsageTotal {
        let mut total = UsageTotal::default();
        self.containers.iter().for_each(|stats| total.add(stats));
        total
    }
}

impl Kubelet {
    /// The pods of the node with what they use, by namespace and name: those that run.
    pub(crate) async fn measured_pods(&self, now: Time) -> Vec<MeasuredPod> {
        let runtime = &*self.shared.node.runtime;
        let here = self.pods_here().await.into_iter().filter(|pod| !pod.running.is_empty());
        here.map(|pod| MeasuredPod::measure(pod, runtime, now)).collect()
    }

    /// What a pod of the node uses; nothing while it has not run for some seconds.
    pub async fn pod_usage(&self, uid: &str) -> Option<PodUsage> {
        let now = self.shared.context.clock.now();
        let here = self.pods.look_by_uid(&Arc::from(uid), PodHere::of).await;
        let here = here.or_else(|| self.pod_played(uid))?;
        let age = |started: Time| (now - started).to_std().unwrap_or_default();
        let youngest = here.running.iter().map(|running| age(running.started_at)).min()?;
        if youngest < FRESH {
            return None;
        }
        let measured = MeasuredPod::measure(here, &*self.shared.node.runtime, now);
        let names = measured.here.running.iter().map(|running| running.name.clone());
        let containers = names.zip(measured.containers.iter().copied()).collect();
        Some(PodUsage { window: youngest.min(Duration::from_secs_f64(WINDOW_SECONDS)), containers })
    }

    /// What the node uses with all its pods.
    pub async fn node_usage(&self) -> UsageTotal {
        let clock = &self.shared.context.clock;
        UsageTotal::of_node(&self.measured_pods(clock.now()).await, clock.elapsed())
    }
}
