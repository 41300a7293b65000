//! Which pods are critical, and whom the kernel kills first where there is no memory left
//! (`pkg/kubelet/qos/policy.go`). Pure.

use apimachinery::quantity::Quantity;
use apis::core::pod::qos::QosClass;
use apis::views::pod::{Container, Pod, Resources};

/// Pods of at least this priority are critical (`SystemCriticalPriority`).
pub(crate) const SYSTEM_CRITICAL_PRIORITY: i64 = 2_000_000_000;
const NODE_CRITICAL: &str = "system-node-critical";
/// What is added to the score of a container of a pod that has guarantees: it goes last.
const GUARANTEED: i64 = -997;
/// Of one of a pod that has none: it goes first.
const BEST_EFFORT: i64 = 1000;

/// `IsCriticalPod`
pub(crate) fn is_critical(pod: &Pod) -> bool {
    let is_static = pod.metadata.annotations.contains_key("kubernetes.io/config.mirror");
    is_static || pod.spec.priority.is_some_and(|priority| priority >= SYSTEM_CRITICAL_PRIORITY)
}

/// What is added to the score of a container, on a node with so many bytes of memory
/// (`GetContainerOOMScoreAdjust`): the more it asks for, the later it is killed.
pub(crate) fn oom_score_adjustment(pod: &Pod, container: &Container, memory_capacity: i64) -> i64 {
    if is_critical(pod) && pod.spec.priority_class_name == NODE_CRITICAL {
        return GUARANTEED;
    }
    match QosClass::of_pod(pod) {
        QosClass::BestEffort => return BEST_EFFORT,
        QosClass::Guaranteed => return GUARANTEED,
        QosClass::Burstable => {}
    }
    let more = unclaimed_memory(pod);
    let score = |bytes: i64| {
        let thousandths = bytes.saturating_add(more).saturating_mul(1000).checked_div(memory_capacity);
        BEST_EFFORT - thousandths.unwrap_or(0)
    };
    let is_sidecar = container.restart_policy.as_deref() == Some("Always")
        && pod.spec.init_containers.iter().any(|init| init.name == container.name);
    // A sidecar outlives those that it is there for.
    let least = pod.spec.containers.iter().map(|other| memory(&other.resources)).min();
    let bytes = memory(&container.resources);
    let bytes = if is_sidecar { bytes.max(least.unwrap_or(0)) } else { bytes };
    score(bytes).clamp(BEST_EFFORT + GUARANTEED, BEST_EFFORT - 1)
}

/// What a pod asks for as a whole beyond what its containers do, divided among them
/// (`remainingPodMemReqPerContainer`).
fn unclaimed_memory(pod: &Pod) -> i64 {
    let whole = pod.spec.resources.as_deref().map_or(0, memory);
    if whole == 0 {
        return 0;
    }
    let claimed = apis::resources::requests_of_containers(pod);
    let claimed = claimed.get("memory").map_or(0, Quantity::value);
    let count = pod.spec.containers.len() + pod.spec.init_containers.len();
    (whole - claimed).checked_div(count as i64).unwrap_or(0)
}

fn memory(resources: &Resources) -> i64 {
    let asked = resources.requests.get("memory");
    asked.and_then(|text| Quantity::parse(text).ok()).map_or(0, |amount| amount.value())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn pod(spec: Value) -> Pod {
        serde_json::from_value(json!({ "spec": spec })).unwrap()
    }

    fn container(name: &str, memory: &str) -> Value {
        json!({"name": name, "resources": {"requests": {"memory": memory}}})
    }

    #[test]
    fn who_asks_for_more_is_killed_later() {
        const MEMORY: i64 = 10 << 30;
        let scores = |spec: Value| -> Vec<i64> {
            let pod = pod(spec);
            pod.spec.all_containers().map(|own| oom_score_adjustment(&pod, own, MEMORY)).collect()
        };
        let mut sidecar = container("s", "1Gi");
        sidecar["restartPolicy"] = json!("Always");
        let two = [container("a", "2Gi"), container("b", "9Ti")];
        for (spec, wanted) in [
            (json!({"containers": two, "initContainers": [sidecar]}), vec![800, 800, 3]),
            (json!({"containers": [container("a", "1Ki"), {"name": "b"}]}), vec![999, 999]),
            (json!({"containers": [{"name": "a"}]}), vec![1000]),
            (
                json!({"containers": [container("a", "1Gi"), {"name": "b"}],
                "resources": {"requests": {"memory": "5Gi"}}}),
                vec![700, 800],
            ),
            (
                json!({"containers": [{"name": "a"}], "priorityClassName": NODE_CRITICAL,
                "priority": SYSTEM_CRITICAL_PRIORITY}),
                vec![-997],
            ),
        ] {
            assert_eq!(scores(spec.clone()), wanted, "{spec}");
        }
    }
}
