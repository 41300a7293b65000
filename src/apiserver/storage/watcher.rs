//! The watch straight from etcd's log (`storage/etcd3.watcher`): what the watch cache is too short for, until
//! it has caught up with that, and kinds that have none. It holds a position in the log, not a queue, so a
//! slow reader costs nothing and misses nothing unless compaction overtakes it.

use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::sync::mpsc;

use super::byte_store::{ByteStore, ByteWatch};
use super::cache_watcher::{CacheWatcher, next_bookmark};
use super::errors::{interpret, watch_expired};
use super::event::StoreEvent;
use super::metrics::KindMetrics;
use super::request::{ListRequest, Since, WatchRequest};
use super::store::{Store, full_key};
use apimachinery::list::List;
use apimachinery::object::Object;
use apimachinery::options::WatchCut;
use apimachinery::status::Status;
use apimachinery::watch::{Bookmark, WatchEvent};
use apis::kind::Kind;
use etcd::{EventKind, KeyEvent, Revision, StoreError, WatchBatch};

/// Events that may wait for the reader; at the bound the log waits.
const CHANNEL: usize = 100;

/// A watch cache to which a watcher goes over once it has caught up with it: there its objects are
/// everybody's, and an event is looked at once for all watchers.
pub(super) trait WatcherTaker: Send + Sync {
    /// Whether it has all that happened after this revision, and will have it for a while.
    fn is_near(&self, position: Revision) -> bool;
    /// The object of a key as this revision has left it, if it has not changed since.
    fn current(&self, key: &str, revision: Revision) -> Option<Arc<Object>>;
    /// Goes on with a watcher that has been sent all up to its position.
    fn take_over(self: Arc<Self>, watcher: CacheWatcher);
}

struct Pump {
    store: Store,
    kind: Arc<Kind>,
    counters: Arc<KindMetrics>,
    request: WatchRequest,
    /// Of all keys it watches, whole.
    prefix: String,
    log: ByteWatch,
    /// Everything up to here has been sent, or was not asked for.
    position: Revision,
    sender: mpsc::Sender<WatchEvent>,
    ends_at: Option<Duration>,
    /// Where it goes on when it has caught up.
    taker: Option<Weak<dyn WatcherTaker>>,
}

/// The reader has gone.
struct Gone;

/// Begins a watch: changes, straight from etcd's log, until `taker` goes on with it. Must be called within a
/// tokio runtime.
///
/// # Errors
/// 504 when the state asked for is to come; a revision that is gone is an error event.
pub(super) async fn watch(
    store: &Store,
    kind: &Arc<Kind>,
    request: WatchRequest,
    taker: Option<Weak<dyn WatcherTaker>>,
) -> Result<mpsc::Receiver<WatchEvent>, Status> {
    let (sender, receiver) = mpsc::channel(CHANNEL);
    let initial = match request.since {
        Since::State(at) => {
            let selection = request.selection.clone();
            Some(store.list(kind, &ListRequest { selection, at, limit: None, start: None }).await?)
        }
        Since::Now | Since::After(_) => None,
    };
    let position = match (request.since, &initial) {
        (_, Some(list)) => list.resource_version,
        (Since::After(revision), None) => revision,
        (_, None) => store.revision(kind).await.map_err(interpret)?,
    };
    let prefix = full_key(kind, &request.selection.prefix());
    let log = match store.kv().watch(&prefix, began_at(store.kv(), position)).await {
        Ok(log) => log,
        Err(StoreError::Compacted { compact_revision, .. }) => {
            let _ = sender.try_send(WatchEvent::error(watch_expired(position, compact_revision)));
            return Ok(receiver);
        }
        Err(error) => return Err(interpret(error)),
    };
    let ends_at = request.timeout.map(|timeout| store.clock().elapsed() + timeout);
    let clock = store.clock();
    let counters = store.counters(kind);
    let (store, kind) = (store.clone(), kind.clone());
    let pump = Pump { store, kind, counters, request, prefix, log, position, sender, ends_at, taker };
    clock.spawn(pump.run(initial));
    Ok(receiver)
}

/// Our own store watches from what there is; what is not to be told is left out later.
fn began_at(kv: &ByteStore, position: Revision) -> Revision {
    match kv {
        ByteStore::Own(kv) => position.min(kv.revision()),
        ByteStore::Etcd(_) => position,
    }
}

impl Pump {
    async fn run(mut self, initial: Option<List>) {
        let clock = self.store.clock().clone();
        let ends_at = self.ends_at;
        let sender = self.sender.clone();
        let (store, cut) = (self.store.clone(), self.request.cut.clone());
        tokio::select! {
            biased;
            _ = self.pump(initial) => (),
            () = store.cut(cut) => (),
            () = clock.sleep_until(ends_at.unwrap_or_default()), if ends_at.is_some() => (),
            () = sender.closed() => (),
        }
    }

