//! Taking up pods that an earlier kubelet of the node left running: their status is all that is known of
//! them.

use std::cell::Cell;

use super::container_runtime::services::{Exit, PodSandboxConfig, PodSandboxStatus};
use super::dependencies::{Dependencies, NodeRuntime};
use super::kuberuntime::container::KubeContainer;
use super::kuberuntime::context::SyncContext;
use super::kuberuntime::state::{ContainerEnd, KubeContainerState};
use super::node_config::Boots;
use super::pod_workers::{PodWorker, WorkerState};
use super::sandbox_state::Sandbox;
use super::volume_manager::host_files::WrittenFiles;
use super::volume_manager::sources::Sources;
use apimachinery::object::Object;
use apimachinery::time::Time;
use apis::views::pod::{self, Container as Spec, ContainerStatus, Pod, PodStatus};
use machine::bounds::MAX_POD_START_BYTES;
use stages::Governed;

impl PodWorker {
    /// Brings a new worker to where its pod's status says that the pod was.
    pub(crate) fn adopt(&mut self, node: &NodeRuntime, now: Time) {
        let (pod, object) = (self.pod.clone(), self.object.clone());
        let own = object.view::<Pod>();
        let status = &pod.status;
        if !pod.is_terminal() && is_lost(&pod, node.boots) {
            return self.begin_anew(&pod, now);
        }
        node.keep_sandbox(&object);
        if !pod.is_terminal() && self.adopts_later() {
            return;
        }
        let addresses = addresses(status);
        self.sandbox = addresses.clone().map_or(Sandbox::None, Sandbox::Ready);
        let users = self.users.clone();
        let (detail, sources) = self.mounted();
        let nothing = Sources::new();
        let mut unheard = Vec::new();
        let mut written = WrittenFiles::new();
        written.set_host(&node.host_files, &node.claimed_files);
        let mut context = SyncContext {
            now,
            pod: &pod,
            annotations: &own.metadata.annotations,
            metadata: &object.metadata,
            runtime: &*node.runtime,
            happenings: &mut unheard,
            users: users.as_deref(),
            detail: detail.as_deref(),
            sources: sources.as_deref().unwrap_or(&nothing),
            written,
            start_bytes_left: Cell::new(MAX_POD_START_BYTES),
            pod_ips: addresses.clone().unwrap_or_default(),
            host_ips: &node.host_ips,
            cluster_dns: &node.cluster_dns,
            allocatable: &node.allocatable,
            memory_capacity: node.memory_capacity,
            network: &node.network,
            images: &node.images,
            longest_restart: node.longest_restart,
            restarts_all: false,
        };
        let mut restore = |specs: &[Spec], containers: &mut [KubeContainer], statuses: &[ContainerStatus]| {
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
        self.restarts_all |= context.restarts_all;
        if self.all_containers().any(|(_, container)| container.has_run()) {
            self.image_volumes.adopt();
        }
        if pod.is_terminal() {
            self.state = WorkerState::Terminated;
            self.sandbox = Sandbox::Stopped(addresses.unwrap_or_default());
        }
    }
}

impl PodWorker {
    /// The machine was started again: nothing of the pod runs. What restarts does so in a new sandbox, and
    /// there it begins with the first init container (`computePodActions`).
    fn begin_anew(&mut self, pod: &pod::Pod, now: Time) {
        let addresses = addresses(&pod.status);
        let (spec, status) = (&pod.spec, &pod.status);
        let by_policy = |containers: &mut [KubeContainer], specs: &[Spec], statuses: &[ContainerStatus]| {
            lose_all(pod, containers, specs, statuses, false, now);
        };
        by_policy(&mut self.containers, &spec.containers, &status.container_statuses);
        let ephemeral = &status.ephemeral_container_statuses;
        by_policy(&mut self.ephemeral_containers, &spec.ephemeral_containers, ephemeral);
        let begins_anew =
            spec.restart_policy != "Never" && !self.containers.iter().all(KubeContainer::is_done);
        let init = &status.init_container_statuses;
        lose_all(pod, &mut self.init_containers, &spec.init_containers, init, begins_anew, now);
        self.has_lost_sandbox = addresses.is_some();
        // Where nothing runs again nothing is made for it.
        if self.has_lost_sandbox && self.containers.iter().all(KubeContainer::is_done) {
            self.has_lost_sandbox = false;
            self.sandbox = Sandbox::Stopped(addresses.unwrap_or_default());
            self.state = WorkerState::Terminating;
        }
    }
}

impl NodeRuntime {
    /// The sandbox of a pod that an earlier kubelet left running is there still, and so is its address.
    fn keep_sandbox(&self, object: &Object) {
        let pod = object.view::<Pod>();
        let is_left = pod.status.start_time.is_some() && !pod.is_terminal();
        let left = addresses(&pod.status).filter(|_| is_left && !is_lost(&pod, self.boots));
        let sandbox = PodSandboxConfig { pod: &pod, metadata: &object.metadata, attempt: 0 };
        left.iter().for_each(|left| self.runtime.restore_pod_sandbox(&sandbox, left));
    }
}

impl Dependencies {
    /// The address of a pod that was there before this kubelet is given to no other, whoever plays the pod.
    pub(crate) fn keep_address(&self, object: &Object) {
        let pod = object.view::<Pod>();
        if !self.is_played(Governed::Pod, object) {
            self.node.keep_sandbox(object);
        } else if !pod.status.pod_ip.is_empty() && !pod.is_terminal() {
            self.played.give(&object.metadata.uid, &pod.status.pod_ip);
        }
    }
}

/// Those that a pod's status tells of; nothing before it has any.
fn addresses(status: &PodStatus) -> Option<PodSandboxStatus> {
    let all = status.pod_ips.iter().map(|own| own.ip.clone());
    let single = Some(status.pod_ip.clone()).filter(|ip| status.pod_ips.is_empty() && !ip.is_empty());
    PodSandboxStatus::of(all.chain(single))
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
    pod: &pod::Pod,
    containers: &mut [KubeContainer],
    specs: &[Spec],
    statuses: &[ContainerStatus],
    all_run_again: bool,
    now: Time,
) {
    for (container, spec) in containers.iter_mut().zip(specs) {
        if let Some(status) = statuses.iter().find(|status| status.name == spec.name) {
            lose((pod, spec), container, status, all_run_again, now);
        }
    }
}

/// What ran has ended, nobody knows how; it runs again if its policy says so, or all do.
fn lose(
    (pod, spec): (&pod::Pod, &Spec),
    container: &mut KubeContainer,
    status: &ContainerStatus,
    all_run_again: bool,
    now: Time,
) {
    container.restart_count = status.restart_count;
    container.unseen_runs = status.restart_count;
    let exit = Exit { code: 255, reason: "Unknown".into(), message: String::new() };
    let ended = match (&status.state.running, &status.state.terminated) {
        (Some(running), _) => ContainerEnd {
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
    let runs_again = all_run_again || container.restarts(pod, spec, ended.exit.code);
    container.take_up(ended, runs_again);
}

fn restore(
    spec: &Spec,
    container: &mut KubeContainer,
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
        container.state = KubeContainerState::Running { id: status.container_id.as_str().into(), started_at };
    } else if let Some(ended) = &status.state.terminated {
        container.state = KubeContainerState::Terminated(Box::new(terminated(ended)));
        container.unseen_runs += 1;
    }
    if !is_terminal {
        container.adopt(spec, context);
    }
}

fn terminated(status: &pod::Terminated) -> ContainerEnd {
    let exit =
        Exit { code: status.exit_code, reason: status.reason.clone(), message: status.message.clone() };
    let started_at = status.started_at;
    let finished_at = status.finished_at;
    ContainerEnd { id: status.container_id.as_str().into(), exit, started_at, finished_at }
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;
    use serde_json::{Value, json};

    use super::*;
    use crate::pod_ending::PodEnding;
    use crate::stories::{node, object};

    fn at(milliseconds: i64) -> Time {
        Time::UNIX_EPOCH + TimeDelta::milliseconds(milliseconds)
    }

    /// Its container runs since the tenth second, after its init container.
    fn running(restart_policy: &str) -> Value {
        let started = json!({"startedAt": "1970-01-01T00:00:10Z"});
        let ended = json!({"exitCode": 0, "reason": "Completed", "startedAt": "1970-01-01T00:00:08Z",
            "finishedAt": "1970-01-01T00:00:09Z", "containerID": "containerd://i"});
        let status = |name: &str, state: Value| {
            json!({"name": name, "ready": true, "started": true, "restartCount": 0, "image": "nginx",
                "imageID": "", "containerID": format!("containerd://{name}"), "state": state, "lastState": {}})
        };
        let init = json!([{"name": "i", "image": "busybox", "command": ["sh", "-c", "sleep 2"]}]);
        let containers = json!([{"name": "c", "image": "nginx"}]);
        json!({"metadata": {"name": "p", "namespace": "default", "uid": "u"},
            "spec": {"restartPolicy": restart_policy, "initContainers": init, "containers": containers},
            "status": {"phase": "Running", "startTime": "1970-01-01T00:00:07Z", "podIP": "10.244.1.9", "podIPs": [{"ip": "10.244.1.9"}],
                "initContainerStatuses": [status("i", json!({"terminated": ended}))],
                "containerStatuses": [status("c", json!({"running": started}))]}})
    }

    fn taken_up(restart_policy: &str, boots: Boots, now: Time) -> (NodeRuntime, PodWorker) {
        let node = NodeRuntime { boots, ..node() };
        let worker = PodWorker::new(object(&running(restart_policy)), &node, now);
        (node, worker)
    }

    fn booted(milliseconds: i64, is_new: bool) -> Boots {
        Boots { count: 1, last: Some(at(milliseconds)), is_new }
    }

    #[test]
    fn what_a_boot_ended_is_ended_once() {
        let runs = |boots| taken_up("Always", boots, at(60_000)).1.is_running();
        assert!(runs(Boots::default()));
        // The first kubelet afterwards finds nothing; a later one finds what has started since.
        assert!(!runs(booted(10_900, true)));
        assert!(runs(booted(10_900, false)), "it started in the second of the boot");
        assert!(runs(booted(9_000, false)), "it started after the boot, although its pod did before");
        assert!(!runs(booted(11_000, false)), "the first kubelet did not come so far");
        let mut boots = Boots::default();
        boots.again(at(1));
        assert_eq!(boots, booted(1, true));
    }

    #[test]
    fn the_address_of_a_pod_that_waits_to_be_taken_up_is_given_to_no_other() {
        let mut there = running("Always");
        there["status"]["podIP"] = "10.244.1.2".into();
        there["status"]["podIPs"] = json!([{"ip": "10.244.1.2"}]);
        let new = json!({"metadata": {"name": "n", "namespace": "default", "uid": "n"},
            "spec": {"containers": [{"name": "c", "image": "nginx"}]}});
        let address_of_new = |boots| {
            let node = NodeRuntime { boots, ..node() };
            node.keep_sandbox(&object(&there));
            let mut worker = PodWorker::new(object(&new), &node, at(20_000));
            worker.sync(&node, at(20_000), &mut Vec::new());
            let later = worker.due.unwrap_or(at(20_000));
            worker.sync(&node, later, &mut Vec::new());
            worker.address().to_owned()
        };
        assert_eq!(address_of_new(Boots::default()), "10.244.1.3");
        assert_eq!(address_of_new(booted(11_000, true)), "10.244.1.2", "nothing of it is left");
    }

    #[test]
    fn after_a_boot_pods_begin_with_their_first_init_container() {
        let (node, mut worker) = taken_up("Always", booted(11_000, true), at(12_000));
        let (mut now, mut unheard) = (at(12_000), Vec::new());
        let mut init_ran_alone = false;
        for _ in 0..40 {
            worker.sync(&node, now, &mut unheard);
            let (init, main) = (&worker.init_containers[0], &worker.containers[0]);
            init_ran_alone |= init.is_running() && !main.is_running();
            if main.is_running() {
                break;
            }
            now = worker.due.unwrap();
        }
        let (init, main) = (&worker.init_containers[0], &worker.containers[0]);
        assert!(init_ran_alone && init.has_succeeded() && main.is_running());
        assert_eq!((init.restart_count, main.restart_count), (1, 1));
    }

    /// What ran before the boot let nobody begin after it (`HasAnyRegularContainerCreated`).
    #[test]
    fn after_a_boot_the_others_wait_for_a_sidecar_again() {
        let node = NodeRuntime { boots: booted(11_000, true), ..node() };
        let mut pod = running("Always");
        let sidecar = &mut pod["spec"]["initContainers"][0];
        sidecar["restartPolicy"] = "Always".into();
        sidecar["startupProbe"] = json!({"initialDelaySeconds": 30, "tcpSocket": {"port": 1}});
        let mut worker = PodWorker::new(object(&pod), &node, at(12_000));
        let (mut now, mut unheard) = (at(12_000), Vec::new());
        let mut has_waited = false;
        for _ in 0..20 {
            worker.sync(&node, now, &mut unheard);
            let (side, main) = (&worker.init_containers[0], &worker.containers[0]);
            has_waited |= side.is_running() && !side.started;
            assert!(!main.has_begun(), "nobody listens where the probe asks");
            let Some(due) = worker.due else { break };
            now = due;
        }
        assert!(has_waited, "{now}");
    }

    #[test]
    fn a_pod_that_is_never_restarted_does_not_begin_anew() {
        let (node, mut worker) = taken_up("Never", booted(11_000, true), at(12_000));
        let (mut now, mut heard) = (at(12_000), Vec::new());
        for _ in 0..40 {
            worker.sync(&node, now, &mut heard);
            let Some(due) = worker.due else { break };
            now = due;
        }
        assert_eq!((worker.phase(), worker.init_containers[0].restart_count), ("Failed", 0));
        assert!(!format!("{heard:?}").contains("SandboxChanged"), "there is nothing to make one for");
        assert_eq!(worker.status(&["172.18.0.2"], now)["podIP"], "10.244.1.9");
    }

    #[test]
    fn an_address_that_a_pod_has_no_more_is_taken_from_its_status() {
        let (node, mut worker) = taken_up("Always", booted(11_000, true), at(12_000));
        let mut now = at(12_000);
        while !worker.containers[0].is_running() {
            worker.sync(&node, now, &mut Vec::new());
            now = worker.due.unwrap_or(now);
        }
        let status = worker.status(&["172.18.0.2"], now);
        let new = status["podIP"].clone();
        assert_ne!(new, "10.244.1.9");
        let patch = worker.patch(status);
        let gone = json!({"$patch": "delete", "ip": "10.244.1.9"});
        assert_eq!(patch["status"]["podIPs"], json!([{"ip": new}, gone]));
        assert_eq!(patch["status"]["hostIPs"], json!([{"ip": "172.18.0.2"}]));
    }

    #[test]
    fn a_pod_that_is_being_deleted_has_less_time_when_its_node_ends() {
        let mut pod = running("Always");
        pod["metadata"]["deletionTimestamp"] = "1970-01-01T00:00:12Z".into();
        pod["metadata"]["deletionGracePeriodSeconds"] = 300.into();
        pod["metadata"]["annotations"] = json!({});
        pod["spec"]["containers"][0]["lifecycle"] = json!({"preStop": {"sleep": {"seconds": 200}}});
        let node = node();
        let mut worker = PodWorker::new(object(&pod), &node, at(12_000));
        worker.sync(&node, at(12_000), &mut Vec::new());
        assert!(worker.due.is_some_and(|due| due > at(60_000)), "{:?}", worker.due);
        let message = String::new();
        worker.end(PodEnding { reason: "Terminated", message, grace_seconds: Some(10), is_disruption: true });
        worker.sync(&node, at(13_000), &mut Vec::new());
        assert_eq!(worker.due, Some(at(23_000)));
        assert!(worker.failure.is_none(), "its deletion stays why it ends");
    }
}
