//! A command that runs beside a cluster: it gets what kubarium itself was given, what asks kubarium to end
//! asks it, and nothing of it is left running.

use std::io::{self, IsTerminal};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, ExitStatus};
use std::time::Duration;

use rustix::fs::{Access, Mode, access};
use rustix::process::{Pid, Resource, Rlimit, Signal};
use rustix::process::{
    getrlimit, kill_process, kill_process_group, setrlimit, test_kill_process_group, umask,
};
use tokio::process::{Child, Command};
use tokio::signal::unix::{self, SignalKind, signal};

use super::{Failure, up};
use crate::cluster::Cluster;
use clock::Clock;

/// How often it is looked whether what a command has left running has ended.
const LOOKS: u32 = 100;
/// Between two looks; together the time that it has after SIGTERM, before SIGKILL.
const PAUSE: Duration = Duration::from_millis(20);

/// What a shell says of a command that is not there.
const NOT_FOUND: u8 = 127;
/// And of a file that cannot be run.
const NOT_EXECUTABLE: u8 = 126;

/// What kubarium was started with, and has changed for itself.
pub(crate) struct Inherited {
    umask: Mode,
    files: Rlimit,
}

impl Inherited {
    /// From now on what this process writes is for its owner alone, and it may open as many files as it gets.
    pub(crate) fn keep_private() -> Inherited {
        let files = getrlimit(Resource::Nofile);
        up::raise_file_limit();
        Inherited { umask: umask(Mode::RWXG | Mode::RWXO), files }
    }

    /// Starts a command with what this process was started with. Both are of the whole process: they are
    /// other ones for the moment that a start takes.
    fn start(&self, command: &mut Command) -> io::Result<Child> {
        let own = umask(self.umask);
        let files = getrlimit(Resource::Nofile);
        let _ = setrlimit(Resource::Nofile, self.files);
        let child = command.spawn();
        let _ = setrlimit(Resource::Nofile, files);
        umask(own);
        child
    }
}

/// Ctrl-C, SIGTERM and SIGHUP, from when it was made.
pub(crate) struct TerminationSignals {
    streams: [(unix::Signal, Signal); 3],
    /// How often.
    times: usize,
}

impl TerminationSignals {
    /// From now on they end nothing by themselves.
    pub(crate) fn listen() -> Result<TerminationSignals, Failure> {
        let on = |kind| signal(kind).map_err(|error| Failure::new("cannot listen for signals", error));
        let interrupt = (on(SignalKind::interrupt())?, Signal::INT);
        let terminate = (on(SignalKind::terminate())?, Signal::TERM);
        let hang_up = (on(SignalKind::hangup())?, Signal::HUP);
        Ok(TerminationSignals { streams: [interrupt, terminate, hang_up], times: 0 })
    }

    async fn next(&mut self) -> Signal {
        let [interrupt, terminate, hang_up] = &mut self.streams;
        let asked = tokio::select! {
            _ = interrupt.0.recv() => interrupt.1,
            _ = terminate.0.recv() => terminate.1,
            _ = hang_up.0.recv() => hang_up.1,
        };
        self.times += 1;
        asked
    }

    /// Runs it to its end, unless one of them comes first.
    pub(crate) async fn or<T>(&mut self, future: impl Future<Output = T>) -> Result<T, Signal> {
        tokio::select! {
            output = future => Ok(output),
            asked = self.next() => Err(asked),
        }
    }

    /// Runs it to its end, unless somebody asks a second time.
    pub(crate) async fn twice_or<T>(&mut self, future: impl Future<Output = T>) -> Result<T, Signal> {
        let mut future = std::pin::pin!(future);
        loop {
            match self.or(&mut future).await {
                Err(_) if self.times < 2 => {}
                ended => return ended,
            }
        }
    }
}

/// A command that runs.
pub(crate) struct RunningCommand {
    child: Child,
    /// What was started with it, if that is a group of its own.
    group: Option<Pid>,
}

impl RunningCommand {
    /// At a terminal it stays in our group, which is the one that may read there and that Ctrl-C reaches.
    pub(crate) fn start(mut command: Command, inherited: &Inherited) -> io::Result<RunningCommand> {
        let is_apart = !is_at_terminal();
        if is_apart {
            command.process_group(0);
        }
        Ok(RunningCommand::of(inherited.start(&mut command)?, is_apart))
    }

