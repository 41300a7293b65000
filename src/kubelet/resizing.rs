//! A pod whose resources change while it runs: what its worker does about it.

use std::time::Duration;

use super::allocation::ResizeVerdict;
use super::kuberuntime::context::{Happening, SyncContext};
use super::kuberuntime::task::Task;
use super::pod_workers::PodWorker;
use apimachinery::object::Object;
use apimachinery::time::Time;
use clock::after;

/// How long after a failure it is tried again (`backOffPeriod`).
const RETRY: Duration = Duration::from_secs(10);

impl PodWorker {
    /// It has been looked whether the pod can have what `new` wants.
    pub(crate) fn resize(&mut self, new: &Object, verdict: ResizeVerdict) {
        let old = self.object.clone();
        let before = self.pod.clone();
        self.resize.get_or_insert_default().take(verdict, (&old, &before), new);
    }

    /// Whether its containers do not get what it was given.
    pub(crate) fn is_resize_failing(&self) -> bool {
        self.resize.as_ref().is_some_and(|resize| resize.is_failing())
    }

    /// Has containers started again that want that, and tells what happened.
    pub(crate) fn begin_resize(&mut self, context: &mut SyncContext<'_>) {
        let Some(resize) = &mut self.resize else { return };
        let (events, restarts) = resize.take_news();
        context.happenings.extend(events.into_iter().map(Happening::Event));
        for name in restarts {
            let Some(spec) = context.pod.spec.all_containers().find(|spec| spec.name == name) else {
                continue;
            };
            let Some(container) = self.container_mut(&name) else { continue };
            container.restart_as(spec, "resize requires restart", context);
        }
    }

    /// It is over when all containers have what they were given. Says when it is tried again, where they do
    /// not get it.
    pub(crate) fn end_resize(&mut self, context: &mut SyncContext<'_>) -> Option<Time> {
        let resize = self.resize.as_ref()?;
        if resize.is_failing() {
            return Some(after(context.now, RETRY));
        }
        if !resize.is_in_progress() {
            return None;
        }
        let is_there = |task: &Task| matches!(task, Task::Run(_) | Task::Done | Task::Idle);
        if self.all_containers().all(|(_, container)| is_there(&container.task)) {
            let event = self.resize.as_mut().map(|resize| resize.complete(&self.object));
            context.happenings.extend(event.map(Happening::Event));
        }
        None
    }
}
