//! Mistakes of ours end one container, and nothing else.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::player::{AfterCommand, Player};
use crate::bounds::ScriptFault;

/// A panic while something is played is the end of that container, and not of all on its node.
pub(crate) fn contained(
    player: &mut Player<'_>,
    play: impl FnOnce(&mut Player<'_>) -> AfterCommand,
) -> AfterCommand {
    let played = catch_unwind(AssertUnwindSafe(|| play(player)));
    played.unwrap_or_else(|_| player.stop(told_broken()))
}

/// Tells the log of a mistake of ours.
pub(crate) fn told_broken() -> ScriptFault {
    tracing::error!("a script panicked: its container ends");
    ScriptFault::Broken
}
