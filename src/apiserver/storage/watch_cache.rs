//! `WatchCache`: the current objects of one kind, and a ring of what happened to them lately
//! (`storage/cacher.watchCache`).

use std::collections::VecDeque;
use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;

use super::event::StoreEvent;
use super::page::ListedPage;
use super::request::ListRequest;
use apimachinery::list::List;
use apimachinery::object::{Object, prefetch};
use apis::kind::Kind;
use etcd::Revision;

/// The ring begins with room for so many events.
const MIN_EVENTS: usize = 100;
/// It grows while its oldest event is younger than this: that long a watcher may be away.
const FRESH: Duration = Duration::from_secs(75);
/// It never holds more events than this, ...
const MAX_EVENTS: usize = 16_384;
/// ... nor more bytes of them. At either bound the oldest goes; a watch from before it reads etcd's log.
const MAX_BYTES: usize = 8 << 20;
/// So many objects are looked at before they are needed.
const LOOKAHEAD: usize = 32;
/// So many snapshots are kept for pages to come. At the bound the oldest goes; its next page reads etcd.
const MAX_SNAPSHOTS: usize = 8;

/// All objects of a kind at one revision, by key. Cloning shares it.
pub(super) type CacheSnapshot = imbl::OrdMap<Arc<str>, Arc<Object>>;

/// Everything up to `revision` is in `objects`, and what happened after `ring_start` is in the ring. Cloning
/// shares both, until one of the two changes.
#[derive(Clone)]
pub struct WatchCache {
    objects: CacheSnapshot,
    revision: Revision,
    ring: Arc<VecDeque<Arc<StoreEvent>>>,
    ring_start: Revision,
    ring_bytes: usize,
    objects_bytes: usize,
    capacity: usize,
    /// Snapshots that continue tokens name, by revision, the oldest token first.
    paged: VecDeque<(Revision, CacheSnapshot)>,
}

impl Default for WatchCache {
    fn default() -> WatchCache {
        WatchCache {
            objects: CacheSnapshot::new(),
            revision: 0,
            ring: Arc::default(),
            ring_start: 0,
            ring_bytes: 0,
            objects_bytes: 0,
            capacity: MIN_EVENTS,
            paged: VecDeque::new(),
        }
    }
}

impl WatchCache {
    /// The revision that it has reached; 0 before the first list.
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// The current objects.
    pub fn objects(&self) -> &CacheSnapshot {
        &self.objects
    }

    /// How many bytes the current objects are in the store, as far as it keeps them in their own form.
    pub fn objects_bytes(&self) -> usize {
        self.objects_bytes
    }

    /// For how many events the ring has room now.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// The objects of what happened lately, which may be current ones.
    pub fn lately(&self) -> impl Iterator<Item = &Arc<Object>> {
        self.ring.iter().flat_map(|event| event.previous.iter().chain([&event.object]))
    }

    /// Starts anew from a list. History before it is gone.
    pub fn replace(&mut self, items: Vec<Arc<Object>>, revision: Revision) {
        let objects_bytes = items.iter().map(|object| object.size_bytes()).sum();
        let entry = |object: Arc<Object>| (object.shared_key().clone(), object);
        let objects = items.into_iter().map(entry).collect();
        let begun = WatchCache { objects, revision, objects_bytes, ..WatchCache::default() };
        *self = WatchCache { ring_start: revision, ..begun };
    }

    /// Takes a put, or a deletion whose last state is `object`.
    pub fn apply(&mut self, object: Arc<Object>, deleted: bool, now: Duration) -> Arc<StoreEvent> {
        let key = object.shared_key().clone();
        self.revision = object.metadata.resource_version;
        let previous =
            if deleted { self.objects.remove(&key) } else { self.objects.insert(key, object.clone()) };
        self.objects_bytes += if deleted { 0 } else { object.size_bytes() };
        self.objects_bytes -= previous.as_ref().map_or(0, |previous| previous.size_bytes());
        let event = Arc::new(StoreEvent::new(object, previous, deleted, now));
        self.push(event.clone());
        event
    }

    /// Nothing else happened up to `revision`.
    pub fn advance(&mut self, revision: Revision) {
        self.revision = self.revision.max(revision);
    }

    fn push(&mut self, event: Arc<StoreEvent>) {
        let now = event.heard_at;
        if self.ring.len() >= self.capacity {
            self.resize(now);
        }
        self.ring_bytes += event.object.size_bytes();
        let ring = Arc::make_mut(&mut self.ring);
        ring.push_back(event);
        while ring.len() > self.capacity || self.ring_bytes > MAX_BYTES {
            let Some(oldest) = ring.pop_front() else { break };
            self.ring_bytes -= oldest.object.size_bytes();
            self.ring_start = oldest.revision();
        }
    }

    /// A full ring doubles while all of it is fresh, and halves when only its newest quarter is.
    fn resize(&mut self, now: Duration) {
        let is_fresh = |at: usize| self.ring.get(at).is_some_and(|event| now - event.heard_at < FRESH);
        if is_fresh(0) {
            self.capacity = (self.capacity * 2).min(MAX_EVENTS);
        } else if !is_fresh(self.ring.len() - self.ring.len() / 4) {
            self.capacity = (self.capacity / 2).max(MIN_EVENTS);
        }
    }

