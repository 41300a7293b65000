//! The watch straight from etcd's log (`storage/etcd3.watcher`): what the watch cache is too short for, and
//! kinds that have none. It holds a position in the log, not a queue, so a slow reader costs nothing and
//! misses nothing unless compaction overtakes it.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;

use super::byte_store::{ByteStore, ByteWatch};
use super::errors::{interpret, watch_expired};
use super::event::StoreEvent;
use super::request::{ListRequest, Since, WatchRequest};
use super::store::{Store, full_key};
use apimachinery::list::List;
use apimachinery::options::WatchCut;
use apimachinery::status::Status;
use apimachinery::watch::{Bookmark, WatchEvent};
use apis::kind::Kind;
use etcd::{EventKind, KeyEvent, Revision, StoreError, WatchBatch};

/// Events that may wait for the reader; at the bound the log waits.
const CHANNEL: usize = 100;
/// A watcher that wants bookmarks gets one this often.
pub(super) const BOOKMARK_EVERY: Duration = Duration::from_secs(60);
/// And one so long before its watch ends.
const BOOKMARK_BEFORE_END: Duration = Duration::from_secs(2);

/// When a watcher is next to get a bookmark.
pub(super) fn next_bookmark(now: Duration, ends_at: Option<Duration>) -> Duration {
    let last = ends_at.map(|end| end.saturating_sub(BOOKMARK_BEFORE_END)).filter(|last| *last > now);
    (now + BOOKMARK_EVERY).min(last.unwrap_or(Duration::MAX))
}

struct Pump {
    store: Store,
    kind: Arc<Kind>,
    request: WatchRequest,
    /// Of all keys it watches, whole.
    prefix: String,
    log: ByteWatch,
    /// Everything up to here has been sent, or was not asked for.
    position: Revision,
    sender: mpsc::Sender<WatchEvent>,
    ends_at: Option<Duration>,
}

/// The reader has gone.
struct Gone;

/// Begins a watch: changes, straight from etcd's log. Must be called within a tokio runtime.
///
/// # Errors
/// 504 when the state asked for is to come; a revision that is gone is an error event.
pub(super) async fn watch(
    store: &Store,
    kind: &Arc<Kind>,
    request: WatchRequest,
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
        (_, None) => store.kv().revision().await.map_err(interpret)?,
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
    let (store, kind) = (store.clone(), kind.clone());
    let pump = Pump { store, kind, request, prefix, log, position, sender, ends_at };
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
        for event in batch.events.iter().filter(|event| event.revision() > self.position) {
            let Some(event) = store_event(&self.store, &self.kind, event, self.store.clock().elapsed())
            else {
                continue;
            };
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

/// A change as objects; nothing when its bytes are no object, which has then been said.
fn store_event(store: &Store, kind: &Kind, event: &KeyEvent, now: Duration) -> Option<StoreEvent> {
    let previous = event.previous.as_ref().and_then(|previous| store.decode(kind, previous).ok());
    let deleted = event.kind == EventKind::Delete;
    let object = match (deleted, &event.previous) {
        (true, Some(previous)) => store.decode_at(kind, previous, event.revision()).ok()?,
        (true, None) => return None,
        (false, _) => store.decode(kind, &event.kv).ok()?,
    };
    Some(StoreEvent::new(object, previous, deleted, now))
}
