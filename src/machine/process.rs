//! What a container's process does, as far as its command tells: how long it runs, how it ends, what it
//! says and writes.

use std::sync::Arc;
use std::time::Duration;

use crate::bounds::ScriptFault;
use crate::byte_text;
use crate::file_system::{self, File, FileChange, Left};
pub use crate::interpreter::player::Line;
use crate::interpreter::player::{AfterCommand, Player};
use crate::interpreter::transcript::Transcript;
use crate::invocation::Invocation;
use crate::listeners::ScriptListener;
use crate::program::{KnownProgram, program};
use crate::questions::Question;
use crate::surroundings::Surroundings;

/// So many runs before the last one are played to know what they left.
const MAX_EARLIER_RUNS: i64 = 8;
/// Of a termination message (`MaxContainerTerminationMessageLength`).
const MAX_MESSAGE_BYTES: usize = 4096;
/// Of the log, when that is the termination message (`MaxContainerTerminationMessageLogLength`,
/// `...LogLines`).
const MAX_LOG_MESSAGE: (usize, usize) = (2048, 80);

/// A process that was played until it ended, or as far as was asked.
#[derive(Clone, Debug, Default)]
pub struct Played {
    /// When it ended and with what code; nothing while it runs.
    pub end: Option<(Duration, i32)>,
    /// How far it was played: when the command ends that it is busy with.
    pub until: Duration,
    /// What it said.
    pub lines: Vec<Line>,
    /// What it wrote, and `None` where it removed something.
    pub written: Vec<FileChange>,
    /// Why it was stopped, or never began.
    pub fault: Option<ScriptFault>,
    /// The last line has no end.
    pub is_unfinished: bool,
    /// What it asks the network then (`until`): it goes on with the answer.
    pub question: Option<Question>,
    /// Where it listens.
    pub listens: Vec<ScriptListener>,
    /// The command that it is busy with is `wait`, which a signal ends that has a handler.
    pub is_in_wait: bool,
}

/// What a process wrote until a time: of each time at which that changed.
pub type Snapshots = Vec<(Duration, Vec<FileChange>)>;

/// Plays the container's command for `until`, or without it to its end; nothing when it is not known.
/// What earlier runs that nobody saw left in volumes is there.
pub fn play(invocation: &Invocation<'_>, around: &Surroundings, until: Option<Duration>) -> Option<Played> {
    play_to(invocation, around, until, None)
}

/// Plays the container's command to its end, where a signal that has a handler ends its `wait` at a time with
/// a code.
pub(crate) fn play_past_wait(
    invocation: &Invocation<'_>,
    around: &Surroundings,
    wait_ends: (Duration, i32),
) -> Option<Played> {
    play_to(invocation, around, None, Some(wait_ends))
}

fn play_to(
    invocation: &Invocation<'_>,
    around: &Surroundings,
    until: Option<Duration>,
    wait_ends: Option<(Duration, i32)>,
) -> Option<Played> {
    let program = program(invocation, Some(around))?;
    let mut player = Player::new(around, until, left_unseen(&program, around)).listening();
    player.wait_ends = wait_ends;
    let flow = program.run(&mut player);
    Some(played(player, flow))
}

/// What a process has said by a time.
#[derive(Clone, Debug, Default)]
pub struct SaidSoFar {
    /// What it said.
    pub transcript: Transcript,
    /// When it says more by itself.
    pub next: Option<Duration>,
}

/// What a process has said `until` then, to whom is attached to it; nothing when it is not played.
pub fn said(invocation: &Invocation<'_>, around: &Surroundings, until: Duration) -> Option<SaidSoFar> {
    let (transcript, played) = play_said(invocation, around, until)?;
    let is_later = played.until > until && played.until < Duration::MAX;
    let next = Some(played.until).filter(|_| is_later).into_iter().chain(transcript.next_after(until)).min();
    Some(SaidSoFar { transcript, next })
}

/// Plays the container's command until a time, with all that it says as it says it.
fn play_said(
    invocation: &Invocation<'_>,
    around: &Surroundings,
    until: Duration,
) -> Option<(Transcript, Played)> {
    let program = program(invocation, Some(around))?;
    let mut player = Player::new(around, Some(until), left_unseen(&program, around)).listening();
    player.transcript = Some(Transcript::default());
    let flow = program.run(&mut player);
    let mut transcript = player.transcript.take().unwrap_or_default();
    let (after, fault) = (player.elapsed, player.fault.clone());
    fault.iter().for_each(|fault| transcript.add(after, true, &format!("sh: {fault}\n")));
    Some((transcript, played(player, flow)))
}

