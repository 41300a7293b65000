//! What the steps of a pod's containers need, and what is told of them.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::time::Duration;

use super::security::PodUsers;
use super::state::{ContainerEnd, is_sidecar};
use crate::container_runtime::services::{
    ContainerConfig, Exit, PodSandboxStatus, RuntimeError, RuntimeService,
};
use crate::container_runtime::stats::MeasuredContainer;
use crate::credential_provider::{DockerKeyring, ImageAccess};
use crate::lifecycle::HookKind;
use crate::prober::ProbeKind;
use crate::volume_manager::ContainerConfigError;
use crate::volume_manager::answers_source;
use crate::volume_manager::facts::VolumeFacts;
use crate::volume_manager::host_files::WrittenFiles;
use crate::volume_manager::sources::{Found, Source, Sources};
use crate::volume_manager::surroundings;
use apimachinery::object::ObjectMeta;
use apimachinery::time::Time;
use apis::views::pod::{Container as Spec, Pod};
use apis::views::pod_detail::PodDetail;
use machine::bounds::MAX_POD_START_BYTES;
use machine::file_system::{self, File, Left, MountedVolume};
use machine::surroundings::Surroundings;
use network::Network;

/// Of a folder that is made for a `subPath`.
const SUB_PATH_MODE: u32 = 0o755;

/// What happened in a sync, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Happening {
    /// It is told as an Event.
    Event(PodEvent),
    /// The pod has its sandbox and this address. No Event tells of it, nor of the following.
    SandboxCreated(String),
    /// A container ended.
    ContainerExited {
        /// Its name.
        container: String,
        /// In which list of its pod it is, as `initContainers`.
        list: &'static str,
        /// What its process returned.
        exit_code: i32,
        /// Why, as `OOMKilled`; empty where the exit code says it all.
        reason: String,
    },
    /// The sandbox and its address are gone.
    SandboxStopped,
    /// A verb of CRI has returned. Nobody is told of it, nor of the two that follow: they are counted.
    Called {
        /// As upstream's metrics name it, as `create_container`.
        operation: &'static str,
        /// How long that took.
        took: Duration,
        /// Whether it failed.
        has_failed: bool,
    },
    /// An image has been pulled, since then.
    ImagePulled {
        /// When it was asked for.
        began: Time,
        /// In bytes.
        size: u64,
    },
    /// An init container has ended that is no sidecar: it ran so long.
    InitContainerRan(Duration),
    /// The process of the container of this name asks the network something.
    Asks(String),
    /// A probe of the container of this name is to be asked.
    Probes(String, ProbeKind),
    /// A hook of the container of this name is to be run, and to be told of.
    Hooks(String, HookKind),
}

/// What is told as an Event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodEvent {
    /// The container's name; empty when it is about the pod.
    pub container: String,
    /// Which of the lists of the pod has it.
    pub list: &'static str,
    /// `Normal` or `Warning`.
    pub event_type: &'static str,
    /// As `Pulled`.
    pub reason: &'static str,
    /// For people.
    pub message: String,
}

/// What the steps of one pod's containers need, in one sync.
pub struct SyncContext<'a> {
    /// The moment in which everything happens.
    pub now: Time,
    /// The pod.
    pub pod: &'a Pod,
    /// Its own annotations, without those that a ConfigMap has for it.
    pub annotations: &'a BTreeMap<String, String>,
    /// Its metadata.
    pub metadata: &'a ObjectMeta,
    /// What runs its containers.
    pub runtime: &'a dyn RuntimeService,
    /// What happened.
    pub happenings: &'a mut Vec<Happening>,
    /// As whom its containers run, when it says so.
    pub users: Option<&'a PodUsers>,
    /// More of the pod, when its containers look at more.
    pub detail: Option<&'a PodDetail>,
    /// What was fetched for it.
    pub sources: &'a Sources,
    /// What its containers left in its volumes.
    pub written: WrittenFiles,
    /// How much variables its containers may still start with.
    pub start_bytes_left: Cell<usize>,
    /// Its addresses, as soon as it has any.
    pub pod_ips: PodSandboxStatus,
    /// Its node's.
    pub host_ips: &'a [String],
    /// The name server.
    pub cluster_dns: &'a str,
    /// What its node has for pods.
    pub allocatable: &'a BTreeMap<String, String>,
    /// How much memory it has, in bytes.
    pub memory_capacity: i64,
    /// What the node reaches its pods on.
    pub network: &'a Network,
    /// Which images are not for every pod.
    pub images: &'a ImageAccess,
    /// The longest pause before a container is started again.
    pub longest_restart: Duration,
    /// A container has ended for which all are to be started again.
    pub restarts_all: bool,
}

