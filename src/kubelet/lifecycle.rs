//! Lifecycle hooks: what is run in a container after its start and before its end
//! (`pkg/kubelet/lifecycle/handlers.go`).

use std::time::Duration;

use crate::container_runtime::services::{ContainerId, RuntimeService};
use apis::views::probe::Hook;

/// How a hook went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HookOutcome {
    pub(crate) took: Duration,
    pub(crate) is_well: bool,
}

/// Runs a hook in a container; what is not known is done well and at once.
pub(crate) fn run(hook: &Hook, runtime: &dyn RuntimeService, id: &ContainerId) -> HookOutcome {
    if let Some(sleep) = &hook.sleep {
        let took = Duration::from_secs(u64::try_from(sleep.seconds).unwrap_or(0));
        return HookOutcome { took, is_well: true };
    }
    let response = hook.exec.as_ref().and_then(|exec| runtime.exec_sync(id, &exec.command));
    let well = HookOutcome { took: Duration::ZERO, is_well: true };
    response.map_or(well, |ran| HookOutcome { took: ran.took, is_well: ran.exit_code == 0 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::container_runtime::given;
    use serde_json::json;

    #[test]
    fn hooks_over_a_bound_fail() {
        let container = json!({"name": "a", "image": "busybox", "command": ["sleep", "600"]});
        let given = given::running(container);
        let bombs = [
            "x=a; while [ 1 = 1 ]; do x=$x$x; done",
            "while [ 1 = 1 ]; do :; done",
            "while [ 1 = 1 ]; do echo a >> /f; cat /f >> /g; done",
            "x='sh -c \"$x\"'; export x; sh -c \"$x\"",
            "echo 'open",
            &format!("x={}", "a".repeat(200_000)),
        ];
        for script in bombs {
            let hook = serde_json::from_value(json!({"exec": {"command": ["sh", "-c", script]}})).unwrap();
            assert!(!run(&hook, &given.runtime, &given.id).is_well, "{}", &script[..script.len().min(80)]);
        }
    }

    #[test]
    fn what_is_not_known_is_done_well() {
        let given = given::running(json!({"name": "a", "image": "my-server"}));
        let hook = |hook| serde_json::from_value::<Hook>(hook).unwrap();
        let outcome = |hook: &Hook| run(hook, &given.runtime, &given.id);
        assert_eq!(outcome(&hook(json!({"exec": {"command": ["my-stop"]}}))).took, Duration::ZERO);
        assert_eq!(outcome(&hook(json!({"sleep": {"seconds": 3}}))).took, Duration::from_secs(3));
        assert!(!outcome(&hook(json!({"exec": {"command": ["false"]}}))).is_well);
        assert!(outcome(&hook(json!({"exec": {"command": ["cat", "/x"]}}))).is_well);
    }
}
