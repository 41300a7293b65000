//! `Cacher`: answers reads of one kind from memory (`storage/cacher.Cacher`).
//! Next: src/apiserver/storage/cache_watcher.rs
//!
//! A reflector keeps it in step with etcd's log; nothing else writes to it.

mod freshness;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use sync::{Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};
use tokio::sync::{Notify, mpsc};
use tokio::task::AbortHandle;

use super::cache_watcher::{CHANNEL, CacheWatcher, CacheWatchers, next_bookmark};
use super::event::StoreEvent;
use super::lister_watcher::EtcdListerWatcher;
use super::metrics::{ConsistentRead, KindCounter, KindMetrics};
use super::request::{At, ListRequest, Since, WatchRequest};
use super::store::Store;
use super::watch_cache::{self, CacheSnapshot, WatchCache};
use super::watcher::{self, WatcherTaker};
use apimachinery::list::List;
use apimachinery::object::Object;
use apimachinery::options::Held;
use apimachinery::status::Status;
use apimachinery::watch::{Bookmark, WatchEvent};
use apis::kind::Kind;
use client_go::reflector::{Reflector, ReflectorStore};
use entropy::Entropy;
use etcd::Revision;

/// A watcher that is behind and takes nothing for so long is cut.
const STALLED_AFTER: Duration = Duration::from_secs(30);
/// Bookmarks and ends of watches are up to this late, so that many of them cost one look; and as late as
/// objects take to be looked at.
const TIMER_GRAIN: Duration = Duration::from_millis(250);
/// Objects are looked at no more often than this, and only where somebody watches them: one rests at the
/// second look since it was read last.
const REST_AFTER: Duration = Duration::from_secs(30);

/// The watch cache of one kind. Dropping it ends its watches.
pub struct Cacher {
    shared: Arc<CacherShared>,
    reflector: AbortHandle,
    timer: AbortHandle,
}

/// Locks are taken in the order in which they stand here: watchers, then cache.
struct CacherShared {
    me: Weak<CacherShared>,
    kind: Arc<Kind>,
    store: Store,
    counters: Arc<KindMetrics>,
    watchers: Mutex<CacheWatchers>,
    cache: RwLock<WatchCache>,
    /// The revision that the cache has reached.
    progress: AtomicU64,
    /// The newest revision of the kind that a writer was told of.
    acknowledged: AtomicU64,
    /// It was never filled, and the last list failed: what is asked for is read from etcd.
    cannot_fill: AtomicBool,
    /// Wakes in the order in which they came whoever waits for a revision.
    progressed: Notify,
    /// Somebody may be due earlier than the timer thinks.
    due_changed: Notify,
}

/// The state that a watch begins with.
struct Initial {
    objects: CacheSnapshot,
    marks_end: bool,
    /// Until it has been sent.
    _held: Option<Held>,
}

/// How a watcher goes on.
enum Resumed {
    /// It is in the dispatch.
    Live,
    /// It has these events to send first.
    Behind(CacheWatcher, Vec<Arc<StoreEvent>>),
    /// What it has to send has left the ring, or the cache is gone: it is cut.
    Cut,
}

impl Cacher {
    /// Starts to fill a cache. Must be called within a tokio runtime.
    pub fn new(store: Store, kind: Arc<Kind>, entropy: Entropy) -> Cacher {
        Cacher::with(WatchCache::default(), store, kind, entropy)
    }

    /// Goes on from what a cache of the kind holds, which is no newer than the store.
    pub fn with(cache: WatchCache, store: Store, kind: Arc<Kind>, entropy: Entropy) -> Cacher {
        let known = cache.revision();
        let store = store.for_kind(&kind);
        let counters = store.counters(&kind);
        counters.cache_is(&cache);
        // A cache that begins with what it inherits is filled already.
        counters.add(KindCounter::Initializations, usize::from(known > 0));
        let shared = Arc::new_cyclic(|me| CacherShared {
            me: me.clone(),
            kind: kind.clone(),
            store: store.clone(),
            counters,
            watchers: Mutex::default(),
            cache: RwLock::new(cache),
            progress: AtomicU64::new(known),
            acknowledged: AtomicU64::new(0),
            cannot_fill: AtomicBool::new(false),
            progressed: Notify::new(),
            due_changed: Notify::new(),
        });
        let clock = store.clock().clone();
        let lister_watcher = EtcdListerWatcher { store, kind };
        let tracking = clock.clone();
        let reflector = Reflector::new(lister_watcher, shared.clone(), clock, entropy);
        let reflector = reflector.knowing(Some(known).filter(|known| *known > 0));
        let reflector = tracking.spawn(reflector.run()).abort_handle();
        let timer = tracking.spawn(run_timer(shared.clone())).abort_handle();
        Cacher { shared, reflector, timer }
    }

