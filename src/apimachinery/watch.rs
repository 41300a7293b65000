//! Watch events (`k8s.io/apimachinery/pkg/watch`): what happened to one object, in the order of the store's
//! log.

use std::sync::Arc;

use super::object::Object;
use super::status::Status;

/// One event of a watch.
#[derive(Clone, Debug)]
pub enum WatchEvent {
    /// The object came into view: created, or changed so that it now matches the selector.
    Added(Arc<Object>),
    /// The object changed.
    Modified(Arc<Object>),
    /// The object left the view; it is carried in its last state, at the revision of the deletion.
    Deleted(Arc<Object>),
    /// Nothing happened up to this revision.
    Bookmark(Bookmark),
    /// The watch ends here. Boxed, as the other events are small and there are channels full of them.
    Error(Box<Status>),
}

/// The content of a bookmark event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bookmark {
    /// Everything up to this revision has been sent.
    pub resource_version: u64,
    /// With `sendInitialEvents`: this bookmark closes the initial list
    /// (annotation `k8s.io/initial-events-end`, KEP-3157).
    pub initial_events_end: bool,
}

impl WatchEvent {
    /// The end of a watch.
    pub fn error(status: Status) -> WatchEvent {
        WatchEvent::Error(Box::new(status))
    }

    /// The event's name on the wire.
    pub fn type_name(&self) -> &'static str {
        match self {
            WatchEvent::Added(_) => "ADDED",
            WatchEvent::Modified(_) => "MODIFIED",
            WatchEvent::Deleted(_) => "DELETED",
            WatchEvent::Bookmark(_) => "BOOKMARK",
            WatchEvent::Error(_) => "ERROR",
        }
    }

    /// The object that an added, modified or deleted event carries.
    pub fn object(&self) -> Option<&Arc<Object>> {
        match self {
            WatchEvent::Added(object) | WatchEvent::Modified(object) | WatchEvent::Deleted(object) => {
                Some(object)
            }
            WatchEvent::Bookmark(_) | WatchEvent::Error(_) => None,
        }
    }
}
