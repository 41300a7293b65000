//! Lifecycle hooks: what is run in a container after its start and before its end.

use std::time::Duration;

use super::process;
use super::surroundings::Surroundings;
use apis::views::probe::Hook;

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
    let Some(exec) = &hook.exec else { return well };
    if around.is_none() && !process::is_constant(&exec.command) {
        return well;
    }
    let nothing = Surroundings::default();
    match process::exec(&exec.command, around.unwrap_or(&nothing), vec![], None)
        .and_then(|executed| executed.end)
    {
        Some((took, code)) => Outcome { took, is_well: code == 0 },
        None => well,
    }
}