/// What the container's command writes when, as far as is known of it until its end.
pub fn snapshots(invocation: &Invocation<'_>, around: &Surroundings) -> Option<Snapshots> {
    let program = program(invocation, Some(around))?;
    let mut player = Player::new(around, None, left_unseen(&program, around)).with_snapshots().listening();
    program.run(&mut player);
    player.take_snapshot();
    player.snapshots
}

/// What runs left that nobody saw.
fn left_unseen(program: &KnownProgram, around: &Surroundings) -> Vec<FileChange> {
    let mut left = Vec::new();
    for _ in 0..around.unseen_runs.clamp(0, MAX_EARLIER_RUNS) {
        let mut player = Player::new(around, None, left);
        // What was answered was answered to the last run.
        player.answers = Arc::default();
        program.run(&mut player);
        player.leave_roots();
        left = player.written.into_iter().filter(|(path, _)| is_kept(around, path)).collect();
    }
    left
}

fn played(mut player: Player<'_>, flow: AfterCommand) -> Played {
    let is_unfinished = player.flush();
    // What was said in the background was said meanwhile.
    player.lines.sort_by_key(|line| line.after);
    let fault = player.fault.take();
    // What never began says nothing.
    if let Some(fault) = fault.as_ref().filter(|fault| !matches!(fault, ScriptFault::Missing(_))) {
        player.lines.push(Line { after: player.elapsed, text: format!("sh: {fault}") });
    }
    let end = match (flow, &fault) {
        (_, Some(fault)) => Some((player.elapsed, fault.code())),
        _ if player.is_blocked => None,
        (AfterCommand::OutOfTime, _) => None,
        (AfterCommand::Exit(code), _) => Some((player.elapsed, code)),
        _ => Some((player.elapsed, player.status)),
    };
    player.leave_roots();
    let Player { elapsed: until, lines, written, question, listens, is_in_wait, .. } = player;
    let written = written.into_iter().collect();
    Played { end, until, lines, written, fault, is_unfinished, question, listens, is_in_wait }
}

/// The last word of a process that ended with `code`: the file of its `terminationMessagePath`, or the
/// end of its log.
pub fn termination_message(played: &Played, code: i32, around: &Surroundings) -> String {
    let written = played.written.iter().find(|(written, _)| *written == around.message_path);
    let text = written.and_then(|(_, file)| file.as_ref()).map(File::text).unwrap_or_default();
    let text = byte_text::shown(&text).into_owned();
    if !text.is_empty() {
        return cut(text, MAX_MESSAGE_BYTES);
    }
    if !around.falls_back_to_logs || code == 0 {
        return String::new();
    }
    let lines = &played.lines[played.lines.len().saturating_sub(MAX_LOG_MESSAGE.1)..];
    let mut text: String = lines.iter().flat_map(|line| [line.text.as_str(), "\n"]).collect();
    if played.is_unfinished {
        text.pop();
    }
    cut(text, MAX_LOG_MESSAGE.0)
}

/// The last `limit` bytes.
fn cut(text: String, limit: usize) -> String {
    let mut from = text.len().saturating_sub(limit);
    while !text.is_char_boundary(from) {
        from += 1;
    }
    text[from..].to_owned()
}

/// What a container wrote into volumes that others see.
pub fn left_in_volumes(written: &[FileChange], around: &Surroundings) -> Vec<Left> {
    let in_volume = |(path, file): &FileChange| {
        let mount = file_system::mount_of(&around.mounts, path).filter(|mount| mount.is_kept)?;
        let inner = path[mount.path.trim_end_matches('/').len()..].trim_start_matches('/');
        let inner = format!("{}/{inner}", mount.sub_path);
        let (volume, path) = (mount.volume.clone(), inner.trim_matches('/').to_owned());
        Some(Left { volume, path, file: file.clone() })
    };
    written.iter().filter_map(in_volume).collect()
}

/// Whether what is written there stays, for others too.
pub fn is_kept(around: &Surroundings, path: &str) -> bool {
    file_system::mount_of(&around.mounts, path).is_some_and(|mount| mount.is_kept)
}

#[cfg(test)]
mod bytes;
#[cfg(test)]
mod hearing;
#[cfg(test)]
mod linked_files;
#[cfg(test)]
mod scripts;
#[cfg(test)]
mod tests;
