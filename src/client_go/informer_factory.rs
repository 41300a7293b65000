//! `SharedInformerFactory`: at most one informer per kind for a whole component (client-go's `informers`
//! package).

use std::collections::BTreeMap;
use std::sync::Arc;

use super::client::Client;
use super::indexer::Indexer;
use super::shared_informer::{InformerOwner, SharedInformer};
use super::tasks::Tasks;
use super::watch::ListWatch;
use apimachinery::fields::FieldSelector;
use apis::kind::Kind;
use clock::Clock;
use entropy::Entropy;
use sync::{Mutex, MutexGuard};

/// The informers of a component. Ask for all that are needed, add handlers and indices, then start, then wait
/// for the caches; asking and starting again later is allowed, and starts what is new.
pub struct SharedInformerFactory {
    client: Client,
    owner: InformerOwner,
    informers: Mutex<BTreeMap<InformerKey, InformerEntry>>,
}

/// API version, plural, namespace, field selector.
type InformerKey = (String, Arc<str>, String, String);

struct InformerEntry {
    kind: Arc<Kind>,
    fields: FieldSelector,
    informer: Arc<SharedInformer>,
    started: bool,
}

impl SharedInformerFactory {
    /// A factory whose informers ask through `client`; `component` as flow and logs call it.
    pub fn new(client: Client, component: &str, clock: Clock, entropy: Entropy) -> SharedInformerFactory {
        let flow = client.flow().clone();
        let owner = InformerOwner { component: flow.name(component), clock, entropy, flow };
        SharedInformerFactory { client, owner, informers: Mutex::default() }
    }

    /// The informer of all objects of a kind.
    pub fn informer(&self, kind: &Arc<Kind>) -> Arc<SharedInformer> {
        self.informer_for(kind, "", FieldSelector::default())
    }

    /// The informer of some objects of a kind: in one namespace (empty: all), with a field selector. Each
    /// combination has its own informer.
    pub fn informer_for(
        &self,
        kind: &Arc<Kind>,
        namespace: &str,
        fields: FieldSelector,
    ) -> Arc<SharedInformer> {
        let key = (kind.api_version(), kind.plural.clone(), namespace.to_owned(), fields.to_string());
        let new = || {
            let informer = Arc::new(SharedInformer::new(self.owner.clone(), kind.resource()));
            InformerEntry { kind: kind.clone(), fields, informer, started: false }
        };
        self.informers().entry(key).or_insert_with(new).informer.clone()
    }

    /// Starts every informer that is not running, as tasks of `tasks`.
    pub fn start(&self, tasks: &Tasks) {
        for ((_, plural, namespace, _), entry) in self.informers().iter_mut() {
            if std::mem::replace(&mut entry.started, true) {
                continue;
            }
            let (client, kind, namespace) = (self.client.clone(), entry.kind.clone(), namespace.clone());
            let (fields, informer) = (entry.fields.clone(), entry.informer.clone());
            tasks.supervise(&format!("{}: informer {plural}", self.owner.component), move || {
                let source = ListWatch::new(client.clone(), kind.clone(), &namespace, fields.clone());
                let informer = informer.clone();
                async move { informer.run(source).await }
            });
        }
    }

    /// Waits until every informer that was started has its first list (`WaitForCacheSync`).
    pub async fn wait_for_cache_sync(&self) {
        for informer in self.started() {
            informer.wait_for_sync().await;
        }
    }

    /// The informers that were started until now.
    pub fn started(&self) -> Vec<Arc<SharedInformer>> {
        let informers = self.informers();
        informers.values().filter(|entry| entry.started).map(|entry| entry.informer.clone()).collect()
    }

    /// The cache of each informer, and of what kind it is.
    pub fn caches(&self) -> Vec<(Arc<Kind>, Arc<Indexer>)> {
        let cache = |entry: &InformerEntry| (entry.kind.clone(), entry.informer.indexer().clone());
        self.informers().values().map(cache).collect()
    }

    /// Forgets the informers and their handlers (`Shutdown`), when the tasks that they ran in were stopped.
    /// Caches that somebody still holds can be read.
    pub fn shutdown(&self) {
        let informers = std::mem::take(&mut *self.informers());
        informers.values().for_each(|entry| entry.informer.forget_handlers());
    }

    fn informers(&self) -> MutexGuard<'_, BTreeMap<InformerKey, InformerEntry>> {
        self.informers.lock()
    }
}