    /// Its kind.
    pub fn kind(&self) -> &Arc<Kind> {
        &self.shared.kind
    }

    /// What it holds; none before its first list.
    pub fn contents(&self) -> Option<WatchCache> {
        Some(self.shared.read().clone()).filter(|cache| cache.revision() > 0)
    }

    /// A writer was told of this revision.
    pub fn acknowledge(&self, revision: Revision) {
        self.shared.acknowledged.fetch_max(revision, Ordering::AcqRel);
    }

    /// Whether it is still being kept in step; a cache that is not is to be made anew.
    pub fn is_running(&self) -> bool {
        !self.reflector.is_finished() && !self.timer.is_finished()
    }

    /// An object, in the state that is asked for.
    ///
    /// # Errors
    /// 504 when that revision has not been reached in time.
    pub async fn get(&self, key: &str, at: At) -> Result<Option<Arc<Object>>, Status> {
        let shared = &self.shared;
        match at {
            // Waiting for the cache would cost more than looking up how new the object is.
            At::Newest => {
                let cached = shared.read().objects().get(key).cloned();
                return shared.store.get_newest(&shared.kind, key, cached).await;
            }
            _ if shared.cannot_fill() => return shared.store.get(&shared.kind, key).await,
            At::Any if shared.read().revision() == 0 => return shared.store.get(&shared.kind, key).await,
            // A writer that was answered may ask for what it wrote.
            At::Any if !shared.has_reached(shared.acknowledged.load(Ordering::Acquire)) => {
                return shared.store.get(&shared.kind, key).await;
            }
            At::Any => (),
            At::NotOlderThan(revision) | At::Exact(revision) => shared.wait_until_fresh(revision).await?,
        }
        Ok(shared.read().objects().get(key).cloned())
    }

    /// Objects, in the state that is asked for.
    ///
    /// # Errors
    /// 410 when the revision was compacted away; 504 when it has not been reached in time.
    pub async fn list(&self, request: &ListRequest) -> Result<List, Status> {
        let shared = &self.shared;
        let (snapshot, revision) = match request.at {
            At::Exact(revision) => match shared.snapshot_at(revision) {
                Some(snapshot) => (snapshot, revision),
                None => return shared.store.list(&shared.kind, request).await,
            },
            at => match shared.state(at).await {
                Ok(state) => state,
                Err(_)
                    if matches!(at, At::Newest | At::Any)
                        || shared.cannot_fill()
                        || !shared.store.kv().tells_progress() =>
                {
                    return shared.list_from_store(request).await;
                }
                Err(status) => return Err(status),
            },
        };
        let (list, looked_at) = watch_cache::list(&snapshot, &shared.kind, request, revision);
        shared.counters.listed_from_cache(looked_at, list.items.len());
        if request.at == At::Newest {
            shared.counters.read_consistently(ConsistentRead::Cached);
        }
        if !list.continue_token.is_empty() {
            shared.write().keep(revision, snapshot);
        }
        Ok(list)
    }

    /// Changes, beginning where it is asked for.
    ///
    /// # Errors
    /// 504 when that revision has not been reached in time; one that is gone is an error event.
    pub async fn watch(&self, request: WatchRequest) -> Result<mpsc::Receiver<WatchEvent>, Status> {
        let shared = &self.shared;
        let (initial, position) = match request.since {
            Since::State(at) => {
                let (objects, revision) = shared.state_or_read(at).await?;
                let (marks_end, _held) = (request.marks_initial_events_end, request.held.clone());
                (Some(Initial { objects, marks_end, _held }), revision)
            }
            Since::Now => (None, shared.newest().await?),
            Since::After(revision) => {
                shared.state(At::Any).await?;
                if !shared.read().covers(revision) {
                    let taker: Weak<dyn WatcherTaker> = shared.me.clone();
                    return watcher::watch(&shared.store, &shared.kind, request, Some(taker)).await;
                }
                (None, revision)
            }
        };
        let (sender, receiver) = mpsc::channel(CHANNEL);
        let now = shared.store.clock().elapsed();
        let ends_at = request.timeout.map(|timeout| now + timeout);
        let bookmark_at = request.bookmarks.then(|| next_bookmark(now, ends_at));
        let WatchRequest { selection, cut, .. } = request;
        let watcher = CacheWatcher { selection, sender, position, bookmark_at, ends_at, cut, is_new: true };
        shared.start(watcher, initial);
        Ok(receiver)
    }

