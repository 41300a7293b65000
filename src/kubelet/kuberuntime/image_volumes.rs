//! The images that a pod has as volumes (`getImageVolumes`, `toKubeContainerImageVolumes` of
//! `kuberuntime_manager.go`).
//!
//! They are pulled one after the other before any container is started. A container that mounts one that
//! cannot be had waits as if that were its own image; the others are started.

use super::container::KubeContainer;
use super::context::SyncContext;
use super::image_manager::{Pull, PullOutcome, WantedImage};
use crate::backoff::RetryPause;
use crate::container_runtime::services::RuntimeError;
use apimachinery::time::Time;
use apis::views::pod::Container as Spec;
use apis::views::pod_detail::PodDetail;

/// The images of a pod's volumes.
#[derive(Debug, Default)]
pub(crate) struct ImageVolumes(Vec<ImageVolume>);

#[derive(Debug)]
struct ImageVolume {
    /// Its name, its image and the policy, as a container would have them.
    spec: Spec,
    state: VolumeState,
    pulls: RetryPause,
}

#[derive(Debug)]
enum VolumeState {
    Wanted,
    Pulling(Pull),
    Failing(Pull, RuntimeError),
    Present,
}

impl ImageVolumes {
    /// Of a pod that has not begun.
    pub(crate) fn of(detail: &PodDetail) -> ImageVolumes {
        let volumes = detail.spec.volumes.iter().filter_map(|volume| {
            let image = volume.image.as_ref()?;
            let spec = Spec {
                name: volume.name.clone(),
                image: image.reference.clone(),
                image_pull_policy: image.pull_policy.clone(),
                ..Spec::default()
            };
            Some(ImageVolume { spec, state: VolumeState::Wanted, pulls: RetryPause::default() })
        });
        ImageVolumes(volumes.collect())
    }

    /// Of a pod that ran before this kubelet: its images are there.
    pub(crate) fn adopt(&mut self) {
        self.0.iter_mut().for_each(|volume| volume.state = VolumeState::Present);
    }

    /// The images.
    pub(crate) fn references(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|volume| volume.spec.image.as_str())
    }

    /// Takes all steps that are due; says when the next one is.
    pub(crate) fn advance(&mut self, context: &mut SyncContext<'_>) -> Option<Time> {
        let mut due = None;
        for volume in &mut self.0 {
            due = [due, volume.advance(context)].into_iter().flatten().min();
            if matches!(volume.state, VolumeState::Pulling(_)) {
                break;
            }
        }
        due
    }

    /// Whether a container may be started that has not begun. It is told what it waits for.
    pub(crate) fn let_start(
        &self,
        container: &mut KubeContainer,
        spec: &Spec,
        context: &mut SyncContext<'_>,
    ) -> bool {
        if self.0.is_empty() || container.has_begun() {
            return true;
        }
        if self.0.iter().any(|volume| matches!(volume.state, VolumeState::Wanted | VolumeState::Pulling(_))) {
            return false;
        }
        let mut may_start = true;
        for mount in &spec.volume_mounts {
            let volume = self.0.iter().find(|volume| volume.spec.name == mount.name);
            if let Some(VolumeState::Failing(_, error)) = volume.map(|volume| &volume.state) {
                may_start = false;
                container.wait_for_volume_image(spec, error, context);
            }
        }
        may_start
    }

    /// Until when those are not tried again that could not be had.
    pub(crate) fn retries(&self) -> impl Iterator<Item = Time> + '_ {
        self.0.iter().filter_map(|volume| match &volume.state {
            VolumeState::Failing(pull, _) => pull.retry(),
            _ => None,
        })
    }
}

impl ImageVolume {
    fn advance(&mut self, context: &mut SyncContext<'_>) -> Option<Time> {
        let wanted = WantedImage { spec: &self.spec, attempt: 0, is_volume: true };
        loop {
            let outcome = match &self.state {
                VolumeState::Present => return None,
                VolumeState::Wanted => wanted.ensure(context),
                VolumeState::Pulling(pull) | VolumeState::Failing(pull, _) => {
                    let due = pull.due()?;
                    if due > context.now {
                        return Some(due);
                    }
                    wanted.step(pull.clone(), &mut self.pulls, context)
                }
            };
            self.state = match outcome {
                PullOutcome::Present => VolumeState::Present,
                PullOutcome::Pulling(pull) => VolumeState::Pulling(pull),
                PullOutcome::Failing(pull, error) => VolumeState::Failing(pull, error),
            };
        }
    }
}
