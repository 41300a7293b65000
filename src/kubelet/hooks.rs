//! Lifecycle hooks: what is run in a container after its start and before its end.

use std::time::Duration;

use apis::views::probe::Hook;
use machine::surroundings::Surroundings;
use machine::{exec, program};

/// How a hook went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Outcome {
    pub(super) took: Duration,
    pub(super) is_well: bool,
}

/// Runs a hook among what the container finds; what is not known is done well and at once.
pub(super) fn run(hook: &Hook, around: Option<&Surroundings>) -> Outcome {
    if let Some(sleep) = &hook.sleep {
        let took = Duration::from_secs(u64::try_from(sleep.seconds).unwrap_or(0));
        return Outcome { took, is_well: true };
    }
    let well = Outcome { took: Duration::ZERO, is_well: true };
    let Some(action) = &hook.exec else { return well };
    if around.is_none() && !program::is_constant(&action.command) {
        return well;
    }
    let nothing = Surroundings::default();
    match exec::exec(&action.command, around.unwrap_or(&nothing), vec![], None)
        .and_then(|executed| executed.end)
    {
        Some((took, code)) => Outcome { took, is_well: code == 0 },
        None => well,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn hooks_over_a_bound_fail() {
        let around = Surroundings::default();
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
            assert!(!run(&hook, Some(&around)).is_well, "{}", &script[..script.len().min(80)]);
        }
    }
}
