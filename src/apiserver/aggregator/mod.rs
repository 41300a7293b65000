//! kube-aggregator: groups that somebody else serves, under the same roof.
//!
//! In comes a request that the filters let through; if an APIService says that another server has its group
//! and version, that server is asked in the user's name. The APIServices of local groups are made here too.
//! It must not know how objects are stored, nor who authenticated the user. A cluster in which nobody asks
//! for APIServices or for groups that it does not serve pays nothing for it.

mod documents;
mod in_process;
mod local;
mod openapi;
pub mod priorities;
mod remote;
mod remotes;

use std::sync::Arc;

use sync::Mutex;
use tokio::sync::{Mutex as AsyncMutex, OnceCell};
use tokio::task::JoinSet;

use self::remotes::Remotes;
use crate::registry::Registry;
use crate::webhook::ServiceResolver;
use apimachinery::status::Status;
use apimachinery::user::UserInfo;
use apimachinery::wire::{ApiRequest, ApiResponse};
use apis::kind::Kind;
use apis::scheme::Scheme;
use clock::Clock;

pub use self::in_process::InProcessServers;
pub use self::openapi::{RemoteDocument, RemoteIndex};
pub use remote::{ProxyClientOptions, ProxyIdentity, Remote};

/// The aggregator of one server. What it started ends with it.
pub struct Aggregator {
    registry: Registry,
    scheme: Arc<Scheme>,
    remotes: Arc<Remotes>,
    /// Whether somebody has asked yet.
    started: OnceCell<()>,
    /// At which generation of the scheme the local APIServices were in step with it; 0 when they never were.
    synced: Arc<AsyncMutex<u64>>,
    tasks: Mutex<JoinSet<()>>,
}

impl Aggregator {
    /// Over the registry; asks nobody yet.
    pub fn new(
        registry: &Registry,
        scheme: &Arc<Scheme>,
        resolver: ServiceResolver,
        proxy: ProxyIdentity,
        in_process: InProcessServers,
        clock: &Clock,
    ) -> Aggregator {
        let remotes = Remotes::new(registry.clone(), resolver, proxy, in_process, clock.clone());
        Aggregator {
            registry: registry.clone(),
            scheme: scheme.clone(),
            remotes: Arc::new(remotes),
            started: OnceCell::new(),
            synced: Arc::default(),
            tasks: Mutex::default(),
        }
    }

    /// Called before a request for objects of `kind` is answered: APIServices are made when they are asked
    /// for.
    ///
    /// # Errors
    /// The store's.
    pub async fn before(&self, kind: &Kind) -> Result<(), Status> {
        if &*kind.plural != "apiservices" || &*kind.group_version.group != "apiregistration.k8s.io" {
            return Ok(());
        }
        self.start().await?;
        let is_first = sync(&self.registry, &self.scheme, &self.synced).await?;
        if is_first {
            self.spawn(follow_scheme(self.registry.clone(), self.scheme.clone(), self.synced.clone()));
        }
        Ok(())
    }

    /// The remote server of a group and version, if there is one.
    pub async fn remote(&self, group: &str, version: &str) -> Option<Arc<Remote>> {
        self.start().await.ok()?;
        if let Some(found) = self.remotes.find(group, version) {
            return Some(found);
        }
        // It may be so new that nobody has heard of it yet.
        self.remotes.load().await.ok()?;
        self.remotes.find(group, version)
    }

    /// All remote servers, by group and version.
    pub async fn all(&self) -> Vec<Arc<Remote>> {
        if self.start().await.is_err() || self.remotes.load().await.is_err() {
            return vec![];
        }
        self.remotes.all()
    }

    /// Passes a request on; 503 when the server is not there, which is looked at again before it is said.
    pub async fn proxy(&self, remote: &Arc<Remote>, request: ApiRequest, user: &UserInfo) -> ApiResponse {
        if !remote.is_available() && !self.remotes.check(remote).await {
            return remote::unavailable();
        }
        remote.proxy(request, user, |stream| self.spawn(stream)).await
    }

    /// What the remote servers publish at `/openapi/v2`, as far as they said; those that win over others
    /// first.
    pub async fn openapi_v2(&self) -> Vec<RemoteDocument> {
        let asked = self.those_to_ask().await.into_iter().map(|(remote, is_there)| async move {
            let clock = &self.remotes.clock;
            let (body, hash) =
                self::openapi::get(&remote.documents.v2, &remote, clock, is_there).await?.document()?;
            Some(RemoteDocument { remote, body, hash })
        });
        let mut found: Vec<RemoteDocument> =
            futures::future::join_all(asked).await.into_iter().flatten().collect();
        self::openapi::sort(&mut found);
        found
    }

    /// What each of the remote servers has in its index at `/openapi/v3`.
    pub async fn openapi_v3(&self) -> Vec<RemoteIndex> {
        let asked = self.those_to_ask().await.into_iter().map(|(remote, is_there)| async move {
            RemoteIndex::ask(remote, &self.remotes.clock, is_there).await
        });
        futures::future::join_all(asked).await.into_iter().flatten().collect()
    }

    /// All remote servers, and whether there is sense in asking each.
    async fn those_to_ask(&self) -> Vec<(Arc<Remote>, bool)> {
        let mut all = Vec::new();
        for remote in self.all().await {
            let is_there =
                remote.is_available() || !remote.has_been_asked() && self.remotes.check(&remote).await;
            all.push((remote, is_there));
        }
        all
    }

    /// Reads the remote APIServices once, and hears of them from then on.
    async fn start(&self) -> Result<(), Status> {
        let begin = || async {
            self.remotes.load().await?;
            self.spawn(self.remotes.clone().follow());
            Ok(())
        };
        self.started.get_or_try_init(begin).await.copied()
    }

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = self.tasks.lock();
        // Those that have ended make place.
        while tasks.try_join_next().is_some() {}
        tasks.spawn(self.remotes.clock.tracked(task));
    }
}

/// Says whether it was the first time.
async fn sync(registry: &Registry, scheme: &Scheme, synced: &AsyncMutex<u64>) -> Result<bool, Status> {
    let mut synced = synced.lock().await;
    let (generation, is_first) = (scheme.generation(), *synced == 0);
    if *synced != generation {
        local::sync(registry, scheme).await?;
        *synced = generation;
    }
    Ok(is_first)
}

/// Kinds come and go with custom resources, and who watches APIServices wants to see it.
async fn follow_scheme(registry: Registry, scheme: Arc<Scheme>, synced: Arc<AsyncMutex<u64>>) {
    let mut changes = scheme.changes();
    while changes.changed().await.is_ok() {
        // A store that fails is asked again with the next change or request.
        drop(sync(&registry, &scheme, &synced).await);
    }
}
