//! The watchers of one watch cache (`storage/cacher.cacheWatcher`).
//! Next: src/apiserver/endpoints/handlers/watch.rs
//!
//! Each has a bounded channel. Dispatching never waits: whose channel is full leaves the dispatch and catches
//! up from the ring at its own pace, and whom the ring overtakes is cut.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use foldhash::fast::FixedState;
use tokio::sync::mpsc;

use super::event::StoreEvent;
use super::request::ObjectSelection;
use apimachinery::object::Object;
use apimachinery::options::WatchCut;
use apimachinery::watch::{Bookmark, WatchEvent};
use etcd::Revision;

/// Events that may wait for one watcher's reader.
pub(super) const CHANNEL: usize = 100;
/// A watcher that wants bookmarks gets one this often.
const BOOKMARK_EVERY: Duration = Duration::from_secs(60);
/// And one so long before its watch ends.
const BOOKMARK_BEFORE_END: Duration = Duration::from_secs(2);
/// Watchers whose readers are gone are looked for when so many have come since the last time.
const PURGE_AFTER: usize = 64;

/// Watchers by what they watch. Its order is the same each time: all are told of bookmarks in it.
type WatchersBy = HashMap<String, Vec<CacheWatcher>, FixedState>;

/// When a watcher is next to get a bookmark.
pub(super) fn next_bookmark(now: Duration, ends_at: Option<Duration>) -> Duration {
    let last = ends_at.map(|end| end.saturating_sub(BOOKMARK_BEFORE_END)).filter(|last| *last > now);
    (now + BOOKMARK_EVERY).min(last.unwrap_or(Duration::MAX))
}

/// One watcher.
pub(super) struct CacheWatcher {
    /// What it watches.
    pub selection: ObjectSelection,
    /// Its reader. Dropped: the watch is over.
    pub sender: mpsc::Sender<WatchEvent>,
    /// Everything up to here has been sent to it, or does not concern it. In the dispatch, what was
    /// dispatched since has been sent as well.
    pub position: Revision,
    /// When it gets its next bookmark, if it wants any.
    pub bookmark_at: Option<Duration>,
    /// When it ends.
    pub ends_at: Option<Duration>,
    /// By what it may end before.
    pub cut: Option<WatchCut>,
    /// Whether it has not been in the dispatch yet: what it is sent is what its watch begins with.
    pub is_new: bool,
}

/// The watchers that are up to date, each in the one place where the events that can concern it are looked
/// for.
#[derive(Default)]
pub(super) struct CacheWatchers {
    all: Vec<CacheWatcher>,
    namespaces: WatchersBy,
    objects: WatchersBy,
    /// By selectable field and the value that it must have: a hundred kubelets cost an event two look-ups.
    fields: BTreeMap<usize, WatchersBy>,
    dispatched: Revision,
    next_due: Option<Duration>,
    added: usize,
    closed: bool,
}

enum Offer {
    Sent,
    /// It does not concern it.
    Passed,
    Full,
    Gone,
}

/// What became of a dispatch.
#[derive(Default)]
pub(super) struct Dispatched {
    /// So many were sent the event.
    pub sent: usize,
    /// Their channels are full: they are no longer in the dispatch.
    pub behind: Vec<CacheWatcher>,
}

impl CacheWatcher {
    fn offer(&mut self, event: &StoreEvent, field_names: &[&str]) -> Offer {
        if event.revision() <= self.position {
            return Offer::Passed;
        }
        let Some(seen) = event.seen_by(&self.selection, field_names) else { return Offer::Passed };
        match self.sender.try_send(seen) {
            Ok(()) => Offer::Sent,
            Err(mpsc::error::TrySendError::Full(_)) => {
                self.position = event.revision() - 1;
                Offer::Full
            }
            Err(mpsc::error::TrySendError::Closed(_)) => Offer::Gone,
        }
    }

    pub(super) fn is_cut(&self) -> bool {
        self.cut.as_ref().is_some_and(WatchCut::is_cut)
    }

    fn due(&self) -> Option<Duration> {
        self.bookmark_at.into_iter().chain(self.ends_at).min()
    }
}

fn field(object: &Object, at: usize) -> &str {
    object.fields.get(at).map_or("", String::as_str)
}

impl CacheWatchers {
    /// Takes a watcher that has been sent everything up to its position; `field_names` are its kind's.
    pub(super) fn add(&mut self, mut watcher: CacheWatcher, field_names: &[&str]) {
        watcher.is_new = false;
        // One that was cut while it caught up.
        if watcher.is_cut() {
            return;
        }
        self.added += 1;
        if self.added >= PURGE_AFTER.max(self.len()) {
            self.retain(|watcher| !watcher.sender.is_closed());
            self.added = 0;
        }
        self.next_due = self.next_due.into_iter().chain(watcher.due()).min();
        self.place(&watcher.selection, field_names).push(watcher);
    }

