//! What a kubelet counts of itself (`pkg/kubelet/metrics/metrics.go`).

use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::kuberuntime::context::Happening;
use super::kuberuntime::instrumented_services::{RUN_SANDBOX, RuntimeOperations};
use super::pleg::PodLifecycleLooks;
use super::pod_startup::{PodStartup, StartupCounts};
use super::resize_counts::ResizeCounts;
use apimachinery::object::Object;
use apimachinery::time::Time;
use component_base::metrics::{DEFAULT_BUCKETS, Family, Histogram, Render, heading};

/// Of how long pods take to start (`podStartupDurationBuckets`).
const START_BOUNDS: [f64; 25] = [
    0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 20.0, 30.0, 45.0, 60.0, 120.0, 180.0, 240.0, 300.0, 360.0,
    480.0, 600.0, 900.0, 1200.0, 1800.0, 2700.0, 3600.0,
];

/// `ExponentialBuckets(1, 2, 5)`, of containers; observed as if they were seconds.
const CONTAINER_BOUNDS: [f64; 5] = [1.0, 2.0, 4.0, 8.0, 16.0];

/// Why a pod has a turn (`SyncPodType`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TurnKind {
    /// It is new here.
    Create,
    /// It has changed.
    Update,
    /// Its time has come.
    Sync,
}

impl TurnKind {
    fn name(self) -> &'static str {
        match self {
            TurnKind::Create => "create",
            TurnKind::Update => "update",
            TurnKind::Sync => "sync",
        }
    }
}

/// What one kubelet counts.
pub(crate) struct KubeletCounts {
    started_pods: AtomicU64,
    /// Of all types.
    started: AtomicU64,
    started_containers: Family<1>,
    terminated_containers: Family<3>,
    evictions: Family<1>,
    preemptions: Family<1>,
    pod_starts: Histogram,
    turns: Family<1>,
    worker_starts: Histogram,
    containers_of_pods: Histogram,
    calls: RuntimeOperations,
    startups: StartupCounts,
    rejections: Family<1>,
    collected_images: Family<1>,
    sandboxes: Family<1>,
    sandbox_errors: Family<1>,
    pub(crate) resizes: ResizeCounts,
    /// How often it would have looked at its runtime.
    pub(crate) looks: PodLifecycleLooks,
}

