//! What simulated containers use: curves that a pod's annotations give, or shares of what it requests.
//!
//! | annotation of the pod | gives |
//! | --- | --- |
//! | `kubarium.dev/usage-cpu` | what each container would use of the CPU; it gets its limit at most |
//! | `kubarium.dev/usage-memory` | of the memory |
//! | `kubarium.dev/usage-ephemeral-storage` | of the disk, beside volumes |
//! | `kubarium.dev/usage-pids` | how many processes it is; without, one |
//! | `kubarium.dev/usage-inodes` | how many files it has on the disk; without, none |
//! | `kubarium.dev/usage-network-receive`, `-transmit` | what the pod receives and sends in each second |
//! | `kubarium.dev/usage-volume.NAME` | what is in a volume |
//!
//! With `.CONTAINER` behind it, each of the first five is for that container alone; kwok's
//! `kwok.x-k8s.io/usage-cpu` and `usage-memory` mean the same. Values are those of [`usage`]. kwok's
//! ResourceUsages and ClusterResourceUsages say it of pods that say nothing in our words, and go before
//! kwok's annotations. A pod of which nobody says anything uses [`CPU_SHARE`] and [`MEMORY_SHARE`] of its
//! requests, and nothing is kept of it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::consumed::ConsumedBook;
use super::container_limit::container_limit;
use super::services::{ContainerConfig, Exit};
use super::stats::{ContainerStats, CpuThrottling, MeasuredContainer, PodSandboxStats, ResourceUse};
use super::{cpu_quota, invocation};
use apimachinery::quantity::Quantity;
use apimachinery::time::{Time, rfc3339};
use apis::views::pod::{Container, Pod};
use clock::after;
use machine::consumption::Consumption;
use machine::{agnhost, stress};
use stages::MeasureBook;
use stages::measures::book::SaidUsage;
use usage::{Against, Curve, LoadBook};

/// What a container uses of the CPU that it requests, when nobody says it.
const CPU_SHARE: f64 = 0.1;
/// What it uses of the memory that it requests.
const MEMORY_SHARE: f64 = 0.5;
/// What one uses that requests nothing.
const IDLE_CORES: f64 = 0.001;
const IDLE_BYTES: f64 = 8_388_608.0;
/// Over how long the CPU is measured, in seconds; of a younger container, since its start.
pub(crate) const WINDOW_SECONDS: f64 = 15.0;
/// A container whose first look goes over its limit is killed after so long: that it started is seen.
const LEAST_SECONDS: f64 = 1.0;
/// The annotations that give curves, but for what follows a dot.
pub(super) const OURS: &str = "kubarium.dev/usage-";
const OF_KWOK: &str = "kwok.x-k8s.io/usage-";

/// What is known of a node's containers beside what their pods say.
#[derive(Clone, Debug, Default)]
pub(super) struct UsageSources {
    /// What kwok's objects say.
    pub(super) book: MeasureBook,
    /// The Node, as expressions see it.
    pub(super) node: Arc<Value>,
    /// The requests that Services are said to get.
    pub(super) loads: LoadBook,
    /// What servers were told to use.
    pub(super) consumed: ConsumedBook,
}

/// What a container has used between its start and `now`.
pub(super) fn container(
    measured: &MeasuredContainer<'_>,
    now: Time,
    sources: &UsageSources,
) -> ContainerStats {
    let age = seconds(measured.started_at, now);
    let variables = variables(measured, sources);
    let of = |resource: &str| of_container(measured, resource, (variables.as_ref(), sources));
    let ((cpu, of_cpu), (memory, of_memory), (disk, of_disk)) =
        (of("cpu"), of("memory"), of("ephemeral-storage"));
    let window = age.min(WINDOW_SECONDS);
    let consumed = consumed(measured, sources);
    let limit = cpu_quota::cores(measured.pod, measured.container);
    let cpu = CpuUse { curve: &cpu, against: &of_cpu, consumed: &consumed, limit };
    let cores = if window > 0.0 { cpu.core_seconds(age - window, age) / window } else { 0.0 };
    ContainerStats {
        cpu_nano_cores: (cores * 1e9) as u64,
        cpu_core_nanoseconds: (cpu.core_seconds(0.0, age) * 1e9) as u64,
        memory_bytes: (memory.value(age, &of_memory) + consumed.bytes(age)) as u64,
        disk_bytes: disk.value(age, &of_disk) as u64,
    }
}