    /// Ends the watches that were cut.
    pub fn end_cut_watches(&self) {
        self.shared.lock_watchers().end_cut();
    }

    /// How many watches are up to date.
    #[cfg(test)]
    pub fn live_watches(&self) -> usize {
        self.shared.lock_watchers().len()
    }
}

impl Drop for Cacher {
    fn drop(&mut self) {
        self.reflector.abort();
        self.timer.abort();
        self.shared.lock_watchers().close();
    }
}

impl ReflectorStore for CacherShared {
    fn replace(&self, items: Vec<Arc<Object>>, resource_version: u64) {
        self.change(|cache| cache.replace(items, resource_version));
        self.counters.add(KindCounter::Initializations, 1);
        self.cannot_fill.store(false, Ordering::Release);
        self.reach(resource_version);
        let mut watchers = self.lock_watchers();
        // What happened between the last event and this list is not known: everybody has to begin anew.
        watchers.clear();
        watchers.advance(resource_version);
    }

    fn add(&self, object: Arc<Object>) {
        self.process(object, false);
    }

    fn update(&self, object: Arc<Object>) {
        self.process(object, false);
    }

    fn delete(&self, object: Arc<Object>) {
        self.process(object, true);
    }

    fn bookmark(&self, resource_version: u64) {
        self.change(|cache| cache.advance(resource_version));
        self.lock_watchers().advance(resource_version);
        self.reach(resource_version);
    }

    fn list_failed(&self) {
        if !self.has_reached(1) {
            self.cannot_fill.store(true, Ordering::Release);
            self.progressed.notify_waiters();
        }
    }
}

impl WatcherTaker for CacherShared {
    fn is_near(&self, position: Revision) -> bool {
        self.read().is_near(position)
    }

    fn current(&self, key: &str, revision: Revision) -> Option<Arc<Object>> {
        let object = self.read().objects().get(key).cloned();
        object.filter(|object| object.metadata.resource_version == revision)
    }

    fn take_over(self: Arc<Self>, watcher: CacheWatcher) {
        self.start(watcher, None);
    }
}

impl CacherShared {
    /// First into the ring, then to the watchers: whoever registers between the two has read it from the
    /// ring, and its position says so.
    fn process(&self, object: Arc<Object>, deleted: bool) {
        self.counters.add(KindCounter::EventsReceived, 1);
        let event = self.change(|cache| cache.apply(object, deleted, self.store.clock().elapsed()));
        self.reach(event.revision());
        let done = self.lock_watchers().dispatch(&event, &self.kind.field_names());
        self.counters.add(KindCounter::EventsDispatched, 1);
        self.store.recorder().delivered(&self.kind, &event.object, done.sent + done.behind.len());
        let Some(me) = self.me.upgrade() else { return };
        for watcher in done.behind {
            self.store.clock().spawn(catch_up(me.clone(), watcher, None));
        }
    }

    /// The objects at a revision that a list named, unless etcd would call it too old.
    fn snapshot_at(&self, revision: Revision) -> Option<CacheSnapshot> {
        let readable = revision >= self.store.kv().compact_revision();
        self.read().snapshot_at(revision).filter(|_| readable)
    }

    fn cannot_fill(&self) -> bool {
        self.cannot_fill.load(Ordering::Acquire)
    }

    fn has_reached(&self, revision: Revision) -> bool {
        self.progress.load(Ordering::Acquire) >= revision
    }

    fn reach(&self, revision: Revision) {
        self.progress.store(revision, Ordering::Release);
        self.progressed.notify_waiters();
    }

    fn start(self: &Arc<Self>, watcher: CacheWatcher, initial: Option<Initial>) {
        if initial.is_some() {
            self.store.clock().spawn(catch_up(self.clone(), watcher, initial));
        } else if let Resumed::Behind(watcher, _) = self.resume(watcher) {
            self.store.clock().spawn(catch_up(self.clone(), watcher, None));
        }
    }

    /// Puts a watcher into the dispatch, if there is nothing left to tell it.
    fn resume(&self, watcher: CacheWatcher) -> Resumed {
        let mut watchers = self.lock_watchers();
        let behind = self.read().events_after(watcher.position, CHANNEL);
        match behind {
            _ if watchers.is_closed() => Resumed::Cut,
            None => {
                self.counters.add(KindCounter::TerminatedWatchers, 1);
                Resumed::Cut
            }
            Some(events) if !events.is_empty() => Resumed::Behind(watcher, events),
            Some(_) => {
                watchers.add(watcher, &self.kind.field_names());
                self.due_changed.notify_one();
                Resumed::Live
            }
        }
    }

