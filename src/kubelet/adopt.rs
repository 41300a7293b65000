//! Taking up pods that an earlier kubelet of the node left running: their status is all that is known of
//! them.

use std::cell::Cell;

use super::container_runtime::services::{Exit, PodSandboxConfig};
use super::dependencies::NodeRuntime;
use super::kuberuntime::container::Container;
use super::kuberuntime::context::SyncContext;
use super::kuberuntime::state::{State, Terminated};
use super::node_config::Boots;
use super::pod_workers::{PodWorker, Sandbox, WorkerState};
use super::volume_manager::host_files::Written;
use super::volume_manager::sources::Sources;
use apimachinery::time::Time;
use apis::views::pod::{self, Container as Spec, ContainerStatus};
use machine::bounds::MAX_POD_START_BYTES;

impl PodWorker {
    /// Brings a new worker to where its pod's status says that the pod was.
    pub(crate) fn adopt(&mut self, node: &NodeRuntime, now: Time) {
        let (pod, object) = (self.pod.clone(), self.object.clone());
        let status = &pod.status;
        let sandbox = PodSandboxConfig { pod: &pod, metadata: &object.metadata, attempt: 0 };
        if !pod.is_terminal() && is_lost(&pod, node.boots) {
            return self.begin_anew(&pod, now);
        }
        if !pod.is_terminal() && !status.pod_ip.is_empty() {
            node.runtime.restore_pod_sandbox(&sandbox, &status.pod_ip);
        }
        if !pod.is_terminal() && self.adopts_later() {
            return;
        }
        if !status.pod_ip.is_empty() {
            self.sandbox = Sandbox::Ready { address: status.pod_ip.clone() };
        }
        let users = self.users.clone();
        let (detail, sources) = self.mounted();
        let nothing = Sources::new();
        let mut unheard = Vec::new();
        let mut written = Written::new();
        written.set_host(&node.host_files);
        let mut context = SyncContext {
            now,
            pod: &pod,
            metadata: &object.metadata,
            runtime: &*node.runtime,
            happenings: &mut unheard,
            users: users.as_deref(),
            detail: detail.as_deref(),
            sources: sources.as_deref().unwrap_or(&nothing),
            written,
            start_bytes_left: Cell::new(MAX_POD_START_BYTES),
            pod_ip: status.pod_ip.clone(),
            host_ip: &node.host_ip,
            cluster_dns: &node.cluster_dns,
            allocatable: &node.allocatable,
            network: &node.network,
        };
        let mut restore = |specs: &[Spec], containers: &mut [Container], statuses: &[ContainerStatus]| {
            for (spec, container) in specs.iter().zip(containers) {
                if let Some(status) = statuses.iter().find(|status| status.name == spec.name) {
                    restore(spec, container, status, pod.is_terminal(), &mut context);
                }
            }
        };
        restore(&pod.spec.init_containers, &mut self.init_containers, &status.init_container_statuses);
        restore(&pod.spec.containers, &mut self.containers, &status.container_statuses);
        let ephemeral = &status.ephemeral_container_statuses;
        restore(&pod.spec.ephemeral_containers, &mut self.ephemeral_containers, ephemeral);
        if pod.is_terminal() {
            self.state = WorkerState::Terminated;
            self.sandbox = Sandbox::Stopped { address: status.pod_ip.clone() };
        }
    }
}

impl PodWorker {
    /// The machine was started again: nothing of the pod runs. What restarts does so in a new sandbox, and
    /// there it begins with the first init container (`computePodActions`).
    fn begin_anew(&mut self, pod: &pod::Pod, now: Time) {
        self.has_lost_sandbox = !pod.status.pod_ip.is_empty();
        let (spec, status) = (&pod.spec, &pod.status);
        let by_policy = |containers: &mut [Container], specs: &[Spec], statuses: &[ContainerStatus]| {
            lose_all(containers, specs, statuses, false, now);
        };
        by_policy(&mut self.containers, &spec.containers, &status.container_statuses);
        let ephemeral = &status.ephemeral_container_statuses;
        by_policy(&mut self.ephemeral_containers, &spec.ephemeral_containers, ephemeral);
        let begins_anew = spec.restart_policy != "Never" && !self.containers.iter().all(Container::is_done);
        let init = &status.init_container_statuses;
        lose_all(&mut self.init_containers, &spec.init_containers, init, begins_anew, now);
    }
}

/// Whether what the pod's status says to run was on a machine that has been started again since.
fn is_lost(pod: &pod::Pod, boots: Boots) -> bool {
    let status = &pod.status;
    let others = status.init_container_statuses.iter().chain(&status.ephemeral_container_statuses);
    let mut running = others.chain(&status.container_statuses).filter_map(|it| it.state.running.as_ref());
    boots.is_new || running.any(|running| boots.ended(running.started_at))
}

/// Those that the pod's status knows.
fn lose_all(
    containers: &mut [Container],
    specs: &[Spec],
    statuses: &[ContainerStatus],
    all_run_again: bool,
    now: Time,
) {
    for (container, spec) in containers.iter_mut().zip(specs) {
        if let Some(status) = statuses.iter().find(|status| status.name == spec.name) {
            lose(container, status, all_run_again, now);
        }
    }
}

/// What ran has ended, nobody knows how; it runs again if its policy says so, or all do.
fn lose(container: &mut Container, status: &ContainerStatus, all_run_again: bool, now: Time) {
    container.restart_count = status.restart_count;
    container.unseen_runs = status.restart_count;
    let exit = Exit { code: 255, reason: "Unknown".into(), message: String::new() };
    let ended = match (&status.state.running, &status.state.terminated) {
        (Some(running), _) => Terminated {
            id: status.container_id.as_str().into(),
            exit,
            started_at: running.started_at,
            finished_at: Some(now),
        },
        (None, Some(ended)) => terminated(ended),
        (None, None) => {
            container.last = status.last_state.terminated.as_ref().map(|ended| Box::new(terminated(ended)));
            return;
        }
    };
    let runs_again = all_run_again || container.restart_policy.restarts(ended.exit.code);
    container.take_up(ended, runs_again);
}

fn restore(
    spec: &Spec,
    container: &mut Container,
    status: &ContainerStatus,
    is_terminal: bool,
    context: &mut SyncContext<'_>,
) {
    container.restart_count = status.restart_count;
    container.unseen_runs = status.restart_count;
    container.last = status.last_state.terminated.as_ref().map(|ended| Box::new(terminated(ended)));
    container.ready = status.ready;
    container.started = status.started.unwrap_or(false);
    if let Some(running) = &status.state.running {
        let started_at = running.started_at.unwrap_or(context.now);
        container.state = State::Running { id: status.container_id.as_str().into(), started_at };
    } else if let Some(ended) = &status.state.terminated {
        container.state = State::Terminated(Box::new(terminated(ended)));
        container.unseen_runs += 1;
    }
    if !is_terminal {
        container.adopt(spec, context);
    }
}

fn terminated(status: &pod::Terminated) -> Terminated {
    let exit =
        Exit { code: status.exit_code, reason: status.reason.clone(), message: status.message.clone() };
    let started_at = status.started_at;
    let finished_at = status.finished_at;
    Terminated { id: status.container_id.as_str().into(), exit, started_at, finished_at }
}
