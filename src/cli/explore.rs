//! `kubarium explore -- command`: runs a test under many seeds, each with a cluster of its own that does to
//! its operator what real clusters do, and finds the smallest schedule of faults that makes it fail.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, ExitStatus};
use std::time::Duration;

use clap::Args;
use faults::{Schedule, Shrinking, Span};
use rustix::process::Signal;
use tokio::process::Command;

use super::beside::{self, RunningCommand, TerminationSignals};
use super::kubeconfig;
use super::run_folder::RunFolder;
use super::terminal::fitted;
use super::{Failure, say, state};
use crate::cluster::{Cluster, Config, Listen};
use apimachinery::user::MASTERS;
use apimachinery::yaml;
use clock::Clock;
use entropy::Entropy;
use files::write_private;

/// Who acts by the kubeconfig that is made for the operator.
const OPERATOR: &str = "operator";

/// Run a test under many seeds, each with other faults, and find the smallest schedule that makes it fail
///
/// Each run has a new cluster, which the command finds by KUBECONFIG, and `kubarium` by KUBARIUM_NAME. The
/// operator under test is to use KUBARIUM_OPERATOR_KUBECONFIG, which is of the user "operator", whom the
/// faults are for. Without faults the test has to succeed; it fails when its exit code is not 0. Where no
/// fault was for anybody in any run, nothing was tried, and that is an error, too.
#[derive(Args)]
pub struct ExploreCommand {
    /// How many seeds.
    #[arg(long, default_value_t = 20, value_name = "NUMBER",
        value_parser = clap::value_parser!(u64).range(1..))]
    seeds: u64,
    /// The first of them, or with --seeds 1 the one to play again.
    #[arg(long, default_value_t = 0, value_name = "SEED")]
    first: u64,
    /// Plays this schedule alone, as a run that failed has printed it.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["seeds", "first", "user"])]
    schedule: Option<PathBuf>,
    /// Whom the faults are for; * is everybody, the test too.
    #[arg(long, default_value = OPERATOR, value_name = "USER")]
    user: Vec<String>,
    /// Simulated nodes; with none there is an apiserver alone.
    #[arg(long, default_value_t = 1)]
    nodes: u32,
    /// How long a run may take.
    #[arg(long, default_value = "5m", value_name = "DURATION")]
    timeout: Span,
    /// The command, and what it is given.
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// What one run came to.
struct ExploredRun {
    /// Why it failed; none when it did not.
    why: Option<String>,
    /// How many requests a fault was for.
    asked: usize,
}

/// What ends it before all has run.
enum ExploreEnd {
    Failed(Failure),
    Asked(Signal),
}

impl From<Failure> for ExploreEnd {
    fn from(failure: Failure) -> ExploreEnd {
        ExploreEnd::Failed(failure)
    }
}

impl From<Signal> for ExploreEnd {
    fn from(signal: Signal) -> ExploreEnd {
        ExploreEnd::Asked(signal)
    }
}

impl ExploreCommand {
    /// Runs all of it; asked to end, it says so by its exit code.
    pub fn run(self) -> Result<ExitCode, Failure> {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
        let runtime = runtime.map_err(|error| Failure::new("cannot start", error))?;
        match runtime.block_on(self.explore()) {
            Ok(()) => Ok(ExitCode::SUCCESS),
            Err(ExploreEnd::Failed(failure)) => Err(failure),
            Err(ExploreEnd::Asked(signal)) => Ok(beside::code_of_signal(signal)),
        }
    }

    async fn explore(&self) -> Result<(), ExploreEnd> {
        let mut asked_to_end = TerminationSignals::listen()?;
        if let Some(file) = &self.schedule {
            let text = std::fs::read_to_string(file)
                .map_err(|error| Failure::new(format!("cannot read {}", file.display()), error))?;
            let schedule: Schedule = yaml::from_str(&text)
                .map_err(|error| Failure::new(format!("{} is no schedule", file.display()), error))?;
            return match self.play(&schedule, &mut asked_to_end).await?.why {
                Some(why) => Err(Failure(why).into()),
                None => Ok(()),
            };
        }
        let mut asked = 0;
        for seed in self.first..self.first.saturating_add(self.seeds) {
            let schedule = Schedule::draw(seed, &self.user);
            let run = self.play(&schedule, &mut asked_to_end).await?;
            asked += run.asked;
            if let Some(why) = run.why {
                return Err(self.failed(schedule, why, &mut asked_to_end).await?.into());
            }
        }
        if asked == 0 {
            let why = format!(
                "no fault was for anybody in {} runs: {} has asked for nothing; have the operator use \
                 KUBARIUM_OPERATOR_KUBECONFIG, or give --user '*'",
                self.seeds,
                self.user.join(", ")
            );
            return Err(Failure(why).into());
        }
        say(format!("{} runs, and none has failed", self.seeds));
        Ok(())
    }

