//! Which pods of an autoscaler count (`groupPods`), and what they request (`calculateRequests`).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use chrono::TimeDelta;

use super::metrics_client::PodMetric;
use super::metrics_error::MetricsError;
use apimachinery::object::Object;
use apimachinery::quantity::Quantity;
use apimachinery::time::Time;
use apis::views::meta::condition;
use apis::views::pod::{Container, Pod};

/// How long a pod that has just started may be busy or not ready, before that counts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Periods {
    /// `--horizontal-pod-autoscaler-cpu-initialization-period`
    pub(super) cpu_initialization: TimeDelta,
    /// `--horizontal-pod-autoscaler-initial-readiness-delay`
    pub(super) initial_readiness: TimeDelta,
}

/// A pod that is scaled.
#[derive(Clone, Debug)]
pub(super) struct TargetPod {
    pub(super) name: String,
    pub(super) is_deleting: bool,
    pub(super) pod: Arc<Pod>,
}

impl TargetPod {
    pub(super) fn of(object: &Object) -> TargetPod {
        let name = object.metadata.name.clone();
        TargetPod { name, is_deleting: object.is_deleting(), pod: object.view() }
    }

    /// Runs and is ready.
    pub(super) fn is_ready(&self) -> bool {
        self.pod.status.phase == "Running" && self.pod.is_ready()
    }
}

/// The names of pods, by what becomes of them in the calculation.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct GroupedPods {
    pub(super) ready: i64,
    pub(super) unready: BTreeSet<String>,
    pub(super) missing: BTreeSet<String>,
    pub(super) ignored: BTreeSet<String>,
}

/// `groupPods`
pub(super) fn group_pods(
    pods: &[TargetPod],
    metrics: &BTreeMap<String, PodMetric>,
    resource: &str,
    periods: &Periods,
    now: Time,
) -> GroupedPods {
    let mut groups = GroupedPods::default();
    for target in pods {
        let name = || target.name.clone();
        let phase = target.pod.status.phase.as_str();
        match metrics.get(&target.name) {
            _ if target.is_deleting || phase == "Failed" => drop(groups.ignored.insert(name())),
            _ if phase == "Pending" => drop(groups.unready.insert(name())),
            None => drop(groups.missing.insert(name())),
            Some(metric) if resource == "cpu" && is_unready(&target.pod, metric, periods, now) => {
                groups.unready.insert(name());
            }
            Some(_) => groups.ready += 1,
        }
    }
    groups
}

/// Whether what a pod uses of the CPU says nothing yet.
fn is_unready(pod: &Pod, metric: &PodMetric, periods: &Periods, now: Time) -> bool {
    let ready = condition(&pod.status.conditions, "Ready");
    let (Some(ready), Some(started)) = (ready, pod.status.start_time) else { return true };
    let changed = ready.last_transition_time.unwrap_or(Time::UNIX_EPOCH);
    let is_down = ready.status == "False";
    if started + periods.cpu_initialization > now {
        // A whole window must have been measured since it became ready.
        return is_down || metric.timestamp < changed + metric.window;
    }
    // It has never been ready.
    is_down && started + periods.initial_readiness > changed
}

/// `calculateRequests`, in thousandths; a container that is asked for goes before what the pod as a whole
/// requests.
pub(super) fn requests(
    pods: &[TargetPod],
    container: &str,
    resource: &str,
) -> Result<BTreeMap<String, i64>, MetricsError> {
    let of_pod = |target: &TargetPod| Ok((target.name.clone(), request(target, container, resource)?));
    pods.iter().map(of_pod).collect()
}

fn request(target: &TargetPod, container: &str, resource: &str) -> Result<i64, MetricsError> {
    let (spec, pod) = (&target.pod.spec, &target.name);
    let is_sidecar = |one: &&Container| one.restart_policy.as_deref() == Some("Always");
    let mut all = spec.containers.iter().chain(spec.init_containers.iter().filter(is_sidecar));
    if !container.is_empty() {
        let one = all.find(|one| one.name == container);
        let one = one.ok_or_else(|| format!("container {container} not found in Pod {pod}"))?;
        return of_container(one, resource, pod);
    }
    let of_pod = spec.resources.as_ref().map(|resources| &resources.requests);
    let Some(of_pod) = of_pod.filter(|requests| !requests.is_empty()) else {
        return all.map(|one| of_container(one, resource, pod)).sum();
    };
    let whole = of_pod.get(resource).and_then(|amount| milli(amount));
    let parts = || all.filter_map(|one| milli(one.resources.requests.get(resource)?)).reduce(|a, b| a + b);
    let overhead = spec.overhead.get(resource).and_then(|amount| milli(amount)).unwrap_or(0);
    let found = whole.or_else(parts).map(|amount| amount + overhead);
    found.ok_or_else(|| format!("missing pod-level request for {resource} in Pod {pod}").into())
}

fn of_container(container: &Container, resource: &str, pod: &str) -> Result<i64, MetricsError> {
    let amount = container.resources.requests.get(resource).and_then(|amount| milli(amount));
    let name = &container.name;
    amount.ok_or_else(|| format!("missing request for {resource} in container {name} of Pod {pod}").into())
}

fn milli(amount: &str) -> Option<i64> {
    Quantity::parse(amount).ok().map(|amount| amount.milli_value())
}
