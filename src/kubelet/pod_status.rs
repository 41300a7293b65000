//! The status of a pod as its node sees it (`generateAPIPodStatus`, `convertToAPIContainerStatuses`,
//! `getPhase`).

use serde_json::{Map, Value, json};

use super::kuberuntime::container::KubeContainer;
use super::kuberuntime::security::{self, PodUsers};
use super::kuberuntime::state::{ContainerEnd, KubeContainerState};
use super::pod_conditions::{self, has_passed, is_ready};
use super::pod_resources;
use super::pod_workers::{PodWorker, WorkerState};
use apimachinery::time::{Time, rfc3339};
use apis::views::pod::{Container as Spec, Pod, PodStatus};
use machine::images;

impl PodWorker {
    /// `Pending`, `Running`, `Succeeded` or `Failed` (`getPhase`).
    pub fn phase(&self) -> &'static str {
        if let Some(phase) = self.foreign_phase {
            return phase;
        }
        if self.state == WorkerState::Terminated {
            let succeeded =
                self.failure.is_none() && self.containers.iter().all(KubeContainer::has_succeeded);
            return if succeeded { "Succeeded" } else { "Failed" };
        }
        let has_begun = |container: &KubeContainer| container.has_run();
        let is_pending = self.is_initializing() || !self.containers.iter().all(has_begun);
        if is_pending { "Pending" } else { "Running" }
    }

    /// Whether an init container has not passed yet, and nothing else has run.
    pub(crate) fn is_initializing(&self) -> bool {
        let specs = &self.pod.spec.init_containers;
        let waits = |(container, spec): (&KubeContainer, &Spec)| !has_passed(container, spec);
        !self.containers.iter().any(KubeContainer::has_run)
            && self.init_containers.iter().zip(specs).any(waits)
    }

    /// The whole status at `now`. Remembers the conditions, so that their times of transition stay until
    /// they change.
    pub fn status(&mut self, host_ips: &[impl AsRef<str>], now: Time) -> Value {
        let generation = self.object.metadata.generation;
        if let Some(rejection) = &self.rejection {
            let message = format!("Pod was rejected: {}", rejection.message);
            let started = rfc3339(self.start_time);
            return json!({"phase": "Failed", "reason": rejection.reason, "message": message,
                "startTime": started, "observedGeneration": generation});
        }
        let phase = self.phase();
        let conditions = pod_conditions::generate(self, phase, generation, now);
        let mut status = Map::new();
        status.insert("conditions".into(), pod_conditions::to_value(&conditions));
        self.set_conditions(conditions);
        status.insert("phase".into(), phase.into());
        if generation > 0 {
            status.insert("observedGeneration".into(), generation.into());
        }
        status.insert("startTime".into(), rfc3339(self.start_time).into());
        let host_ips = host_ips.iter().map(AsRef::as_ref);
        status.insert("hostIP".into(), host_ips.clone().next().unwrap_or_default().into());
        status.insert("hostIPs".into(), address_list(host_ips));
        if let Some(own) = self.addresses() {
            status.insert("podIP".into(), own.ip.as_str().into());
            status.insert("podIPs".into(), address_list(own.ips()));
        }
        let given = self.is_resize_failing().then(|| self.object.view::<Pod>());
        pod_resources::tell(&self.pod, given.as_deref(), &mut status);
        // Why it ends is told with its end (`mergePodStatus`).
        if let Some(ending) = self.failure.as_ref().filter(|_| self.state == WorkerState::Terminated) {
            status.insert("reason".into(), ending.reason.into());
            status.insert("message".into(), ending.message.as_str().into());
        }
        let specs = &self.pod.spec;
        let mut statuses = self.statuses(&specs.containers, &self.containers, false);
        given.iter().for_each(|given| pod_resources::tell_given(given, &mut statuses));
        self.tell_device_health(&mut statuses);
        status.insert("containerStatuses".into(), statuses);
        if !specs.init_containers.is_empty() {
            let mut statuses = self.statuses(&specs.init_containers, &self.init_containers, true);
            given.iter().for_each(|given| pod_resources::tell_given(given, &mut statuses));
            status.insert("initContainerStatuses".into(), statuses);
        }
        if !self.ephemeral_containers.is_empty() {
            status.insert("ephemeralContainerStatuses".into(), self.ephemeral_statuses());
        }
        Value::Object(status)
    }

    /// Whether somebody else has written another status after this kubelet had, at a revision
    /// (`needsReconcile`).
    pub(crate) fn needs_reconcile(&self, written_at: u64) -> bool {
        let is_foreign = written_at > 0 && self.object.metadata.resource_version > written_at;
        is_foreign && self.differs_from_status()
    }

    /// What all look at is compared, and the conditions that are this kubelet's
    /// (`isPodStatusByKubeletEqual`).
    fn differs_from_status(&self) -> bool {
        let status = &self.pod.status;
        let is_other = |(spec, container): (&Spec, &KubeContainer)| {
            let written = status.container_statuses.iter().find(|status| status.name == spec.name);
            written.is_none_or(|written| {
                written.restart_count != container.restart_count
                    || written.state.running.is_some() != container.is_running()
                    || written.ready != is_ready(container, spec, false)
            })
        };
        self.rejection.is_none()
            && (status.phase != self.phase()
                || self.pod.spec.containers.iter().zip(&self.containers).any(is_other)
                || pod_conditions::differ(self.conditions(), &status.conditions))
    }

    /// The strategic merge patch that makes `status` the pod's status, and only this pod's.
    pub fn patch(&self, mut status: Value) -> Value {
        pod_conditions::complete_patch(&mut status, &self.pod.status.conditions);
        let PodStatus { host_ip, pod_ips, .. } = &self.pod.status;
        forget_addresses(&mut status["podIPs"], pod_ips.iter().map(|known| known.ip.as_str()));
        forget_addresses(&mut status["hostIPs"], Some(host_ip.as_str()));
        if self.resize.is_some() {
            pod_conditions::drop_resize(&mut status);
        }
        json!({"metadata": {"uid": self.object.metadata.uid}, "status": status})
    }

    /// Nobody asks whether they are ready.
    fn ephemeral_statuses(&self) -> Value {
        let mut statuses =
            self.statuses(&self.pod.spec.ephemeral_containers, &self.ephemeral_containers, false);
        for status in statuses.as_array_mut().into_iter().flatten() {
            status["ready"] = false.into();
            status.as_object_mut().map(|status| status.remove("started"));
        }
        statuses
    }

    /// By name; init containers in the order in which they run.
    fn statuses(&self, specs: &[Spec], containers: &[KubeContainer], is_init: bool) -> Value {
        let is_over = self.state == WorkerState::Terminated && !self.is_initializing();
        let mut pairs: Vec<(&Spec, &KubeContainer)> = specs.iter().zip(containers).collect();
        if !is_init {
            pairs.sort_by(|a, b| a.0.name.cmp(&b.0.name));
        }
        pairs
            .into_iter()
            .map(|(spec, container)| {
                container_status(spec, container, self.users.as_deref(), is_init, is_over)
            })
            .collect()
    }
}

