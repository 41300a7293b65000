//! Taking up pods that an earlier kubelet of the node left running: their status is all that is known of
//! them.

use std::cell::Cell;

use super::pod_workers::{NodeRuntime, PodWorker, Sandbox, WorkerState};
use super::runtime::{Container, State, Terminated};
use super::world::World;
use crate::container_runtime::stages::Exit;
use crate::volume_manager::host_files::Written;
use crate::volume_manager::sources::Sources;
use apimachinery::time::Time;
use apis::views::pod::{self, Container as Spec, ContainerStatus};
use machine::bounds::MAX_POD_START_BYTES;

/// Brings a new worker to where its pod's status says that the pod was.
pub fn adopt(worker: &mut PodWorker, node: &NodeRuntime, now: Time) {
    let (pod, object) = (worker.pod.clone(), worker.object.clone());
    let status = &pod.status;
    if !pod.is_terminal() && worker.adopts_later() {
        node.addresses.reserve(&status.pod_ip);
        return;
    }
    if !status.pod_ip.is_empty() {
        worker.sandbox = Sandbox::Ready { address: status.pod_ip.clone() };
    }
    let (detail, sources) = worker.mounted();
    let nothing = Sources::new();
    let NodeRuntime { stages, images, addresses, entropy, host_ip, allocatable, host_files } = node;
    let (mut unheard, mut written) = (Vec::new(), Written::new());
    written.set_host(host_files);
    let mut world = World {
        now,
        pod: &pod,
        metadata: &object.metadata,
        stages,
        images,
        entropy,
        happenings: &mut unheard,
        detail: detail.as_deref(),
        sources: sources.as_deref().unwrap_or(&nothing),
        written,
        start_bytes_left: Cell::new(MAX_POD_START_BYTES),
        pod_ip: status.pod_ip.clone(),
        host_ip,
        allocatable,
    };
    let mut restore = |specs: &[Spec], containers: &mut [Container], statuses: &[ContainerStatus]| {
        for (spec, container) in specs.iter().zip(containers) {
            if let Some(status) = statuses.iter().find(|status| status.name == spec.name) {
                restore(spec, container, status, pod.is_terminal(), &mut world);
            }
        }
    };
    restore(&pod.spec.init_containers, &mut worker.init_containers, &status.init_container_statuses);
    restore(&pod.spec.containers, &mut worker.containers, &status.container_statuses);
    let ephemeral = &status.ephemeral_container_statuses;
    restore(&pod.spec.ephemeral_containers, &mut worker.ephemeral_containers, ephemeral);
    if pod.is_terminal() {
        worker.state = WorkerState::Terminated;
        worker.sandbox = Sandbox::Stopped { address: status.pod_ip.clone() };
    } else if !pod.spec.host_network {
        addresses.reserve(&status.pod_ip);
    }
}

fn restore(
    spec: &Spec,
    container: &mut Container,
    status: &ContainerStatus,
    is_terminal: bool,
    world: &mut World<'_>,
) {
    container.restart_count = status.restart_count;
    container.unseen_runs = status.restart_count;
    container.last = status.last_state.terminated.as_ref().map(|ended| Box::new(terminated(ended)));
    container.ready = status.ready;
    container.started = status.started.unwrap_or(false);
    if let Some(running) = &status.state.running {
        let started_at = running.started_at.unwrap_or(world.now);
        container.state = State::Running { id: status.container_id.clone(), started_at };
        world.images.add(&spec.image);
    } else if let Some(ended) = &status.state.terminated {
        container.state = State::Terminated(Box::new(terminated(ended)));
        container.unseen_runs += 1;
    }
    if !is_terminal {
        container.adopt(spec, world);
    }
}

fn terminated(status: &pod::Terminated) -> Terminated {
    let exit =
        Exit { code: status.exit_code, reason: status.reason.clone(), message: status.message.clone() };
    let (started_at, finished_at) = (status.started_at, status.finished_at);
    Terminated { id: status.container_id.clone(), exit, started_at, finished_at }
}
