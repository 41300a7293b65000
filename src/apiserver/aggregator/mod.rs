//! kube-aggregator: groups that somebody else serves, under the same roof.
//!
//! In comes a request that the filters let through; if an APIService says that another server has its group
//! and version, that server is asked in the user's name. The APIServices of local groups are made here too.
//! It must not know how objects are stored, nor who authenticated the user. A cluster in which nobody asks
//! for APIServices or for groups that it does not serve pays nothing for it.

mod documents;
mod in_process;
mod local;
mod metrics;
mod openapi;
mod passing_on;
pub mod priorities;
mod remote;
mod remotes;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;
use sync::Mutex;
use tokio::sync::{Mutex as AsyncMutex, OnceCell};
use tokio::task::JoinSet;

use self::passing_on::{PassingOn, Reach};
use self::remotes::Remotes;
use crate::registry::Registry;
use crate::request::RequestContext;
use crate::webhook::ServiceResolver;
use apimachinery::status::Status;
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
    passing_on: PassingOn,
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
            passing_on: PassingOn::default(),
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
    pub async fn proxy(
        &self,
        remote: &Arc<Remote>,
        mut request: ApiRequest,
        ctx: &RequestContext,
    ) -> ApiResponse {
        let clock = &self.remotes.clock;
        let passage = self.passing_on.begin(ctx, remote.introduce(), &mut request, clock);
        let is_there = if remote.is_available() { Ok(()) } else { self.remotes.ask(remote).await };
        let (mut response, reach) = match is_there {
            Ok(()) => remote.proxy(request, &ctx.user, |stream| self.spawn(stream)).await,
            Err(found) => {
                (remote::unavailable(), Reach::none(format!("{}: {}", found.reason, found.message)))
            }
        };
        if let Some(passage) = passage {
            passage.arrived(reach, clock, &mut response);
        }
        response
    }

    /// As `bars.agg.example.com`, of a resource that another server said it has and that somebody names as
    /// for kubectl: `bars`, `bar`, `Bar`, a short name, or with its group.
    pub async fn resource_named(&self, name: &str) -> Option<String> {
        let (wanted, wanted_group) = name.split_once('.').map_or((name, None), |(a, b)| (a, Some(b)));
        self.all().await.iter().find_map(|remote| {
            let group = Some(&*remote.group).filter(|group| wanted_group.is_none_or(|own| own == *group))?;
            let found = remote.plural_of(wanted)?;
            Some(format!("{found}.{group}"))
        })
    }

    /// A SubjectAccessReview was answered here: another server may have asked, about a request that it got
    /// from here.
    pub fn note_review(&self, ctx: &RequestContext, review: &Value) {
        if ctx.info.resource == "subjectaccessreviews" {
            self.passing_on.reviewed(&ctx.user.name, review);
        }
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

    /// Writes what is counted of APIServices: those of groups that are served here are always there, others
    /// are told of as soon as they were asked.
    pub fn render(&self, out: &mut String) {
        let mut unavailable =
            local::names(&self.scheme).map(|name| (name, false)).collect::<BTreeMap<_, _>>();
        let asked = self.remotes.all().into_iter().filter(|remote| remote.has_been_asked());
        unavailable.extend(asked.map(|remote| (remote.name.clone(), !remote.is_available())));
        self.remotes.unavailable.render(out, unavailable);
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
