//! `/metrics/cadvisor`: the machine, since when containers run, what they use and what they may use.

use super::metrics::MetricsText;
use super::pods::{PodHere, RunningHere};
use super::pressure;
use super::usage::MeasuredPod;
use crate::container_runtime::container_limit::container_limit;
use crate::container_runtime::cpu_quota::{PERIOD, cpu_quota};
use crate::container_runtime::stats::{ContainerStats, CpuThrottling};
use crate::node_config::NodeConfig;
use crate::volume_manager::cgroup_files::cpu_shares;
use apimachinery::quantity::Quantity;
use apis::views::pod::{Container, Pod};

/// The name, the kind and the help of a family, and what it says of a container, if anything.
type ContainerFamily = (&'static str, &'static str, &'static str, fn(&Looked<'_>) -> Option<f64>);
type NetworkFamily = (&'static str, &'static str, fn(&MeasuredPod) -> u64);

/// What a packet carries of a stream over Ethernet.
const PACKET_BYTES: u64 = 1_460;

/// A container that is looked at.
struct Looked<'a> {
    pod: &'a Pod,
    running: &'a RunningHere,
    stats: &'a ContainerStats,
    throttling: Option<CpuThrottling>,
    spec: Option<&'a Container>,
}

impl Looked<'_> {
    fn throttling(&self, value: fn(&CpuThrottling) -> f64) -> Option<f64> {
        self.throttling.as_ref().map(value)
    }

    /// How much memory it may have.
    fn memory_limit(&self) -> Option<Quantity> {
        container_limit(self.pod, self.spec?, "memory")
    }
}

/// What containers use.
const USED: [ContainerFamily; 9] = [
    (
        "container_cpu_cfs_periods_total",
        "counter",
        "Number of elapsed enforcement period intervals.",
        |looked| looked.throttling(|throttling| throttling.periods as f64),
    ),
    (
        "container_cpu_cfs_throttled_periods_total",
        "counter",
        "Number of throttled period intervals.",
        |looked| looked.throttling(|throttling| throttling.throttled_periods as f64),
    ),
    (
        "container_cpu_cfs_throttled_seconds_total",
        "counter",
        "Total time duration the container has been throttled.",
        |looked| looked.throttling(|throttling| throttling.throttled_nanoseconds as f64 / 1e9),
    ),
    ("container_cpu_usage_seconds_total", "counter", "Cumulative cpu time consumed in seconds.", |looked| {
        Some(looked.stats.cpu_core_nanoseconds as f64 / 1e9)
    }),
    (
        "container_fs_usage_bytes",
        "gauge",
        "Number of bytes that are consumed by the container on this filesystem.",
        |looked| Some(looked.stats.disk_bytes as f64),
    ),
    ("container_memory_rss", "gauge", "Size of RSS in bytes.", |looked| {
        Some(looked.stats.memory_bytes as f64)
    }),
    (
        "container_memory_usage_bytes",
        "gauge",
        "Current memory usage in bytes, including all memory regardless of when it was accessed",
        |looked| Some(looked.stats.memory_bytes as f64),
    ),
    ("container_memory_working_set_bytes", "gauge", "Current working set in bytes.", |looked| {
        Some(looked.stats.memory_bytes as f64)
    }),
    (
        "container_start_time_seconds",
        "gauge",
        "Start time of the container since unix epoch in seconds.",
        |looked| Some(looked.running.started_at.timestamp() as f64),
    ),
];

/// What nobody does here: each page is of a process, and no disk is read or written.
const NEVER: [ContainerFamily; 6] = [
    ("container_fs_reads_bytes_total", "counter", "Cumulative count of bytes read", none),
    ("container_fs_reads_total", "counter", "Cumulative count of reads completed", none),
    ("container_fs_writes_bytes_total", "counter", "Cumulative count of bytes written", none),
    ("container_fs_writes_total", "counter", "Cumulative count of writes completed", none),
    ("container_memory_cache", "gauge", "Number of bytes of page cache memory.", none),
    ("container_memory_swap", "gauge", "Container swap usage in bytes.", none),
];

fn none(_: &Looked<'_>) -> Option<f64> {
    Some(0.0)
}