/// `podIPs`, `hostIPs`
fn address_list<'a>(ips: impl Iterator<Item = &'a str>) -> Value {
    ips.map(|ip| json!({"ip": ip})).collect()
}

/// Addresses are merged by what they are: one that the pod does not have any more says so.
fn forget_addresses<'a>(addresses: &mut Value, known: impl IntoIterator<Item = &'a str>) {
    let Some(addresses) = addresses.as_array_mut() else { return };
    for old in known.into_iter().filter(|old| !old.is_empty()) {
        if addresses.iter().all(|new| new["ip"] != old) {
            addresses.push(json!({"$patch": "delete", "ip": old}));
        }
    }
}

fn container_status(
    spec: &Spec,
    container: &KubeContainer,
    users: Option<&PodUsers>,
    is_init: bool,
    is_over: bool,
) -> Value {
    let mut status = Map::new();
    status.insert("name".into(), spec.name.as_str().into());
    status.insert("state".into(), state(&container.state, is_over));
    let last =
        container.last.as_ref().map_or_else(|| json!({}), |ended| json!({"terminated": terminated(ended)}));
    status.insert("lastState".into(), last);
    status.insert("ready".into(), is_ready(container, spec, is_init).into());
    status.insert("started".into(), container.started.into());
    status.insert("restartCount".into(), container.restart_count.into());
    if !spec.volume_mounts.is_empty() {
        status.insert("volumeMounts".into(), volume_mounts(spec));
    }
    let id = match &container.state {
        KubeContainerState::Running { id, .. } => Some(id),
        KubeContainerState::Terminated(ended) => Some(&ended.id),
        KubeContainerState::Waiting { .. } => container.last.as_ref().map(|ended| &ended.id),
    };
    match id.filter(|id| !id.is_empty()) {
        None => {
            status.insert("image".into(), spec.image.as_str().into());
            status.insert("imageID".into(), "".into());
        }
        Some(id) => {
            status.insert("image".into(), images::reference(&spec.image).into());
            status.insert("imageID".into(), images::image_id(&spec.image).into());
            status.insert("containerID".into(), (&**id).into());
            status.insert("resources".into(), pod_resources::of_container(&spec.resources));
            if !spec.resources.requests.is_empty() {
                status.insert("allocatedResources".into(), json!(spec.resources.requests));
            }
            status.insert("user".into(), security::status(users, spec));
        }
    }
    Value::Object(status)
}

/// A container of which nothing is known when its pod ends is taken to have failed.
fn state(state: &KubeContainerState, is_over: bool) -> Value {
    match state {
        KubeContainerState::Waiting { .. } if is_over => json!({"terminated": {
            "exitCode": 137,
            "reason": "ContainerStatusUnknown",
            "message": "The container could not be located when the pod was terminated",
            "startedAt": null,
            "finishedAt": null,
        }}),
        KubeContainerState::Waiting { reason, message } if message.is_empty() => {
            json!({"waiting": {"reason": reason}})
        }
        KubeContainerState::Waiting { reason, message } => {
            json!({"waiting": {"reason": reason, "message": message}})
        }
        KubeContainerState::Running { started_at, .. } => {
            json!({"running": {"startedAt": rfc3339(*started_at)}})
        }
        KubeContainerState::Terminated(ended) => json!({"terminated": terminated(ended)}),
    }
}

fn terminated(ended: &ContainerEnd) -> Value {
    let mut value = json!({
        "exitCode": ended.exit.code,
        "reason": ended.exit.reason(),
        "startedAt": ended.started_at.map(rfc3339),
        "finishedAt": ended.finished_at.map(rfc3339),
        "containerID": &*ended.id,
    });
    if !ended.exit.message.is_empty() {
        value["message"] = ended.exit.message.as_str().into();
    }
    value
}

fn volume_mounts(spec: &Spec) -> Value {
    let mounts = spec.volume_mounts.iter().map(|mount| {
        let mut status = json!({"name": mount.name, "mountPath": mount.mount_path});
        if mount.read_only {
            status["readOnly"] = true.into();
            status["recursiveReadOnly"] = "Disabled".into();
        }
        status
    });
    mounts.collect()
}
