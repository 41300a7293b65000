//! Lines as klog writes them, which agnhost's programs log through.

use std::fmt::Display;

use chrono::{DateTime, Utc};

use crate::interpreter::player::{AfterCommand, Player};

/// Where Go's own logger is told of a line.
const LOG: &str = "log.go:245";

/// A line without its end.
pub(crate) fn of(text: String, at: DateTime<Utc>) -> String {
    line(('I', LOG), text, at)
}

fn line((letter, place): (char, &str), text: impl Display, at: DateTime<Utc>) -> String {
    format!("{letter}{}       1 {place}] {text}", at.format("%m%d %H:%M:%S%.6f"))
}

/// Writes a line into the log.
pub(super) fn say(player: &mut Player<'_>, text: impl Display) {
    say_at(player, ('I', LOG), text);
}

/// [`say`], with the letter of how bad it is, and where in the program it is said.
pub(crate) fn say_at(player: &mut Player<'_>, place: (char, &str), text: impl Display) {
    let line = line(place, text, player.now());
    player.complain(&(line + "\n"));
}

/// Go's `log.Fatal`: the program ends.
pub(super) fn fatal(player: &mut Player<'_>, text: impl Display) -> AfterCommand {
    say(player, text);
    AfterCommand::Exit(1)
}

/// klog's `Fatal`, which says where, and ends the program with a code of its own.
pub(super) fn klog_fatal(player: &mut Player<'_>, place: &str, text: impl Display) -> AfterCommand {
    say_at(player, ('F', place), text);
    AfterCommand::Exit(255)
}
