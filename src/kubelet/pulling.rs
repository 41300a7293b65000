//! Pulling the image of a container (`pkg/kubelet/images`), and the back-off when that fails.

use std::time::Duration;

use super::image_names;
use super::runtime::{Container, State, Task, until, waiting};
use super::world::World;
use crate::container_runtime::stages::{Failure, Step};
use apimachinery::duration;
use apimachinery::time::Time;
use apis::views::pod::Container as Spec;
use machine::images;

/// Between a failed pull and the status that says so: upstream, the next time that the pod is looked at.
const BACKOFF_SHOWS_AFTER: Duration = Duration::from_secs(1);
/// Until a name that is none is looked at again (`--sync-frequency`).
const NAME_RETRY: Duration = Duration::from_secs(60);
/// The reason of a container whose image cannot be named so.
const INVALID_NAME: &str = "InvalidImageName";

impl Container {
    /// CRI `PullImage`, unless the image is there and the policy is content with that.
    pub(super) fn pull(&mut self, spec: &Spec, world: &mut World<'_>) {
        let image = &spec.image;
        if let Err(why) = image_names::check(image) {
            return self.refuse_name(spec, &why, world);
        }
        // Images with the policy Never were brought by whoever wrote it: nothing simulated can have lost
        // them.
        if spec.image_pull_policy == "Never"
            || (world.images.has(image) && spec.image_pull_policy != "Always")
        {
            let text = format!(
                "Container image {image:?} already present on machine and can be accessed by the pod"
            );
            world.note(spec, "Normal", "Pulled", text);
            return self.create(spec, world);
        }
        world.note(spec, "Normal", "Pulling", format!("Pulling image {image:?}"));
        let (delay, next) = world.stage(Step::Pull, spec, self.restart_count);
        self.task = Task::Pull { began: world.now, until: until(world.now, delay, &next), next };
    }

    /// `InvalidImageName`: there is nothing to be pulled, but whoever reads the events may mend it.
    fn refuse_name(&mut self, spec: &Spec, why: &str, world: &mut World<'_>) {
        let text = format!("Failed to apply default image tag {:?}: {why}", spec.image);
        world.note(spec, "Warning", "InspectFailed", text.clone());
        world.note(spec, "Warning", "Failed", format!("Error: {INVALID_NAME}"));
        self.state = waiting(INVALID_NAME, &text);
        self.task = Task::PullBackOff { until: world.now + NAME_RETRY };
    }

    pub(super) fn pulled(&mut self, spec: &Spec, began: Time, world: &mut World<'_>) {
        let image = &spec.image;
        world.images.add(image);
        let took = (world.now - began).to_std().unwrap_or_default().max(Duration::from_millis(1));
        let (took, size) = (duration::format(whole_milliseconds(took)), images::size_bytes(image));
        let took = format!("Successfully pulled image {image:?} in {took} ({took} including waiting).");
        world.note(spec, "Normal", "Pulled", format!("{took} Image size: {size} bytes."));
        self.create(spec, world);
    }

    pub(super) fn pull_failed(
        &mut self,
        spec: &Spec,
        failed_at: Time,
        failure: &Failure,
        world: &mut World<'_>,
    ) {
        let message = failure.message_for(&spec.image, &spec.name);
        world.note(spec, "Warning", "Failed", format!("Failed to pull image {:?}: {message}", spec.image));
        world.note(spec, "Warning", "Failed", format!("Error: {}", failure.reason));
        self.pulls.next(failed_at, world.now);
        self.state = waiting(&failure.reason, &message);
        self.task = Task::ShowBackOff { until: world.now + BACKOFF_SHOWS_AFTER, failed_at: world.now };
    }

    pub(super) fn show_pull_back_off(&mut self, spec: &Spec, failed_at: Time, world: &mut World<'_>) {
        let text = format!("Back-off pulling image {:?}", spec.image);
        let message = match &self.state {
            State::Waiting { reason, message } => format!("{text}: {reason}: {message}"),
            _ => text.clone(),
        };
        world.note(spec, "Normal", "BackOff", text);
        world.note(spec, "Warning", "Failed", "Error: ImagePullBackOff".into());
        self.state = waiting("ImagePullBackOff", &message);
        self.task = Task::PullBackOff { until: self.pulls.until(failed_at).unwrap_or(world.now) };
    }
}

/// As pulls are told of.
fn whole_milliseconds(duration: Duration) -> Duration {
    duration - Duration::from_nanos(u64::from(duration.subsec_nanos() % 1_000_000))
}
