//! Flags of leader election, and how a component leads: it begins when the Lease is its own, and ends with
//! it.

use std::time::Duration;

use clap::{ArgAction, Args};

use super::connecting::{ConnectedApi, ConnectionFlags};
use super::failed;
use super::serving::PageFlags;
use crate::cli::outcome::{Failure, say};
use crate::cli::up::Stop;
use crate::cluster::Config;
use crate::cluster::apart::SpeaksAs;
use crate::cluster::apart::component::{Apart, ApartKeys};
use crate::cluster::apart::remote::RequestLimits;
use apimachinery::duration::parse_period;
use client_go::leader_election::{LeaderElectionConfig, LeaderElector};
use clock::Clock;
use entropy::Entropy;

/// How long a Lease may take to be given up at the end; then it runs out.
const PATIENCE: Duration = Duration::from_millis(700);

/// Of several, who works (`config/options.BindLeaderElectionFlags`).
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Leader election")]
pub struct LeaderFlags {
    /// Whether it works only while it holds the Lease, so that there may be several.
    #[arg(long, default_value_t = true, action = ArgAction::Set, num_args = 0..=1,
        require_equals = true, default_missing_value = "true")]
    pub leader_elect: bool,
    /// After so long without a word of the leader another takes its place.
    #[arg(long, default_value = "15s", value_parser = parse_period)]
    pub leader_elect_lease_duration: Duration,
    /// A leader that cannot renew the Lease for so long ends.
    #[arg(long, default_value = "10s", value_parser = parse_period)]
    pub leader_elect_renew_deadline: Duration,
    /// The pause between two attempts.
    #[arg(long, default_value = "2s", value_parser = parse_period)]
    pub leader_elect_retry_period: Duration,
    /// The Lease's name; without, the component's.
    #[arg(long, value_name = "NAME")]
    pub leader_elect_resource_name: Option<String>,
    /// The Lease's namespace.
    #[arg(long, value_name = "NAMESPACE", default_value = "kube-system")]
    pub leader_elect_resource_namespace: String,
}

/// A component of which one works.
pub(super) struct LedComponent {
    /// As `kube-scheduler`.
    pub(super) name: &'static str,
    /// Whom its Events are from.
    pub(super) source: &'static str,
    /// Upstream's last words, when it leads no more.
    pub(super) lost: &'static str,
    /// Where upstream's has its pages.
    pub(super) port: u16,
    /// How often upstream's asks.
    pub(super) limits: RequestLimits,
}

/// What all of these are told.
pub(super) struct LedFlags<'a> {
    pub(super) connection: &'a ConnectionFlags,
    pub(super) election: &'a LeaderFlags,
    pub(super) pages: &'a PageFlags,
}

impl LedComponent {
    /// Runs what the config says until it is told to end, or the Lease is lost; `keys` are made of the
    /// apiserver's authority.
    pub(super) async fn run(
        &self,
        flags: LedFlags<'_>,
        config: Config,
        speaks_as: SpeaksAs,
        keys: impl FnOnce(&str) -> Result<ApartKeys, Failure>,
    ) -> Result<(), Failure> {
        let mut stop = Stop::listen()?;
        let election = flags.election.config(self.name)?;
        let ConnectedApi { api, authority } =
            flags.connection.connect(self.name, speaks_as, self.limits, &config.clock)?;
        let keys = keys(&authority)?;
        let mut apart = tokio::select! {
            connected = Apart::connect(config, api, keys) => connected.map_err(failed)?,
            () = stop.wait() => return Ok(()),
        };
        let _pages = flags.pages.serve(&apart, self.port, &authority).await?;
        self.lead(&mut apart, election, &mut stop).await
    }

    /// Works while the Lease is ours, until it is told to stop.
    async fn lead(
        &self,
        apart: &mut Apart,
        election: Option<LeaderElectionConfig>,
        stop: &mut Stop,
    ) -> Result<(), Failure> {
        let Some(config) = election else {
            apart.begin().await;
            stop.wait().await;
            apart.stop();
            return Ok(());
        };
        let context = apart.context(self.name, self.source);
        let described = format!("{}/{} as {}", config.namespace, config.name, config.identity);
        let mut elector = LeaderElector::new(config, &context).map_err(failed)?;
        say(format!("Waiting for the Lease {described}."));
        tokio::select! {
            () = elector.acquire() => {}
            () = stop.wait() => return Ok(()),
        }
        say("Leading.");
        let told = async {
            apart.begin().await;
            stop.wait().await;
        };
        let is_lost = tokio::select! {
            () = elector.renew() => true,
            () = told => false,
        };
        apart.stop();
        if is_lost {
            return Err(Failure(self.lost.into()));
        }
        let released = Clock::real().timeout(PATIENCE, elector.release()).await;
        if !matches!(released, Ok(Ok(()))) {
            tracing::info!("the Lease is not given up: it runs out");
        }
        Ok(())
    }
}

impl LeaderFlags {
    /// Which Lease; none when there is no election.
    pub(super) fn config(&self, component: &str) -> Result<Option<LeaderElectionConfig>, Failure> {
        if !self.leader_elect {
            return Ok(None);
        }
        let own = self.leader_elect_resource_name.clone();
        let config = LeaderElectionConfig {
            name: own.unwrap_or_else(|| component.to_owned()),
            namespace: self.leader_elect_resource_namespace.clone(),
            identity: identity(&Entropy::from_system()),
            lease_duration: self.leader_elect_lease_duration,
            renew_deadline: self.leader_elect_renew_deadline,
            retry_period: self.leader_elect_retry_period,
        };
        config.check().map_err(|why| Failure(format!("--leader-elect-...: {why}")))?;
        Ok(Some(config))
    }
}

/// The machine's name and something that no other process has, as upstream's.
fn identity(entropy: &Entropy) -> String {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    format!("{host}_{}", entropy.uid())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Only {
        #[command(flatten)]
        flags: LeaderFlags,
    }

    #[test]
    fn the_defaults_are_upstreams_and_times_that_let_two_lead_are_refused() {
        let parsed = |words: &[&str]| Only::try_parse_from(["x"].iter().chain(words)).unwrap().flags;
        let config = parsed(&[]).config("kube-scheduler").unwrap().unwrap();
        assert_eq!((&*config.name, &*config.namespace), ("kube-scheduler", "kube-system"));
        let times = [config.lease_duration, config.renew_deadline, config.retry_period];
        assert_eq!(times.map(|time| time.as_secs()), [15, 10, 2]);
        assert_ne!(identity(&Entropy::seeded(1)), identity(&Entropy::seeded(2)));
        assert!(parsed(&["--leader-elect=false"]).config("x").unwrap().is_none());
        let Failure(why) = parsed(&["--leader-elect-lease-duration=5s"]).config("x").unwrap_err();
        assert!(why.ends_with("leaseDuration must be greater than renewDeadline"), "{why}");
    }
}
