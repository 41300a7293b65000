//! `kubarium run -- command`: a cluster for one command. It starts, `KUBECONFIG` says where it is, the
//! command runs, and both end together. What happened in a run that failed is left behind.

use std::ffi::OsString;
use std::fs;
use std::io::Write;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, ExitStatus};

use clap::Args;
use rustix::process::{Pid, Signal, kill_process};
use tokio::process::{Child, Command};
use tokio::signal::unix::{SignalKind, signal};

use super::left_behind::LeftBehind;
use super::up::{self, Up};
use super::{Failure, kubeconfig, manifests, state};
use crate::cluster::{Cluster, Config};
use clock::Clock;

/// The name of `up`, which here stands for one of its own.
const UNNAMED: &str = "kubarium";

/// Start a cluster, run a command with it, and end it.
///
/// The command finds it by KUBECONFIG. Its exit code is passed on. When it fails, a folder says what
/// happened: the objects, the audit log, the trace, the events and the logs of pods.
#[derive(Args)]
pub struct RunCommand {
    /// The cluster, as of `up`.
    #[command(flatten)]
    pub up: Up,
    /// Where to leave what happened, when the command fails; else a new folder in the temporary one.
    #[arg(long, value_name = "DIR")]
    pub keep: Option<PathBuf>,
    /// Leave it behind when the command succeeds, too.
    #[arg(long, requires = "keep")]
    pub keep_always: bool,
    /// The command, and what it is given.
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

impl RunCommand {
    /// Runs it all; says with what the command ended.
    pub fn run(mut self) -> Result<ExitCode, Failure> {
        if self.up.detach {
            return Err(Failure("--detach is for kubarium up; run ends with its command".into()));
        }
        if self.up.name == UNNAMED {
            self.up.name = format!("run-{}", std::process::id());
        }
        state::check_name(&self.up.name)?;
        up::raise_file_limit();
        rustix::process::umask(rustix::fs::Mode::RWXG | rustix::fs::Mode::RWXO);
        let claim = state::Claim::take(&self.up.name)?;
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
        let runtime = runtime.map_err(|error| Failure::new("cannot start", error))?;
        let outcome = runtime.block_on(self.serve(&claim));
        if self.up.name.starts_with("run-") {
            claim.forget();
        }
        outcome
    }

    async fn serve(&self, claim: &state::Claim) -> Result<ExitCode, Failure> {
        let clock = Clock::real();
        let manifests = manifests::read(&self.up.filename, self.up.recursive)?;
        let folder = self.folder()?;
        let config = self.config(&folder)?;
        let cluster = Cluster::start(config).await.map_err(|error| Failure(error.to_string()))?;
        let access = cluster.access().ok_or(Failure("the cluster does not listen".into()))?;
        let own = self.up.kubeconfig.clone().unwrap_or_else(|| folder.join("kubeconfig"));
        let written = kubeconfig::write(&self.up.name, Some(&own), &access)?;
        let mut record = self.up.record(&clock, &access.server, &written.path);
        (record.own_kubeconfig, record.ready) = (true, true);
        claim.publish(&record)?;
        for manifest in &manifests {
            cluster.apply(manifest, |_| ()).await.map_err(|error| Failure(error.to_string()))?;
        }
        let status = self.command(&written.path).await;
        let is_kept = self.keep_always || !status.as_ref().is_ok_and(ExitStatus::success);
        let left = if is_kept { leave(&cluster, &folder).await } else { Ok(()) };
        written.remove()?;
        cluster.stop().await;
        if is_kept {
            self.tell(&folder)
        } else {
            self.clean(&folder)
        }
        left?;
        Ok(exit_code(status?))
    }

    /// Where everything is that may be left behind.
    fn folder(&self) -> Result<PathBuf, Failure> {
        let temporary = || std::env::temp_dir().join(format!("kubarium-{}", self.up.name));
        let folder = self.keep.clone().unwrap_or_else(temporary);
        let failed = |error| Failure::new(format!("cannot make {}", folder.display()), error);
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder).map_err(failed)?;
        Ok(folder)
    }

    fn config(&self, folder: &Path) -> Result<Config, Failure> {
        let mut config = self.up.config()?;
        if config.apiserver.audit.audit_log_path.is_none() {
            let policy = folder.join("audit-policy.yaml");
            let failed = |error| Failure::new(format!("cannot write {}", policy.display()), error);
            fs::write(&policy, AUDIT_POLICY).map_err(failed)?;
            config.apiserver.audit.audit_log_path = Some(folder.join("audit.log"));
            config.apiserver.audit.audit_policy_file.get_or_insert(policy);
        }
        Ok(config)
    }

    /// Runs it to its end. What asks us to stop asks it.
    async fn command(&self, kubeconfig: &Path) -> Result<ExitStatus, Failure> {
        let (program, arguments) = self.command.split_first().ok_or(Failure("there is no command".into()))?;
        let shown = program.to_string_lossy();
        let mut command = Command::new(program);
        command.args(arguments).env("KUBECONFIG", absolute(kubeconfig)).env("KUBARIUM_NAME", &self.up.name);
        let mut child =
            command.spawn().map_err(|error| Failure::new(format!("cannot run {shown}"), error))?;
        let ended = wait(&mut child).await;
        ended.map_err(|error| Failure::new(format!("cannot wait for {shown}"), error))
    }

    fn tell(&self, folder: &Path) {
        let shown = folder.display();
        let hint = format!("go on with it: kubarium up --data-dir {shown}/data");
        let _ = writeln!(std::io::stderr(), "kubarium: what happened in the cluster is in {shown}; {hint}");
    }

    /// What the command itself has put into a folder of its own choice stays.
    fn clean(&self, folder: &Path) {
        for name in ["audit.log", "audit-policy.yaml"] {
            let _ = fs::remove_file(folder.join(name));
        }
        let _ = fs::remove_dir(folder);
    }
}

/// Who asked for what, and what came of it; bodies would be too much.
const AUDIT_POLICY: &str = "\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: None
  users: ['system:kube-controller-manager', 'system:kube-scheduler', 'system:apiserver']
- level: None
  userGroups: ['system:nodes']
- level: Metadata
";

/// Everything that is known, while the cluster still runs.
async fn leave(cluster: &Cluster, folder: &Path) -> Result<(), Failure> {
    LeftBehind::gather(cluster).await.write(folder)?;
    let data = folder.join("data");
    cluster.keep(&data).map_err(|error| Failure::new(format!("cannot write {}", data.display()), error))
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// Ctrl-C reaches the command by itself, since it is in our group; what else asks us to end is passed on.
async fn wait(child: &mut Child) -> std::io::Result<ExitStatus> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hang_up = signal(SignalKind::hangup())?;
    loop {
        let passed_on = tokio::select! {
            ended = child.wait() => return ended,
            _ = interrupt.recv() => continue,
            _ = terminate.recv() => Signal::TERM,
            _ = hang_up.recv() => Signal::HUP,
        };
        let pid = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        if let Some(pid) = pid {
            let _ = kill_process(pid, passed_on);
        }
    }
}

/// As a shell says it: 128 and the signal, when one ended it.
fn exit_code(status: ExitStatus) -> ExitCode {
    let by_signal = || status.signal().map_or(1, |signal| 128 + signal);
    ExitCode::from(u8::try_from(status.code().unwrap_or_else(by_signal)).unwrap_or(1))
}
