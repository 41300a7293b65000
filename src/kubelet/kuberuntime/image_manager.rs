//! Pulling the image of a container or of a volume (`pkg/kubelet/images`, `image_manager.go`), and the
//! back-off when that fails.

use std::time::Duration;

use super::context::{Happening, PodEvent, SyncContext};
use super::image_names;
use crate::backoff::{self, RetryPause};
use crate::container_runtime::services::{Call, ContainerConfig, Image, RuntimeError};
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
/// The reason of a container whose image could not be pulled some time ago.
const BACK_OFF: &str = "ImagePullBackOff";

/// An image that is wanted on the node.
#[derive(Clone, Copy)]
pub(crate) struct WantedImage<'a> {
    /// The container; of a volume its name, image and policy as those of a container.
    pub(crate) spec: &'a Spec,
    /// How often the container was restarted.
    pub(crate) attempt: i64,
    /// Events of a volume's image are about the pod as a whole.
    pub(crate) is_volume: bool,
}

/// Where an image is on its way.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Pull {
    /// CRI's `PullImage` has not returned.
    Called { began: Time, call: Call<Image> },
    /// It has failed, and soon that is shown as a back-off.
    Failed { until: Time, failed_at: Time, error: RuntimeError },
    /// It is tried again then.
    BackOff { until: Time },
}

/// What a step led to.
pub(crate) enum PullOutcome {
    /// The image is there.
    Present,
    /// It is on its way.
    Pulling(Pull),
    /// It cannot be had now: what a container that wants it waits for.
    Failing(Pull, RuntimeError),
}

impl Pull {
    /// When its next step is due; nothing when its call never returns.
    pub(crate) fn due(&self) -> Option<Time> {
        match self {
            Pull::Called { call, .. } => call.returns_at,
            Pull::Failed { until, .. } | Pull::BackOff { until } => Some(*until),
        }
    }

    /// Until when it is not tried again.
    pub(crate) fn retry(&self) -> Option<Time> {
        match self {
            Pull::BackOff { until } => Some(*until),
            _ => None,
        }
    }
}

