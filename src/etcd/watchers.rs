//! Who watches, as the writer knows it: whom a change concerns, and who has to be woken.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use foldhash::fast::RandomState;
use tokio::sync::Notify;

use super::{Event, Revision};

/// What the writer knows of a watch.
#[derive(Debug)]
pub(super) struct Watcher {
    pub prefix: String,
    /// The first revision with a change of this prefix that may be unread; 0: none is. Set by the writer,
    /// under the state's write lock, only if it is 0; set to anything else only by the watch.
    pub first_unread: AtomicU64,
    pub progress_wanted: AtomicBool,
    pub notify: Notify,
}

impl Watcher {
    pub(super) fn wake(&self) {
        self.notify.notify_one();
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
    pub(super) fn add(&mut self, prefix: &str, after: Revision) -> Arc<Watcher> {
        let watcher = Arc::new(Watcher {
            prefix: prefix.to_owned(),
            first_unread: AtomicU64::new(after + 1),
            progress_wanted: AtomicBool::new(false),
            notify: Notify::new(),
        });
        if prefix.ends_with('/') {
            self.folders.entry(prefix.to_owned()).or_default().push(watcher.clone());
        } else {
            self.others.push(watcher.clone());
        }
        watcher
    }

    pub(super) fn remove(&mut self, watcher: &Arc<Watcher>) {
        debug_assert!(self.others.iter().all(|other| !other.prefix.ends_with('/')));
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
