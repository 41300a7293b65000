//! `kubarium run -- command`: a cluster for one command. It starts, `KUBECONFIG` says where it is, the
//! command runs, and both end together. What happened in a run that failed is left behind.

use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, ExitStatus};
use std::time::Duration;

use clap::Args;
use rustix::process::Signal;
use tokio::process::Command;

use super::beside::{self, Inherited, RunningCommand, TerminationSignals};
use super::junit::JunitReport;
use super::left_behind::LeftBehind;
use super::outcome::complain;
use super::run_folder::{RunFolder, SNAPSHOT};
use super::up::Up;
use super::{Failure, fork_contexts, kubeconfig, manifests, state};
use crate::cluster::manifests::Manifest;
use crate::cluster::{Cluster, Config};
use clock::Clock;
use files::write_private;

/// How long the cluster is asked what happened in it, in real time.
const GATHER_WITHIN: Duration = Duration::from_secs(20);

/// The name of `up`, which here stands for one of its own.
const UNNAMED: &str = "kubarium";

/// Start a cluster, run a command with it, and end it.
///
/// The command finds it by KUBECONFIG, and what --publish has opened by KUBARIUM_PUBLISHED: the addresses in
/// the order of the wishes, with commas between them. Its exit code is passed on. When it fails, a folder
/// says what happened: the objects, the audit log, the trace, the events and the logs of pods, and a snapshot
/// of the cluster, which `up --snapshot FOLDER` opens again.
#[derive(Args)]
pub struct RunCommand {
    /// The cluster, as of `up`.
    #[command(flatten)]
    pub up: Up,
    /// Where to leave what happened, when the command fails; else a new folder in the temporary one.
    ///
    /// What an earlier run has left there goes then; nobody else may write there.
    #[arg(long, value_name = "DIR")]
    pub keep: Option<PathBuf>,
    /// Leave it behind when the command succeeds, too.
    #[arg(long, requires = "keep")]
    pub keep_always: bool,
    /// Tell how the command ended in a file as JUnit writes it, with what is left as attachments.
    ///
    /// The snapshot is not attached: it holds every Secret.
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
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
        // Before Ctrl-C is listened for: somebody may have to type them.
        let manifests = manifests::read(&self.up.filename, self.up.recursive)?;
        let inherited = Inherited::keep_private();
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
        let runtime = runtime.map_err(|error| Failure::new("cannot start", error))?;
        runtime.block_on(self.serve(&manifests, &inherited))
    }

    async fn serve(&self, manifests: &[Manifest], inherited: &Inherited) -> Result<ExitCode, Failure> {
        let mut asked = TerminationSignals::listen()?;
        let program = self.command.first().ok_or(Failure("there is no command".into()))?;
        if let Some((why, code)) = beside::why_not_runnable(Path::new(program)) {
            complain(&Failure::new(format!("cannot run {}", program.to_string_lossy()), why));
            return Ok(code);
        }
        let claim = state::Claim::take(&self.up.name)?;
        self.with_folder(&claim, manifests, inherited, &mut asked).await
    }

    /// Whatever goes wrong, the cluster is stopped, and of its files only what is said stays.
    async fn with_folder(
        &self,
        claim: &state::Claim,
        manifests: &[Manifest],
        inherited: &Inherited,
        asked: &mut TerminationSignals,
    ) -> Result<ExitCode, Failure> {
        let temporary = || RunFolder::temporary(&self.up.name);
        let mut folder = self.keep.as_deref().map_or_else(temporary, RunFolder::below)?;
        let config = self.config(folder.path())?;
        let cluster = match asked.or(Cluster::start(config)).await {
            Ok(started) => started.map_err(|error| Failure(error.to_string()))?,
            Err(signal) => return Ok(beside::code_of_signal(signal)),
        };
        let clock = Clock::real();
        let ended = self.attend(&cluster, claim, folder.path(), (manifests, inherited), asked).await;
        let took = clock.elapsed();
        let is_failure = |status: ExitStatus| self.keep_always || !status.success();
        let is_kept = matches!(ended, Ok(RunEnd::Command(status)) if is_failure(status));
        if is_kept {
            self.leave(&cluster, folder.path(), asked).await;
        }
        let _ = asked.twice_or(cluster.stop()).await;
        let left = if is_kept { tell(folder.leave()) } else { None };
        if let Ok(RunEnd::Command(status)) = ended {
            self.report(status, took, left.as_deref());
        }
        ended.map(RunEnd::code)
    }

    /// How the command ended, for who shows it.
    fn report(&self, status: ExitStatus, took: Duration, left: Option<&Path>) {
        let Some(file) = &self.junit else { return };
        let why = (!status.success()).then(|| status.to_string());
        if let Err(failure) = (JunitReport { command: &self.command, took, why, left }).write(file) {
            complain(&failure);
        }
    }

    async fn attend(
        &self,
        cluster: &Cluster,
        claim: &state::Claim,
        folder: &Path,
        given: (&[Manifest], &Inherited),
        asked: &mut TerminationSignals,
    ) -> Result<RunEnd, Failure> {
        let access = cluster.access().ok_or(Failure("the cluster does not listen".into()))?;
        let own = self.up.kubeconfig.clone().unwrap_or_else(|| folder.join("kubeconfig"));
        let written = kubeconfig::write(&self.up.name, Some(&own), &access)?;
        let mut record = self.up.record(&access.server, &written.path);
        (record.own_kubeconfig, record.ready) = (true, true);
        let ended = match claim.publish(&record) {
            Ok(()) => self.apply_and_run(cluster, &written.path, given, asked).await,
            Err(failure) => Err(failure),
        };
        let of_forks = fork_contexts::clean_all(&self.up.name);
        for failure in [of_forks, written.remove()].into_iter().filter_map(Result::err) {
            complain(&failure);
        }
        ended
    }

    async fn apply_and_run(
        &self,
        cluster: &Cluster,
        kubeconfig: &Path,
        (manifests, inherited): (&[Manifest], &Inherited),
        asked: &mut TerminationSignals,
    ) -> Result<RunEnd, Failure> {
        for manifest in manifests {
            match asked.or(cluster.apply(manifest, |_| ())).await {
                Ok(applied) => applied.map_err(|error| Failure(error.to_string()))?,
                Err(signal) => return Ok(RunEnd::Asked(signal)),
            }
        }
        self.tell_what_is_open(cluster).await?;
        self.command(cluster, kubeconfig, inherited, asked).await.map(RunEnd::Command)
    }

    /// To the standard error, since the standard output is the command's.
    async fn tell_what_is_open(&self, cluster: &Cluster) -> Result<(), Failure> {
        for (address, target) in cluster.published() {
            note(&format!("{address} leads to {target}"));
        }
        if self.up.ui {
            let link = cluster.open_page().await.map_err(|error| Failure(error.to_string()))?;
            note(&format!("the page is {link}"));
        }
        Ok(())
    }

    fn config(&self, folder: &Path) -> Result<Config, Failure> {
        let mut config = self.up.config()?;
        if config.apiserver.audit.audit_log_path.is_none() {
            let policy = folder.join("audit-policy.yaml");
            let failed = |error| Failure::new(format!("cannot write {}", policy.display()), error);
            write_private(&policy, AUDIT_POLICY.as_bytes()).map_err(failed)?;
            config.apiserver.audit.audit_log_path = Some(folder.join("audit.log"));
            config.apiserver.audit.audit_policy_file.get_or_insert(policy);
        }
        Ok(config)
    }

    /// Runs it to its end. What asks us to stop asks it, and what it has started.
    async fn command(
        &self,
        cluster: &Cluster,
        kubeconfig: &Path,
        inherited: &Inherited,
        asked: &mut TerminationSignals,
    ) -> Result<ExitStatus, Failure> {
        let (program, arguments) = self.command.split_first().ok_or(Failure("there is no command".into()))?;
        let shown = program.to_string_lossy();
        let mut command = Command::new(program);
        command.args(arguments);
        beside::tell_of_cluster(&mut command, cluster, &self.up.name, kubeconfig);
        let started = RunningCommand::start(command, inherited);
        let mut started = started.map_err(|error| Failure::new(format!("cannot run {shown}"), error))?;
        let ended = started.ended(asked).await;
        started.end_rest().await;
        ended.map_err(|error| Failure::new(format!("cannot wait for {shown}"), error))
    }

    /// Everything that is known, while the cluster still runs. What goes wrong with that is said, and changes
    /// nothing of how the command has ended.
    async fn leave(&self, cluster: &Cluster, folder: &Path, asked: &mut TerminationSignals) {
        let mut left = LeftBehind::default();
        let clock = Clock::real();
        let gathered = clock.timeout(GATHER_WITHIN, left.gather(cluster));
        let gathered = asked.twice_or(gathered).await;
        if !matches!(gathered, Ok(Ok(()))) {
            complain(&Failure("what happened in the cluster could not all be asked for in time".into()));
        }
        let kept = cluster.save(folder.join(SNAPSHOT)).map_err(|error| Failure(error.to_string()));
        for failure in [left.write(folder), kept].into_iter().filter_map(Result::err) {
            complain(&failure);
        }
    }
}

/// How a run ended.
enum RunEnd {
    /// With its command.
    Command(ExitStatus),
    /// Before there was one.
    Asked(Signal),
}

impl RunEnd {
    fn code(self) -> ExitCode {
        match self {
            RunEnd::Command(status) => beside::exit_code(status),
            RunEnd::Asked(signal) => beside::code_of_signal(signal),
        }
    }
}

fn note(text: &str) {
    let _ = writeln!(std::io::stderr(), "kubarium: {text}");
}

/// Where it is left, if it could be.
fn tell(left: Result<PathBuf, Failure>) -> Option<PathBuf> {
    match left {
        Ok(folder) => {
            let shown = folder.display();
            let hint = format!("go on with it: kubarium up --snapshot {shown}");
            note(&format!("what happened in the cluster is in {shown}; {hint}"));
            Some(folder)
        }
        Err(failure) => {
            complain(&failure);
            None
        }
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