    /// Whether the ring holds everything that happened after `position`.
    pub fn covers(&self, position: Revision) -> bool {
        position >= self.ring_start
    }

    /// Whether it covers `position` and is not about to forget what comes after it, which is in its newer
    /// half.
    pub fn is_near(&self, position: Revision) -> bool {
        let middle = self.ring.get(self.ring.len() / 2).map_or(0, |event| event.revision());
        self.covers(position) && position >= middle
    }

    /// At most `limit` of the events after `position`; nothing when some of them have left the ring.
    pub fn events_after(&self, position: Revision, limit: usize) -> Option<Vec<Arc<StoreEvent>>> {
        if !self.covers(position) {
            return None;
        }
        let from = self.ring.partition_point(|event| event.revision() <= position);
        Some(self.ring.range(from..).take(limit).cloned().collect())
    }

    /// The objects as they were at `revision`, if that is at hand.
    pub fn snapshot_at(&self, revision: Revision) -> Option<CacheSnapshot> {
        let last_change = self.ring.back().map_or(self.ring_start, |event| event.revision());
        if (last_change..=self.revision).contains(&revision) {
            return Some(self.objects.clone());
        }
        let (_, snapshot) = self.paged.iter().find(|(at, _)| *at == revision)?;
        Some(snapshot.clone())
    }

    /// Keeps the objects as they are at `revision` for the pages to come.
    pub fn keep(&mut self, revision: Revision, snapshot: CacheSnapshot) {
        if self.paged.iter().any(|(at, _)| *at == revision) {
            return;
        }
        if self.paged.len() >= MAX_SNAPSHOTS {
            self.paged.pop_front();
        }
        self.paged.push_back((revision, snapshot));
    }
}

/// What a list asks for, out of a snapshot, and how many objects were looked at for it.
pub(super) fn list(
    snapshot: &CacheSnapshot,
    kind: &Kind,
    request: &ListRequest,
    revision: Revision,
) -> (List, usize) {
    let mut looked_at = 0;
    let mut page = ListedPage::new(request, kind.field_names());
    if let Some(key) = &request.selection.key {
        if let Some(object) = snapshot.get::<str>(key) {
            looked_at += 1;
            page.offer(key, object.clone());
        }
        return (page.finish(revision), looked_at);
    }
    let prefix = request.selection.prefix();
    let from = request.start.as_deref().unwrap_or(&prefix);
    let range = snapshot.range::<_, str>((Bound::Included(from), Bound::Unbounded));
    // Not even to compare nothing with it is a key looked at in vain: it is in no cache.
    let mut keys = range.take_while(|(key, _)| prefix.is_empty() || key.starts_with(&prefix));
    while !page.is_full() {
        let upcoming: Vec<_> = keys.by_ref().take(LOOKAHEAD).collect();
        if upcoming.is_empty() {
            break;
        }
        prefetch(upcoming.iter().map(|(_, object)| *object));
        looked_at += upcoming.len();
        let mut upcoming = upcoming.into_iter();
        while !page.is_full()
            && let Some((key, object)) = upcoming.next()
        {
            page.offer(key, object.clone());
        }
        looked_at -= upcoming.len();
        if page.is_full() {
            page.cut(upcoming.len() + keys.by_ref().count());
        }
    }
    (page.finish(revision), looked_at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn put(cache: &mut WatchCache, name: &str, revision: Revision, seconds: u64) {
        let tree = json!({"metadata": {"name": name, "resourceVersion": revision.to_string()}});
        let object = Arc::new(Object::from_value(&tree, vec![]).unwrap());
        cache.apply(object, false, Duration::from_secs(seconds));
    }

    #[test]
    fn the_ring_grows_while_it_is_fresh_and_forgets_the_oldest() {
        let mut cache = WatchCache::default();
        cache.replace(vec![], 10);
        (11..=160).for_each(|revision| put(&mut cache, "a", revision, 0));
        assert!(cache.covers(10) && cache.capacity == 200);
        (161..=400).for_each(|revision| put(&mut cache, "a", revision, 100));
        assert_eq!(cache.events_after(398, 10).unwrap().len(), 2);
        assert_eq!(cache.lately().count(), cache.ring.len() * 2, "each with what it replaced");
        assert_eq!(cache.events_after(350, 3).unwrap()[0].revision(), 351);
        assert!(cache.covers(300));
        (401..=900).for_each(|revision| put(&mut cache, "a", revision, revision * 100));
        assert_eq!(cache.capacity, MIN_EVENTS);
        assert!(cache.events_after(300, 10).is_none());
        assert_eq!(cache.events_after(800, 1000).unwrap().len(), 100);
    }

    #[test]
    fn snapshots_are_kept_for_pages_and_not_beyond_the_bound() {
        let mut cache = WatchCache::default();
        cache.replace(vec![], 1);
        put(&mut cache, "a", 2, 0);
        cache.keep(2, cache.objects().clone());
        put(&mut cache, "b", 3, 0);
        cache.advance(5);
        assert_eq!(cache.snapshot_at(2).unwrap().len(), 1);
        assert_eq!(cache.snapshot_at(4).unwrap().len(), 2);
        assert!(cache.snapshot_at(6).is_none());
        (10..10 + MAX_SNAPSHOTS as u64).for_each(|at| cache.keep(at, CacheSnapshot::new()));
        assert!(cache.snapshot_at(2).is_none());
    }
}