/// How its limit of the CPU has held it back between its start and `now`.
pub(super) fn throttling(
    measured: &MeasuredContainer<'_>,
    now: Time,
    sources: &UsageSources,
) -> Option<CpuThrottling> {
    let limit = cpu_quota::cores(measured.pod, measured.container)?;
    let variables = variables(measured, sources);
    let (curve, against) = of_container(measured, "cpu", (variables.as_ref(), sources));
    let consumed = consumed(measured, sources);
    let cpu = CpuUse { curve: &curve, against: &against, consumed: &consumed, limit: Some(limit) };
    Some(cpu.throttling(limit, seconds(measured.started_at, now)))
}

/// What it uses of any one resource.
pub(super) fn resource(
    measured: &MeasuredContainer<'_>,
    resource: &str,
    now: Time,
    sources: &UsageSources,
) -> ResourceUse {
    let age = seconds(measured.started_at, now);
    let variables = variables(measured, sources);
    let (curve, against) = of_container(measured, resource, (variables.as_ref(), sources));
    let consumed = consumed(measured, sources);
    let limit = cpu_quota::cores(measured.pod, measured.container);
    match resource {
        "cpu" => {
            let cpu = CpuUse { curve: &curve, against: &against, consumed: &consumed, limit };
            let now = curve.value(age, &against).min(limit.unwrap_or(f64::INFINITY));
            ResourceUse { now, sum: cpu.core_seconds(0.0, age) }
        }
        _ => {
            let more = if resource == "memory" { consumed.bytes(age) } else { 0.0 };
            ResourceUse { now: curve.value(age, &against) + more, sum: curve.sum(0.0, age, &against) }
        }
    }
}

/// What a container would use of the CPU, and how much of that it gets.
struct CpuUse<'a> {
    curve: &'a Curve,
    against: &'a Against<'a>,
    consumed: &'a Consumption,
    /// How much it may use; nothing where it may use all.
    limit: Option<f64>,
}

impl CpuUse<'_> {
    /// What it gets.
    fn core_seconds(&self, from: f64, to: f64) -> f64 {
        let more = self.consumed.core_seconds(from, to);
        match self.limit {
            None => self.curve.sum(from, to, self.against) + more,
            Some(limit) => {
                let below = self.curve.sum_below(limit, (from, to), self.against) + more;
                below.min(limit * (to - from))
            }
        }
    }

    /// How that limit has held it back in so many seconds since its start.
    fn throttling(&self, limit: f64, age: f64) -> CpuThrottling {
        let wanted = self.curve.sum(0.0, age, self.against) + self.consumed.core_seconds(0.0, age);
        let lost = (wanted - self.core_seconds(0.0, age)).max(0.0);
        // An expression is evaluated many times for it: who is never held back is not asked.
        let above = || self.curve.time_above(limit, (0.0, age), self.against);
        let throttled = if lost > 0.0 { above().max(lost.min(age)) } else { 0.0 };
        let periods = |seconds: f64| (seconds * 1e6 / cpu_quota::PERIOD as f64) as u64;
        CpuThrottling {
            periods: periods(age),
            throttled_periods: periods(throttled),
            throttled_nanoseconds: (lost * 1e9) as u64,
        }
    }
}

/// What its server was told to use; most are none that anybody tells.
fn consumed(measured: &MeasuredContainer<'_>, sources: &UsageSources) -> Consumption {
    let (uid, container) = (&measured.metadata.uid, &measured.container.name);
    sources.consumed.get(uid, container, measured.started_at).unwrap_or_default()
}

