//! The pods of a Job, as its controller looks at them.

use std::collections::BTreeSet;
use std::sync::Arc;

use chrono::TimeDelta;

use crate::controller_ref::is_controlled_by;
use crate::pod_state;
use apimachinery::object::Object;
use apimachinery::time::Time;
use apis::views::job::JobSpec;
use apis::views::meta::condition;
use apis::views::pod::Pod;

/// Keeps a pod until the Job's status has counted it.
pub(super) const TRACKING_FINALIZER: &str = "batch.kubernetes.io/job-tracking";
/// The annotation and the label of a pod's index.
pub(super) const COMPLETION_INDEX: &str = "batch.kubernetes.io/job-completion-index";
/// The annotation of how many pods of the same index failed before it.
pub(super) const INDEX_FAILURES: &str = "batch.kubernetes.io/job-index-failure-count";
/// The annotation of how many failures of the same index were ignored before it.
pub(super) const INDEX_IGNORED_FAILURES: &str = "batch.kubernetes.io/job-index-ignored-failure-count";

/// One pod of a Job.
#[derive(Clone)]
pub(super) struct JobPod {
    /// The whole.
    pub object: Arc<Object>,
    /// What is read of it.
    pub view: Arc<Pod>,
    /// Whether it has the finalizer, so that it is still to be counted.
    pub is_tracked: bool,
}

impl JobPod {
    /// A pod of `job`; `released` are those whose finalizer was removed although the cache does not show it
    /// yet.
    pub(super) fn of(object: Arc<Object>, job: &Object, released: &BTreeSet<String>) -> JobPod {
        // One that was adopted just now got the finalizer with it.
        let has_finalizer = has_finalizer(&object) || !is_controlled_by(&object, job);
        let is_tracked = has_finalizer && !released.contains(&object.metadata.uid);
        let view = object.view::<Pod>();
        JobPod { object, view, is_tracked }
    }

    /// Its uid.
    pub(super) fn uid(&self) -> &str {
        &self.object.metadata.uid
    }

    /// Its name.
    pub(super) fn name(&self) -> &str {
        &self.object.metadata.name
    }

    /// `controller.IsPodActive`
    pub(super) fn is_active(&self) -> bool {
        pod_state::is_active(&self.object)
    }

    /// `controller.IsPodTerminating`
    pub(super) fn is_terminating(&self) -> bool {
        pod_state::is_terminating(&self.object)
    }

    /// Whether it ended well.
    pub(super) fn has_succeeded(&self) -> bool {
        self.view.status.phase == "Succeeded"
    }

    /// Whether it counts as failed. One that is on its way out does, unless it is waited for: an orphan might
    /// never get to its end.
    pub(super) fn has_failed(&self, spec: &JobSpec) -> bool {
        let is_going = self.object.is_deleting() && !self.has_succeeded();
        self.view.status.phase == "Failed" || (is_going && !spec.replaces_only_failed())
    }

    /// Its index, if it has one.
    pub(super) fn index(&self) -> Option<i64> {
        self.number(COMPLETION_INDEX)
    }

    /// Its index, if that is one that its Job has.
    pub(super) fn valid_index(&self, spec: &JobSpec) -> Option<i64> {
        self.index().filter(|index| *index < spec.completions.unwrap_or(0))
    }

    /// How many pods of its index failed before it.
    pub(super) fn index_failures(&self) -> i64 {
        self.number(INDEX_FAILURES).unwrap_or(0)
    }

    /// How many failures of its index were ignored before it.
    pub(super) fn index_ignored_failures(&self) -> i64 {
        self.number(INDEX_IGNORED_FAILURES).unwrap_or(0)
    }

    /// When it ended, or an estimate (`getFinishedTime`): by its containers, by its readiness, by its
    /// deletion, by its creation.
    pub(super) fn finished_at(&self) -> Time {
        let metadata = &self.object.metadata;
        let grace = TimeDelta::seconds(metadata.deletion_grace_period_seconds.unwrap_or(0));
        self.containers_finished_at()
            .or_else(|| {
                let ready = condition(&self.view.status.conditions, "Ready")?;
                ready.last_transition_time.filter(|_| ready.status == "False")
            })
            .or_else(|| metadata.deletion_timestamp.map(|deleted| deleted - grace))
            .or(metadata.creation_timestamp)
            .unwrap_or(Time::UNIX_EPOCH)
    }

    fn containers_finished_at(&self) -> Option<Time> {
        let statuses = self.view.status.container_statuses.iter();
        let ends: Option<Vec<Time>> =
            statuses.map(|status| status.state.terminated.as_ref()?.finished_at).collect();
        ends?.into_iter().max()
    }

    fn number(&self, annotation: &str) -> Option<i64> {
        let text = self.view.metadata.annotations.get(annotation)?;
        text.parse::<i32>().ok().filter(|number| *number >= 0).map(i64::from)
    }
}

/// Whether a pod has the [`TRACKING_FINALIZER`].
pub(super) fn has_finalizer(pod: &Object) -> bool {
    pod.metadata.finalizers.iter().any(|finalizer| finalizer == TRACKING_FINALIZER)
}
