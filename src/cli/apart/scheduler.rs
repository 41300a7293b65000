//! `kubarium scheduler`: kube-scheduler, whose apiserver is elsewhere.

use clap::Args;

use super::block_on;
use super::connecting::ConnectionFlags;
use super::leading::{LeaderFlags, LedComponent, LedFlags};
use super::serving::PageFlags;
use crate::cli::outcome::Failure;
use crate::cluster::apart::SpeaksAs;
use crate::cluster::apart::component::ApartKeys;
use crate::cluster::apart::remote::RequestLimits;
use crate::cluster::{Components, Config};
use apiserver::endpoints::routes::debug::Verbosity;
use apiserver::options::FeatureOptions;
use scheduler::options::SchedulerOptions;

const SCHEDULER: LedComponent = LedComponent {
    name: "kube-scheduler",
    source: "default-scheduler",
    lost: "Leaderelection lost",
    port: 10259,
    limits: RequestLimits { qps: 50.0, burst: 100 },
};

/// Run the scheduler of a cluster whose apiserver is elsewhere.
#[derive(Args)]
pub struct SchedulerCommand {
    /// Which apiserver.
    #[command(flatten)]
    pub connection: ConnectionFlags,
    /// Who leads.
    #[command(flatten)]
    pub election: LeaderFlags,
    /// Its pages.
    #[command(flatten)]
    pub pages: PageFlags,
    /// Which features there are.
    #[command(flatten)]
    pub features: FeatureOptions,
    /// What the scheduler is told.
    #[command(flatten)]
    pub scheduler: SchedulerOptions,
}

impl SchedulerCommand {
    /// Runs until it is told to end, or the Lease is lost.
    pub fn run(self, verbosity: Verbosity) -> Result<(), Failure> {
        let mut config = Config::new().nodes(0).flow(false).components(Components::NONE.scheduler(true));
        config.scheduler = self.scheduler;
        config.apiserver.features = self.features;
        let flags = LedFlags {
            connection: &self.connection,
            election: &self.election,
            pages: &self.pages,
            verbosity,
        };
        block_on(SCHEDULER.run(flags, config, SpeaksAs::Itself, |_| Ok(ApartKeys::default())))
    }
}
