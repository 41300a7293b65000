//! `Obstacles`: what stands in the way at the end of a record, of each object that it tells of.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::node_said::condition;
use crate::parts::ComparedCount;
use crate::recorded::StepId;
use crate::step::{Step, WriteOperation};
use crate::trace::TraceStep;
use crate::words::{refusal, subject};
use golang::object_key::object_key;

const KUBELET: &str = "kubelet";

/// What is true at the end, of each object of the trace.
#[derive(Default)]
pub(super) struct Obstacles {
    /// Pods, and why they have no node.
    pub pending: BTreeMap<Arc<str>, String>,
    /// Pods whose containers cannot be started.
    pub stuck: BTreeMap<Arc<str>, StuckPod>,
    /// Pods, and what their probes said when they failed.
    pub unhealthy: BTreeMap<Arc<str>, Arc<str>>,
    /// Pods, and why their kubelet drove them out.
    pub evicted: BTreeMap<Arc<str>, Arc<str>>,
    /// Containers by pod: how they ended badly.
    pub crashing: BTreeMap<(Arc<str>, Arc<str>), CrashingContainer>,
    /// Claims, and why they have no volume.
    pub unbound: BTreeMap<Arc<str>, String>,
    /// Keys, and what their controllers are refused.
    pub refused: BTreeMap<Arc<str>, RefusedReconcile>,
    /// Nodes whose kubelets are silent.
    pub silent: BTreeSet<Arc<str>>,
    /// Nodes, and what their kubelets say is wrong with them.
    pub unwell: BTreeMap<Arc<str>, BTreeSet<&'static str>>,
    /// Objects that were deleted and wait.
    pub kept: BTreeMap<String, Vec<Arc<str>>>,
    /// The object of the last write.
    last: String,
    /// Who reconciles which key, by the step that says so.
    reconciles: BTreeMap<StepId, (String, Arc<str>)>,
}

/// Why no container of a pod runs.
pub(super) struct StuckPod {
    /// As `ImagePullBackOff`; empty where it is not known.
    pub reason: &'static str,
    pub message: String,
    /// What else happens in this sync mends nothing.
    sync: Option<StepId>,
}

#[derive(Default)]
pub(super) struct CrashingContainer {
    pub times: usize,
    pub exit_code: i32,
    /// As `OOMKilled`; empty where the exit code says it all.
    pub reason: Arc<str>,
    /// It waits before it is started again.
    pub backs_off: bool,
}

pub(super) struct RefusedReconcile {
    pub controller: String,
    pub why: Arc<str>,
    pub compared: Option<ComparedCount>,
}

impl Obstacles {
    pub(super) fn see(&mut self, step: &TraceStep) {
        match &step.step {
            Step::Filtered { pod, feasible: 0, nodes, refusals } => {
                let refusals: Vec<String> = refusals.iter().map(refusal).collect();
                let why =
                    if refusals.is_empty() { format!("none of {nodes} fits") } else { refusals.join("; ") };
                self.pending.insert(pod.clone(), why);
            }
            Step::Assumed { pod, .. } | Step::Bound { pod, .. } => {
                self.pending.remove(pod);
            }
            Step::ContainerStarted { pod, container, .. } => self.started(pod, container, step.cause),
            Step::ContainerExited { pod, container, exit_code, reason, .. } if *exit_code != 0 => {
                let seen = self.crashing.entry((pod.clone(), container.clone())).or_default();
                (seen.times, seen.exit_code, seen.reason) = (seen.times + 1, *exit_code, reason.clone());
            }
            Step::SandboxStopped { pod, .. } => {
                self.unhealthy.remove(pod);
                self.stuck.remove(pod);
            }
            Step::RequestReceived { user, path, .. } => self.asked(user, path),
            Step::Stored { resource, namespace, name, operation, .. } => {
                self.last = subject(resource, namespace, name);
                self.stored(resource, &object_key(namespace, name), *operation);
            }
            Step::Terminating { finalizers, .. } if !finalizers.is_empty() => {
                self.kept.insert(self.last.clone(), finalizers.clone());
            }
            Step::ReconcileStarted { key, .. } => {
                let controller = step.step.component().unwrap_or_default();
                self.reconciles.insert(step.id, (controller, key.clone()));
            }
            Step::ReconcileEnded { result, compared } => self.ended(step.cause, result, compared.as_ref()),
            Step::EventRecorded { component, object, reason, message, warning: true, .. } => {
                self.warned((component, reason), object, message, step.cause);
            }
            Step::EventRecorded { component, object, reason, .. } if &**component == KUBELET => {
                self.said_of_node(object, reason);
            }
            _ => {}
        }
    }

    fn started(&mut self, pod: &str, container: &Arc<str>, sync: Option<StepId>) {
        if self.stuck.get(pod).is_some_and(|stuck| stuck.sync != sync) {
            self.stuck.remove(pod);
        }
        if let Some(crashing) = self.crashing.get_mut(&(pod.into(), container.clone())) {
            crashing.backs_off = false;
        }
    }

