//! Flags of leader election, and how a component leads: it begins when the Lease is its own, and ends with
//! it.

use clap::Args;

use super::connecting::{ConnectedApi, ConnectionFlags};
use super::failed;
use super::serving::PageFlags;
use crate::cli::flags::election::ElectionFlags;
use crate::cli::outcome::{Failure, say};
use crate::cli::stop::Stop;
use crate::cluster::Config;
use crate::cluster::apart::SpeaksAs;
use crate::cluster::apart::component::{Apart, ApartKeys};
use crate::cluster::apart::remote::RequestLimits;
use crate::cluster::elections::{self, RELEASE_WITHIN};
use apiserver::endpoints::routes::debug::Verbosity;
use client_go::leader_election::{LeaderElectionConfig, LeaderElector};
use clock::Clock;
use entropy::Entropy;

/// Of several, who works, and by which Lease.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Leader election")]
pub struct LeaderFlags {
    /// Whether, and how long everything takes.
    #[command(flatten)]
    pub election: ElectionFlags,
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
    /// Sets how much is logged.
    pub(super) verbosity: Verbosity,
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
        let _pages = flags.pages.serve(&apart, (self.name, self.port), flags.verbosity, &authority).await?;
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
        apart.count(elector.metrics());
        apart.led_by(self.name, elector.hold());
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
        let released = Clock::real().timeout(RELEASE_WITHIN, elector.release()).await;
        if !matches!(released, Ok(Ok(()))) {
            tracing::info!("the Lease is not given up: it runs out");
        }
        Ok(())
    }
}

impl LeaderFlags {
    /// Which Lease; none when there is no election.
    pub(super) fn config(&self, component: &str) -> Result<Option<LeaderElectionConfig>, Failure> {
        let Some(times) = self.election.times()? else { return Ok(None) };
        let own = self.leader_elect_resource_name.as_deref();
        let config = elections::of_component(own.unwrap_or(component), times, &Entropy::from_system());
        Ok(Some(LeaderElectionConfig { namespace: self.leader_elect_resource_namespace.clone(), ..config }))
    }
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
    fn the_lease_is_the_components_unless_another_is_named() {
        let parsed = |words: &[&str]| Only::try_parse_from(["x"].iter().chain(words)).unwrap().flags;
        let config = parsed(&[]).config("kube-scheduler").unwrap().unwrap();
        assert_eq!((&*config.name, &*config.namespace), ("kube-scheduler", "kube-system"));
        let words = ["--leader-elect-resource-name=mine", "--leader-elect-resource-namespace=there"];
        let config = parsed(&words).config("kube-scheduler").unwrap().unwrap();
        assert_eq!((&*config.name, &*config.namespace), ("mine", "there"));
        assert!(parsed(&["--leader-elect=false"]).config("x").unwrap().is_none());
    }
}