/// Whether a container goes over a limit of memory when its server is told to use that, too.
pub(super) fn is_too_much(limit: Option<f64>, bytes: f64) -> bool {
    limit.is_some_and(|limit| IDLE_BYTES + bytes > limit)
}

/// What a pod has received and sent.
pub(super) fn sandbox(pod: &Pod, started_at: Time, now: Time) -> PodSandboxStats {
    let age = seconds(started_at, now);
    let sum = |name: &str| {
        let curve = given(&pod.metadata.annotations, name, "");
        let against = Against { began: started_at.timestamp() as f64, ..Against::default() };
        curve.map_or(0, |curve| curve.sum(0.0, age, &against) as u64)
    };
    PodSandboxStats { received_bytes: sum("network-receive"), sent_bytes: sum("network-transmit") }
}

/// What is in a volume, as far as annotations say it.
pub(super) fn volume(pod: &Pod, name: &str, started_at: Time, now: Time) -> Option<u64> {
    let curve = given(&pod.metadata.annotations, "volume", name)?;
    let against = Against { began: started_at.timestamp() as f64, ..Against::default() };
    Some(curve.value(seconds(started_at, now), &against) as u64)
}

/// In bytes.
pub(super) fn memory_limit(pod: &Pod, container: &Container) -> Option<f64> {
    container_limit(pod, container, "memory").map(|limit| limit.value() as f64)
}

/// When the kernel kills a container because it uses more memory than it may; and how that looks.
pub(super) fn out_of_memory(
    measured: &MeasuredContainer<'_>,
    sources: &UsageSources,
) -> Option<(Time, Exit)> {
    let MeasuredContainer { pod, container, started_at, .. } = *measured;
    let limit = memory_limit(pod, container)?;
    // What is a share of the request never goes over the limit.
    said(measured, "memory", sources)?;
    let variables = variables(measured, sources);
    let (curve, against) = of_container(measured, "memory", (variables.as_ref(), sources));
    let seconds = curve.first_above(limit, &against)?.max(LEAST_SECONDS);
    let exit = Exit { code: 137, reason: "OOMKilled".into(), ..Exit::default() };
    Some((after(started_at, Duration::from_secs_f64(seconds.min(MAX_SECONDS))), exit))
}

/// When a container that starts then is killed for what it uses.
pub(super) fn killed(
    config: &ContainerConfig<'_>,
    started_at: Time,
    sources: &UsageSources,
) -> Option<(Time, Exit)> {
    let ContainerConfig { pod, metadata, container, attempt } = *config;
    out_of_memory(&MeasuredContainer { pod, metadata, container, attempt, started_at }, sources)
}

/// Whether a pod says how its local storage fills, or somebody of any.
pub(super) fn fills_storage(pod: &Pod, sources: &UsageSources) -> bool {
    let fills = |name: &String| {
        let rest = name.strip_prefix(OURS);
        rest.is_some_and(|rest| rest.starts_with("volume.") || rest.starts_with("ephemeral-storage"))
    };
    sources.book.fills_storage() || pod.metadata.annotations.keys().any(fills)
}

/// Whether annotations say otherwise what memory is used.
pub(crate) fn differ(old: &BTreeMap<String, String>, new: &BTreeMap<String, String>) -> bool {
    let is_it = |name: &str| {
        let rest = name.strip_prefix(OURS).or_else(|| name.strip_prefix(OF_KWOK));
        rest.is_some_and(|rest| rest.starts_with("memory"))
    };
    let ours = |(name, _): &(&String, &String)| is_it(name);
    !old.iter().filter(ours).eq(new.iter().filter(ours))
}

/// A hundred years.
const MAX_SECONDS: f64 = 3.2e9;

