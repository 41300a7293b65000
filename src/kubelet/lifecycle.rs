//! Lifecycle hooks: what is run in a container after its start and before its end
//! (`pkg/kubelet/lifecycle/handlers.go`).

use std::time::Duration;

use crate::container_runtime::services::{ExecSyncForecast, ProbeForecast, ProbedContainer, RuntimeService};
use apis::views::pod::Container as Spec;
use apis::views::probe::{Hook, Probe};

/// Which of a container's hooks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HookKind {
    /// Right after its start.
    PostStart,
    /// Before its stop signal.
    PreStop,
}

impl HookKind {
    /// That hook of a container.
    pub(crate) fn of(self, spec: &Spec) -> Option<&Hook> {
        let lifecycle = spec.lifecycle.as_ref()?;
        match self {
            HookKind::PostStart => lifecycle.post_start.as_ref(),
            HookKind::PreStop => lifecycle.pre_stop.as_ref(),
        }
    }
}

/// How a hook goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HookForecast {
    Known(HookOutcome),
    /// Somebody is to ask the network, and to tell.
    Asked,
}

/// How a hook went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HookOutcome {
    pub(crate) took: Duration,
    pub(crate) is_well: bool,
}

/// Runs a hook in a container; what is not known is done well and at once. `is_fair` is whether nothing is
/// wrong on the way to the container.
pub(crate) fn run(
    hook: &Hook,
    runtime: &dyn RuntimeService,
    probed: &ProbedContainer<'_>,
    is_fair: bool,
) -> HookForecast {
    let well = |took| HookForecast::Known(HookOutcome { took, is_well: true });
    if let Some(sleep) = &hook.sleep {
        return well(Duration::from_secs(u64::try_from(sleep.seconds).unwrap_or(0)));
    }
    if let Some(http_get) = &hook.http_get {
        let probe = Probe { http_get: Some(http_get.clone()), ..Probe::default() };
        // Whether anybody heard it only who listens can say.
        return match runtime.probe_forecast(probed, &probe) {
            ProbeForecast::Played(_) => well(Duration::ZERO),
            ProbeForecast::Assumed if is_fair => well(Duration::ZERO),
            _ => HookForecast::Asked,
        };
    }
    let Some(exec) = &hook.exec else { return well(Duration::ZERO) };
    match runtime.exec_sync(&probed.config, probed.id, &exec.command) {
        ExecSyncForecast::Unknown => well(Duration::ZERO),
        ExecSyncForecast::Ends { took, exit_code } => {
            HookForecast::Known(HookOutcome { took, is_well: exit_code == 0 })
        }
        ExecSyncForecast::Asks => HookForecast::Asked,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::container_runtime::given;
    use apimachinery::time::Time;
    use serde_json::json;

    fn forecast(given: &given::Given, hook: &Hook) -> HookForecast {
        let (config, started_at) = (given.config(), Time::UNIX_EPOCH);
        let probed = ProbedContainer { config, id: &given.id, pod_ip: "10.0.0.1", started_at };
        run(hook, &given.runtime, &probed, true)
    }

    fn ran(given: &given::Given, hook: &Hook) -> HookOutcome {
        match forecast(given, hook) {
            HookForecast::Known(outcome) => outcome,
            HookForecast::Asked => panic!("{hook:?} asks"),
        }
    }

    #[test]
    fn what_goes_over_the_network_is_asked() {
        let hook = |hook| serde_json::from_value::<Hook>(hook).unwrap();
        let given = given::running(json!({"name": "a", "image": "nginx"}));
        for asked in [
            json!({"httpGet": {"port": 80}}),
            json!({"httpGet": {"port": 80, "host": "10.0.0.9"}}),
            json!({"exec": {"command": ["sh", "-c", "curl -s http://10.0.0.9/stop"]}}),
        ] {
            assert_eq!(forecast(&given, &hook(asked)), HookForecast::Asked);
        }
        let elsewhere = hook(json!({"httpGet": {"port": 80, "host": "example.com"}}));
        assert!(ran(&given, &elsewhere).is_well);
    }

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
            assert!(!ran(&given, &hook).is_well, "{}", &script[..script.len().min(80)]);
        }
    }

    #[test]
    fn what_is_not_known_is_done_well() {
        let given = given::running(json!({"name": "a", "image": "my-server"}));
        let hook = |hook| serde_json::from_value::<Hook>(hook).unwrap();
        let outcome = |hook: &Hook| ran(&given, hook);
        assert_eq!(outcome(&hook(json!({"exec": {"command": ["my-stop"]}}))).took, Duration::ZERO);
        assert_eq!(outcome(&hook(json!({"sleep": {"seconds": 3}}))).took, Duration::from_secs(3));
        assert!(!outcome(&hook(json!({"exec": {"command": ["false"]}}))).is_well);
        let busybox = given::running(json!({"name": "a", "image": "busybox", "command": ["sleep", "600"]}));
        assert!(!ran(&busybox, &hook(json!({"exec": {"command": ["curl", "localhost"]}}))).is_well);
        // What is known is run in the files that the container has.
        for known in [json!(["cat", "/x"]), json!(["sh", "-c", "test -f /x && ls /"])] {
            assert_eq!(forecast(&given, &hook(json!({"exec": {"command": known}}))), HookForecast::Asked);
        }
        let own = json!(["sh", "-c", "test -f /x || my-stop"]);
        assert!(outcome(&hook(json!({"exec": {"command": own}}))).is_well);
    }
}
