//! Which pods a node that is not well still takes, and which it parts with first (`pkg/kubelet/types`,
//! `pkg/kubelet/eviction`). Pure.

use super::admission::Rejection;
use super::node_state::NodeState;
use apis::views::node::Taint;
use apis::views::pod::Pod;
use apis::views::toleration::Toleration;

/// Pods of at least this priority are critical (`SystemCriticalPriority`).
const SYSTEM_CRITICAL_PRIORITY: i64 = 2_000_000_000;

/// Why a node that is not well does not take a pod.
pub(crate) fn refusal(state: &NodeState, pod: &Pod) -> Option<Rejection> {
    let pressures = state.pressures();
    if !pressures.is_empty() && !is_critical(pod) && !is_borne(pod, &pressures) {
        let message = format!("The node had condition: [{}]. ", pressures.join(" "));
        return Some(Rejection { reason: "Evicted", message });
    }
    let message = "Pod was rejected as the node is shutting down.".into();
    state.is_shutting_down().then_some(Rejection { reason: "NodeShutdown", message })
}

/// Under memory pressure alone only pods are refused that have no guarantees, and do not tolerate it.
fn is_borne(pod: &Pod, pressures: &[String]) -> bool {
    let taint = Taint {
        key: "node.kubernetes.io/memory-pressure".into(),
        effect: "NoSchedule".into(),
        ..Taint::default()
    };
    let tolerates = |it: &Toleration| it.tolerates(&taint);
    pressures == ["MemoryPressure"] && (quality(pod) > 0 || pod.spec.tolerations.iter().any(tolerates))
}

/// `IsCriticalPod`
pub(crate) fn is_critical(pod: &Pod) -> bool {
    let is_static = pod.metadata.annotations.contains_key("kubernetes.io/config.mirror");
    is_static || pod.spec.priority.is_some_and(|priority| priority >= SYSTEM_CRITICAL_PRIORITY)
}

/// 0 without guarantees, 1 with some, 2 when it asks for all that it may use (`GetPodQOS`).
pub(crate) fn quality(pod: &Pod) -> u8 {
    const NAMES: [&str; 2] = ["cpu", "memory"];
    let all = || pod.spec.init_containers.iter().chain(&pod.spec.containers).map(|spec| &spec.resources);
    let says = |name: &&str| all().any(|it| it.requests.contains_key(*name) || it.limits.contains_key(*name));
    let is_whole = |name: &&str| {
        all().all(|it| it.limits.contains_key(*name) && it.limits.get(*name) == it.requests.get(*name))
    };
    match (NAMES.iter().any(says), NAMES.iter().all(is_whole)) {
        (false, _) => 0,
        (true, false) => 1,
        (true, true) => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node_state::SaidCondition;
    use serde::Deserialize;
    use serde_json::{Value, json};

    fn pod(resources: Value, priority: i64) -> Pod {
        let spec = json!({"containers": [{"name": "c", "resources": resources}], "priority": priority});
        Pod::deserialize(json!({"spec": spec})).unwrap()
    }

    fn state(pressures: &[&str]) -> NodeState {
        let state = NodeState::default();
        for pressure in pressures {
            let condition_type = (*pressure).to_owned();
            state.say(SaidCondition { condition_type, ..SaidCondition::default() }).unwrap();
        }
        state
    }

    #[test]
    fn a_node_under_pressure_takes_what_is_guaranteed_or_critical() {
        let (none, some) = (pod(json!({}), 0), pod(json!({"requests": {"cpu": "1"}}), 0));
        let critical = pod(json!({}), SYSTEM_CRITICAL_PRIORITY);
        let memory = state(&["MemoryPressure"]);
        let refused = refusal(&memory, &none).unwrap();
        assert_eq!(
            (refused.reason, &*refused.message),
            ("Evicted", "The node had condition: [MemoryPressure]. ")
        );
        assert_eq!([refusal(&memory, &some), refusal(&memory, &critical)], [None, None]);
        let disk = state(&["DiskPressure"]);
        assert!(refusal(&disk, &some).is_some() && refusal(&disk, &critical).is_none());
        assert_eq!(refusal(&state(&[]), &none), None);
    }

    #[test]
    fn a_node_that_is_shut_down_takes_nothing() {
        let state = state(&[]);
        state.shut_down();
        assert_eq!(refusal(&state, &pod(json!({}), 0)).unwrap().reason, "NodeShutdown");
    }

    #[test]
    fn quality_is_what_is_asked_for() {
        let all = json!({"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "1", "memory": "1Gi"}});
        let qualities = [json!({}), json!({"limits": {"memory": "1Gi"}}), all].map(|it| quality(&pod(it, 0)));
        assert_eq!(qualities, [0, 1, 2]);
    }
}
