//! `/metrics` and what is below it, in Prometheus' text format.

use std::fmt::Write;
use std::time::Duration;

use super::pods::{PodHere, RunningHere};
use super::usage::{MeasuredPod, UsageTotal};
use crate::container_runtime::stats::ContainerStats;
use crate::pod_workers::PodWorker;
use crate::probe_counts::ProbeCount;
use crate::prober::ProbeKind;
use apimachinery::time::Time;
use component_base::metrics::{DEFAULT_BUCKETS, escaped_label};

/// Families of metrics as they are written.
#[derive(Default)]
pub(super) struct MetricsText(pub(super) String);

impl MetricsText {
    /// Begins a family.
    pub(super) fn family(&mut self, name: &str, kind: &str, help: &str) {
        // Writing into a text cannot fail.
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    /// Adds a sample.
    pub(super) fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: impl std::fmt::Display) {
        let labels: Vec<String> =
            labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped_label(value))).collect();
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
    certificates(&mut text);
    text.0
}

/// No kubelet renews a client certificate: in this process it needs none, and in one of its own it has what
/// its kubeconfig says.
fn certificates(text: &mut MetricsText) {
    let errors = "kubelet_certificate_manager_client_expiration_renew_errors";
    text.family(errors, "counter", "[ALPHA] Counter of certificate renewal errors.");
    text.sample(errors, &[], 0);
    let ttl = "kubelet_certificate_manager_client_ttl_seconds";
    let help = "[ALPHA] Gauge of the TTL (time-to-live) of the Kubelet's client certificate. The value is in \
                seconds until certificate expiry (negative if already expired). If client certificate is \
                invalid or unused, the value will be +INF.";
    text.family(ttl, "gauge", help);
    text.sample(ttl, &[], "+Inf");
}

/// A container with probes, and how often each was asked.
pub(super) struct ProbedHere {
    namespace: String,
    pod: String,
    uid: String,
    container: String,
    counts: Vec<(ProbeKind, ProbeCount)>,
}

impl ProbedHere {
    /// Those of a pod.
    pub(super) fn of(worker: &PodWorker, now: Time) -> Vec<ProbedHere> {
        let metadata = &worker.object.metadata;
        let probed = worker.all_containers().filter_map(|(spec, container)| {
            Some(ProbedHere {
                namespace: metadata.namespace.clone(),
                pod: metadata.name.clone(),
                uid: metadata.uid.clone(),
                container: spec.name.clone(),
                counts: container.probe_counts(now)?,
            })
        });
        probed.collect()
    }
}

/// `/metrics/probes`: what probes have said.
pub(super) fn probes(probed: &[ProbedHere]) -> String {
    const TOTAL: &str = "prober_probe_total";
    let mut text = MetricsText::default();
    if probed.is_empty() {
        return text.0;
    }
    probe_durations(&mut text, probed);
    let help = "Cumulative number of a liveness, readiness or startup probe for a container by result.";
    text.family(TOTAL, "counter", &format!("[BETA] {help}"));
    for one in probed {
        for (kind, count) in &one.counts {
            for (result, times) in [("failed", count.failed), ("successful", count.successful)] {
                let labels = [
                    ("container", one.container.as_str()),
                    ("namespace", &one.namespace),
                    ("pod", &one.pod),
                    ("pod_uid", &one.uid),
                    ("probe_type", kind.name()),
                    ("result", result),
                ];
                if times > 0 {
                    text.sample(TOTAL, &labels, times);
                }
            }
        }
    }
    text.0
}

/// How long probes took that passed; of those that failed nothing is told, as upstream has it.
fn probe_durations(text: &mut MetricsText, probed: &[ProbedHere]) {
    const NAME: &str = "prober_probe_duration_seconds";
    let passed = |one: &ProbedHere| one.counts.iter().any(|(_, count)| count.successful > 0);
    if !probed.iter().any(passed) {
        return;
    }
    text.family(NAME, "histogram", "[ALPHA] Duration in seconds for a probe response.");
    for one in probed {
        for (kind, count) in one.counts.iter().filter(|(_, count)| count.successful > 0) {
            let labels = [
                ("container", one.container.as_str()),
                ("namespace", &one.namespace),
                ("pod", &one.pod),
                ("probe_type", kind.name()),
            ];
            let (buckets, seconds) = count.durations();
            let bounds = DEFAULT_BUCKETS.iter().map(f64::to_string).chain(["+Inf".to_owned()]);
            for (bound, count) in bounds.zip(buckets.into_iter().chain([count.successful])) {
                let labels = [&labels[..], &[("le", &bound)]].concat();
                text.sample(&format!("{NAME}_bucket"), &labels, count);
            }
            text.sample(&format!("{NAME}_sum"), &labels, seconds);
            text.sample(&format!("{NAME}_count"), &labels, count.successful);
        }
    }
}

/// `/metrics/resource`: what metrics-server reads.
pub(super) fn resource(pods: &[MeasuredPod], (up, now): (Duration, Time)) -> String {
    let mut text = MetricsText::default();
    let at = now.timestamp_millis();
    let usage: [UsageFamily; 2] = [
        ("cpu_usage_seconds_total", "counter", "Cumulative cpu time consumed by the", |total| {
            total.cpu_core_nanoseconds as f64 / 1e9
        }),
        ("memory_working_set_bytes", "gauge", "Current working set of the", |total| {
            total.memory_bytes as f64
        }),
    ];
    for (metric, kind, help, value) in usage {
        let name = format!("container_{metric}");
        text.family(&name, kind, &format!("[STABLE] {help} container"));
        each(pods, |pod, container, stats| {
            let mut total = UsageTotal::default();
            total.add(stats);
            text.sample(&name, &labels(pod, container), format!("{} {at}", value(&total)));
        });
    }
    text.family(
        "container_start_time_seconds",
        "gauge",
        "[STABLE] Start time of the container since unix epoch in seconds",
    );
    each(pods, |pod, container, _| {
        let started = container.started_at.timestamp();
        text.sample("container_start_time_seconds", &labels(pod, container), started);
    });
    let node = UsageTotal::of_node(pods, up);
    for (metric, kind, help, value) in usage {
        let name = format!("node_{metric}");
        text.family(&name, kind, &format!("[STABLE] {help} node"));
        text.sample(&name, &[], format!("{} {at}", value(&node)));
    }
    for (metric, kind, help, value) in usage {
        let name = format!("pod_{metric}");
        text.family(&name, kind, &format!("[STABLE] {help} pod"));
        for pod in pods {
            let labels = [("namespace", pod.here.namespace()), ("pod", pod.here.name())];
            text.sample(&name, &labels, format!("{} {at}", value(&pod.total())));
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

/// A family without what it is of, its kind, its help, and its value.
type UsageFamily = (&'static str, &'static str, &'static str, fn(&UsageTotal) -> f64);

fn each(pods: &[MeasuredPod], mut say: impl FnMut(&PodHere, &RunningHere, &ContainerStats)) {
    for pod in pods {
        let measured = pod.here.running.iter().zip(&pod.containers);
        measured.for_each(|(container, stats)| say(&pod.here, container, stats));
    }
}

fn labels<'a>(pod: &'a PodHere, container: &'a RunningHere) -> [(&'static str, &'a str); 3] {
    [("container", &container.name), ("namespace", pod.namespace()), ("pod", pod.name())]
}
