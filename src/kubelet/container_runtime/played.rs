//! What the process of one container does, as the machine plays it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::listeners::{open_ports, served};
use super::services::{
    AttachInput, AttachResponse, ContainerConfig, ExecCommand, ExecResponse, ExecSyncForecast, Exit,
    ExitedContainer,
};
use super::{declared, invocation};
use apimachinery::time::Time;
use apis::views::pod::{Container, Pod};
use clock::after;
use machine::bounds::ScriptFault;
use machine::file_system::{FileChange, Left};
use machine::interpreter::transcript::Transcript;
use machine::logs::LogLine;
use machine::questions::Question;
use machine::standard_input::StandardInput;
use machine::surroundings::{DeclaredProgram, ForeignFile, OpenPort, Surroundings};
use machine::terminals::{self, Ground};
use machine::{exec, process, program, signals};

/// What is known ahead of a process: when it ends by itself and how, or when it asks the network what.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outlook {
    pub(crate) ends: Option<Box<(Time, Exit)>>,
    pub(crate) asks: Option<Box<(Time, Question)>>,
}

impl Outlook {
    /// With an end that comes first, if there is one and it does. What the process would have asked the
    /// network later it never asks.
    pub(crate) fn not_beyond(mut self, end: Option<(Time, Exit)>) -> Outlook {
        let Some(end) = end else { return self };
        if self.ends.as_ref().is_none_or(|own| end.0 < own.0) {
            self.asks = self.asks.filter(|asks| asks.0 <= end.0);
            self.ends = Some(Box::new(end));
        }
        self
    }
}

/// What is ahead of a process that its command is followed of, `delay` later than its command says.
pub(crate) fn outlook(
    container: &Container,
    around: Option<&Surroundings>,
    started_at: Time,
    delay: Duration,
) -> Outlook {
    let nothing = listening(container, Surroundings::default());
    let played =
        process::play(&invocation::of(container), around.unwrap_or(&nothing), None).unwrap_or_default();
    let asked_at = after(started_at, played.until);
    // Of a process of which nothing is known answers are not kept.
    let asks = played.question.filter(|_| around.is_some()).map(|question| Box::new((asked_at, question)));
    let Some((runtime, code)) = played.end else { return Outlook { ends: None, asks } };
    let told = |fault: ScriptFault| Exit { code, reason: fault.reason().into(), message: fault.to_string() };
    let exit = played.fault.map_or_else(|| Exit { code, ..Exit::default() }, told);
    Outlook { ends: Some(Box::new((after(started_at, delay.saturating_add(runtime)), exit))), asks: None }
}

/// What it has written into volumes by `now`.
pub(crate) fn written(container: &Container, around: &Surroundings, now: Time) -> Vec<Left> {
    let ran = (now - around.started_at).to_std().unwrap_or_default();
    let played = process::play(&invocation::of(container), around, Some(ran)).unwrap_or_default();
    process::left_in_volumes(&played.written, around)
}

/// What it left that ended so.
pub(crate) fn exited(
    container: &Container,
    around: &Surroundings,
    exit: &Exit,
    finished_at: Time,
) -> ExitedContainer {
    let ran = (finished_at - around.started_at).to_std().unwrap_or_default();
    let played = process::play(&invocation::of(container), around, Some(ran)).unwrap_or_default();
    let message = match exit.message.as_str() {
        "" => process::termination_message(&played, exit.code, around),
        message => message.to_owned(),
    };
    let left = process::left_in_volumes(&played.written, around);
    let fault = played.fault.map(|fault| fault.to_string()).filter(|fault| *fault == message);
    ExitedContainer { message, fault, left, is_known: true }
}

