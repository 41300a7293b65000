//! `Storage`: what the registry reads from and writes to (`storage.Interface`).

use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::FixedState;

use serde_json::Value;
use sync::Mutex;
use tokio::sync::mpsc;

use super::byte_store::ByteStore;
use super::cacher::Cacher;
use super::metrics::StorageMetrics;
use super::request::{At, ListRequest, WatchRequest, parse};
use super::store::{Store, Written};
use super::watch_cache::WatchCache;
use super::watcher;
use apimachinery::list::List;
use apimachinery::object::Object;
use apimachinery::options::ListOptions;
use apimachinery::status::Status;
use apimachinery::watch::WatchEvent;
use apis::kind::Kind;
use clock::Clock;
use entropy::Entropy;
use etcd::Revision;

/// The objects of one cluster. Cloning shares it. Kinds are storage kinds; keys are `namespace/name`, or
/// `name` for cluster-scoped ones.
#[derive(Clone)]
pub struct Storage(Arc<StorageInner>);

struct StorageInner {
    store: Store,
    entropy: Entropy,
    /// One for each kind that was ever read; as many as there are kinds.
    cachers: Mutex<Cachers>,
    /// What caches begin with.
    inherited: Mutex<WatchCaches>,
}

/// By where the kind is stored. Its order is the same each time.
type Cachers = HashMap<Arc<str>, Arc<Cacher>, FixedState>;

/// What the watch caches of a storage hold, each as of its own revision. Cloning shares it.
#[derive(Clone, Default)]
pub struct WatchCaches(HashMap<Arc<str>, (Arc<Kind>, WatchCache)>);

/// Objects of a watch cache, in any order.
pub type CachedObjects<'a> = dyn Iterator<Item = &'a Arc<Object>> + 'a;

impl Storage {
    /// Over a store. Watch caches are made when a kind is first read, so that a start does not wait for them.
    pub fn new(kv: impl Into<ByteStore>, clock: Clock, entropy: Entropy) -> Storage {
        Storage::over(Store::new(kv, clock), entropy)
    }

    /// Over a store that is made already, as one that records what it does.
    pub fn over(store: Store, entropy: Entropy) -> Storage {
        Storage::inheriting(WatchCaches::default(), store, entropy)
    }

    /// Over a store that begins with the past of another, whose watch caches held this before it was taken.
    pub fn inheriting(caches: WatchCaches, store: Store, entropy: Entropy) -> Storage {
        let inherited = Mutex::new(caches);
        Storage(Arc::new(StorageInner { store, entropy, cachers: Mutex::default(), inherited }))
    }

    /// Ends the watches that were cut: nobody hears of what happens from now on.
    pub fn end_cut_watches(&self) {
        self.lock().values().for_each(|cacher| cacher.end_cut_watches());
        self.0.store.end_cut_watches();
    }

    /// What the watch caches hold.
    pub fn watch_caches(&self) -> WatchCaches {
        let cachers = self.lock();
        let held = cachers.iter().filter_map(|(prefix, cacher)| {
            Some((prefix.clone(), (cacher.kind().clone(), cacher.contents()?)))
        });
        WatchCaches(held.collect())
    }

    /// In memory, for the tests of the rooms above.
    #[cfg(test)]
    pub fn in_memory(clock: Clock, entropy: Entropy) -> Storage {
        let kv = etcd::Kv::open(etcd::Options::default(), clock.clone()).expect("a directory can be made");
        Storage::new(kv, clock, entropy)
    }

    /// The newest revision that was heard of.
    pub fn revision(&self) -> Revision {
        self.0.store.kv().seen_revision()
    }

    /// An object. `resource_version`: unset is the newest state, `0` any, else at least this.
    ///
    /// # Errors
    /// 400 when it is no revision; 504 when it has not been reached.
    pub async fn get(
        &self,
        kind: &Arc<Kind>,
        key: &str,
        resource_version: Option<&str>,
    ) -> Result<Option<Arc<Object>>, Status> {
        let at = match resource_version.filter(|text| !text.is_empty()) {
            None => At::Newest,
            Some(text) => match parse(text)? {
                0 => At::Any,
                revision => At::NotOlderThan(revision),
            },
        };
        match (self.cacher(kind), at) {
            (Some(cacher), at) => cacher.get(key, at).await,
            (None, At::NotOlderThan(revision)) => self.0.store.get_not_older(kind, key, revision).await,
            (None, _) => self.0.store.get(kind, key).await,
        }
    }

    /// Objects of a namespace, or of all when it is empty.
    ///
    /// # Errors
    /// 400, 422 for the options; 410 when the revision is gone; 504 when it has not been reached.
    pub async fn list(
        &self,
        kind: &Arc<Kind>,
        namespace: &str,
        options: &ListOptions,
    ) -> Result<List, Status> {
        let request = ListRequest::new(kind, namespace, options)?;
        match self.cacher(kind) {
            Some(cacher) => cacher.list(&request).await,
            None => self.0.store.list(kind, &request).await,
        }
    }