    /// The smallest that fails as well, and how to play it again.
    async fn failed(
        &self,
        schedule: Schedule,
        mut why: String,
        asked: &mut TerminationSignals,
    ) -> Result<Failure, ExploreEnd> {
        let found =
            format!("seed {} fails: {why}; looking for the smallest schedule that does", schedule.seed);
        say(fitted(&found));
        let mut shrinking = Shrinking::new(schedule);
        while let Some(candidate) = shrinking.candidate() {
            let run = self.play(&candidate, asked).await?;
            shrinking.tell(run.why.is_some());
            why = run.why.unwrap_or(why);
        }
        let smallest = shrinking.smallest();
        let tree = serde_json::to_value(&smallest).map_err(|error| Failure(error.to_string()))?;
        say("the smallest schedule that fails (play it again with --schedule FILE):");
        say(yaml::to_string(&tree).trim_end());
        Ok(Failure(format!("{why}, with seed {} and {} faults", smallest.seed, smallest.faults.len())))
    }

    /// Whatever goes wrong, its folder is gone in the end, and its cluster stopped.
    async fn play(
        &self,
        schedule: &Schedule,
        asked: &mut TerminationSignals,
    ) -> Result<ExploredRun, ExploreEnd> {
        let name = format!("explore-{}-{}", std::process::id(), schedule.seed);
        let folder = RunFolder::temporary(&name)?;
        let clock = Clock::real();
        schedule.order.into_iter().for_each(|order| clock.disorder(order));
        let config = Config::new().nodes(self.nodes).clock(clock);
        let mut config = config.entropy(Entropy::seeded(schedule.seed));
        config.listen = Some(Listen { address: ([127, 0, 0, 1], 0).into(), tls: true });
        if self.nodes == 0 {
            config = config.components(crate::cluster::Components::NONE);
        }
        let started = asked.or(Cluster::start(config)).await?;
        let cluster = started.map_err(|error| Failure(error.to_string()))?;
        let why = self.play_in(&cluster, folder.path(), &name, schedule, asked).await;
        let seen = self.user.iter().map(|user| cluster.requests_of(user.trim_matches('*')).len()).sum();
        cluster.stop().await;
        Ok(ExploredRun { why: why?, asked: seen })
    }

    async fn play_in(
        &self,
        cluster: &Cluster,
        folder: &Path,
        name: &str,
        schedule: &Schedule,
        asked: &mut TerminationSignals,
    ) -> Result<Option<String>, ExploreEnd> {
        let silent = || Failure("the cluster does not listen".into());
        let access = cluster.access().ok_or_else(silent)?;
        let operator = cluster.access_as(OPERATOR, MASTERS).map_err(|error| Failure(error.to_string()))?;
        let operator = operator.ok_or_else(silent)?;
        let paths = [folder.join("kubeconfig"), folder.join("operator-kubeconfig")];
        let documents = [&access, &operator].map(|access| kubeconfig::document(name, access));
        for (path, document) in paths.iter().zip(documents) {
            let failed = |error| Failure::new(format!("cannot write {}", path.display()), error);
            write_private(path, document.as_bytes()).map_err(failed)?;
        }
        for fault in &schedule.faults {
            cluster.faults().add(fault.clone()).map_err(|error| Failure(error.to_string()))?;
        }
        let claim = state::Claim::take(name)?;
        let record = state::Record::of_own(name, &access.server, self.nodes, &paths[0]);
        claim.publish(&state::Record { own_kubeconfig: true, ready: true, ..record })?;
        let (program, arguments) = self.command.split_first().ok_or(Failure("there is no command".into()))?;
        let mut command = Command::new(program);
        command.args(arguments).env("KUBARIUM_SEED", schedule.seed.to_string());
        beside::tell_of_cluster(&mut command, cluster, name, &paths[0]);
        command.env("KUBARIUM_OPERATOR_KUBECONFIG", &paths[1]).kill_on_drop(true);
        self.why_failed(command, &program.to_string_lossy(), asked).await
    }

    /// Runs the command; why it failed, if it did. Nothing that it has started goes on after it.
    async fn why_failed(
        &self,
        command: Command,
        shown: &str,
        asked: &mut TerminationSignals,
    ) -> Result<Option<String>, ExploreEnd> {
        let started = RunningCommand::start_apart(command);
        let mut started = started.map_err(|error| Failure::new(format!("cannot run {shown}"), error))?;
        let ended = asked.or(Clock::real().timeout(self.timeout.0, started.wait())).await;
        started.end_rest().await;
        let late = |_| Ok(None);
        let status: Option<ExitStatus> = ended?
            .map_or_else(late, |status| status.map(Some))
            .map_err(|error| Failure::new(format!("cannot wait for {shown}"), error))?;
        Ok(match status {
            None => Some(format!("{shown} was not done after {}", seconds(self.timeout.0))),
            Some(status) if status.success() => None,
            Some(status) => Some(format!("{shown} ended with {status}")),
        })
    }
}

fn seconds(duration: Duration) -> String {
    golang::duration::format(duration)
}