/// Runs a hook's command. Of a process that is not known nobody has looked what files it has: a command whose
/// programs are known is run there, with what it asks only where it is known what listens. Any other is taken
/// to be one of the image's own, which does well.
pub(crate) fn exec_sync(
    config: &ContainerConfig<'_>,
    around: Option<&Surroundings>,
    command: &[String],
) -> ExecSyncForecast {
    let container = config.container;
    let declared = declared::executed(&config.pod.metadata.annotations, command);
    if let Some((took, exit_code)) = declared.and_then(|executed| executed.end) {
        return ExecSyncForecast::Ends { took, exit_code };
    }
    let nothing = Surroundings { image: container.image.clone(), ..Surroundings::default() };
    let is_seen = around.is_some() || container.volume_mounts.is_empty();
    if is_seen && exec::is_absent(command, around.unwrap_or(&nothing), &[]) {
        return ExecSyncForecast::Ends { took: Duration::ZERO, exit_code: NOT_STARTED };
    }
    let Some(executed) = exec::exec(command, around.unwrap_or(&nothing), vec![], None) else {
        return ExecSyncForecast::Unknown;
    };
    let is_played = around.is_some() || program::is_constant(command);
    match executed.end {
        _ if executed.question.is_some() && (is_played || served(container).is_some()) => {
            ExecSyncForecast::Asks
        }
        Some((took, exit_code)) if is_played => ExecSyncForecast::Ends { took, exit_code },
        // Whoever waits for it has a time of its own.
        None if is_played && executed.question.is_none() => {
            ExecSyncForecast::Ends { took: Duration::MAX, exit_code: 0 }
        }
        Some(_) if executed.question.is_none() && !program::looks_at_processes(command) => {
            ExecSyncForecast::Asks
        }
        _ => ExecSyncForecast::Unknown,
    }
}

/// What runc ends with that starts nothing.
const NOT_STARTED: i32 = 126;

/// What a pod tells of itself to who looks into it.
pub(crate) struct ToldOfPod {
    /// Where its servers listen.
    pub(crate) listens: Vec<OpenPort>,
    /// What programs say of which its annotations tell it.
    pub(crate) declared: BTreeMap<String, DeclaredProgram>,
}

impl ToldOfPod {
    pub(crate) fn of(pod: &Pod) -> ToldOfPod {
        ToldOfPod { listens: open_ports(pod), declared: declared::programs(&pod.metadata.annotations) }
    }
}

/// Runs a command of somebody's; what it writes beside volumes stays in `around`.
pub(crate) fn exec(
    container: &Container,
    around: &mut Surroundings,
    (command, told): (&ExecCommand, ToldOfPod),
    now: Time,
) -> ExecResponse {
    if let Some(sitting) = &command.sitting {
        let begun = || Arc::new(ground(container, around, (command, told), now));
        let ground = sitting.ground.clone().unwrap_or_else(begun);
        let sat = terminals::play(&command.words, sitting, &ground);
        let is_told = |change: &&FileChange| sitting.told.contains(change);
        let written = sat.iter().flat_map(|sat| &sat.written).filter(|change| !is_told(change));
        let left = keep(around, written.cloned().collect(), now);
        let signal = sat.as_ref().and_then(|sat| sat.signal.as_ref());
        let ends = ended_by(container, around, signal, now);
        return ExecResponse { sat, left, ends, ..ExecResponse::default() };
    }
    let Ground { around: around_now, files: before } = ground(container, around, (command, told), now);
    let executed = exec::exec_told(&command.words, &around_now, before, None);
    let ran = executed.as_ref().filter(|executed| executed.question.is_none());
    let left = ran.map(|ran| keep(around, ran.written.clone(), now)).unwrap_or_default();
    let signal = executed.as_ref().and_then(|executed| executed.signal.as_ref());
    let ends = ended_by(container, around, signal, now);
    ExecResponse { executed, left, ends, ..ExecResponse::default() }
}

/// When and how the container's own process ends, to which a signal was sent.
fn ended_by(
    container: &Container,
    around: &Surroundings,
    signal: Option<&(Duration, String)>,
    now: Time,
) -> Option<(Duration, Exit)> {
    let (after, signal) = signal?;
    let ran = (now - around.started_at).to_std().unwrap_or_default().saturating_add(*after);
    let (took, code) = signals::end_by(&invocation::of(container), around, ran, signal)?;
    Some((after.saturating_add(took), Exit { code, ..Exit::default() }))
}