    async fn pump(&mut self, initial: Option<List>) -> Result<(), Gone> {
        if let Some(list) = initial {
            self.send_state(list).await?;
        }
        self.request.held = None;
        let clock = self.store.clock().clone();
        let mut bookmark_at = next_bookmark(clock.elapsed(), self.ends_at);
        let mut bookmark_due = false;
        loop {
            tokio::select! {
                biased;
                batch = self.log.next() => {
                    let upto = self.send_batch(batch).await?;
                    if std::mem::take(&mut bookmark_due) {
                        self.bookmark(upto, false).await?;
                    }
                    if self.goes_over(bookmark_at) {
                        return Ok(());
                    }
                }
                () = clock.sleep_until(bookmark_at), if self.request.bookmarks => {
                    bookmark_at = next_bookmark(clock.elapsed(), self.ends_at);
                    bookmark_due = self.store.kv().tells_progress();
                    if bookmark_due {
                        self.store.kv().request_progress(&self.prefix);
                    } else {
                        self.bookmark(self.position, false).await?;
                    }
                }
            }
        }
    }

    fn taker(&self) -> Option<Arc<dyn WatcherTaker>> {
        self.taker.as_ref().and_then(Weak::upgrade)
    }

    /// Whether it is the cache that goes on from here.
    fn goes_over(&self, bookmark_at: Duration) -> bool {
        let Some(taker) = self.taker().filter(|taker| taker.is_near(self.position)) else { return false };
        taker.take_over(CacheWatcher {
            selection: self.request.selection.clone(),
            sender: self.sender.clone(),
            position: self.position,
            bookmark_at: self.request.bookmarks.then_some(bookmark_at),
            ends_at: self.ends_at,
            cut: self.request.cut.clone(),
            is_new: true,
        });
        true
    }

    async fn send_state(&mut self, list: List) -> Result<(), Gone> {
        for object in list.items.iter() {
            self.send(WatchEvent::Added(object.clone())).await?;
        }
        if self.request.marks_initial_events_end {
            self.bookmark(list.resource_version, true).await?;
        }
        Ok(())
    }

    /// Returns the revision up to which everything has been sent.
    async fn send_batch(&mut self, batch: Result<WatchBatch, StoreError>) -> Result<Revision, Gone> {
        let batch = match batch {
            Ok(batch) => batch,
            Err(error) => {
                let status = match error {
                    StoreError::Compacted { compact_revision, .. } => {
                        watch_expired(self.position, compact_revision)
                    }
                    error => interpret(error),
                };
                let _ = self.send(WatchEvent::error(status)).await;
                return Err(Gone);
            }
        };
        self.counters.heard(batch.events.len());
        for event in batch.events.iter().filter(|event| event.revision() > self.position) {
            let Some(event) = self.store_event(event) else { continue };
            let seen = event.seen_by(&self.request.selection, &self.kind.field_names());
            let Some(seen) = seen else { continue };
            self.send(seen).await?;
            // Of what has a watch cache the cache says it.
            if !self.kind.has_watch_cache {
                self.store.recorder().delivered(&self.kind, &event.object, 1);
            }
        }
        self.position = self.position.max(batch.revision);
        Ok(self.position)
    }

    /// A change as objects; nothing when its bytes are no object, which has then been said.
    fn store_event(&self, event: &KeyEvent) -> Option<StoreEvent> {
        let (store, kind) = (&self.store, &self.kind);
        let previous = event.previous.as_ref().and_then(|previous| store.decode(kind, previous).ok());
        let deleted = event.kind == EventKind::Delete;
        let object = match (deleted, &event.previous) {
            (true, Some(previous)) => store.decode_at(kind, previous, event.revision()).ok()?,
            (true, None) => return None,
            (false, _) => self.put(event)?,
        };
        Some(StoreEvent::new(object, previous, deleted, store.clock().elapsed()))
    }

    /// What was written: the cache's own where it has it, which is kept for others, too.
    fn put(&self, event: &KeyEvent) -> Option<Arc<Object>> {
        let key = event.kv.key.strip_prefix(&**self.kind.storage_prefix());
        let current = self.taker().zip(key).and_then(|(taker, key)| taker.current(key, event.revision()));
        current.or_else(|| self.store.decode(&self.kind, &event.kv).ok())
    }

    async fn bookmark(&self, resource_version: Revision, initial_events_end: bool) -> Result<(), Gone> {
        self.send(WatchEvent::Bookmark(Bookmark { resource_version, initial_events_end })).await
    }

    async fn send(&self, event: WatchEvent) -> Result<(), Gone> {
        if self.request.cut.as_ref().is_some_and(WatchCut::is_cut) {
            return Err(Gone);
        }
        self.sender.send(event).await.map_err(|_| Gone)
    }
}
