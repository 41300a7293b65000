//! Pulling the image of a container (`pkg/kubelet/images`, `image_manager.go`), and the back-off when that
//! fails.

use std::time::Duration;

use super::container::{Container, Task};
use super::context::SyncContext;
use super::image_names;
use super::state::{State, waiting};
use crate::container_runtime::services::{Call, Image, RuntimeError};
use apimachinery::duration;
use apimachinery::time::Time;
use apis::views::pod::Container as Spec;

/// Between a failed pull and the status that says so: upstream, the next time that the pod is looked at.
const BACKOFF_SHOWS_AFTER: Duration = Duration::from_secs(1);
/// Until a container whose image cannot be had is looked at again (`--sync-frequency`).
const RETRY: Duration = Duration::from_secs(60);
/// The reason of a container whose image cannot be named so.
const INVALID_NAME: &str = "InvalidImageName";
/// The reason of a container whose image is not there, and is not to be pulled.
const NEVER_PULLED: &str = "ErrImageNeverPull";

impl Container {
    /// CRI `PullImage`, unless the image is there and the policy is content with that.
    pub(crate) fn pull(&mut self, spec: &Spec, context: &mut SyncContext<'_>) {
        let image = &spec.image;
        if let Err(why) = image_names::check(image) {
            return self.refuse_name(spec, &why, context);
        }
        let is_brought =
            || context.runtime.is_brought(&context.config(spec, self.restart_count), context.now);
        let is_never = spec.image_pull_policy == "Never";
        if is_never && !is_brought() {
            return self.refuse_to_pull(spec, "is not present with pull policy of Never", context);
        }
        let is_present = is_never || context.runtime.image_status(image, context.now).is_some();
        let is_verified = is_present && context.images.verifies(image);
        let is_pulled = !is_present || spec.image_pull_policy == "Always";
        let refusal = if is_verified || is_pulled { context.refuses_image(image) } else { None };
        let is_private = is_verified && refusal.is_some();
        if is_never && is_private {
            let why = "is present with pull policy of Never but does not have the proper credentials to access \
                       the image";
            return self.refuse_to_pull(spec, why, context);
        }
        if !is_pulled && !is_private {
            let text = format!(
                "Container image {image:?} already present on machine and can be accessed by the pod"
            );
            context.note(spec, "Normal", "Pulled", text);
            return self.create(spec, context);
        }
        context.note(spec, "Normal", "Pulling", format!("Pulling image {image:?}"));
        let call = match refusal {
            Some(refusal) => Call { returns_at: Some(context.now), result: Err(refusal) },
            None => context.runtime.pull_image(&context.config(spec, self.restart_count), context.now),
        };
        self.task = Task::Pull { began: context.now, call };
    }

    /// `ErrImageNeverPull`: the image may still be brought.
    fn refuse_to_pull(&mut self, spec: &Spec, why: &str, context: &mut SyncContext<'_>) {
        let text = format!("Container image {:?} {why}", spec.image);
        context.note(spec, "Warning", NEVER_PULLED, text.clone());
        context.note(spec, "Warning", "Failed", format!("Error: {NEVER_PULLED}"));
        self.state = waiting(NEVER_PULLED, &text);
        self.task = Task::PullBackOff { until: context.now + RETRY };
    }

    /// `InvalidImageName`: there is nothing to be pulled, but whoever reads the events may mend it.
    fn refuse_name(&mut self, spec: &Spec, why: &str, context: &mut SyncContext<'_>) {
        let text = format!("Failed to apply default image tag {:?}: {why}", spec.image);
        context.note(spec, "Warning", "InspectFailed", text.clone());
        context.note(spec, "Warning", "Failed", format!("Error: {INVALID_NAME}"));
        self.state = waiting(INVALID_NAME, &text);
        self.task = Task::PullBackOff { until: context.now + RETRY };
    }

    pub(crate) fn pulled(&mut self, spec: &Spec, began: Time, pulled: &Image, context: &mut SyncContext<'_>) {
        let image = &spec.image;
        let took = (context.now - began).to_std().unwrap_or_default().max(Duration::from_millis(1));
        let (took, size) = (duration::format(whole_milliseconds(took)), pulled.size);
        let took = format!("Successfully pulled image {image:?} in {took} ({took} including waiting).");
        context.note(spec, "Normal", "Pulled", format!("{took} Image size: {size} bytes."));
        self.create(spec, context);
    }

    pub(crate) fn pull_failed(
        &mut self,
        spec: &Spec,
        failed_at: Time,
        error: &RuntimeError,
        context: &mut SyncContext<'_>,
    ) {
        let RuntimeError { reason, message } = error;
        context.note(spec, "Warning", "Failed", format!("Failed to pull image {:?}: {message}", spec.image));
        context.note(spec, "Warning", "Failed", format!("Error: {}", reason));
        self.pulls.next(failed_at, context.now);
        self.state = waiting(reason, message);
        self.task = Task::ShowBackOff { until: context.now + BACKOFF_SHOWS_AFTER, failed_at: context.now };
    }

    pub(crate) fn show_pull_back_off(&mut self, spec: &Spec, failed_at: Time, context: &mut SyncContext<'_>) {
        let text = format!("Back-off pulling image {:?}", spec.image);
        let message = match &self.state {
            State::Waiting { reason, message } => format!("{text}: {reason}: {message}"),
            _ => text.clone(),
        };
        context.note(spec, "Normal", "BackOff", text);
        context.note(spec, "Warning", "Failed", "Error: ImagePullBackOff".into());
        self.state = waiting("ImagePullBackOff", &message);
        self.task = Task::PullBackOff { until: self.pulls.until(failed_at).unwrap_or(context.now) };
    }
}

/// As pulls are told of.
fn whole_milliseconds(duration: Duration) -> Duration {
    duration - Duration::from_nanos(u64::from(duration.subsec_nanos() % 1_000_000))
}