impl PodEvent {
    /// A warning about the pod as a whole.
    pub fn warning(reason: &'static str, message: String) -> PodEvent {
        PodEvent { container: String::new(), list: "", event_type: "Warning", reason, message }
    }

    /// The part of the pod that it is about, as `spec.containers{web}`.
    pub fn field_path(&self) -> String {
        let PodEvent { list, container, .. } = self;
        if container.is_empty() { String::new() } else { format!("spec.{list}{{{container}}}") }
    }
}

impl<'a> SyncContext<'a> {
    /// A container of the pod, as the runtime is told of it.
    pub fn config<'b>(&self, container: &'b Spec, attempt: i64) -> ContainerConfig<'b>
    where
        'a: 'b,
    {
        ContainerConfig { pod: self.pod, metadata: self.metadata, container, attempt }
    }

    /// Whether nothing is wrong on the way from the node to the pod.
    pub fn is_fair(&self) -> bool {
        match (self.host_ips.first().map(|host| host.parse()), self.pod_ips.ip.parse()) {
            (Some(Ok(host)), Ok(pod)) => self.network.is_fair(host, pod),
            _ => true,
        }
    }

    /// Notes what happened to a container.
    pub fn note(&mut self, spec: &Spec, event_type: &'static str, reason: &'static str, message: String) {
        let (container, list) = (spec.name.clone(), self.list_of(spec));
        self.happenings.push(Happening::Event(PodEvent { container, list, event_type, reason, message }));
    }

    /// In which list of its pod a container is.
    fn list_of(&self, spec: &Spec) -> &'static str {
        let is_in = |list: &[Spec]| list.iter().any(|own| std::ptr::eq(own, spec));
        match &self.pod.spec {
            pod if is_in(&pod.init_containers) => "initContainers",
            pod if is_in(&pod.ephemeral_containers) => "ephemeralContainers",
            _ => "containers",
        }
    }

    /// Notes that a verb of CRI returns now that was called then.
    pub(crate) fn called(&mut self, operation: &'static str, began: Time, has_failed: bool) {
        let took = (self.now - began).to_std().unwrap_or_default();
        self.happenings.push(Happening::Called { operation, took, has_failed });
    }

    /// Notes how long an init container ran that the others waited for.
    pub(crate) fn note_init_run(&mut self, spec: &Spec, ended: &ContainerEnd) {
        let is_init = self.pod.spec.init_containers.iter().any(|own| std::ptr::eq(own, spec));
        if let (true, Some(from), Some(until)) =
            (is_init && !is_sidecar(spec), ended.started_at, ended.finished_at)
        {
            let ran = (until - from).to_std().unwrap_or_default();
            self.happenings.push(Happening::InitContainerRan(ran));
        }
    }

    /// Notes that a container has ended.
    pub fn note_exit(&mut self, spec: &Spec, exit: &Exit) {
        let is_usual = matches!(&*exit.reason, "Completed" | "Error");
        let reason = if is_usual { String::new() } else { exit.reason.clone() };
        let (container, exit_code) = (spec.name.clone(), exit.code);
        let list = self.list_of(spec);
        self.happenings.push(Happening::ContainerExited { container, list, exit_code, reason });
    }

    /// What its containers find, when they look.
    pub fn facts(&self) -> Option<VolumeFacts<'_>> {
        Some(VolumeFacts {
            pod: self.pod,
            metadata: self.metadata,
            annotations: self.annotations,
            detail: self.detail?,
            sources: self.sources,
            pod_ips: &self.pod_ips,
            host_ips: self.host_ips,
            cluster_dns: self.cluster_dns,
            allocatable: self.allocatable,
            memory_capacity: self.memory_capacity,
        })
    }

    /// What a run of a container finds that starts at `started_at`; nothing when nobody knows what it
    /// does.
    ///
    /// # Errors
    /// The message of `CreateContainerConfigError`.
    pub fn surroundings(
        &mut self,
        spec: &Spec,
        restart_count: i64,
        started_at: Time,
    ) -> Result<Option<Surroundings>, ContainerConfigError> {
        let Some(facts) = self.facts() else { return Ok(None) };
        let prepared = surroundings::prepare(&facts, spec, &self.written)?;
        let missing = prepared.as_ref().map_or(vec![], |prepared| self.missing_sub_paths(&prepared.mounts));
        if !missing.is_empty() {
            self.written.keep(missing);
        }
        // Most containers have nobody who would look at the rest.
        if !self.runtime.knows_process(spec) {
            return Ok(None);
        }
        let Some(facts) = self.facts() else { return Ok(None) };
        let surround =
            |it| surroundings::surround(&facts, spec, it, (restart_count, started_at), &self.written);
        let around = prepared.map(surround).unwrap_or_default();
        let bytes_left = self.start_bytes_left.get().checked_sub(around.start_bytes);
        self.start_bytes_left.set(bytes_left.ok_or_else(|| {
            format!("argument lists too long: variables of the pod are over {MAX_POD_START_BYTES} bytes")
        })?);
        Ok(Some(around))
    }

    /// The folders of volumes that a container mounts by their `subPath` and that nobody made yet
    /// (`SafeMakeDir`).
    fn missing_sub_paths(&self, mounts: &[MountedVolume]) -> Vec<Left> {
        let by_path = mounts.iter().filter(|mount| mount.is_kept && !mount.sub_path.is_empty());
        let is_missing = |mount: &&MountedVolume| {
            let files = self.written.files(&mount.volume);
            !files.keys().any(|path| file_system::is_within(&mount.sub_path, path))
        };
        let made = by_path.filter(is_missing).map(|mount| Left {
            volume: mount.volume.clone(),
            path: mount.sub_path.clone(),
            file: Some(File::folder(SUB_PATH_MODE)),
        });
        made.collect()
    }

    /// Why the registry of an image does not give it to the pod.
    pub(crate) fn refuses_image(&self, image: &str) -> Option<RuntimeError> {
        self.images.refusal(image, || {
            let mut keyring = DockerKeyring::default();
            for secret in &self.pod.spec.image_pull_secrets {
                if let Some(Found::Object(secret)) = self.sources.get(&Source::Secret(secret.name.clone())) {
                    secret.keys().iter().for_each(|(key, content)| keyring.add(key, content));
                }
            }
            keyring
        })
    }

    /// Why a container may not run as the user as whom it would.
    pub(crate) fn refuses_user(&self, spec: &Spec) -> Option<String> {
        self.users?.refusal(spec, &self.pod_name())
    }

    /// Notes what is wrong with what the pod says of its listeners, and of what it uses.
    pub fn tell_of_annotations(&mut self) {
        let event = |reason| move |why| Happening::Event(PodEvent::warning(reason, why));
        let listeners = self.runtime.listener_problems(self.pod).into_iter().map(event("InvalidListener"));
        self.happenings.extend(listeners);
        let answers = answers_source::problems(self.annotations, self.sources);
        self.happenings.extend(answers.into_iter().map(event("InvalidListener")));
        let usage = self.runtime.usage_problems(self.pod).into_iter().map(event("InvalidUsage"));
        self.happenings.extend(usage);
        for container in self.pod.spec.all_containers() {
            let measured = MeasuredContainer {
                pod: self.pod,
                metadata: self.metadata,
                container,
                attempt: 0,
                started_at: self.now,
            };
            let failures = self.runtime.usage_failures(&measured).into_iter();
            self.happenings.extend(failures.map(event("InvalidUsage")));
        }
        let chaos = self.runtime.chaos_problems(self.pod).into_iter().map(event("InvalidChaos"));
        self.happenings.extend(chaos);
    }

    /// What a container left in the pod's volumes.
    pub fn keep(&mut self, left: Vec<Left>) {
        self.written.keep(left);
    }

    /// The pod as the kubelet's messages call it.
    pub fn pod_name(&self) -> String {
        let ObjectMeta { name, namespace, uid, .. } = self.metadata;
        format!("{name}_{namespace}({uid})")
    }
}