/// The curve of a container's resource, and what its shares are of.
pub(super) fn of_container<'a>(
    measured: &MeasuredContainer<'_>,
    resource: &str,
    (variables, sources): (Option<&'a Value>, &'a UsageSources),
) -> (Arc<Curve>, Against<'a>) {
    let MeasuredContainer { pod, container, started_at, .. } = *measured;
    let whole = requested(container, resource);
    let curve = said(measured, resource, sources).unwrap_or_else(|| Arc::new(unsaid(resource, whole)));
    let load = curve.follows_requests().then(|| {
        let mut addresses = pod.status.pod_ips.iter().map(|it| it.ip.parse().ok());
        sources.loads.at([addresses.next().flatten(), addresses.next().flatten()])
    });
    (curve, Against { whole: whole.unwrap_or(0.0), variables, began: started_at.timestamp() as f64, load })
}

/// What is used of a resource when nobody says it.
fn unsaid(resource: &str, whole: Option<f64>) -> Curve {
    match (resource, whole) {
        ("cpu", Some(_)) => Curve::share(CPU_SHARE),
        ("memory", Some(_)) => Curve::share(MEMORY_SHARE),
        ("cpu", None) => Curve::constant(IDLE_CORES),
        ("memory", None) => Curve::constant(IDLE_BYTES),
        _ => Curve::constant(0.0),
    }
}

/// What somebody says of a container's resource: the pod in our words, kwok's objects, the pod in kwok's
/// words.
fn said(measured: &MeasuredContainer<'_>, resource: &str, sources: &UsageSources) -> Option<Arc<Curve>> {
    let MeasuredContainer { pod, metadata, container, .. } = *measured;
    let annotations = &pod.metadata.annotations;
    let ours = in_our_words(annotations, resource, &container.name).map(Arc::new);
    let somebodys = ours.or_else(|| {
        match sources.book.usage(&metadata.namespace, &metadata.name, &container.name, resource) {
            SaidUsage::Nothing => in_words_of_kwok(annotations, resource).map(Arc::new),
            SaidUsage::None => Some(Arc::new(Curve::constant(0.0))),
            SaidUsage::Curve(curve) => Some(curve),
        }
    });
    somebodys.or_else(|| of_program(pod, container, resource).map(Arc::new))
}

/// What is known of a program that does nothing but use the machine, or only what it is told to.
fn of_program(pod: &Pod, container: &Container, resource: &str) -> Option<Curve> {
    let invocation = invocation::of(container);
    if let Some(load) = stress::load(&invocation) {
        let grows = format!("{}s", load.grows_for.as_secs().max(1));
        let text = match resource {
            // More than it may it does not get.
            "cpu" => {
                let limit = cpu_quota::cores(pod, container).unwrap_or(f64::INFINITY);
                let cores = load.cores.min(limit).max(IDLE_CORES);
                let before = if load.grows_for.is_zero() { cores } else { IDLE_CORES };
                format!("steps {}m, {}m at {grows}", milli(before), milli(cores))
            }
            "memory" if load.grows_for.is_zero() => load.bytes.to_string(),
            "memory" => format!("ramp 1Mi {} {grows}", load.bytes),
            _ => return None,
        };
        return Curve::parse(&text).ok();
    }
    let is_consumer = agnhost::is_consumer(&invocation);
    match resource {
        "cpu" if is_consumer => Some(Curve::constant(IDLE_CORES)),
        "memory" if is_consumer => Some(Curve::constant(IDLE_BYTES)),
        _ => None,
    }
}

fn milli(cores: f64) -> u64 {
    (cores * 1000.0) as u64
}

/// What annotations say of a pod as a whole: ours before kwok's.
fn given(annotations: &BTreeMap<String, String>, resource: &str, of: &str) -> Option<Curve> {
    in_our_words(annotations, resource, of).or_else(|| in_words_of_kwok(annotations, resource))
}

/// What annotations say: of one container before what they say of all. What cannot be read is told in an
/// event, and says nothing.
fn in_our_words(annotations: &BTreeMap<String, String>, resource: &str, of: &str) -> Option<Curve> {
    // Most pods have none.
    if annotations.is_empty() {
        return None;
    }
    let find = |name: String| annotations.get(&name).and_then(|text| Curve::parse(text).ok());
    let of_one = || if of.is_empty() { None } else { find(format!("{OURS}{resource}.{of}")) };
    let of_all = || if resource == "volume" { None } else { find(format!("{OURS}{resource}")) };
    of_one().or_else(of_all)
}

