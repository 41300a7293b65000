//! Why a command of `kubectl` does not go on.

use std::time::Duration;

use crate::interpreter::player::AfterCommand;

/// How a subcommand goes on: what it says and its code, or how the play does.
pub(crate) type KubectlRun = Result<(), KubectlStop>;

/// Why a subcommand does not go on.
pub(crate) enum KubectlStop {
    /// The play stands still.
    Flow(AfterCommand),
    /// This is said, and it fails.
    Failed(String),
}

impl From<AfterCommand> for KubectlStop {
    fn from(flow: AfterCommand) -> KubectlStop {
        KubectlStop::Flow(flow)
    }
}

/// What a duration says, as Go has it; seconds where it is a number.
pub(crate) fn duration(text: &str) -> Option<Duration> {
    golang::duration::parse(text).or_else(|| text.parse().ok().map(Duration::from_secs))
}