    /// How many objects of a kind there are.
    ///
    /// # Errors
    /// 500 when the store fails.
    pub async fn count(&self, kind: &Kind) -> Result<usize, Status> {
        self.0.store.count(kind).await
    }

    /// What happens to the objects of a namespace, or of all when it is empty.
    ///
    /// # Errors
    /// As [`Storage::list`]; a revision that is gone is an error event.
    pub async fn watch(
        &self,
        kind: &Arc<Kind>,
        namespace: &str,
        options: &ListOptions,
    ) -> Result<mpsc::Receiver<WatchEvent>, Status> {
        let request = WatchRequest::new(kind, namespace, options)?;
        match self.cacher(kind) {
            Some(cacher) => cacher.watch(request).await,
            None => watcher::watch(&self.0.store, kind, request, None).await,
        }
    }

    /// Writes an object if it is at the revision `expected` (0: it does not exist). `cause` is the step of
    /// the causal record that led here.
    ///
    /// # Errors
    /// 500 when the store fails.
    pub async fn put(
        &self,
        kind: &Kind,
        key: &str,
        expected: Revision,
        new: &Value,
        cause: Option<u64>,
    ) -> Result<Written, Status> {
        let written = self.0.store.put(kind, key, expected, new, cause).await?;
        self.acknowledge(kind, &written);
        Ok(written)
    }

    /// Removes an object if it is at the revision `expected`; `cause` as in [`Storage::put`].
    ///
    /// # Errors
    /// 500 when the store fails.
    pub async fn delete(
        &self,
        kind: &Kind,
        key: &str,
        expected: Revision,
        cause: Option<u64>,
    ) -> Result<Written, Status> {
        let written = self.0.store.delete(kind, key, expected, cause).await?;
        self.acknowledge(kind, &written);
        Ok(written)
    }

    /// From here on a read of any state has seen this write: who has an answer may act on it.
    fn acknowledge(&self, kind: &Kind, written: &Written) {
        if let Written::Committed(object) = written
            && let Some(cacher) = self.lock().get(kind.storage_prefix())
        {
            cacher.acknowledge(object.metadata.resource_version);
        }
    }

    /// Whether an object is kept in another way than it would be now; see [`Store::is_stale`].
    ///
    /// # Errors
    /// 500 when the store fails.
    pub async fn is_stale(&self, kind: &Kind, key: &str) -> Result<bool, Status> {
        self.0.store.is_stale(kind, key).await
    }

    /// Whether nobody has to be asked to know that there is no object of a kind: never of an etcd. This is
    /// looked at with every request.
    pub fn is_known_to_be_empty(&self, kind: &Kind) -> bool {
        match self.0.store.kv() {
            ByteStore::Own(kv) => kv.is_empty(kind.storage_prefix()).unwrap_or(false),
            ByteStore::Etcd(_) => false,
        }
    }

    /// What is counted of all kinds.
    pub(super) fn metrics(&self) -> &StorageMetrics {
        self.0.store.metrics()
    }

    /// The bytes underneath.
    pub(super) fn kv(&self) -> &ByteStore {
        self.0.store.kv()
    }

    /// Whether it keeps objects as protobuf.
    pub(super) fn writes_protobuf(&self) -> bool {
        self.0.store.is_protobuf()
    }

    /// Whether other servers write to the store, too.
    pub fn is_shared(&self) -> bool {
        self.0.store.kv().is_shared()
    }

    /// Drops the watch cache of a kind that is no longer served; its watches end.
    pub fn forget(&self, kind: &Kind) {
        self.lock().remove(kind.storage_prefix());
        self.0.store.counters(kind).cache_is_gone();
    }

    /// The watch cache of a kind that has one. A custom kind that was declared anew gets a new one: its
    /// selectable fields may be others.
    fn cacher(&self, kind: &Arc<Kind>) -> Option<Arc<Cacher>> {
        if !kind.has_watch_cache {
            return None;
        }
        let mut cachers = self.lock();
        let prefix = kind.storage_prefix();
        Some(match cachers.get(prefix) {
            Some(cacher) if Arc::ptr_eq(cacher.kind(), kind) && cacher.is_running() => cacher.clone(),
            _ => {
                let (store, entropy) = (self.0.store.clone(), self.0.entropy.clone());
                let inherited = self.0.inherited.lock().take(kind);
                let cacher = Arc::new(Cacher::with(inherited, store, kind.clone(), entropy));
                cachers.insert(prefix.clone(), cacher.clone());
                cacher
            }
        })
    }

    fn lock(&self) -> sync::MutexGuard<'_, Cachers> {
        self.0.cachers.lock()
    }
}

