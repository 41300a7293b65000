//! Why a pod is not running: the reason and the message of the condition or the state that holds it up.

use super::style::Tone;
use apis::views::pod::{ContainerStatus, Pod, Terminated};

/// What a container waits for while nothing is wrong.
const ON_THE_WAY: [&str; 3] = ["", "ContainerCreating", "PodInitializing"];

/// How a pod is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TroubledState {
    /// Ready, or ended as it should.
    Well,
    /// On its way.
    Waiting,
    /// Something is wrong.
    Bad,
}

impl TroubledState {
    /// How it is shown.
    pub(crate) fn tone(self) -> Tone {
        match self {
            TroubledState::Well => Tone::Good,
            TroubledState::Waiting => Tone::Waiting,
            TroubledState::Bad => Tone::Bad,
        }
    }
}

/// How a pod is, and why it is not well.
pub(crate) fn of(pod: &Pod) -> (TroubledState, Option<String>) {
    if pod.status.phase == "Succeeded" || (pod.is_ready() && pod.status.phase == "Running") {
        return (TroubledState::Well, None);
    }
    match why(pod) {
        Some(why) => (TroubledState::Bad, Some(why)),
        None if pod.status.phase == "Failed" => (TroubledState::Bad, None),
        None => (TroubledState::Waiting, None),
    }
}

fn why(pod: &Pod) -> Option<String> {
    let status = &pod.status;
    if !status.reason.is_empty() || !status.message.is_empty() {
        return Some(said(&status.reason, &status.message));
    }
    let unplaced = |condition: &&apis::views::meta::Condition| {
        condition.condition_type == "PodScheduled" && condition.status == "False"
    };
    if let Some(condition) = status.conditions.iter().find(unplaced) {
        return Some(said(&condition.reason, &condition.message));
    }
    status.init_container_statuses.iter().chain(&status.container_statuses).find_map(of_container)
}

fn of_container(container: &ContainerStatus) -> Option<String> {
    if let Some(waiting) = &container.state.waiting
        && !ON_THE_WAY.contains(&waiting.reason.as_str())
    {
        let last = container.last_state.terminated.as_deref().map(ended);
        let last = last.map(|last| format!("; last time: {last}")).unwrap_or_default();
        return Some(format!("{}{last}", said(&waiting.reason, &waiting.message)));
    }
    let terminated = container.state.terminated.as_deref();
    terminated.filter(|terminated| terminated.exit_code != 0).map(ended)
}

fn ended(terminated: &Terminated) -> String {
    let exit = format!("exit code {} ({})", terminated.exit_code, terminated.reason);
    if terminated.message.is_empty() { exit } else { said(&exit, &terminated.message) }
}

fn said(reason: &str, message: &str) -> String {
    match (reason, message.trim()) {
        (reason, "") => reason.to_owned(),
        ("", message) => message.to_owned(),
        (reason, message) => format!("{reason}: {message}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn told(status: &Value) -> (TroubledState, Option<String>) {
        of(&serde_json::from_value(json!({ "status": status })).unwrap())
    }

    #[test]
    fn a_pod_that_cannot_be_placed_says_what_the_scheduler_says() {
        let message = "0/1 nodes are available: 1 Insufficient cpu.";
        let condition =
            json!({"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message});
        let (state, why) = told(&json!({"phase": "Pending", "conditions": [condition]}));
        assert_eq!((state, why), (TroubledState::Bad, Some(format!("Unschedulable: {message}"))));
    }

    #[test]
    fn a_container_that_crashes_says_how_it_ended() {
        let container = json!({"name": "c",
            "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 10s"}},
            "lastState": {"terminated": {"exitCode": 3, "reason": "Error"}}});
        let (state, why) = told(&json!({"phase": "Running", "containerStatuses": [container]}));
        let expected = "CrashLoopBackOff: back-off 10s; last time: exit code 3 (Error)";
        assert_eq!((state, why.as_deref()), (TroubledState::Bad, Some(expected)));
        let ended = json!({"name": "c", "state": {"terminated": {"exitCode": 1, "reason": "Error",
            "message": "no such file\n"}}});
        let (_, why) = told(&json!({"phase": "Running", "initContainerStatuses": [ended]}));
        assert_eq!(why.as_deref(), Some("exit code 1 (Error): no such file"));
    }

    #[test]
    fn what_is_on_its_way_or_well_needs_no_reason() {
        let creating = json!({"name": "c", "state": {"waiting": {"reason": "ContainerCreating"}}});
        assert_eq!(told(&json!({"phase": "Pending"})), (TroubledState::Waiting, None));
        let creating = json!({"phase": "Pending", "containerStatuses": [creating]});
        assert_eq!(told(&creating), (TroubledState::Waiting, None));
        let ready = json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]});
        assert_eq!(told(&ready), (TroubledState::Well, None));
        assert_eq!(told(&json!({"phase": "Succeeded"})), (TroubledState::Well, None));
        let evicted = json!({"phase": "Failed", "reason": "Evicted", "message": "no memory"});
        assert_eq!(told(&evicted), (TroubledState::Bad, Some("Evicted: no memory".into())));
    }
}