fn in_words_of_kwok(annotations: &BTreeMap<String, String>, resource: &str) -> Option<Curve> {
    if annotations.is_empty() {
        return None;
    }
    annotations.get(&format!("{OF_KWOK}{resource}")).and_then(|text| Curve::parse(text).ok())
}

fn requested(container: &Container, resource: &str) -> Option<f64> {
    let resources = &container.resources;
    amount(&resources.requests, resource).or_else(|| amount(&resources.limits, resource))
}

fn amount(amounts: &BTreeMap<String, String>, resource: &str) -> Option<f64> {
    Quantity::parse(amounts.get(resource)?).ok().map(|amount| amount.as_approximate_f64())
}

fn seconds(from: Time, to: Time) -> f64 {
    (to - from).as_seconds_f64().max(0.0)
}

/// What expressions see, when there may be one.
pub(super) fn variables(measured: &MeasuredContainer<'_>, sources: &UsageSources) -> Option<Value> {
    let MeasuredContainer { pod, metadata, container, attempt, .. } = *measured;
    let (annotations, node) = (&pod.metadata.annotations, &pod.spec.node_name);
    let is_expression = |text: &String| text.trim_start().starts_with("cel:");
    if !sources.book.has_usages() && !annotations.values().any(is_expression) {
        return None;
    }
    let containers: Vec<Value> = pod.spec.containers.iter().map(shown).collect();
    let pod = json!({
        "metadata": {"name": metadata.name, "namespace": metadata.namespace, "uid": metadata.uid,
            "labels": metadata.labels, "annotations": annotations,
            "creationTimestamp": metadata.creation_timestamp.map(rfc3339)},
        "spec": {"nodeName": node, "containers": containers},
    });
    let mut container = shown(container);
    container["restartCount"] = attempt.into();
    let node =
        if sources.node.is_null() { json!({"metadata": {"name": node}}) } else { (*sources.node).clone() };
    Some(json!({"pod": pod, "node": node, "container": container}))
}

/// A container as expressions see it.
fn shown(container: &Container) -> Value {
    let Container { name, image, resources, .. } = container;
    let resources = json!({"requests": resources.requests, "limits": resources.limits});
    json!({"name": name, "image": image, "resources": resources})
}

#[cfg(test)]
mod tests {
    use apimachinery::object::ObjectMeta;
    use chrono::TimeDelta;

    use super::*;

    fn pod(annotations: Value) -> Pod {
        let requests = json!({"cpu": "200m", "memory": "64Mi"});
        let resources = json!({"requests": requests, "limits": {"memory": "128Mi"}});
        let containers = json!([{"name": "web", "resources": resources}, {"name": "side"}]);
        let tree = json!({"metadata": {"annotations": annotations}, "spec": {"containers": containers}});
        serde_json::from_value(tree).unwrap()
    }