impl WatchCaches {
    /// Shows what they hold, kind by kind: the current objects, and those of what happened lately, which may
    /// be current ones.
    pub fn each_kind<'a>(
        &'a self,
        mut visit: impl FnMut(&Kind, &mut CachedObjects<'a>, &mut CachedObjects<'a>),
    ) {
        for (kind, cache) in self.0.values() {
            visit(kind, &mut cache.objects().values(), &mut cache.lately());
        }
    }

    /// What there is of a kind. A custom kind is declared anew in each cluster, perhaps with other selectable
    /// fields: its cache begins empty.
    fn take(&mut self, kind: &Arc<Kind>) -> WatchCache {
        let found = self.0.remove(kind.storage_prefix());
        let is_of_kind = |(of, _): &(Arc<Kind>, WatchCache)| Arc::ptr_eq(of, kind);
        found.filter(is_of_kind).map(|(_, cache)| cache).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use apimachinery::options::WatchCut;
    use apis::core::config_map::CONFIG_MAPS;
    use apis::core::event::EVENTS;
    use chrono::DateTime;
    use serde_json::json;

    use super::*;

    fn event(name: &str) -> Value {
        json!({"metadata": {"name": name, "namespace": "n"}, "reason": "Pulled"})
    }

    async fn put(storage: &Storage, name: &str) -> u64 {
        let written = storage.put(&EVENTS, &format!("n/{name}"), 0, &event(name), None).await.unwrap();
        let Written::Committed(object) = written else { panic!("{name} is there already") };
        object.metadata.resource_version
    }

    #[tokio::test]
    async fn what_caches_hold_is_shown_and_lies_where_the_store_has_it() {
        let storage = Storage::in_memory(Clock::stepped(DateTime::UNIX_EPOCH), Entropy::seeded(1));
        let put = async |expected, data: &str| {
            let tree = json!({"metadata": {"name": "a", "namespace": "n"}, "data": {"k": data}});
            let written = storage.put(&CONFIG_MAPS, "n/a", expected, &tree, None).await.unwrap();
            let Written::Committed(object) = written else { panic!("it is at another revision") };
            object.metadata.resource_version
        };
        let first = put(0, "old").await;
        storage.list(&CONFIG_MAPS, "n", &ListOptions::default()).await.unwrap();
        put(first, "new").await;
        storage.list(&CONFIG_MAPS, "n", &ListOptions::default()).await.unwrap();
        let mut current = Vec::new();
        let mut lately = Vec::new();
        storage.watch_caches().each_kind(|kind, objects, others| {
            let at = |object: &Arc<Object>| (kind.resource().clone(), object.stored().as_ptr_range());
            current.extend(objects.map(at));
            lately.extend(others.map(at));
        });
        let mut kept = Vec::new();
        let kv = storage.kv().own("this test").unwrap();
        kv.each_value_in_memory(|_, value| kept.push((Arc::<str>::from("configmaps"), value.as_ptr_range())));
        kept.dedup();
        assert_eq!((current, &lately), (kept[1..2].to_vec(), &kept[..2].to_vec()));
    }

    #[tokio::test]
    async fn events_are_read_from_etcd() {
        let storage = Storage::in_memory(Clock::stepped(DateTime::UNIX_EPOCH), Entropy::seeded(1));
        let first = put(&storage, "a").await;
        let read = |version: Option<String>| {
            let storage = storage.clone();
            async move { storage.get(&EVENTS, "n/a", version.as_deref()).await }
        };
        for version in [None, Some("0".into()), Some(first.to_string())] {
            assert_eq!(read(version).await.unwrap().unwrap().metadata.resource_version, first);
        }
        let too_new = read(Some((first + 1).to_string())).await.unwrap_err();
        assert_eq!(too_new.code, 504, "{too_new:?}");
        let list = storage.list(&EVENTS, "n", &ListOptions::default()).await.unwrap();
        assert_eq!((list.items.iter().count(), list.resource_version), (1, first));
        let from = ListOptions { resource_version: Some(first.to_string()), ..ListOptions::default() };
        let mut watch = storage.watch(&EVENTS, "", &from).await.unwrap();
        put(&storage, "b").await;
        assert!(matches!(watch.recv().await, Some(WatchEvent::Added(object)) if object.metadata.name == "b"));
        assert!(storage.lock().is_empty(), "nothing is kept of them");
    }

    #[tokio::test]
    async fn a_watch_of_events_that_is_cut_ends() {
        let storage = Storage::in_memory(Clock::stepped(DateTime::UNIX_EPOCH), Entropy::seeded(1));
        let cut = WatchCut::default();
        let other = WatchCut::default();
        let watched = |cut: &WatchCut| ListOptions { cut: Some(cut.clone()), ..ListOptions::default() };
        let mut cut_off = storage.watch(&EVENTS, "", &watched(&cut)).await.unwrap();
        let mut goes_on = storage.watch(&EVENTS, "", &watched(&other)).await.unwrap();
        cut.downgrade().cut();
        storage.end_cut_watches();
        assert!(cut_off.recv().await.is_none());
        put(&storage, "a").await;
        assert!(goes_on.recv().await.is_some());
    }
}