    /// What a kubelet, or somebody in its place, says of its node and its pods.
    fn asked(&mut self, user: &str, path: &str) {
        let mut parts = path.rsplit('/');
        if parts.next() != Some("status") {
            return;
        }
        let Some(name) = parts.next() else { return };
        match parts.next() {
            Some("nodes") if user.ends_with(":node-controller") => {
                self.silent.insert(name.into());
            }
            Some("nodes") if user.starts_with("system:node:") => {
                self.silent.remove(name);
            }
            Some("pods") if user.starts_with("system:node:") => {
                self.unhealthy.retain(|pod, _| pod.rsplit('/').next() != Some(name));
            }
            _ => {}
        }
    }

    /// A kubelet tells by an Event of each condition of its node that is another one now.
    fn said_of_node(&mut self, node: &Arc<str>, reason: &str) {
        match condition(reason) {
            Some((what, true)) => {
                self.unwell.entry(node.clone()).or_default().insert(what);
            }
            Some((what, false)) => {
                if let Some(said) = self.unwell.get_mut(node) {
                    said.remove(what);
                }
            }
            None => {}
        }
    }

    fn stored(&mut self, resource: &str, key: &str, operation: WriteOperation) {
        if resource == "persistentvolumeclaims" {
            self.unbound.remove(key);
        }
        if operation == WriteOperation::Delete {
            self.gone(key);
        }
    }

    fn ended(&mut self, reconcile: Option<StepId>, result: &Arc<str>, compared: Option<&ComparedCount>) {
        let Some((controller, key)) = reconcile.and_then(|step| self.reconciles.get(&step)).cloned() else {
            return;
        };
        let is_done = &**result == "done" || result.starts_with("requeue after");
        // Upstream's words of what quotas and admission refuse.
        if result.contains(" is forbidden: ") {
            let compared = compared.cloned();
            self.refused.insert(key, RefusedReconcile { controller, why: result.clone(), compared });
        } else if is_done
            && let Some(refused) = self.refused.get(&key)
            && refused.controller == controller
            && (compared.is_some() || refused.compared.is_none())
        {
            self.refused.remove(&key);
        }
    }

    fn warned(
        &mut self,
        (component, reason): (&str, &str),
        object: &Arc<str>,
        message: &Arc<str>,
        sync: Option<StepId>,
    ) {
        match (component, reason) {
            (KUBELET, "Evicted") => drop(self.evicted.insert(object.clone(), message.clone())),
            (KUBELET, "Unhealthy") => drop(self.unhealthy.insert(object.clone(), message.clone())),
            (KUBELET, "Failed") => self.failed(object, message, sync),
            (KUBELET, "BackOff") => self.backs_off(object, message),
            ("persistentvolume-controller", "ProvisioningFailed") => {
                self.unbound.insert(object.clone(), format!("{reason}: {message}"));
            }
            _ => {}
        }
    }

    /// In the words of the kubelet: `Failed to pull image "a": no`, `Error: ErrImagePull`,
    /// `Error: configmap "a" not found`.
    fn failed(&mut self, pod: &Arc<str>, message: &str, sync: Option<StepId>) {
        let said = message.strip_prefix("Error: ").unwrap_or(message);
        let reason = match said {
            "ErrImagePull" => "ErrImagePull",
            "ImagePullBackOff" => "ImagePullBackOff",
            "ErrImageNeverPull" => "ErrImageNeverPull",
            "InvalidImageName" => "InvalidImageName",
            said if said.starts_with("Failed to pull image") => "ErrImagePull",
            said if is_config_error(said) => "CreateContainerConfigError",
            _ => "",
        };
        let known = self.stuck.get_mut(pod).filter(|_| said == reason);
        match known {
            Some(known) => (known.reason, known.sync) = (reason, sync),
            None => {
                self.stuck.insert(pod.clone(), StuckPod { reason, message: said.to_owned(), sync });
            }
        }
    }

    fn backs_off(&mut self, pod: &Arc<str>, message: &str) {
        let container = message
            .strip_prefix("Back-off restarting failed container ")
            .and_then(|rest| rest.split_whitespace().next());
        let Some(container) = container else { return };
        if let Some(crashing) = self.crashing.get_mut(&(pod.clone(), container.into())) {
            crashing.backs_off = true;
        }
    }

    fn gone(&mut self, key: &str) {
        self.pending.remove(key);
        self.stuck.remove(key);
        self.unhealthy.remove(key);
        self.evicted.remove(key);
        self.unbound.remove(key);
        self.refused.remove(key);
        self.silent.remove(key);
        self.unwell.remove(key);
        self.crashing.retain(|(pod, _), _| **pod != *key);
        self.kept.remove(&self.last);
    }
}

/// What is missing or wrong of what a container is made from.
fn is_config_error(said: &str) -> bool {
    ["configmap \"", "secret \"", "couldn't find key "].iter().any(|start| said.starts_with(start))
        || said.contains("runAsNonRoot")
}
