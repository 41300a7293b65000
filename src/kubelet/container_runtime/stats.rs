//! The verbs of CRI about what containers use (`ContainerStats`, `PodSandboxStats`).

use std::sync::Arc;

use apimachinery::object::ObjectMeta;
use apimachinery::time::Time;
use apis::views::pod::{Container, Pod};

/// A container that is measured.
#[derive(Clone, Copy)]
pub struct MeasuredContainer<'a> {
    /// Its pod.
    pub pod: &'a Pod,
    /// The pod's metadata.
    pub metadata: &'a ObjectMeta,
    /// The container.
    pub container: &'a Container,
    /// How often it was restarted.
    pub attempt: i64,
    /// When it started.
    pub started_at: Time,
}

/// What a container has used (`runtimeapi.ContainerStats`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ContainerStats {
    /// Of the CPU lately, in billionths of a core (`usage_nano_cores`).
    pub cpu_nano_cores: u64,
    /// Of the CPU since its start (`usage_core_nano_seconds`).
    pub cpu_core_nanoseconds: u64,
    /// Of the memory now (`working_set_bytes`).
    pub memory_bytes: u64,
    /// Of the disk now, beside volumes (`writable_layer`).
    pub disk_bytes: u64,
}

/// How often a container had to wait for the CPU, since it had used all that it may of a period of 100 ms
/// (`cpu.stat` of cgroups).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuThrottling {
    /// The periods since its start (`nr_periods`).
    pub periods: u64,
    /// Those in which it had to wait (`nr_throttled`).
    pub throttled_periods: u64,
    /// How much longer it would have run (`throttled_usec`).
    pub throttled_nanoseconds: u64,
}

/// What a container uses of one resource.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ResourceUse {
    /// Now, in whole units.
    pub now: f64,
    /// Since its start, in units times seconds.
    pub sum: f64,
}

/// What the containers of a sandbox have used together (`runtimeapi.PodSandboxStats`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PodSandboxStats {
    /// Received since its start (`rx_bytes`).
    pub received_bytes: u64,
    /// Sent since its start (`tx_bytes`).
    pub sent_bytes: u64,
}

/// Who measures what runs. Nothing is measured before somebody asks.
pub trait StatsService: Send + Sync {
    /// `ContainerStats`: what a container has used. Worked out when it is asked for.
    fn container_stats(&self, measured: &MeasuredContainer<'_>, now: Time) -> ContainerStats;

    /// How its limit of the CPU has held a container back; of one without, nothing. No part of
    /// `ContainerStats`: cAdvisor alone shows it, and to work it out takes long.
    fn cpu_throttling(&self, _measured: &MeasuredContainer<'_>, _now: Time) -> Option<CpuThrottling> {
        None
    }

    /// What it uses of any one resource, by name.
    fn resource_use(&self, measured: &MeasuredContainer<'_>, resource: &str, now: Time) -> ResourceUse {
        let stats = self.container_stats(measured, now);
        let (cores, core_seconds) =
            (stats.cpu_nano_cores as f64 / 1e9, stats.cpu_core_nanoseconds as f64 / 1e9);
        match resource {
            "cpu" => ResourceUse { now: cores, sum: core_seconds },
            "memory" => ResourceUse { now: stats.memory_bytes as f64, sum: 0.0 },
            "ephemeral-storage" => ResourceUse { now: stats.disk_bytes as f64, sum: 0.0 },
            _ => ResourceUse::default(),
        }
    }

    /// How often it has been said otherwise what all containers use: those that run are looked at again.
    fn count_usage_changes(&self) -> u64 {
        0
    }

    /// `PodSandboxStats`: what the pod as a whole has used since it started.
    fn pod_sandbox_stats(&self, pod: &Pod, started_at: Time, now: Time) -> PodSandboxStats;

    /// How much is in a volume of a pod, when the runtime knows. No verb of CRI: a real kubelet looks at the
    /// folder.
    fn volume_bytes(&self, pod: &Pod, volume: &str, started_at: Time, now: Time) -> Option<u64>;

    /// How much a running container has written beside its volumes (part of `writable_layer`), where its
    /// command or somebody in it fills files; else nothing, since nobody is to wait until that is worked out.
    fn filled_bytes(&self, _container: &Container, _id: &Arc<str>, _now: Time) -> Option<u64> {
        None
    }

    /// Whether a running container may fill files beyond what is held of them.
    fn may_fill(&self, _container: &Container, _id: &Arc<str>) -> bool {
        false
    }

    /// Whether anything of a pod's local storage may fill. Of one where nothing does nobody asks again.
    fn fills_storage(&self, pod: &Pod) -> bool;

    /// What is wrong with what a pod says of what it uses, each in a sentence.
    fn usage_problems(&self, pod: &Pod) -> Vec<String>;

    /// What a pod says of what a container uses, and what comes to nothing when that starts, each in a
    /// sentence.
    fn usage_failures(&self, _measured: &MeasuredContainer<'_>) -> Vec<String> {
        Vec::new()
    }

    /// What is wrong with what a pod says of how it fails, each in a sentence.
    fn chaos_problems(&self, _pod: &Pod) -> Vec<String> {
        Vec::new()
    }

    /// The pod says otherwise what a container uses that runs (it has this id): whether its status may be
    /// another.
    fn look_at_usage_again(&self, _measured: &MeasuredContainer<'_>, _id: &Arc<str>, _now: Time) -> bool {
        false
    }
}
