//! `/stats/summary` (`pkg/kubelet/apis/stats/v1alpha1`): usage by pod and container.

use serde_json::{Value, json};

use super::pods::RunningHere;
use super::pressure;
use super::usage::{MeasuredPod, UsageTotal};
use super::volume_stats::VolumeOfClaim;
use crate::container_runtime::stats::ContainerStats;
use crate::node_config::NodeConfig;
use apimachinery::quantity::Quantity;
use apimachinery::time::{Time, rfc3339};

/// Who uses what the node uses itself, and how many tenths of it.
const SYSTEM_SHARES: [(&str, u64); 3] = [("kubelet", 3), ("runtime", 2), ("misc", 5)];

/// The node's, and that of all its pods, since `begun`.
pub(super) fn summary(
    node: &str,
    (pods, volumes): (&[MeasuredPod], &[VolumeOfClaim]),
    config: &NodeConfig,
    (begun, now): (Time, Time),
) -> String {
    let total = UsageTotal::of_node(pods, (now - begun).to_std().unwrap_or_default());
    let mut own = used(&total, now);
    own["nodeName"] = node.into();
    own["startTime"] = rfc3339(begun).into();
    let capacity = |name: &str| {
        let amount = config.capacity.get(name).and_then(|amount| Quantity::parse(amount).ok());
        amount.map_or(0, |amount| u64::try_from(amount.value()).unwrap_or(0))
    };
    own["memory"]["availableBytes"] = capacity("memory").saturating_sub(total.memory_bytes).into();
    let disk = capacity("ephemeral-storage");
    own["fs"] = json!({"time": rfc3339(now), "capacityBytes": disk, "usedBytes": total.disk_bytes,
        "availableBytes": disk.saturating_sub(total.disk_bytes)});
    own["io"] = pressure::io(now);
    own["systemContainers"] = system_containers(pods, (begun, now));
    let pods: Vec<Value> = pods.iter().map(|pod| of_pod(pod, volumes, now)).collect();
    json!({"node": own, "pods": pods}).to_string()
}

/// What the node uses itself, and all its pods together (`GetSystemContainersStats`).
fn system_containers(pods: &[MeasuredPod], (begun, now): (Time, Time)) -> Value {
    let up = (now - begun).to_std().unwrap_or_default();
    let of_node = SYSTEM_SHARES.map(|(name, tenths)| (name, UsageTotal::of_system(tenths, up)));
    let all = of_node.into_iter().chain([("pods", UsageTotal::of_pods(pods))]);
    let of_container = |(name, total): (&str, UsageTotal)| {
        let mut usage = used(&total, now);
        usage["name"] = name.into();
        usage["startTime"] = rfc3339(begun).into();
        usage["io"] = pressure::io(now);
        usage
    };
    all.map(of_container).collect()
}

fn of_pod(pod: &MeasuredPod, volumes: &[VolumeOfClaim], now: Time) -> Value {
    let container = |(container, stats): (&RunningHere, &ContainerStats)| {
        let mut total = UsageTotal::default();
        total.add(stats);
        let mut usage = used(&total, now);
        usage["name"] = container.name.as_str().into();
        usage["startTime"] = rfc3339(container.started_at).into();
        usage["io"] = pressure::io(now);
        usage["rootfs"] = json!({"time": rfc3339(now), "usedBytes": total.disk_bytes});
        usage
    };
    let total = pod.total();
    let mut usage = used(&total, now);
    let metadata = &pod.here.object.metadata;
    usage["podRef"] = json!({"name": metadata.name, "namespace": metadata.namespace, "uid": metadata.uid});
    usage["startTime"] = rfc3339(pod.here.start_time).into();
    usage["network"] = json!({"time": rfc3339(now), "name": "eth0",
        "rxBytes": pod.sandbox.received_bytes, "txBytes": pod.sandbox.sent_bytes});
    usage["ephemeral-storage"] = json!({"time": rfc3339(now), "usedBytes": total.disk_bytes});
    usage["io"] = pressure::io(now);
    let volumes: Vec<Value> = volumes.iter().filter_map(|volume| volume.in_pod(&metadata.uid, now)).collect();
    if !volumes.is_empty() {
        usage["volume"] = volumes.into();
    }
    usage["containers"] = pod.here.running.iter().zip(&pod.containers).map(container).collect();
    usage
}

fn used(total: &UsageTotal, now: Time) -> Value {
    let (time, memory) = (rfc3339(now), total.memory_bytes);
    json!({
        "cpu": {"time": time, "usageNanoCores": total.cpu_nano_cores,
            "usageCoreNanoSeconds": total.cpu_core_nanoseconds, "psi": pressure::none()},
        "memory": {"time": time, "usageBytes": memory, "workingSetBytes": memory, "rssBytes": memory,
            "psi": pressure::none()},
    })
}
