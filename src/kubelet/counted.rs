//! What a kubelet counts of itself (`pkg/kubelet/metrics/metrics.go`).

use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::kuberuntime::context::Happening;
use component_base::metrics::{Family, Histogram, Render, heading};

/// Of `kubelet_pod_start_duration_seconds` (`podStartDurationBuckets`).
const START_BOUNDS: [f64; 24] = [
    0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 20.0, 30.0, 45.0, 60.0, 120.0, 180.0, 240.0, 300.0, 360.0,
    480.0, 600.0, 900.0, 1200.0, 1800.0, 3600.0,
];

/// What one kubelet counts.
pub(crate) struct KubeletCounts {
    started_pods: AtomicU64,
    /// Of all types.
    started: AtomicU64,
    started_containers: Family<1>,
    evictions: Family<1>,
    preemptions: Family<1>,
    pod_starts: Histogram,
}

impl Default for KubeletCounts {
    fn default() -> KubeletCounts {
        KubeletCounts {
            started_pods: AtomicU64::new(0),
            started: AtomicU64::new(0),
            started_containers: Family::counter(
                "kubelet_started_containers_total",
                "[ALPHA] Cumulative number of containers started",
                ["container_type"],
            ),
            evictions: Family::counter(
                "kubelet_evictions",
                "[ALPHA] Cumulative number of pod evictions by eviction signal",
                ["eviction_signal"],
            ),
            preemptions: Family::counter(
                "kubelet_preemptions",
                "[ALPHA] Cumulative number of pod preemptions by preemption resource",
                ["preemption_signal"],
            ),
            pod_starts: Histogram::new(&START_BOUNDS),
        }
    }
}

impl KubeletCounts {
    /// What happened in a turn of a pod.
    pub(crate) fn note(&self, happening: &Happening) {
        match happening {
            Happening::SandboxCreated(_) => {
                self.started_pods.fetch_add(1, Ordering::Relaxed);
                self.started_containers.count(["pod_sandbox"]);
            }
            Happening::Event(event) if event.reason == "Started" => {
                self.started.fetch_add(1, Ordering::Relaxed);
                self.started_containers.count([container_type(event.list)]);
            }
            _ => {}
        }
    }

    /// A pod is evicted since the node is short of what a signal tells of.
    pub(crate) fn evicted(&self, signal: &str) {
        self.evictions.count([signal]);
    }

    /// A pod makes room for a critical one.
    pub(crate) fn preempted(&self, resource: &str) {
        self.preemptions.count([resource]);
    }

    /// All containers of a pod run, so long after the kubelet saw it first.
    pub(crate) fn pod_runs(&self, took: Duration) {
        self.pod_starts.observe(took);
    }

    /// How many containers have been started.
    pub(crate) fn started_containers(&self) -> u64 {
        self.started.load(Ordering::Relaxed)
    }
}

impl Render for KubeletCounts {
    fn render(&self, out: &mut String) {
        self.evictions.render(out);
        if self.pod_starts.count() > 0 {
            let name = "kubelet_pod_start_duration_seconds";
            let help = "[ALPHA] Duration in seconds from kubelet seeing a pod for the first time to the pod starting to run";
            heading(out, name, "histogram", help);
            self.pod_starts.render(out, name, "");
        }
        self.preemptions.render(out);
        self.started_containers.render(out);
        let name = "kubelet_started_pods_total";
        heading(out, name, "counter", "[ALPHA] Cumulative number of pods started");
        let _ = writeln!(out, "{name} {}", self.started_pods.load(Ordering::Relaxed));
    }
}

/// As upstream's labels have it.
fn container_type(list: &str) -> &'static str {
    match list {
        "initContainers" => "init_container",
        "ephemeralContainers" => "ephemeral_container",
        _ => "container",
    }
}
