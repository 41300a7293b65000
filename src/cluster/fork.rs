//! Forks: a second cluster with the same past and a future of its own.
//!
//! Store, watch caches and keys are shared as they are, so that a fork costs next to nothing however much
//! there is. First the caches are taken, then the store: so a cache is never ahead of the store below it, and
//! what happened in between it hears of from the store's log.

use futures::future::BoxFuture;

use super::bootstrap;
use super::components::AtWork;
use super::config::{Config, Listen};
use super::forked::ForkedCluster;
use super::inside::Inside;
use super::origin::Origin;
use super::start_error::StartError;
use apiserver::storage::WatchCaches;
use clock::Clock;

/// Why there is no fork.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ForkError {
    /// There is nothing any more that could be forked.
    #[error("the cluster is stopping: it cannot be forked any more; fork it before Cluster::stop")]
    Stopping,
    /// To go back so far is too far.
    #[error(
        "resourceVersion {asked} is too old: what was before {oldest} is compacted away; choose one from {oldest} \
         to {newest}"
    )]
    TooOld {
        /// What was asked for.
        asked: u64,
        /// The oldest that there is.
        oldest: u64,
        /// The newest.
        newest: u64,
    },
    /// Nothing has happened there yet.
    #[error("resourceVersion {asked} has not been reached: the newest is {newest}")]
    Future {
        /// What was asked for.
        asked: u64,
        /// The newest.
        newest: u64,
    },
    /// The parent was not set up then.
    #[error(
        "resourceVersion {asked} is from before the cluster had the namespaces of its system, without which none \
         runs; choose a later one, up to {newest}"
    )]
    NotSetUp {
        /// What was asked for.
        asked: u64,
        /// The newest.
        newest: u64,
    },
    /// The fork did not start.
    #[error(transparent)]
    Start(#[from] StartError),
}

/// A fork that is still to be started.
type Prepared = Result<(Config, Origin), ForkError>;

impl Inside {
    /// What a cluster is made from that begins as this one is, or was at a resourceVersion.
    pub(super) fn prepare_fork(&self, at: Option<u64>, listen: Option<Listen>) -> Prepared {
        let (origin, clock) = self.fork_origin(at)?;
        Ok((Config { clock, ..self.fork_config(listen) }, origin))
    }

    /// Such a cluster. Boxed, since a cluster can do to itself what makes another.
    pub(super) fn fork(
        &self,
        at: Option<u64>,
        listen: Option<Listen>,
    ) -> BoxFuture<'static, Result<Box<dyn ForkedCluster>, ForkError>> {
        self.start(self.prepare_fork(at, listen))
    }

    /// One in which nothing happens: to be read.
    pub(super) fn fork_at_rest(&self) -> BoxFuture<'static, Result<Box<dyn ForkedCluster>, ForkError>> {
        let prepared = self.prepare_fork(None, None);
        let at_rest = |origin| Origin { running: Some(AtWork::default()), ..origin };
        self.start(prepared.map(|(config, origin)| {
            (Config { looks_after_itself: false, ..config.flow(false) }, at_rest(origin))
        }))
    }

    fn start(&self, prepared: Prepared) -> BoxFuture<'static, Result<Box<dyn ForkedCluster>, ForkError>> {
        let starter = self.starter;
        Box::pin(async move {
            let (config, origin) = prepared?;
            Ok(starter(config, origin).await?)
        })
    }

    fn fork_origin(&self, at: Option<u64>) -> Result<(Origin, Clock), ForkError> {
        if self.is_stopping() {
            return Err(ForkError::Stopping);
        }
        // What the caches hold may be newer than where a rewound fork begins.
        let caches = at.map_or_else(|| self.storage.watch_caches(), |_| WatchCaches::default());
        let clock = self.clock.fork();
        let nodes = at.is_none().then(|| self.running.nodes.registered());
        // An empty store stands at 1.
        let begin = at.map(|at| at.max(1));
        let forked = self.kv.own("a fork").and_then(|kv| kv.fork(begin, clock.clone()));
        let kv = forked.map_err(|error| refusal(error, at))?;
        if let Some(asked) = at.filter(|_| !bootstrap::is_begun(&kv)) {
            return Err(ForkError::NotSetUp { asked, newest: self.kv.seen_revision() });
        }
        let kv = kv.into();
        let (keys, running) = (self.keys.clone(), Some(self.running.at_work()));
        Ok((Origin { kv, keys, caches, running, nodes }, clock))
    }

    /// In memory; nothing is written to the parent's files.
    fn fork_config(&self, listen: Option<Listen>) -> Config {
        let mut config = self.config.clone();
        config.data_dir = None;
        config.listen = listen;
        config.otlp_endpoint = None;
        config.step = false;
        // The ports are its parent's.
        config.publish.clear();
        config.etcd = Default::default();
        config.component_ports = Default::default();
        config.apiserver.etcd = Default::default();
        config.entropy = config.entropy.fork();
        config.listeners = config.listeners.fork();
        config.apiserver.audit.audit_log_path = None;
        config
    }
}

fn refusal(error: etcd::StoreError, at: Option<u64>) -> ForkError {
    let asked = at.unwrap_or_default();
    match error {
        etcd::StoreError::Closed => ForkError::Stopping,
        etcd::StoreError::Compacted { compact_revision: oldest, current: newest } => {
            ForkError::TooOld { asked, oldest, newest }
        }
        etcd::StoreError::FutureRevision { current: newest, .. } => ForkError::Future { asked, newest },
        other => ForkError::Start(other.into()),
    }
}