    /// Lets objects rest that nobody has read of late; those whose names begin alike are alike.
    async fn rest_objects(&self) {
        let objects = self.read().objects().clone();
        let mut sibling = None;
        for object in objects.values() {
            object.rest(&mut sibling);
            // They may be hundreds of thousands, and each lies elsewhere.
            tokio::task::coop::consume_budget().await;
        }
    }

    fn lock_watchers(&self) -> MutexGuard<'_, CacheWatchers> {
        self.watchers.lock()
    }

    fn read(&self) -> RwLockReadGuard<'_, WatchCache> {
        self.cache.read()
    }

    fn change<T>(&self, change: impl FnOnce(&mut WatchCache) -> T) -> T {
        let mut cache = self.write();
        let changed = change(&mut cache);
        self.counters.cache_is(&cache);
        changed
    }

    fn write(&self) -> RwLockWriteGuard<'_, WatchCache> {
        self.cache.write()
    }
}

/// Sends a watcher what it has not got, at the pace of its reader, until it can be put into the dispatch.
async fn catch_up(shared: Arc<CacherShared>, watcher: CacheWatcher, initial: Option<Initial>) {
    let clock = shared.store.clock().clone();
    let ends_at = watcher.ends_at;
    tokio::select! {
        biased;
        _ = shared.tell(watcher, initial) => (),
        () = clock.sleep_until(ends_at.unwrap_or_default()), if ends_at.is_some() => (),
    }
}

/// The reader has gone, or takes nothing, or was cut off.
struct Stalled;

impl CacherShared {
    async fn tell(&self, mut watcher: CacheWatcher, initial: Option<Initial>) -> Result<(), Stalled> {
        let field_names = self.kind.field_names();
        if let Some(initial) = initial {
            self.tell_state(&watcher, initial, &field_names).await?;
        }
        loop {
            let (mut behind, events) = match self.resume(watcher) {
                Resumed::Behind(behind, events) => (behind, events),
                Resumed::Live | Resumed::Cut => return Ok(()),
            };
            if behind.is_new {
                self.counters.add(KindCounter::InitEvents, events.len());
            }
            for event in events {
                if let Some(seen) = event.seen_by(&behind.selection, &field_names) {
                    self.send(&behind, seen).await?;
                }
                behind.position = event.revision();
            }
            watcher = behind;
        }
    }

    async fn tell_state(
        &self,
        watcher: &CacheWatcher,
        initial: Initial,
        field_names: &[&str],
    ) -> Result<(), Stalled> {
        let mut begun_with = 0;
        for object in initial.objects.values().filter(|object| watcher.selection.is_about(object)) {
            begun_with += 1;
            if watcher.selection.matches(object, field_names) {
                self.send(watcher, WatchEvent::Added(object.clone())).await?;
            }
        }
        self.counters.add(KindCounter::InitEvents, begun_with);
        if initial.marks_end {
            let bookmark = Bookmark { resource_version: watcher.position, initial_events_end: true };
            self.send(watcher, WatchEvent::Bookmark(bookmark)).await?;
        }
        Ok(())
    }

    async fn send(&self, watcher: &CacheWatcher, event: WatchEvent) -> Result<(), Stalled> {
        if watcher.is_cut() {
            return Err(Stalled);
        }
        match watcher.sender.try_send(event) {
            Ok(()) => Ok(()),
            Err(mpsc::error::TrySendError::Closed(_)) => Err(Stalled),
            Err(mpsc::error::TrySendError::Full(event)) => {
                let sent = self.store.clock().timeout(STALLED_AFTER, watcher.sender.send(event)).await;
                self.counters.add(KindCounter::TerminatedWatchers, usize::from(sent.is_err()));
                sent.map_err(|_| Stalled)?.map_err(|_| Stalled)
            }
        }
    }
}

/// Sends bookmarks, ends watches and lets objects rest, for as long as it is polled. Nobody awaits any of
/// that at its very time: where time is stepped it comes when it stops.
async fn run_timer(shared: Arc<CacherShared>) {
    let clock = shared.store.clock().clone();
    let mut rest_at = clock.elapsed() + REST_AFTER;
    loop {
        let due = shared.lock_watchers().next_due();
        tokio::select! {
            biased;
            () = clock.idle_until(due.unwrap_or_default() + TIMER_GRAIN), if due.is_some() => (),
            () = shared.due_changed.notified() => continue,
        }
        // The bookmarks of a quiet kind are to be as fresh as those of a busy one.
        shared.catch_up_with_store().await;
        shared.lock_watchers().tick(clock.elapsed());
        if clock.elapsed() >= rest_at {
            rest_at = clock.elapsed() + REST_AFTER;
            shared.rest_objects().await;
        }
    }
}
