//! The parts of the scheduler, which its loops and its event handlers share.

use std::sync::Arc;

use tokio::sync::Semaphore;

use super::cache::Cache;
use super::extender::Extenders;
use super::framework::cluster_event::{ActionType, EventResource, Occurrence, label};
use super::framework::plugin_numbers::PluginNumbers;
use super::framework::pod_info::PodInfo;
use super::framework::preempting::Preempting;
use super::framework::profiles::Profiles;
use super::metrics::SchedulerMetrics;
use super::queue::SchedulingQueue;
use apimachinery::object::Object;
use client_go::component::ComponentContext;
use client_go::lister::Lister;

/// Bindings and reports of failures that are on their way at once; at the bound the next attempt waits.
pub(super) const MAX_WRITES: usize = 100;

/// What one scheduler consists of (the fields of upstream's `Scheduler`).
pub struct SchedulerParts {
    pub(super) context: ComponentContext,
    pub(super) profiles: Arc<Profiles>,
    pub(super) extenders: Extenders,
    pub(super) queue: SchedulingQueue,
    pub(super) cache: Cache,
    pub(super) pods: Lister,
    pub(super) preempting: Preempting,
    pub(super) metrics: SchedulerMetrics,
    pub(super) plugin_numbers: Arc<PluginNumbers>,
    /// Bindings and reports of failures that are on their way.
    pub(super) writes: Arc<Semaphore>,
}

impl SchedulerParts {
    /// What happened in the cluster may let pods that wait be tried again.
    pub(super) fn happened(
        &self,
        resource: EventResource,
        action: ActionType,
        old: Option<&Arc<Object>>,
        new: Option<&Arc<Object>>,
    ) {
        let occurrence = Occurrence { event: (resource, action), old: old.cloned(), new: new.cloned() };
        let name = label(occurrence.event);
        self.handling(&name, || self.queue.move_all(occurrence));
    }

    /// Notes how long it takes to handle an event.
    pub(super) fn handling(&self, event: &str, handle: impl FnOnce()) {
        let begun = self.context.clock.elapsed();
        handle();
        self.metrics.handled(event, self.context.clock.elapsed().saturating_sub(begun));
    }

    /// A pod is on a node, which may have been this scheduler's doing.
    pub(super) fn pod_is_assigned(&self, object: &Arc<Object>) {
        self.queue.remove(&object.metadata.uid);
        self.cache.add_pod(Arc::new(PodInfo::new(object.clone())));
        self.happened(EventResource::AssignedPod, ActionType::Add, None, Some(object));
    }
}
