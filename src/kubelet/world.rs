//! What the steps of a pod's containers need, and what is told of them.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::container_runtime::image_store::ImageStore;
use crate::container_runtime::invocation;
use crate::container_runtime::selector::StageSubject;
use crate::container_runtime::stages::{Next, StageSet, Step};
use crate::volume_manager::facts::Facts;
use crate::volume_manager::host_files::Written;
use crate::volume_manager::sources::Sources;
use crate::volume_manager::surroundings;
use machine::bounds::MAX_POD_START_BYTES;
use machine::file_system::Left;
use machine::program;
use machine::surroundings::Surroundings;

use apimachinery::object::ObjectMeta;
use apimachinery::time::Time;
use apis::views::pod::{Container as Spec, Pod};
use apis::views::pod_detail::PodDetail;
use entropy::Entropy;

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
        /// What its process returned.
        exit_code: i32,
    },
    /// The sandbox and its address are gone.
    SandboxStopped,
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

/// What the steps of one pod's containers need.
pub struct World<'a> {
    /// The moment in which everything happens.
    pub now: Time,
    /// The pod.
    pub pod: &'a Pod,
    /// Its metadata.
    pub metadata: &'a ObjectMeta,
    /// How steps go.
    pub stages: &'a StageSet,
    /// The node's images.
    pub images: &'a ImageStore,
    /// For ids and jitter.
    pub entropy: &'a Entropy,
    /// What happened.
    pub happenings: &'a mut Vec<Happening>,
    /// More of the pod, when its containers look at more.
    pub detail: Option<&'a PodDetail>,
    /// What was fetched for it.
    pub sources: &'a Sources,
    /// What its containers left in its volumes.
    pub written: Written,
    /// How much variables its containers may still start with.
    pub start_bytes_left: Cell<usize>,
    /// Its address, as soon as it has one.
    pub pod_ip: String,
    /// Its node's.
    pub host_ip: &'a str,
    /// What its node has for pods.
    pub allocatable: &'a BTreeMap<String, String>,
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

impl World<'_> {
    /// How long a step takes and how it ends.
    pub fn stage(&self, step: Step, spec: &Spec, restart_count: i64) -> (Duration, Next) {
        let subject = StageSubject::of(self.pod, &self.metadata.namespace, spec, restart_count);
        let stage = self.stages.stage(step, &subject);
        (stage.delay.draw(self.entropy), stage.next.clone())
    }

    /// Notes what happened to a container.
    pub fn note(&mut self, spec: &Spec, event_type: &'static str, reason: &'static str, message: String) {
        let is_in = |list: &[Spec]| list.iter().any(|own| std::ptr::eq(own, spec));
        let list = match &self.pod.spec {
            pod if is_in(&pod.init_containers) => "initContainers",
            pod if is_in(&pod.ephemeral_containers) => "ephemeralContainers",
            _ => "containers",
        };
        let container = spec.name.clone();
        self.happenings.push(Happening::Event(PodEvent { container, list, event_type, reason, message }));
    }

    /// Notes that a container has ended.
    pub fn note_exit(&mut self, spec: &Spec, exit_code: i32) {
        self.happenings.push(Happening::ContainerExited { container: spec.name.clone(), exit_code });
    }

    /// What its containers find, when they look.
    pub fn facts(&self) -> Option<Facts<'_>> {
        let World { pod, metadata, sources, host_ip, allocatable, pod_ip, .. } = self;
        Some(Facts { pod, metadata, detail: self.detail?, sources, pod_ip, host_ip, allocatable })
    }

    /// What a run of a container finds that starts at `started_at`; nothing when nobody knows what it
    /// does.
    ///
    /// # Errors
    /// The message of `CreateContainerConfigError`.
    pub fn surroundings(
        &self,
        spec: &Spec,
        restart_count: i64,
        started_at: Time,
    ) -> Result<Option<Arc<Surroundings>>, String> {
        let Some(facts) = self.facts() else { return Ok(None) };
        let around = surroundings::surroundings(&facts, spec, restart_count, started_at, &self.written)?;
        if !program::is_known(&invocation::of(spec)) {
            return Ok(None);
        }
        let bytes_left = self.start_bytes_left.get().checked_sub(around.start_bytes);
        self.start_bytes_left.set(bytes_left.ok_or_else(|| {
            format!("argument lists too long: variables of the pod are over {MAX_POD_START_BYTES} bytes")
        })?);
        Ok(Some(Arc::new(around)))
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
