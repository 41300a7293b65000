//! Which pods a node that is not well still takes, and which it parts with first (`pkg/kubelet/types`,
//! `pkg/kubelet/eviction`). Pure.

use super::admission::Rejection;
use super::node_state::NodeState;
use super::qos::is_critical;
use apis::core::pod::qos::QosClass;
use apis::views::node::Taint;
use apis::views::pod::Pod;
use apis::views::toleration::Toleration;

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
    pressures == ["MemoryPressure"]
        && (QosClass::of_pod(pod) != QosClass::BestEffort || pod.spec.tolerations.iter().any(tolerates))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node_state::SaidCondition;
    use crate::qos::SYSTEM_CRITICAL_PRIORITY;
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
}
