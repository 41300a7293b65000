//! How a watch cache's reflector reads etcd (`storage/cacher/lister_watcher.go`).

use std::collections::VecDeque;
use std::sync::Arc;

use super::byte_store::ByteWatch;
use super::metrics::KindMetrics;
use super::recorder::RecordedChange;
use super::request::ListRequest;
use super::store::Store;
use apimachinery::list::List;
use apimachinery::object::Object;
use apimachinery::options::ListOptions;
use apimachinery::status::Status;
use apimachinery::watch::{Bookmark, WatchEvent};
use apis::kind::Kind;
use client_go::reflector::{Events, ListerWatcher};
use etcd::{EventKind, KeyEvent, Revision, StoreError, WatchBatch};

/// All objects of one kind, in etcd.
pub(super) struct EtcdListerWatcher {
    /// Where they are.
    pub store: Store,
    /// Their kind.
    pub kind: Arc<Kind>,
}

/// A watch of etcd's log as events.
pub(super) struct EtcdEvents {
    store: Store,
    log: ByteWatch,
    kind: Arc<Kind>,
    counters: Arc<KindMetrics>,
    /// The rest of the last batch.
    batch: VecDeque<KeyEvent>,
    /// The revision of the last batch, when it is still to be told.
    progress: Option<Revision>,
}

impl ListerWatcher for EtcdListerWatcher {
    type Events = EtcdEvents;

    /// Always the newest state, whatever the reflector asks for.
    async fn list(&self, _options: &ListOptions) -> Result<List, Status> {
        self.store.list(&self.kind, &ListRequest::everything()).await
    }

    async fn watch(&self, options: &ListOptions) -> Result<EtcdEvents, Status> {
        let after = options.resource_version.as_deref().and_then(|text| text.parse().ok()).unwrap_or(0);
        let prefix = self.kind.storage_prefix();
        let log = self.store.kv().watch(prefix, after).await.map_err(super::errors::interpret)?;
        // Whoever asked for progress before there was a watch is answered by this.
        self.store.kv().request_progress(prefix);
        let (store, kind) = (self.store.clone(), self.kind.clone());
        let counters = store.counters(&kind);
        Ok(EtcdEvents { store, log, kind, counters, batch: VecDeque::new(), progress: None })
    }
}

impl Events for EtcdEvents {
    async fn next(&mut self) -> Option<WatchEvent> {
        loop {
            while let Some(event) = self.batch.pop_front() {
                if let Some(event) = self.event(&event) {
                    return Some(event);
                }
            }
            if let Some(resource_version) = self.progress.take() {
                return Some(WatchEvent::Bookmark(Bookmark { resource_version, initial_events_end: false }));
            }
            match self.log.next().await {
                Ok(WatchBatch { events, revision }) => {
                    self.counters.heard(events.len());
                    (self.batch, self.progress) = (events.into(), Some(revision));
                }
                // The cluster is going down, and this with it: nothing is to be said or tried again.
                Err(StoreError::Closed) => std::future::pending().await,
                Err(error) => return Some(WatchEvent::error(super::errors::interpret(error))),
            }
        }
    }
}

impl EtcdEvents {
    /// Bytes that are no object have been complained of and are left out.
    fn event(&self, event: &KeyEvent) -> Option<WatchEvent> {
        let (last, told) = match (event.kind, &event.previous) {
            (EventKind::Put, None) => (&event.kv, WatchEvent::Added as fn(_) -> _),
            (EventKind::Put, Some(_)) => (&event.kv, WatchEvent::Modified as fn(_) -> _),
            (EventKind::Delete, Some(previous)) => (previous, WatchEvent::Deleted as fn(_) -> _),
            (EventKind::Delete, None) => return None,
        };
        let revision = event.revision();
        let decode = || self.store.decode_at(&self.kind, last, revision);
        let object = self.store.fresh().object(revision, &event.kv.key, decode).ok();
        self.note(event, object.as_deref());
        object.map(told)
    }

    /// Before anybody hears of it.
    fn note(&self, event: &KeyEvent, object: Option<&Object>) {
        let recorder = self.store.recorder();
        if !recorder.is_on() {
            return;
        }
        let key = event.kv.key.strip_prefix(&**self.kind.storage_prefix()).unwrap_or_default();
        let replaced = event.previous.as_ref().map_or(0, |previous| previous.mod_revision);
        let deleted = event.kind == EventKind::Delete;
        let (revision, bytes) = (event.revision(), event.kv.value.len());
        recorder.stored(&self.kind, RecordedChange { key, replaced, revision, deleted, object, bytes });
    }
}