/// What goes over the network of pods. A network in memory drops nothing on the way out or in.
const NETWORK: [NetworkFamily; 8] = [
    ("container_network_receive_bytes_total", "Cumulative count of bytes received", |pod| {
        pod.sandbox.received_bytes
    }),
    (
        "container_network_receive_errors_total",
        "Cumulative count of errors encountered while receiving",
        |_| 0,
    ),
    (
        "container_network_receive_packets_dropped_total",
        "Cumulative count of packets dropped while receiving",
        |_| 0,
    ),
    ("container_network_receive_packets_total", "Cumulative count of packets received", |pod| {
        pod.sandbox.received_bytes.div_ceil(PACKET_BYTES)
    }),
    ("container_network_transmit_bytes_total", "Cumulative count of bytes transmitted", |pod| {
        pod.sandbox.sent_bytes
    }),
    (
        "container_network_transmit_errors_total",
        "Cumulative count of errors encountered while transmitting",
        |_| 0,
    ),
    (
        "container_network_transmit_packets_dropped_total",
        "Cumulative count of packets dropped while transmitting",
        |_| 0,
    ),
    ("container_network_transmit_packets_total", "Cumulative count of packets transmitted", |pod| {
        pod.sandbox.sent_bytes.div_ceil(PACKET_BYTES)
    }),
];

/// What they may use; a limit of memory that nobody has set is 0.
const ALLOWED: [ContainerFamily; 4] = [
    ("container_spec_cpu_period", "gauge", "CPU period of the container.", |looked| {
        looked.spec.map(|_| PERIOD as f64)
    }),
    ("container_spec_cpu_quota", "gauge", "CPU quota of the container.", |looked| {
        cpu_quota(looked.pod, looked.spec?).map(|quota| quota as f64)
    }),
    ("container_spec_cpu_shares", "gauge", "CPU share of the container.", |looked| {
        Some(cpu_shares(looked.pod, looked.spec?) as f64)
    }),
    ("container_spec_memory_limit_bytes", "gauge", "Memory limit for the container.", |looked| {
        looked.spec?;
        Some(looked.memory_limit().map_or(0.0, |limit| limit.value() as f64))
    }),
];

/// The whole page; `throttling` is that of each container of each pod.
pub(super) fn cadvisor(
    config: &NodeConfig,
    pods: &[MeasuredPod],
    throttling: &[Vec<Option<CpuThrottling>>],
) -> String {
    let mut text = MetricsText::default();
    // Nobody waits but for what a limit takes.
    let pressure: [ContainerFamily; 6] =
        pressure::COUNTERS.map(|(name, help)| -> ContainerFamily { (name, "counter", help, none) });
    for family in USED.into_iter().chain(NEVER).chain(pressure).chain(ALLOWED) {
        container_family(&mut text, family, (pods, throttling));
    }
    for (name, help, value) in NETWORK {
        text.family(name, "counter", help);
        for pod in pods {
            let labels =
                [("interface", "eth0"), ("namespace", pod.here.namespace()), ("pod", pod.here.name())];
            text.sample(name, &labels, value(pod));
        }
    }
    let capacity = |name: &str| {
        let amount = config.capacity.get(name).and_then(|amount| Quantity::parse(amount).ok());
        amount.map_or(0, |amount| amount.value())
    };
    text.family("machine_cpu_cores", "gauge", "Number of logical CPU cores.");
    text.sample("machine_cpu_cores", &[], capacity("cpu"));
    text.family("machine_memory_bytes", "gauge", "Amount of memory installed on the machine.");
    text.sample("machine_memory_bytes", &[], capacity("memory"));
    text.0
}

/// Nothing at all where there is none of it.
fn container_family(
    text: &mut MetricsText,
    (name, kind, help, value): ContainerFamily,
    (pods, throttling): (&[MeasuredPod], &[Vec<Option<CpuThrottling>>]),
) {
    let mut has_begun = false;
    for (MeasuredPod { here, containers, .. }, throttling) in pods.iter().zip(throttling) {
        for ((running, stats), throttling) in here.running.iter().zip(containers).zip(throttling) {
            let (throttling, spec) = (*throttling, here.spec_of(running));
            let pod = &here.pod;
            let Some(value) = value(&Looked { pod, running, stats, throttling, spec }) else {
                continue;
            };
            if !has_begun {
                text.family(name, kind, help);
                has_begun = true;
            }
            text.sample(name, &labels(here, running), value);
        }
    }
}

fn labels<'a>(pod: &'a PodHere, container: &'a RunningHere) -> [(&'static str, &'a str); 4] {
    let (name, image) = (container.name.as_str(), container.image.as_str());
    [("container", name), ("image", image), ("namespace", pod.namespace()), ("pod", pod.name())]
}
