//! What a container does while its image is pulled, and while one cannot be had.

use super::container::KubeContainer;
use super::context::SyncContext;
use super::image_manager::{Pull, PullOutcome, WantedImage};
use super::state::waiting;
use super::task::Task;
use crate::container_runtime::services::RuntimeError;
use apis::views::pod::Container as Spec;

impl KubeContainer {
    fn wanted_image<'a>(&self, spec: &'a Spec) -> WantedImage<'a> {
        WantedImage { spec, attempt: self.restart_count, is_volume: false }
    }

    /// Its image is made to be there.
    pub(crate) fn pull(&mut self, spec: &Spec, context: &mut SyncContext<'_>) {
        let outcome = self.wanted_image(spec).ensure(context);
        self.follow_pull(spec, outcome, context);
    }

    /// Takes the step of its pull that is due.
    pub(crate) fn go_on_pulling(&mut self, spec: &Spec, pull: Pull, context: &mut SyncContext<'_>) {
        let outcome = self.wanted_image(spec).step(pull, &mut self.pulls, context);
        self.follow_pull(spec, outcome, context);
    }

    fn follow_pull(&mut self, spec: &Spec, outcome: PullOutcome, context: &mut SyncContext<'_>) {
        match outcome {
            PullOutcome::Present => self.create(spec, context),
            PullOutcome::Pulling(pull) => self.task = Task::Pull(pull),
            PullOutcome::Failing(pull, error) => {
                self.wait_for_image(spec, &error, context);
                self.task = Task::Pull(pull);
            }
        }
    }

    /// It waits for an image, its own or that of a volume, that cannot be had now.
    fn wait_for_image(&mut self, spec: &Spec, error: &RuntimeError, context: &mut SyncContext<'_>) {
        let RuntimeError { reason, message } = error;
        context.note(spec, "Warning", "Failed", format!("Error: {reason}"));
        self.state = waiting(reason, message);
    }

    /// As long as its image volume fails in the same way, that is told once.
    pub(crate) fn wait_for_volume_image(
        &mut self,
        spec: &Spec,
        error: &RuntimeError,
        context: &mut SyncContext<'_>,
    ) {
        if self.state != waiting(&error.reason, &error.message) {
            self.wait_for_image(spec, error, context);
        }
    }
}
