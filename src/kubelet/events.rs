//! What a kubelet tells of its pods (`pkg/kubelet/events`, `pkg/kubelet/pleg`): Events, steps of the flow
//! record, lines in the log.

use serde::Deserialize;

use super::dependencies::Dependencies;
use super::kuberuntime::context::{Happening, PodEvent};
use super::pod_workers::{PodWorker, WorkerState};
use apimachinery::object::{Object, list};
use apis::core::pod::PODS;
use apis::views::pod::Named;
use client_go::reference::ObjectReference;
use flow::{HeldStage, HeldStep, Step, StepId};

/// As much of a pod as says what is mounted into it.
#[derive(Default, Deserialize)]
#[serde(default)]
struct PodVolumeNames {
    spec: VolumeNames,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct VolumeNames {
    #[serde(deserialize_with = "list")]
    volumes: Vec<Named>,
}

impl Dependencies {
    pub(crate) fn record_sync(&self, worker: &PodWorker, state: WorkerState) -> StepId {
        let (flow, object) = (self.context.client.flow(), &worker.object);
        let cause = flow.informed(&self.context.component, object.metadata.resource_version);
        flow.record_with(cause, || Step::PodWorkerSync {
            node: flow.name(self.node_name()),
            pod: object.shared_key().clone(),
            state: flow.name(state.name()),
        })
    }

    /// Waits in front of a pod's sync, while somebody steps the cluster.
    pub(crate) async fn hold_sync(&self, object: &Object) {
        let (flow, component) = (self.context.client.flow(), &self.context.component);
        let held = || {
            let cause = flow.informed(component, object.metadata.resource_version);
            let key = object.shared_key().clone();
            HeldStep::new(HeldStage::Sync, component.clone(), "pods".into(), key).caused_by(cause)
        };
        flow.gate(held).await;
    }

    /// As an Event where it is one, as a step of the flow, and in the log.
    pub(crate) fn tell(&self, worker: &PodWorker, happening: &Happening, cause: StepId) {
        self.log(worker, happening);
        let step = self.record(worker, happening, cause);
        let Happening::Event(event) = happening else { return };
        let PodEvent { event_type, reason, message, .. } = event;
        let about = ObjectReference::of(&PODS, &worker.object).part(event.field_path());
        self.context.recorder.caused_by(step).event(about, event_type, reason, message.as_str());
    }

    /// What upstream's kubelet logs of containers (`syncLoopIteration`).
    fn log(&self, worker: &PodWorker, happening: &Happening) {
        let (node, pod) = (self.node_name(), worker.object.shared_key());
        match happening {
            Happening::Event(PodEvent { reason: "Started", container, .. }) => {
                tracing::info!(node, %pod, event = "ContainerStarted", container, "SyncLoop (PLEG): event for pod");
            }
            Happening::ContainerExited { container, exit_code, .. } => {
                let event = "ContainerDied";
                tracing::info!(node, %pod, event, container, exit_code, "SyncLoop (PLEG): event for pod");
            }
            _ => {}
        }
    }

    fn record(&self, worker: &PodWorker, happening: &Happening, cause: StepId) -> StepId {
        let flow = self.context.client.flow();
        if !flow.is_on() {
            return cause;
        }
        let (node, pod) = (flow.name(self.node_name()), worker.object.shared_key().clone());
        let image =
            |container| worker.container(container).map_or("", |(spec, _)| spec.image.as_str()).into();
        let step = match happening {
            Happening::Event(PodEvent { reason, container, .. }) => match *reason {
                "Pulled" => Step::ImagePulled { node, pod, image: image(container) },
                "Created" => Step::ContainerCreated { node, pod, container: container.as_str().into() },
                "Started" => Step::ContainerStarted { node, pod, container: container.as_str().into() },
                _ => return cause,
            },
            Happening::SandboxCreated(address) => {
                self.record_prepared(worker, cause);
                Step::SandboxCreated { node, pod, address: address.as_str().into() }
            }
            Happening::ContainerExited { container, exit_code, reason, .. } => {
                let (container, exit_code) = (container.as_str().into(), *exit_code);
                Step::ContainerExited { node, pod, container, exit_code, reason: flow.name(reason) }
            }
            Happening::SandboxStopped => Step::SandboxStopped { node, pod },
            Happening::Asks(_) | Happening::Probes(..) | Happening::Hooks(..) => return cause,
            Happening::Called { .. } | Happening::ImagePulled { .. } | Happening::InitContainerRan(_) => {
                return cause;
            }
        };
        flow.record(cause.cause(), step)
    }

    /// What the pod's containers need was there before its sandbox.
    fn record_prepared(&self, worker: &PodWorker, cause: StepId) {
        let flow = self.context.client.flow();
        let volumes = worker.object.view::<PodVolumeNames>();
        let names = |all: &[Named]| all.iter().map(|one| one.name.as_str()).collect::<Vec<_>>().join(", ");
        let told = |of: &str, names: String| if names.is_empty() { names } else { format!(", {of} {names}") };
        let with = format!(
            "admitted by the node{}{}",
            told("volumes", names(&volumes.spec.volumes)),
            told("secrets for its images", names(&worker.pod.spec.image_pull_secrets))
        );
        let (node, pod) = (flow.name(self.node_name()), worker.object.shared_key().clone());
        flow.record(cause.cause(), Step::PodPrepared { node, pod, with: with.into() });
    }

    /// The pod is gone: whatever runs of it is killed.
    pub(crate) fn kill(&self, worker: &mut PodWorker) {
        tracing::info!(node = self.node_name(), pod = %worker.object.shared_key(), "SyncLoop REMOVE");
        let containers = worker.all_containers().map(|(_, container)| container.count_known()).sum::<usize>();
        self.counted.called("remove_container", containers as u64);
        if worker.kill(&self.node) {
            let context = &self.context;
            let revision = worker.object.metadata.resource_version;
            let seen = context.client.flow().informed(&context.component, revision);
            self.counted.note(&Happening::SandboxStopped, context.clock.now());
            self.record(worker, &Happening::SandboxStopped, seen.unwrap_or_default());
        }
    }
}
