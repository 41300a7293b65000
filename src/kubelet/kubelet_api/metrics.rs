//! `/metrics` and what is below it, in Prometheus' text format. Nothing is used by what is simulated: usage
//! is that of idle processes.

use std::fmt::Write;

use super::pods::{PodHere, RunningHere};
use crate::node_config::NodeConfig;
use apimachinery::quantity::Quantity;
use apimachinery::time::Time;

/// Families of metrics as they are written.
#[derive(Default)]
struct MetricsText(String);

impl MetricsText {
    /// Begins a family.
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        // Writing into a text cannot fail.
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: impl std::fmt::Display) {
        let escaped = |value: &str| value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        let labels: Vec<String> =
            labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
        let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        let _ = writeln!(self.0, "{name}{labels} {value}");
    }
}

/// `/metrics`: what the kubelet counts of itself.
pub(super) fn own(node: &str, pods: &[PodHere]) -> String {
    let mut text = MetricsText::default();
    let running: usize = pods.iter().map(|pod| pod.running.len()).sum();
    let ended: usize = pods.iter().map(|pod| pod.ended).sum();
    text.family("kubelet_node_name", "gauge", "[ALPHA] The node's name. The count is always 1.");
    text.sample("kubelet_node_name", &[("node", node)], 1);
    text.family("kubelet_running_containers", "gauge", "[ALPHA] Number of containers currently running");
    text.sample("kubelet_running_containers", &[("container_state", "exited")], ended);
    text.sample("kubelet_running_containers", &[("container_state", "running")], running);
    text.family("kubelet_running_pods", "gauge", "[ALPHA] Number of pods that have a running pod sandbox");
    text.sample("kubelet_running_pods", &[], pods.iter().filter(|pod| !pod.running.is_empty()).count());
    text.0
}

/// `/metrics/resource`: what metrics-server reads.
pub(super) fn resource(pods: &[PodHere], now: Time) -> String {
    let mut text = MetricsText::default();
    let at = now.timestamp_millis();
    let idle = || format!("0 {at}");
    let usage = [
        ("cpu_usage_seconds_total", "counter", "Cumulative cpu time consumed by the"),
        ("memory_working_set_bytes", "gauge", "Current working set of the"),
    ];
    for (metric, kind, help) in usage {
        let name = format!("container_{metric}");
        text.family(&name, kind, &format!("[STABLE] {help} container"));
        each(pods, |pod, container| text.sample(&name, &labels(pod, container), idle()));
    }
    text.family(
        "container_start_time_seconds",
        "gauge",
        "[STABLE] Start time of the container since unix epoch in seconds",
    );
    each(pods, |pod, container| {
        let started = container.started_at.timestamp();
        text.sample("container_start_time_seconds", &labels(pod, container), started);
    });
    for (metric, kind, help) in usage {
        let name = format!("node_{metric}");
        text.family(&name, kind, &format!("[STABLE] {help} node"));
        text.sample(&name, &[], idle());
    }
    for (metric, kind, help) in usage {
        let name = format!("pod_{metric}");
        text.family(&name, kind, &format!("[STABLE] {help} pod"));
        for pod in pods.iter().filter(|pod| !pod.running.is_empty()) {
            text.sample(&name, &[("namespace", pod.namespace()), ("pod", pod.name())], idle());
        }
    }
    text.family(
        "resource_scrape_error",
        "gauge",
        "[STABLE] 1 if there was an error while getting container metrics, 0 otherwise",
    );
    text.sample("resource_scrape_error", &[], 0);
    text.0
}

/// `/metrics/cadvisor`: the machine, and since when containers run.
pub(super) fn cadvisor(config: &NodeConfig, pods: &[PodHere]) -> String {
    let mut text = MetricsText::default();
    let capacity = |name: &str| {
        let amount = config.capacity.get(name).and_then(|amount| Quantity::parse(amount).ok());
        amount.map_or(0, |amount| amount.value())
    };
    text.family(
        "container_start_time_seconds",
        "gauge",
        "Start time of the container since unix epoch in seconds.",
    );
    each(pods, |pod, container| {
        let labels = [
            ("container", container.name.as_str()),
            ("image", container.image.as_str()),
            ("namespace", pod.namespace()),
            ("pod", pod.name()),
        ];
        text.sample("container_start_time_seconds", &labels, container.started_at.timestamp());
    });
    text.family("machine_cpu_cores", "gauge", "Number of logical CPU cores.");
    text.sample("machine_cpu_cores", &[], capacity("cpu"));
    text.family("machine_memory_bytes", "gauge", "Amount of memory installed on the machine.");
    text.sample("machine_memory_bytes", &[], capacity("memory"));
    text.0
}

fn each(pods: &[PodHere], mut say: impl FnMut(&PodHere, &RunningHere)) {
    for pod in pods {
        pod.running.iter().for_each(|container| say(pod, container));
    }
}

fn labels<'a>(pod: &'a PodHere, container: &'a RunningHere) -> [(&'static str, &'a str); 3] {
    [("container", &container.name), ("namespace", pod.namespace()), ("pod", pod.name())]
}
