//! A StatefulSet in the hands of one sync.

use std::sync::Arc;

use crate::controller::Reconcile;
use apimachinery::labels::Selector;
use apimachinery::object::Object;
use apimachinery::time::Time;
use apis::apps::stateful_set::STATEFUL_SETS;
use apis::views::stateful_set::StatefulSet;

/// A set that is being synced.
pub(super) struct StatefulSetWork {
    /// As the cache has it.
    pub object: Arc<Object>,
    /// What was read of it.
    pub view: Arc<StatefulSet>,
    /// Which pods are its own.
    pub selector: Selector,
    /// When the sync began.
    pub now: Time,
}

impl StatefulSetWork {
    /// The set's name.
    pub(super) fn name(&self) -> &str {
        &self.object.metadata.name
    }

    /// The set's namespace.
    pub(super) fn namespace(&self) -> &str {
        &self.object.metadata.namespace
    }

    /// The set's uid.
    pub(super) fn uid(&self) -> &str {
        &self.object.metadata.uid
    }

    /// Tells people of something about the set.
    pub(super) fn event(&self, ctx: &Reconcile, event_type: &str, reason: &str, message: impl Into<String>) {
        ctx.event(&STATEFUL_SETS, &self.object, event_type, reason, message);
    }
}