    fn measured(pod: &Pod, at: usize) -> MeasuredContainer<'_> {
        static METADATA: std::sync::LazyLock<ObjectMeta> = std::sync::LazyLock::new(ObjectMeta::default);
        let container = &pod.spec.containers[at];
        MeasuredContainer { pod, metadata: &METADATA, container, attempt: 0, started_at: Time::UNIX_EPOCH }
    }

    fn after_a_minute(pod: &Pod, at: usize) -> (u64, u64) {
        let sources = UsageSources::default();
        let stats = container(&measured(pod, at), Time::UNIX_EPOCH + TimeDelta::minutes(1), &sources);
        (stats.cpu_nano_cores, stats.memory_bytes)
    }

    #[test]
    fn the_nearest_annotation_counts_and_without_any_a_share() {
        let silent = pod(json!({}));
        assert_eq!(after_a_minute(&silent, 0), (20_000_000, 32 << 20));
        assert_eq!(after_a_minute(&silent, 1), (1_000_000, 8 << 20));
        let of_kwok = pod(json!({"kwok.x-k8s.io/usage-cpu": "100m", "kwok.x-k8s.io/usage-memory": "1Mi"}));
        assert_eq!(after_a_minute(&of_kwok, 0), (100_000_000, 1 << 20));
        let ours = pod(json!({"kwok.x-k8s.io/usage-cpu": "100m", "kubarium.dev/usage-cpu": "50%",
            "kubarium.dev/usage-cpu.side": "300m"}));
        assert_eq!((after_a_minute(&ours, 0).0, after_a_minute(&ours, 1).0), (100_000_000, 300_000_000));
        // Measured over the last 15 seconds.
        let ramp = pod(json!({"kubarium.dev/usage-cpu": "ramp 0 1 1m"}));
        assert_eq!(after_a_minute(&ramp, 0).0, 875_000_000);
        let by_name = pod(json!({"kubarium.dev/usage-cpu": "cel: container.name == 'side' ? 2 : 1"}));
        assert_eq!(after_a_minute(&by_name, 1).0, 2_000_000_000);
    }

    #[test]
    fn who_would_use_more_of_the_cpu_than_the_limit_is_held_back() {
        let mut pod = pod(json!({"kubarium.dev/usage-cpu": "steps 100m, 800m at 30s"}));
        let at_the_end = |pod: &Pod| {
            let (now, sources) = (Time::UNIX_EPOCH + TimeDelta::minutes(1), UsageSources::default());
            let measured = measured(pod, 0);
            (container(&measured, now, &sources), throttling(&measured, now, &sources))
        };
        let (stats, throttling) = at_the_end(&pod);
        assert_eq!((stats.cpu_nano_cores, throttling), (800_000_000, None));
        let mut limit = |cpu: &str| {
            pod.spec.containers[0].resources.limits.insert("cpu".into(), cpu.into());
            at_the_end(&pod)
        };
        let (stats, _) = limit("1m");
        assert_eq!(stats.cpu_core_nanoseconds, 600_000_000, "less than a millisecond of 100 no quota leaves");
        let (stats, throttling) = limit("200m");
        assert_eq!((stats.cpu_nano_cores, stats.cpu_core_nanoseconds), (200_000_000, 9_000_000_000));
        let throttling = throttling.unwrap();
        assert_eq!((throttling.periods, throttling.throttled_nanoseconds), (600, 18_000_000_000));
        assert!((299..=300).contains(&throttling.throttled_periods), "{throttling:?}");
    }

    #[test]
    fn who_goes_over_a_limit_is_killed_then() {
        let killed = |annotations: Value, at: usize| {
            let (time, exit) = out_of_memory(&measured(&pod(annotations), at), &UsageSources::default())?;
            Some((time.timestamp(), exit.code, exit.reason))
        };
        let memory = |text: &str| json!({"kubarium.dev/usage-memory": text});
        assert_eq!(killed(memory("1Gi"), 0), Some((1, 137, "OOMKilled".into())));
        assert_eq!(killed(memory("ramp 0 256Mi 1m"), 0), Some((30, 137, "OOMKilled".into())));
        assert_eq!(
            (killed(memory("128Mi"), 0), killed(memory("1Gi"), 1), killed(json!({}), 0)),
            (None, None, None)
        );
    }

    #[test]
    fn networks_and_volumes_are_sums_and_amounts() {
        let pod = pod(
            json!({"kubarium.dev/usage-network-receive": "1k", "kubarium.dev/usage-volume.cache": "2Mi"}),
        );
        let now = Time::UNIX_EPOCH + TimeDelta::minutes(1);
        assert_eq!(
            sandbox(&pod, Time::UNIX_EPOCH, now),
            PodSandboxStats { received_bytes: 60_000, sent_bytes: 0 }
        );
        let of = |name: &str| volume(&pod, name, Time::UNIX_EPOCH, now);
        assert_eq!((of("cache"), of("other")), (Some(2 << 20), None));
    }
}