/// What a command finds that is run now.
fn ground(
    container: &Container,
    around: &Surroundings,
    (command, told): (&ExecCommand, ToldOfPod),
    now: Time,
) -> Ground {
    let ToldOfPod { mut listens, declared } = told;
    let ran = (now - around.started_at).to_std().unwrap_or_default();
    let played = process::play(&invocation::of(container), around, Some(ran));
    let (files, scripted) = played.map(|played| (played.written, played.listens)).unwrap_or_default();
    let program = || container.command.iter().chain(&container.args);
    let name = program().next().cloned().unwrap_or_default();
    let open = |port: u16| OpenPort { port, is_udp: false, program: name.clone() };
    listens.extend(scripted.into_iter().map(|listener| open(listener.port)));
    let around = Surroundings {
        answers: command.answers.clone(),
        terminal: command.terminal,
        listens,
        declared,
        ..around.from(ran)
    };
    Ground { around, files }
}

/// Keeps what a command wrote beside volumes at a time; says what it wrote into them.
pub(super) fn keep(around: &mut Surroundings, written: Vec<FileChange>, at: Time) -> Vec<Left> {
    let left = process::left_in_volumes(&written, around);
    let after = (at - around.started_at).to_std().unwrap_or_default();
    let own: Vec<_> = written.into_iter().filter(|(path, _)| !process::is_kept(around, path)).collect();
    around.foreign.extend(own.into_iter().map(|(path, file)| (path, ForeignFile { file, after })));
    left
}

/// A process that looks at no variables began without those of Services; whoever looks into its container
/// finds them there.
pub(crate) fn completed(
    mut around: Arc<Surroundings>,
    found: &dyn Fn() -> Option<Surroundings>,
) -> Arc<Surroundings> {
    const OF_EVERY_CONTAINER: &str = "KUBERNETES_SERVICE_HOST";
    if !around.variables.contains_key(OF_EVERY_CONTAINER)
        && let Some(found) = found()
    {
        let own = &mut Arc::make_mut(&mut around).variables;
        for (name, value) in found.variables {
            own.entry(name).or_insert(value);
        }
    }
    around
}

/// A process whose standard input is open hears what is said to it.
pub(crate) fn listening(container: &Container, around: Surroundings) -> Surroundings {
    let input = container.stdin.then(|| Box::new(StandardInput::new(container.tty)));
    Surroundings { input, ..around }
}

/// Tells a process that runs for so long. Whether somebody is attached for the first time.
pub(crate) fn hear(around: &mut Surroundings, heard: &AttachInput, ran: Duration) -> bool {
    let Some(input) = around.input.as_deref_mut() else { return false };
    match heard {
        AttachInput::Begins => return !std::mem::replace(&mut input.was_attached, true),
        AttachInput::Bytes(bytes) => input.say(ran, bytes),
        AttachInput::Resized(size) => input.resize(ran, *size),
        AttachInput::End => input.close(ran),
        AttachInput::Nothing => {}
    }
    false
}

/// What it has said by `now`. Of a process that is not played that is its `log`. Whoever is attached from now
/// on hears what follows, and sees the line of a terminal that is not whole.
pub(crate) fn said(
    container: &Container,
    around: Option<&Surroundings>,
    started_at: Time,
    now: Time,
    log: &dyn Fn() -> Vec<LogLine>,
) -> AttachResponse {
    let ran = (now - started_at).to_std().unwrap_or_default();
    let invocation = invocation::of(container);
    let played = around.and_then(|around| process::said(&invocation, around, ran));
    let (transcript, next) = match played {
        Some(said) => (said.transcript, said.next.map(|next| after(started_at, next))),
        None => (of_log(log(), started_at), None),
    };
    let redrawn = if container.tty { transcript.open_line(ran).len() } else { 0 };
    let seen = transcript.said_by(ran).saturating_sub(redrawn);
    AttachResponse { transcript, ran, seen, next }
}

fn of_log(lines: Vec<LogLine>, started_at: Time) -> Transcript {
    let mut transcript = Transcript::default();
    for line in lines {
        let after = (line.at - started_at).to_std().unwrap_or_default();
        transcript.add(after, false, &format!("{}\n", line.text));
    }
    transcript
}
