//! A container that ends and begins anew with all others of its pod.

use std::time::Duration;

use super::container::KubeContainer;
use super::context::SyncContext;
use super::hooks::StopPurpose;
use super::state::{KubeContainerState, RestartAction, RestartPolicy, waiting};
use super::task::Task;
use crate::prober::Probers;
use apimachinery::time::Time;
use apis::views::pod::Container as Spec;
use clock::after;

/// So long the others have to end, without their hooks (`minimumGracePeriodInSeconds`).
const GRACE: Duration = Duration::from_secs(2);
/// The reason of a container that waits for its turn after that.
const RESTARTING: &str = "RestartingAllContainers";

impl KubeContainer {
    /// Without its hook, and with little grace.
    pub(crate) fn end_now(&mut self, spec: &Spec, context: &mut SyncContext<'_>) {
        let until = after(context.now, GRACE);
        if let Some(running) = self.take_running() {
            context.note(spec, "Normal", "Killing", format!("Stopping container {}", spec.name));
            self.readiness = running.probers.and_then(Probers::stop_liveness_and_startup);
            return self.signal(spec, (GRACE, context.now), StopPurpose::End, context);
        }
        match &mut self.task {
            Task::PreStop(hook) => hook.hurry(until),
            Task::Replace { until: ends, exit } | Task::Restart { until: ends, exit } => {
                self.task = Task::Stop { until: until.min(*ends), exit: exit.clone() };
            }
            Task::Stop { .. } => {}
            task => *task = Task::Done,
        }
    }

    /// Until when the others wait, when this is the one who asked for it: as if it alone started again.
    pub(crate) fn pause(&self, spec: &Spec, context: &SyncContext<'_>) -> Option<Time> {
        let finished_at = self.asked_at(spec, context)?;
        self.restarts.until(finished_at, context.longest_restart)
    }

    fn asked_at(&self, spec: &Spec, context: &SyncContext<'_>) -> Option<Time> {
        let KubeContainerState::Terminated(ended) = &self.state else { return None };
        let action = RestartAction::of(context.pod, spec, ended.exit.code);
        let has_asked =
            action == Some(RestartAction::RestartAll) && self.restart_policy != RestartPolicy::Ended;
        has_asked.then_some(ended.finished_at).flatten()
    }

    /// One that has run has been started once more.
    pub(crate) fn begin_anew(&mut self, spec: &Spec, is_init: bool, context: &mut SyncContext<'_>) {
        if let Some(finished_at) = self.asked_at(spec, context) {
            self.restarts.next(finished_at, context.now, context.longest_restart);
        }
        let has_run = matches!(self.state, KubeContainerState::Terminated(_));
        self.remember_end(context);
        self.restart_count += i64::from(has_run);
        self.begins_anew = self.has_run();
        self.end_probes();
        self.restart_policy = RestartPolicy::of(context.pod, spec, is_init);
        self.state = waiting(RESTARTING, "");
        self.task = Task::Idle;
    }
}
