//! `kubarium down`: stops clusters and waits until they are gone; of one that was killed it takes away what
//! is left.

use std::time::Duration;

use clap::Args;
use rustix::process::{Pid, Signal, kill_process};

use super::kubeconfig::current;
use super::state::{Clusters, Record};
use super::{Failure, choice, fork_contexts, kubeconfig, say, state};
use clock::Clock;

/// How long a cluster may take to stop before we say so.
const PATIENCE: Duration = Duration::from_secs(15);
/// Where a name may also come from.
const NAME_VARIABLE: &str = "KUBARIUM_NAME";

/// Stop clusters: by name, or the only one that runs, or that of kubectl's current context.
#[derive(Args)]
pub struct Down {
    /// The clusters' names.
    #[arg(value_name = "NAME")]
    pub names: Vec<String>,
    /// The cluster's name.
    #[arg(long, env = NAME_VARIABLE, value_name = "NAME")]
    pub name: Option<String>,
    /// Stop all clusters that run, and clean up after all that were killed.
    #[arg(long, conflicts_with = "names")]
    pub all: bool,
}

impl Down {
    /// Stops them; of several that fail, all are tried, and the first failure is told.
    pub fn run(self) -> Result<(), Failure> {
        let clusters = state::clusters()?;
        let outcomes: Vec<Result<(), Failure>> = match self.names()? {
            _ if self.all => all(&clusters),
            names if names.is_empty() => vec![stop_the_only_one(clusters)],
            names => names.iter().map(|name| stop_named(&clusters, name)).collect(),
        };
        outcomes.into_iter().collect()
    }

    /// The names that were given; a name in the environment counts only where there is no other.
    fn names(&self) -> Result<Vec<String>, Failure> {
        let Some(name) = &self.name else { return Ok(self.names.clone()) };
        let is_from_environment = std::env::var(NAME_VARIABLE).is_ok_and(|variable| variable == *name);
        if self.all && !is_from_environment {
            return Err(Failure(format!("say either --all or --name {name}")));
        }
        if self.names.is_empty() {
            return Ok(vec![name.clone()]);
        }
        if is_from_environment {
            return Ok(self.names.clone());
        }
        let given = self.names.join(" ");
        Err(Failure(format!("give names once: kubarium down {given} {name}")))
    }
}

fn all(clusters: &Clusters) -> Vec<Result<(), Failure>> {
    if clusters.running.is_empty() && clusters.killed.is_empty() {
        say("No cluster is running.");
    }
    let stopped = clusters.running.iter().map(stop);
    stopped.chain(clusters.killed.iter().map(clean_up)).collect()
}

fn stop_the_only_one(Clusters { running, mut killed }: Clusters) -> Result<(), Failure> {
    if running.is_empty() && killed.len() == 1 {
        return clean_up(&killed.remove(0));
    }
    stop(&choice::only_or_current(running, current::read)?)
}

fn stop_named(clusters: &Clusters, name: &str) -> Result<(), Failure> {
    state::check_name(name)?;
    let named = |record: &&Record| record.name == name;
    if let Some(record) = clusters.running.iter().find(named) {
        return stop(record);
    }
    if let Some(record) = clusters.killed.iter().find(named) {
        return clean_up(record);
    }
    if let Some(parent) = choice::parent_of_fork(&clusters.running, name) {
        let parent = parent.name;
        let advice = format!("end it alone with: kubarium fork {name} --delete --name {parent}");
        return Err(Failure(format!("{name:?} is a fork of {parent:?}, and ends with it; {advice}")));
    }
    // It was killed before it could say where its context is: where contexts usually are.
    if !state::is_running(&state::folder()?, name) && kubeconfig::clean(&current::users_file()?, name, false)?
    {
        say_cleaned(name);
        return Ok(());
    }
    choice::running(Some(name)).map(drop)
}

fn stop(record: &Record) -> Result<(), Failure> {
    let pid = Pid::from_raw(record.pid).ok_or(Failure("the cluster's record has no process".into()))?;
    kill_process(pid, Signal::TERM)
        .map_err(|error| Failure::new(format!("cannot stop process {}", record.pid), error))?;
    let patience = PATIENCE + record.shutdown_delay;
    super::block_on(wait_until_gone(&record.name, record.pid, patience))?;
    // It was being killed while we asked it to stop.
    if let Some(left) = state::record_of(&record.name)?.filter(|left| left.pid == record.pid) {
        return clean_up(&left);
    }
    say(format!("Cluster {:?} is gone.", record.name));
    Ok(())
}

/// With the right to the name, so that nobody starts it meanwhile.
fn clean_up(record: &Record) -> Result<(), Failure> {
    let Record { name, kubeconfig, own_kubeconfig, .. } = record;
    let _claim = state::Claim::take(name)?;
    let of_forks = fork_contexts::clean_all(name);
    kubeconfig::clean(kubeconfig, name, *own_kubeconfig)?;
    of_forks?;
    say_cleaned(name);
    Ok(())
}

fn say_cleaned(name: &str) {
    say(format!("Cluster {name:?} was not running any more; what it left is cleaned up."));
}

async fn wait_until_gone(name: &str, pid: i32, patience: Duration) -> Result<(), Failure> {
    let folder = state::folder()?;
    let clock = Clock::real();
    while state::is_running(&folder, name) {
        if clock.elapsed() > patience {
            return Err(Failure(format!("process {pid} does not stop; kill -9 {pid} ends it")));
        }
        clock.sleep(Duration::from_millis(10)).await;
    }
    Ok(())
}