    /// In a group of its own, which has no terminal.
    pub(crate) fn start_apart(mut command: Command) -> io::Result<RunningCommand> {
        Ok(RunningCommand::of(command.process_group(0).spawn()?, true))
    }

    fn of(child: Child, is_apart: bool) -> RunningCommand {
        let pid = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        RunningCommand { child, group: pid.filter(|_| is_apart) }
    }

    /// Its end.
    pub(crate) async fn wait(&mut self) -> io::Result<ExitStatus> {
        self.child.wait().await
    }

    /// Its end; what asks us to end meanwhile is passed on.
    pub(crate) async fn ended(&mut self, asked: &mut TerminationSignals) -> io::Result<ExitStatus> {
        loop {
            match asked.or(self.child.wait()).await {
                Ok(ended) => return ended,
                Err(signal) => self.pass_on(signal),
            }
        }
    }

    /// At a terminal Ctrl-C reaches it by itself.
    fn pass_on(&self, signal: Signal) {
        if let Some(group) = self.group {
            let _ = kill_process_group(group, signal);
        } else if signal != Signal::INT {
            let pid = self.child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
            let _ = pid.map(|pid| kill_process(pid, signal));
        }
    }

    /// Ends what still runs of it: it is asked to end first.
    pub(crate) async fn end_rest(mut self) {
        let Some(group) = self.group else {
            let _ = self.child.start_kill();
            return;
        };
        let clock = Clock::real();
        let mut is_there = kill_process_group(group, Signal::TERM).is_ok();
        for _ in 0..LOOKS {
            // Who has ended is in the group until somebody has asked how.
            let _ = self.child.try_wait();
            is_there = is_there && test_kill_process_group(group).is_ok();
            if !is_there {
                return;
            }
            clock.sleep(PAUSE).await;
        }
        let _ = kill_process_group(group, Signal::KILL);
    }
}

fn is_at_terminal() -> bool {
    io::stdin().is_terminal() || io::stdout().is_terminal() || io::stderr().is_terminal()
}

/// How a command finds the cluster that it runs with: `kubectl` and its like, `kubarium`, and what is open
/// besides.
pub(crate) fn tell_of_cluster(command: &mut Command, cluster: &Cluster, name: &str, kubeconfig: &Path) {
    let kubeconfig = std::path::absolute(kubeconfig).unwrap_or_else(|_| kubeconfig.to_owned());
    // As `127.0.0.1:40123,127.0.0.1:40124`.
    let published: Vec<String> = cluster.published().iter().map(|(address, _)| address.to_string()).collect();
    command.env("KUBECONFIG", kubeconfig).env("KUBARIUM_NAME", name);
    command.env("KUBARIUM_PUBLISHED", published.join(","));
}

/// As a shell says it: 128 and the signal, when one ended it.
pub(crate) fn exit_code(status: ExitStatus) -> ExitCode {
    let by_signal = || status.signal().map_or(1, |signal| 128 + signal);
    ExitCode::from(u8::try_from(status.code().unwrap_or_else(by_signal)).unwrap_or(1))
}

/// The exit code of kubarium itself, when it was asked to end.
pub(crate) fn code_of_signal(signal: Signal) -> ExitCode {
    exit_code(ExitStatus::from_raw(signal.as_raw()))
}

/// Why a program cannot be run: for people, and as a shell says it.
pub(crate) fn why_not_runnable(program: &Path) -> Option<(&'static str, ExitCode)> {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let is_path = program.components().count() > 1 || program.is_absolute();
    let paths: Vec<PathBuf> = if is_path {
        vec![program.to_owned()]
    } else {
        std::env::split_paths(&folders).map(|folder| folder.join(program)).collect()
    };
    let is_runnable = |path: &PathBuf| path.is_file() && access(path, Access::EXEC_OK).is_ok();
    if paths.iter().any(is_runnable) {
        None
    } else if paths.iter().any(|path| path.exists()) {
        Some(("it is no file that may be executed", ExitCode::from(NOT_EXECUTABLE)))
    } else {
        let why = if is_path { "there is no such file" } else { "no folder of PATH has it" };
        Some((why, ExitCode::from(NOT_FOUND)))
    }
}
