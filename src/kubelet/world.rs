//! What the steps of a pod's containers need, and what is told of them.

use std::time::Duration;

use super::images::ImageStore;
use super::selector::StageSubject;
use super::stages::{Next, StageSet, Step};
use crate::apimachinery::object::ObjectMeta;
use crate::apimachinery::time::Time;
use crate::apis::views::pod::{Container as Spec, Pod};
use crate::entropy::Entropy;

/// What happened and is told as an Event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Happening {
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
    pub images: &'a mut ImageStore,
    /// For ids and jitter.
    pub entropy: &'a Entropy,
    /// What happened.
    pub happenings: &'a mut Vec<Happening>,
}

impl Happening {
    /// The part of the pod that it is about, as `spec.containers{web}`.
    pub fn field_path(&self) -> String {
        let Happening { list, container, .. } = self;
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
        self.happenings.push(Happening { container, list, event_type, reason, message });
    }

    /// The pod as the kubelet's messages call it.
    pub fn pod_name(&self) -> String {
        let ObjectMeta { name, namespace, uid, .. } = self.metadata;
        format!("{name}_{namespace}({uid})")
    }
}