impl KubeletCounts {
    /// Of a kubelet that begins.
    pub(crate) fn since(began: Time) -> KubeletCounts {
        KubeletCounts {
            started_pods: AtomicU64::new(0),
            started: AtomicU64::new(0),
            started_containers: Family::counter(
                "kubelet_started_containers_total",
                "[ALPHA] Cumulative number of containers started",
                ["container_type"],
            ),
            terminated_containers: Family::counter(
                "kubelet_terminated_containers_total",
                "[ALPHA] Cumulative number of container terminations.",
                ["container_type", "exit_code", "reason"],
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
            turns: Family::histogram(
                "kubelet_pod_worker_duration_seconds",
                "[ALPHA] Duration in seconds to sync a single pod. Broken down by operation type: create, update, or \
                 sync",
                ["operation_type"],
                &DEFAULT_BUCKETS,
            ),
            worker_starts: Histogram::new(&DEFAULT_BUCKETS),
            containers_of_pods: Histogram::new(&CONTAINER_BOUNDS),
            calls: RuntimeOperations::default(),
            startups: StartupCounts::new(&START_BOUNDS),
            rejections: Family::counter(
                "kubelet_admission_rejections_total",
                "[ALPHA] Cumulative number pod admission rejections by the Kubelet.",
                ["reason"],
            ),
            collected_images: Family::counter(
                "kubelet_image_garbage_collected_total",
                "[ALPHA] Total number of images garbage collected by the kubelet, whether through disk usage or image \
                 age.",
                ["reason"],
            ),
            sandboxes: Family::histogram(
                "kubelet_run_podsandbox_duration_seconds",
                "[ALPHA] Duration in seconds of the run_podsandbox operations. Broken down by RuntimeClass.Handler.",
                ["runtime_handler"],
                &DEFAULT_BUCKETS,
            ),
            sandbox_errors: Family::counter(
                "kubelet_run_podsandbox_errors_total",
                "[ALPHA] Cumulative number of the run_podsandbox operation errors by RuntimeClass.Handler.",
                ["runtime_handler"],
            ),
            resizes: ResizeCounts::default(),
            looks: PodLifecycleLooks::new(began),
        }
    }

    /// What happened in a turn of a pod, at `now`; how long its sandbox took, too, unless that is of a class:
    /// who handles it this kubelet does not know.
    pub(crate) fn note_of(&self, pod: &Object, happening: &Happening, now: Time) {
        if let Happening::Called { operation: RUN_SANDBOX, took, has_failed } = happening
            && !pod.mentions("\"runtimeClassName\"")
        {
            self.sandboxes.observe([""], *took);
            self.sandbox_errors.add([""], u64::from(*has_failed));
        }
        self.note(happening, now);
    }

    /// What happened to a pod, at `now`.
    pub(crate) fn note(&self, happening: &Happening, now: Time) {
        match happening {
            Happening::Called { operation, took, has_failed } => {
                self.calls.returned(operation, *took, *has_failed);
            }
            Happening::ImagePulled { began, size } => {
                self.calls.pulled((now - *began).to_std().unwrap_or_default(), *size);
            }
            Happening::SandboxStopped => {
                self.calls.returned("stop_podsandbox", Duration::ZERO, false);
                self.calls.returned("remove_podsandbox", Duration::ZERO, false);
            }
            Happening::SandboxCreated(_) => {
                self.started_pods.fetch_add(1, Ordering::Relaxed);
                self.started_containers.count(["pod_sandbox"]);
            }
            Happening::Event(event) if event.reason == "Started" => {
                self.started.fetch_add(1, Ordering::Relaxed);
                self.started_containers.count([container_type(event.list)]);
            }
            Happening::ContainerExited { list, exit_code, reason, .. } => {
                let usual = if *exit_code == 0 { "Completed" } else { "Error" };
                let reason = if reason.is_empty() { usual } else { reason };
                self.terminated_containers.count([container_type(list), &exit_code.to_string(), reason]);
            }
            Happening::Event(event) => self.resizes.told(event.reason),
            _ => {}
        }
    }

    /// A verb of CRI was called so often, and returned well and at once.
    pub(crate) fn called(&self, operation: &'static str, times: u64) {
        (0..times).for_each(|_| self.calls.returned(operation, Duration::ZERO, false));
    }

    /// The watch shows a pod: when it runs, how long that took is told, once.
    pub(crate) fn look_at_start(&self, startup: &mut Option<Box<PodStartup>>, object: &Object, now: Time) {
        let started = startup.as_ref().and_then(|startup| startup.started(object, &object.view(), now));
        if let Some(started) = started {
            self.startups.note(&started);
            *startup = None;
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

    /// A pod has had a turn, so long after it was due.
    pub(crate) fn synced(&self, kind: TurnKind, took: Duration) {
        self.turns.observe([kind.name()], took);
    }

    /// A new pod has a worker, so long after it was seen; it has so many containers.
    pub(crate) fn pod_comes(&self, waited: Duration, containers: usize) {
        self.worker_starts.observe(waited);
        self.containers_of_pods.observe(Duration::from_secs(u64::try_from(containers).unwrap_or(u64::MAX)));
    }

    /// A pod is not taken up.
    pub(crate) fn rejected(&self, reason: &str) {
        self.rejections.count([reason]);
    }

    /// So many images are gone, for `space` or for their `age`.
    pub(crate) fn collected_images(&self, reason: &str, count: u64) {
        self.collected_images.add([reason], count);
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
        for family in [&self.evictions, &self.rejections, &self.collected_images, &self.turns] {
            family.render(out);
        }
        self.sandboxes.render(out);
        self.sandbox_errors.render(out);
        self.resizes.render(out);
        self.calls.render(out);
        self.startups.render(out);
        let histograms = [
            (
                "kubelet_pod_start_duration_seconds",
                "Duration in seconds from kubelet seeing a pod for the first time to the pod starting to run",
                &self.pod_starts,
            ),
            (
                "kubelet_pod_worker_start_duration_seconds",
                "Duration in seconds from kubelet seeing a pod to starting a worker.",
                &self.worker_starts,
            ),
            (
                "kubelet_containers_per_pod_count",
                "The number of containers per pod.",
                &self.containers_of_pods,
            ),
        ];
        for (name, help, histogram) in histograms.into_iter().filter(|(.., histogram)| histogram.count() > 0)
        {
            heading(out, name, "histogram", &format!("[ALPHA] {help}"));
            histogram.render(out, name, "");
        }
        self.preemptions.render(out);
        self.started_containers.render(out);
        self.terminated_containers.render(out);
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