impl WantedImage<'_> {
    /// CRI `PullImage`, unless the image is there and the policy is content with that
    /// (`EnsureImageExists`).
    pub(crate) fn ensure(&self, context: &mut SyncContext<'_>) -> PullOutcome {
        let image = &self.spec.image;
        if let Err(why) = image_names::check(image) {
            let text = format!("Failed to apply default image tag {image:?}: {why}");
            return self.refuse("InspectFailed", INVALID_NAME, text, context);
        }
        let is_brought = || context.runtime.is_brought(&self.config(context), context.now);
        let is_never = self.spec.image_pull_policy == "Never";
        if is_never && !is_brought() {
            return self.refuse_to_pull("is not present with pull policy of Never", context);
        }
        let is_present = is_never || context.runtime.image_status(image, context.now).is_some();
        context.called("image_status", context.now, false);
        let is_verified = is_present && context.images.verifies(image);
        let is_pulled = !is_present || self.spec.image_pull_policy == "Always";
        let refusal = if is_verified || is_pulled { context.refuses_image(image) } else { None };
        let is_private = is_verified && refusal.is_some();
        if is_never && is_private {
            let why = "is present with pull policy of Never but does not have the proper credentials to access \
                       the image";
            return self.refuse_to_pull(why, context);
        }
        if !is_pulled && !is_private {
            let text = format!(
                "Container image {image:?} already present on machine and can be accessed by the pod"
            );
            self.note(context, "Normal", "Pulled", text);
            return PullOutcome::Present;
        }
        self.note(context, "Normal", "Pulling", format!("Pulling image {image:?}"));
        let call = match refusal {
            Some(refusal) => Call { returns_at: Some(context.now), result: Err(refusal) },
            None => context.runtime.pull_image(&self.config(context), context.now),
        };
        PullOutcome::Pulling(Pull::Called { began: context.now, call })
    }

    /// Takes the step that is due.
    pub(crate) fn step(
        &self,
        pull: Pull,
        backoff: &mut RetryPause,
        context: &mut SyncContext<'_>,
    ) -> PullOutcome {
        match pull {
            Pull::Called { began, call } => match call.result {
                Ok(image) => self.pulled(began, &image, context),
                Err(error) => self.failed(began, error, backoff, context),
            },
            Pull::Failed { failed_at, error, .. } => self.back_off(failed_at, &error, *backoff, context),
            Pull::BackOff { .. } => self.ensure(context),
        }
    }

    /// `ErrImageNeverPull`: the image may still be brought.
    fn refuse_to_pull(&self, why: &str, context: &mut SyncContext<'_>) -> PullOutcome {
        let text = format!("Container image {:?} {why}", self.spec.image);
        self.refuse(NEVER_PULLED, NEVER_PULLED, text, context)
    }

    /// There is nothing to be pulled; but whoever reads the event of this reason may mend that.
    fn refuse(
        &self,
        event: &'static str,
        reason: &str,
        message: String,
        context: &mut SyncContext<'_>,
    ) -> PullOutcome {
        self.note(context, "Warning", event, message.clone());
        let error = RuntimeError { reason: reason.to_owned(), message };
        PullOutcome::Failing(Pull::BackOff { until: context.now + RETRY }, error)
    }

    fn pulled(&self, began: Time, pulled: &Image, context: &mut SyncContext<'_>) -> PullOutcome {
        let image = &self.spec.image;
        let took = (context.now - began).to_std().unwrap_or_default().max(Duration::from_millis(1));
        let (took, size) = (duration::format(whole_milliseconds(took)), pulled.size);
        let took = format!("Successfully pulled image {image:?} in {took} ({took} including waiting).");
        self.note(context, "Normal", "Pulled", format!("{took} Image size: {size} bytes."));
        context.called("pull_image", began, false);
        context.happenings.push(Happening::ImagePulled { began, size });
        PullOutcome::Present
    }

    fn failed(
        &self,
        began: Time,
        error: RuntimeError,
        backoff: &mut RetryPause,
        context: &mut SyncContext<'_>,
    ) -> PullOutcome {
        let text = format!("Failed to pull image {:?}: {}", self.spec.image, error.message);
        self.note(context, "Warning", "Failed", text);
        context.called("pull_image", began, true);
        backoff.next(began, context.now, backoff::MAX);
        let until = context.now + BACKOFF_SHOWS_AFTER;
        let pull = Pull::Failed { until, failed_at: context.now, error: error.clone() };
        PullOutcome::Failing(pull, error)
    }

    fn back_off(
        &self,
        failed_at: Time,
        error: &RuntimeError,
        backoff: RetryPause,
        context: &mut SyncContext<'_>,
    ) -> PullOutcome {
        let text = format!("Back-off pulling image {:?}", self.spec.image);
        let message = format!("{text}: {}: {}", error.reason, error.message);
        self.note(context, "Normal", "BackOff", text);
        let until = backoff.until(failed_at, backoff::MAX).unwrap_or(context.now);
        PullOutcome::Failing(Pull::BackOff { until }, RuntimeError { reason: BACK_OFF.into(), message })
    }

    fn config<'b>(&'b self, context: &SyncContext<'b>) -> ContainerConfig<'b> {
        context.config(self.spec, self.attempt)
    }

    fn note(
        &self,
        context: &mut SyncContext<'_>,
        event_type: &'static str,
        reason: &'static str,
        message: String,
    ) {
        if !self.is_volume {
            return context.note(self.spec, event_type, reason, message);
        }
        let event = PodEvent { container: String::new(), list: "", event_type, reason, message };
        context.happenings.push(Happening::Event(event));
    }
}

/// As pulls are told of.
fn whole_milliseconds(duration: Duration) -> Duration {
    duration - Duration::from_nanos(u64::from(duration.subsec_nanos() % 1_000_000))
}