    fn place(&mut self, selection: &ObjectSelection, field_names: &[&str]) -> &mut Vec<CacheWatcher> {
        if let Some(key) = &selection.key {
            return self.objects.entry(key.clone()).or_default();
        }
        let fields = &selection.predicate.fields;
        let fixed = |(at, name): (usize, &&str)| Some((at, fields.required_value(name)?.to_owned()));
        if let Some((at, value)) = field_names.iter().enumerate().find_map(fixed) {
            return self.fields.entry(at).or_default().entry(value).or_default();
        }
        match selection.namespace.as_str() {
            "" => &mut self.all,
            namespace => self.namespaces.entry(namespace.to_owned()).or_default(),
        }
    }

    /// Sends an event to whom it concerns.
    pub(super) fn dispatch(&mut self, event: &StoreEvent, field_names: &[&str]) -> Dispatched {
        let mut done = Dispatched::default();
        let mut visit = |watchers: Option<&mut Vec<CacheWatcher>>| {
            let Some(watchers) = watchers else { return };
            let mut at = 0;
            while at < watchers.len() {
                match watchers[at].offer(event, field_names) {
                    Offer::Sent => (at, done.sent) = (at + 1, done.sent + 1),
                    Offer::Passed => at += 1,
                    Offer::Full => done.behind.push(watchers.swap_remove(at)),
                    Offer::Gone => drop(watchers.swap_remove(at)),
                }
            }
        };
        visit(Some(&mut self.all));
        visit(self.namespaces.get_mut(&event.object.metadata.namespace));
        if !self.objects.is_empty() {
            visit(self.objects.get_mut(&**event.object.shared_key()));
        }
        for (at, by_value) in &mut self.fields {
            let now = field(&event.object, *at);
            let before = event.previous.as_ref().map(|object| field(object, *at));
            visit(by_value.get_mut(now));
            visit(before.filter(|before| *before != now).and_then(|before| by_value.get_mut(before)));
        }
        self.dispatched = event.revision();
        done
    }

    /// Everything up to `revision` has been dispatched.
    pub(super) fn advance(&mut self, revision: Revision) {
        self.dispatched = self.dispatched.max(revision);
    }

    /// When somebody is next to get a bookmark or to end.
    pub(super) fn next_due(&self) -> Option<Duration> {
        self.next_due
    }

    /// Ends the watches whose time is over and sends the bookmarks that are due.
    pub(super) fn tick(&mut self, now: Duration) {
        let dispatched = self.dispatched;
        let mut next_due: Option<Duration> = None;
        self.retain(|watcher| {
            if watcher.ends_at.is_some_and(|end| end <= now) {
                return false;
            }
            if watcher.bookmark_at.is_some_and(|due| due <= now) {
                let resource_version = dispatched.max(watcher.position);
                let bookmark = Bookmark { resource_version, initial_events_end: false };
                // A full channel has more to tell than a bookmark.
                let _ = watcher.sender.try_send(WatchEvent::Bookmark(bookmark));
                watcher.bookmark_at = Some(next_bookmark(now, watcher.ends_at));
            }
            next_due = next_due.into_iter().chain(watcher.due()).min();
            !watcher.sender.is_closed()
        });
        self.next_due = next_due;
    }

    /// Ends the watches that were cut.
    pub(super) fn end_cut(&mut self) {
        self.retain(|watcher| !watcher.is_cut());
    }

    /// Ends all watches.
    pub(super) fn clear(&mut self) {
        self.retain(|_| false);
        self.next_due = None;
    }

    /// Ends all watches, and those to come.
    pub(super) fn close(&mut self) {
        self.clear();
        self.closed = true;
    }

    /// Whether watches are no longer taken.
    pub(super) fn is_closed(&self) -> bool {
        self.closed
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        let by_value = self.fields.values().flat_map(HashMap::values);
        let lists = self.namespaces.values().chain(self.objects.values()).chain(by_value);
        self.all.len() + lists.map(Vec::len).sum::<usize>()
    }

    fn retain(&mut self, mut keep: impl FnMut(&mut CacheWatcher) -> bool) {
        let mut sweep = |lists: &mut WatchersBy| {
            lists.retain(|_, watchers| {
                watchers.retain_mut(&mut keep);
                !watchers.is_empty()
            });
        };
        sweep(&mut self.namespaces);
        sweep(&mut self.objects);
        self.fields.values_mut().for_each(&mut sweep);
        self.fields.retain(|_, by_value| !by_value.is_empty());
        self.all.retain_mut(keep);
    }
}
