//! `StoreEvent`: one change to one object, with the state before it, so that each watcher can see it through
//! its own selector (`storage/cacher.watchCacheEvent`).

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use super::request::ObjectSelection;
use apimachinery::object::Object;
use apimachinery::watch::WatchEvent;
use etcd::Revision;

/// One change. Shared by the ring and by every watcher that it concerns.
#[derive(Debug)]
pub struct StoreEvent {
    /// The new state; of a deletion the last one, at the revision of the deletion.
    pub object: Arc<Object>,
    /// The state before; none for a new object.
    pub previous: Option<Arc<Object>>,
    /// Whether it was a deletion.
    pub deleted: bool,
    /// When it was heard of, on the cluster's clock.
    pub heard_at: Duration,
    /// The state before at this change's revision, once somebody's selector no longer matches.
    left: OnceLock<Arc<Object>>,
}

impl StoreEvent {
    /// A put, or a deletion of an object whose last state is `object`.
    pub fn new(
        object: Arc<Object>,
        previous: Option<Arc<Object>>,
        deleted: bool,
        heard_at: Duration,
    ) -> Self {
        StoreEvent { object, previous, deleted, heard_at, left: OnceLock::new() }
    }

    /// The revision of the change.
    pub fn revision(&self) -> Revision {
        self.object.metadata.resource_version
    }

    /// What a watcher of `selection` is told: coming into view is an addition, leaving it a deletion of the
    /// state that was in view.
    pub fn seen_by(&self, selection: &ObjectSelection, field_names: &[&str]) -> Option<WatchEvent> {
        let matched = |object: &Arc<Object>| selection.matches(object, field_names);
        let before = self.previous.as_ref().is_some_and(matched);
        if self.deleted {
            return before.then(|| WatchEvent::Deleted(self.object.clone()));
        }
        match (before, matched(&self.object)) {
            (false, true) => Some(WatchEvent::Added(self.object.clone())),
            (true, true) => Some(WatchEvent::Modified(self.object.clone())),
            (true, false) => Some(WatchEvent::Deleted(self.left())),
            (false, false) => None,
        }
    }

    fn left(&self) -> Arc<Object> {
        let previous = self.previous.as_ref().unwrap_or(&self.object);
        self.left.get_or_init(|| Arc::new(previous.at_revision(self.revision()))).clone()
    }
}
