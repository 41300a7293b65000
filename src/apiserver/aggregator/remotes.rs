//! The remote APIServices of a server, kept as they stand, and whether each is there
//! (`controllers/status/remote.AvailableConditionController`).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::in_process::InProcessServers;
use super::metrics::UnavailableCounts;
use super::remote::{Availability, ProxyIdentity, Remote, write_availability};
use crate::registry::Registry;
use crate::webhook::ServiceResolver;
use apimachinery::object::Object;
use apimachinery::options::ListOptions;
use apimachinery::status::Status;
use apimachinery::time::rfc3339;
use apimachinery::watch::WatchEvent;
use apis::apiregistration::api_service::API_SERVICES;
use apis::kind::Kind;
use clock::Clock;
use sync::RwLock;

/// How often a server that is there is asked whether it still is (upstream's resync).
const CHECK_PERIOD: Duration = Duration::from_secs(30);
/// How often one that is not.
const RETRY_PERIOD: Duration = Duration::from_secs(5);

/// All of them. Bound: one entry an APIService.
pub(super) struct Remotes {
    registry: Registry,
    resolver: ServiceResolver,
    proxy: ProxyIdentity,
    in_process: InProcessServers,
    pub(super) clock: Clock,
    by_version: RwLock<BTreeMap<(String, String), Arc<Remote>>>,
    pub(super) unavailable: UnavailableCounts,
}

impl Remotes {
    pub(super) fn new(
        registry: Registry,
        resolver: ServiceResolver,
        proxy: ProxyIdentity,
        in_process: InProcessServers,
        clock: Clock,
    ) -> Remotes {
        let (by_version, unavailable) = Default::default();
        Remotes { registry, resolver, proxy, in_process, clock, by_version, unavailable }
    }

    pub(super) fn find(&self, group: &str, version: &str) -> Option<Arc<Remote>> {
        self.read().get(&(group.to_owned(), version.to_owned())).cloned()
    }

    pub(super) fn all(&self) -> Vec<Arc<Remote>> {
        self.read().values().cloned().collect()
    }

    /// Reads what is stored.
    pub(super) async fn load(&self) -> Result<(), Status> {
        let kind: Arc<Kind> = Arc::clone(&API_SERVICES);
        let list = self.registry.list(&kind, "", &ListOptions::default()).await?;
        for object in list.items.iter() {
            self.put(object);
        }
        Ok(())
    }

    /// Keeps up with the APIServices, and asks their servers from time to time.
    pub(super) async fn follow(self: Arc<Remotes>) {
        let kind: Arc<Kind> = Arc::clone(&API_SERVICES);
        loop {
            let options = ListOptions { resource_version: Some(String::new()), ..ListOptions::default() };
            let Ok(mut events) = self.registry.watch(&kind, "", &options).await else {
                self.clock.sleep(RETRY_PERIOD).await;
                continue;
            };
            loop {
                let period = self.period();
                tokio::select! {
                    biased;
                    event = events.recv() => match event {
                        Some(event) if !matches!(event, WatchEvent::Error(_)) => self.apply(event).await,
                        _ => break,
                    },
                    () = self.clock.sleep(period.unwrap_or_default()), if period.is_some() => {
                        self.check_all().await;
                    }
                }
            }
        }
    }

    /// Asks whether a server is there, and writes it down; says whether it is.
    pub(super) async fn check(&self, remote: &Arc<Remote>) -> bool {
        self.ask(remote).await.is_ok()
    }

    /// As [`Remotes::check`]; says what is wrong with one that is not there.
    pub(super) async fn ask(&self, remote: &Arc<Remote>) -> Result<(), Availability> {
        let found = remote.check(&self.registry, &self.resolver, &self.clock).await;
        let now = rfc3339(self.clock.now());
        if write_availability(&self.registry, &remote.name, &found, &now).await {
            self.unavailable.count(&remote.name, found.reason);
        }
        if remote.is_available() { Ok(()) } else { Err(found) }
    }

    async fn check_all(&self) {
        for remote in self.all() {
            self.check(&remote).await;
        }
    }

    /// None where nobody has to be asked: what is served in this process is there as long as it is
    /// registered. Nothing wakes then, so that a stepped clock has nowhere to stop.
    fn period(&self) -> Option<Duration> {
        let all = self.read();
        if !all.values().all(|remote| remote.is_available()) {
            return Some(RETRY_PERIOD);
        }
        all.values().any(|remote| !remote.is_in_process()).then_some(CHECK_PERIOD)
    }

    async fn apply(&self, event: WatchEvent) {
        match event {
            WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                if let Some(remote) = self.put(&object).filter(|remote| !remote.has_been_asked()) {
                    self.check(&remote).await;
                }
            }
            WatchEvent::Deleted(object) => self.take(&object.metadata.name),
            _ => {}
        }
    }

    /// The remote of an APIService, if it has one. Its own conditions are no change of it.
    fn put(&self, object: &Object) -> Option<Arc<Remote>> {
        let Some(mut new) = Remote::of(object, &self.resolver, &self.proxy, &self.in_process) else {
            self.take(&object.metadata.name);
            return None;
        };
        let key = (new.group.clone(), new.version.clone());
        let mut all = self.by_version.write();
        if let Some(known) = all.get(&key).filter(|known| known.spec == new.spec) {
            return Some(known.clone());
        }
        if let Some(known) = all.get(&key) {
            known.documents.forget_failures();
            new.documents = known.documents.clone();
        }
        let new = Arc::new(new);
        all.insert(key, new.clone());
        Some(new)
    }

    fn take(&self, name: &str) {
        let mut all = self.by_version.write();
        all.retain(|_, remote| remote.name != name);
    }

    fn read(&self) -> sync::RwLockReadGuard<'_, BTreeMap<(String, String), Arc<Remote>>> {
        self.by_version.read()
    }
}
