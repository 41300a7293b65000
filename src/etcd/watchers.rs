//! Who watches, as the writer knows it: whom a change concerns, and who has to be woken.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use foldhash::fast::RandomState;
use tokio::sync::Notify;

use super::{KeyEvent, KeySpan, Revision};

/// What the writer knows of a watch.
#[derive(Debug)]
pub(super) struct Watcher {
    pub span: KeySpan<'static>,
    /// The first revision with a change of these keys that may be unread; 0: none is. Set by the writer,
    /// under the state's write lock, only if it is 0; set to anything else only by the watch.
    pub first_unread: AtomicU64,
    pub progress_wanted: AtomicBool,
    pub notify: Arc<Notify>,
}

impl Watcher {
    pub(super) fn wake(&self) {
        self.notify.notify_one();
    }
}

/// All watches of a store. As many as there are callers: the apiserver keeps one per resource.
///
/// Invariant: a watch is in `folders` if it is of a prefix that ends in a slash, in `keys` if it is of one
/// key, else in `others`.
#[derive(Debug, Default)]
pub(super) struct Watchers {
    /// By prefix: a change finds those that it concerns by the slashes of its key, however many there are.
    folders: HashMap<String, Vec<Arc<Watcher>>, RandomState>,
    keys: HashMap<String, Vec<Arc<Watcher>>, RandomState>,
    others: Vec<Arc<Watcher>>,
}

/// Where a watch is kept.
enum Shelf {
    Folder,
    Key,
    Other,
}

fn shelf(span: &KeySpan<'_>) -> Shelf {
    match span {
        KeySpan::Prefix(prefix) if prefix.ends_with('/') => Shelf::Folder,
        KeySpan::Key(_) => Shelf::Key,
        _ => Shelf::Other,
    }
}

impl Watchers {
    pub(super) fn add(&mut self, span: KeySpan<'_>, after: Revision, notify: Arc<Notify>) -> Arc<Watcher> {
        let span = span.into_owned();
        let start = span.start().to_owned();
        let shelf = shelf(&span);
        let watcher = Arc::new(Watcher {
            span,
            first_unread: AtomicU64::new(after + 1),
            progress_wanted: AtomicBool::new(false),
            notify,
        });
        match shelf {
            Shelf::Folder => self.folders.entry(start).or_default().push(watcher.clone()),
            Shelf::Key => self.keys.entry(start).or_default().push(watcher.clone()),
            Shelf::Other => self.others.push(watcher.clone()),
        }
        watcher
    }

    pub(super) fn remove(&mut self, watcher: &Arc<Watcher>) {
        let shelf = match shelf(&watcher.span) {
            Shelf::Folder => &mut self.folders,
            Shelf::Key => &mut self.keys,
            Shelf::Other => return self.others.retain(|other| !Arc::ptr_eq(other, watcher)),
        };
        let Some(same) = shelf.get_mut(watcher.span.start()) else { return };
        same.retain(|other| !Arc::ptr_eq(other, watcher));
        if same.is_empty() {
            shelf.remove(watcher.span.start());
        }
    }

    pub(super) fn all(&self) -> Vec<Arc<Watcher>> {
        self.folders.values().chain(self.keys.values()).flatten().chain(&self.others).cloned().collect()
    }

    /// Marks whom these changes concern, and returns who of them has to be woken. A watch of other keys
    /// is not woken, and stays caught up without doing anything.
    pub(super) fn mark(&self, events: &[KeyEvent]) -> Vec<Arc<Watcher>> {
        let mut woken = Vec::new();
        for event in events {
            let key = &*event.kv.key;
            let slashes = key.bytes().enumerate().filter(|(_, byte)| *byte == b'/');
            let of_folders = slashes.filter_map(|(at, _)| self.folders.get(&key[..=at])).flatten();
            let of_key = if self.keys.is_empty() { None } else { self.keys.get(key) };
            let of_others = self.others.iter().filter(|watcher| watcher.span.contains(key));
            for watcher in of_folders.chain(of_key.into_iter().flatten()).chain(of_others) {
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
        let others = self.others.iter().filter(|watcher| watcher.span == KeySpan::prefix(prefix));
        for watcher in of_folder.chain(others) {
            watcher.progress_wanted.store(true, Ordering::Release);
            watcher.wake();
        }
    }
}
