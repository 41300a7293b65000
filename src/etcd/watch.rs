//! The watch: reads the log from a revision on (etcd's `WatchableKV`).
//! Next: src/apiserver/storage/cacher.rs

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use foldhash::fast::RandomState;
use tokio::sync::Notify;

use super::state::{Shared, Unread};
use super::{Error, Event, Revision};

/// A watch of the keys with one prefix. It holds a position in the log, not a queue: however slow its reader,
/// it costs no memory, and misses nothing unless compaction overtakes it.
#[derive(Debug)]
pub struct Watch {
    shared: Arc<Shared>,
    watcher: Arc<Watcher>,
    /// All up to here has been delivered.
    upto: Revision,
}

/// Changes in revision order, none twice, none left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WatchBatch {
    /// The changes; empty if the batch only tells of progress.
    pub events: Vec<Event>,
    /// Everything up to and including this revision has been delivered.
    pub revision: Revision,
}

impl Watch {
    /// Waits for changes, or for progress that was asked for with [`super::Kv::request_progress`]. Can be
    /// dropped and called again without losing anything.
    ///
    /// # Errors
    /// [`Error::Compacted`] when compaction has overtaken the watch; [`Error::Closed`] when the store was
    /// closed.
    pub async fn next(&mut self) -> Result<WatchBatch, Error> {
        loop {
            if let Some(batch) = self.try_next()? {
                return Ok(batch);
            }
            self.watcher.notify.notified().await;
        }
    }

    /// What [`Watch::next`] would answer without waiting.
    ///
    /// # Errors
    /// As [`Watch::next`].
    pub fn try_next(&mut self) -> Result<Option<WatchBatch>, Error> {
        loop {
            let first_unread = self.watcher.first_unread.load(Ordering::Acquire);
            if first_unread == 0 {
                if let Some(caught_up) = self.caught_up() {
                    return caught_up;
                }
                continue;
            }
            let from = first_unread.max(self.upto + 1);
            let Unread { events, upto, all } = self.shared.unread(&self.watcher.prefix, from)?;
            self.upto = upto;
            self.watcher.has_read(&self.shared, upto, all);
            if !events.is_empty() {
                return Ok(Some(WatchBatch { events, revision: upto }));
            }
        }
    }

    /// Nothing of this prefix is unread, and the lock says up to where; None: something is after all.
    fn caught_up(&mut self) -> Option<Result<Option<WatchBatch>, Error>> {
        let state = self.shared.read();
        if let Err(closed) = state.log() {
            return Some(Err(closed));
        }
        if self.watcher.first_unread.load(Ordering::Acquire) != 0 {
            return None;
        }
        self.upto = state.revision;
        let progress_wanted = self.watcher.progress_wanted.swap(false, Ordering::AcqRel);
        let progress = WatchBatch { events: Vec::new(), revision: self.upto };
        Some(Ok(progress_wanted.then_some(progress)))
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.shared.write().watchers.remove(&self.watcher);
    }
}

/// What the writer knows of a watch.
#[derive(Debug)]
pub(super) struct Watcher {
    prefix: String,
    /// The first revision with a change of this prefix that may be unread; 0: none is. Set by the writer,
    /// under the state's write lock, only if it is 0; set to anything else only by the watch.
    first_unread: AtomicU64,
    progress_wanted: AtomicBool,
    notify: Notify,
}

impl Watcher {
    pub(super) fn wake(&self) {
        self.notify.notify_one();
    }

    /// All up to `upto` is read. If that is all there is, then the writer may mark this watch again.
    fn has_read(&self, shared: &Shared, upto: Revision, all: bool) {
        let state = shared.read();
        let first_unread = if all && state.revision == upto { 0 } else { upto + 1 };
        self.first_unread.store(first_unread, Ordering::Release);
    }
}

/// All watches of a store. As many as there are callers: the apiserver keeps one per resource.
///
/// Invariant: a watch is in `folders` if its prefix ends in a slash, else in `others`.
#[derive(Debug, Default)]
pub(super) struct Watchers {
    /// By prefix: a change finds those that it concerns by the slashes of its key, however many there are.
    folders: HashMap<String, Vec<Arc<Watcher>>, RandomState>,
    others: Vec<Arc<Watcher>>,
}

impl Watchers {
    pub(super) fn add(&mut self, shared: &Arc<Shared>, prefix: &str, after: Revision) -> Watch {
        let watcher = Arc::new(Watcher {
            prefix: prefix.to_owned(),
            first_unread: AtomicU64::new(after + 1),
            progress_wanted: AtomicBool::new(false),
            notify: Notify::new(),
        });
        match prefix.ends_with('/') {
            true => self.folders.entry(prefix.to_owned()).or_default().push(watcher.clone()),
            false => self.others.push(watcher.clone()),
        }
        Watch { shared: shared.clone(), watcher, upto: after }
    }

    fn remove(&mut self, watcher: &Arc<Watcher>) {
        self.others.retain(|other| !Arc::ptr_eq(other, watcher));
        let Some(same_prefix) = self.folders.get_mut(&watcher.prefix) else { return };
        same_prefix.retain(|other| !Arc::ptr_eq(other, watcher));
        if same_prefix.is_empty() {
            self.folders.remove(&watcher.prefix);
        }
    }

    pub(super) fn all(&self) -> Vec<Arc<Watcher>> {
        self.folders.values().flatten().chain(&self.others).cloned().collect()
    }

    /// Marks whom these changes concern, and returns who of them has to be woken. A watch of another prefix
    /// is not woken, and stays caught up without doing anything.
    pub(super) fn mark(&self, events: &[Event]) -> Vec<Arc<Watcher>> {
        let mut woken = Vec::new();
        for event in events {
            let key = &*event.kv.key;
            let slashes = key.bytes().enumerate().filter(|(_, byte)| *byte == b'/');
            let of_folders = slashes.filter_map(|(at, _)| self.folders.get(&key[..=at])).flatten();
            let of_others = self.others.iter().filter(|watcher| key.starts_with(&watcher.prefix));
            for watcher in of_folders.chain(of_others) {
                // What is marked already has been woken for something older.
                if watcher.first_unread.load(Ordering::Acquire) == 0 {
                    watcher.first_unread.store(event.revision(), Ordering::Release);
                    woken.push(watcher.clone());
                }
            }
        }
        woken
    }

    /// The watches of exactly this prefix are to tell how far they are.
    pub(super) fn request_progress(&self, prefix: &str) {
        let of_folder = self.folders.get(prefix).into_iter().flatten();
        let others = self.others.iter().filter(|watcher| watcher.prefix == prefix);
        for watcher in of_folder.chain(others) {
            watcher.progress_wanted.store(true, Ordering::Release);
            watcher.wake();
        }
    }
}
