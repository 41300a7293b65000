//! `kubarium scheduler`: kube-scheduler, whose apiserver is elsewhere.

use clap::Args;

use super::connecting::{ConnectedApi, ConnectionFlags};
use super::leading::{self, LeaderFlags, Leadership};
use super::serving::PageFlags;
use super::{block_on, failed};
use crate::cli::outcome::Failure;
use crate::cli::up::Stop;
use crate::cluster::apart::SpeaksAs;
use crate::cluster::apart::component::{Apart, ApartKeys};
use crate::cluster::apart::remote::RequestLimits;
use crate::cluster::{Components, Config};
use apiserver::options::FeatureOptions;
use scheduler::options::SchedulerOptions;

const NAME: &str = "kube-scheduler";
/// Upstream's.
const PORT: u16 = 10259;
const LIMITS: RequestLimits = RequestLimits { qps: 50.0, burst: 100 };
const LEADERSHIP: Leadership =
    Leadership { component: NAME, source: "default-scheduler", lost: "Leaderelection lost" };

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
    pub fn run(self) -> Result<(), Failure> {
        block_on(self.serve())
    }

    async fn serve(self) -> Result<(), Failure> {
        let mut stop = Stop::listen()?;
        let election = self.election.config(NAME)?;
        let mut config = Config::new().nodes(0).flow(false).components(Components::NONE.scheduler(true));
        config.scheduler = self.scheduler.clone();
        config.apiserver.features = self.features.clone();
        let ConnectedApi { api, authority } =
            self.connection.connect(NAME, SpeaksAs::Itself, LIMITS, &config.clock)?;
        let mut apart = tokio::select! {
            connected = Apart::connect(config, api, ApartKeys::default()) => connected.map_err(failed)?,
            () = stop.wait() => return Ok(()),
        };
        let _pages = self.pages.serve(&apart, PORT, &authority).await?;
        leading::lead(&mut apart, election, &LEADERSHIP, &mut stop).await
    }
}
