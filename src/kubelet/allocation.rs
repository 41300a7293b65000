//! What of its resources a node has given to a pod that runs and wants others (`pkg/kubelet/allocation`): at
//! once where they fit, later where they may fit when others are gone, never where the node is too small.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::kuberuntime::context::PodEvent;
use crate::container_runtime::container_limit::container_limit;
use apimachinery::object::Object;
use apimachinery::quantity::Quantity;
use apis::tree::{items, text};
use apis::views::meta;
use apis::views::pod::{Container as Spec, Pod};

/// The condition of a pod that wants what it is not given.
pub(crate) const PENDING: &str = "PodResizePending";
/// The condition of a pod that is given what its containers do not have yet.
pub(crate) const IN_PROGRESS: &str = "PodResizeInProgress";
pub(crate) const DEFERRED: &str = "Deferred";
pub(crate) const INFEASIBLE: &str = "Infeasible";
/// What may change while a pod runs.
const LISTS: [&str; 2] = ["initContainers", "containers"];

/// What becomes of the wish for other resources.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ResizeVerdict {
    /// It has what it wants.
    Same,
    /// It is given.
    Fits,
    /// It is given, and cannot be made so yet, because of this.
    Fails(String),
    /// It waits, because of this.
    Deferred(String),
    /// It is never given here, because of this.
    Infeasible(String),
}

/// What is known of a pod whose resources were changed while it ran.
#[derive(Clone, Debug, Default)]
pub(crate) struct PodResize {
    /// What it has, while that is not what it wants: its own and its containers' resources, as they stand.
    allocated: Option<AllocatedResources>,
    /// Why it does not have what it wants.
    pending: Option<(&'static str, String)>,
    /// Its containers do not have yet what it was given.
    is_in_progress: bool,
    /// Why they do not get it.
    failure: Option<String>,
    /// The names of containers that are to be started again for it.
    restarts: Vec<String>,
    /// What is to be told.
    events: Vec<PodEvent>,
}

/// The resources of a pod and its containers, as they stand in its spec.
#[derive(Clone, Debug, Default)]
struct AllocatedResources {
    pod: Value,
    containers: Vec<(String, Value)>,
}

impl AllocatedResources {
    fn of_spec(pod: &Value) -> AllocatedResources {
        let all = LISTS.iter().flat_map(|list| items(&pod["spec"], list));
        let containers = all.map(|one| (text(one, "name").to_owned(), one["resources"].clone())).collect();
        AllocatedResources { pod: pod["spec"]["resources"].clone(), containers }
    }

    /// As an earlier kubelet has written them. What all containers have together is no resource of the pod
    /// itself.
    fn of_status(pod: &Value) -> AllocatedResources {
        let lists = ["initContainerStatuses", "containerStatuses"];
        let all = lists.iter().flat_map(|list| items(&pod["status"], list));
        let containers = all.map(|one| (text(one, "name").to_owned(), one["resources"].clone())).collect();
        let wanted = &pod["spec"]["resources"];
        let given = &pod["status"]["resources"];
        let whole = if wanted.is_null() || given.is_null() { wanted.clone() } else { given.clone() };
        AllocatedResources { pod: whole, containers }
    }

    /// The pod as if it had asked for these.
    fn apply(&self, object: &Object) -> Arc<Pod> {
        let mut tree = object.to_value();
        tree["spec"]["resources"] = self.pod.clone();
        for list in LISTS {
            for container in tree["spec"][list].as_array_mut().into_iter().flatten() {
                let own = self.containers.iter().find(|(name, _)| container["name"] == name.as_str());
                if let Some((_, resources)) = own.filter(|(_, resources)| !resources.is_null()) {
                    container["resources"] = resources.clone();
                }
            }
        }
        Pod::deserialize(tree).map(Arc::new).unwrap_or_else(|_| object.view::<Pod>())
    }
}

/// Whether two specs of one pod want other resources.
pub(crate) fn differ(old: &Pod, new: &Pod) -> bool {
    let all = |pod: &'_ Pod| pod.spec.init_containers.iter().chain(&pod.spec.containers).count();
    let is_other = |(old, new): (&Spec, &Spec)| old.resources != new.resources;
    let init = old.spec.init_containers.iter().zip(&new.spec.init_containers);
    old.spec.resources != new.spec.resources
        || all(old) == all(new)
            && init.chain(old.spec.containers.iter().zip(&new.spec.containers)).any(is_other)
}

impl PodResize {
    /// As an earlier kubelet left it: nothing of a pod that has what it wants.
    pub(crate) fn of_status(pod: &Pod, object: &Object) -> Option<Box<PodResize>> {
        let condition = meta::condition(&pod.status.conditions, PENDING)?;
        let reason = if condition.reason == INFEASIBLE { INFEASIBLE } else { DEFERRED };
        let allocated = Some(AllocatedResources::of_status(&object.to_value()));
        let pending = Some((reason, condition.message.clone()));
        Some(Box::new(PodResize { allocated, pending, ..PodResize::default() }))
    }

    /// The pod with what it has, where it wants something else.
    pub(crate) fn allocated(&self, object: &Object) -> Option<Arc<Pod>> {
        self.allocated.as_ref().map(|allocated| allocated.apply(object))
    }

    /// Whether it waits until others are gone, or until its containers use less.
    pub(crate) fn is_deferred(&self) -> bool {
        self.is_failing() || self.pending.as_ref().is_some_and(|(reason, _)| *reason == DEFERRED)
    }

    /// Whether its containers do not get what it was given.
    pub(crate) fn is_failing(&self) -> bool {
        self.failure.is_some()
    }

    /// Why it does not have what it wants, in a word.
    pub(crate) fn pending(&self) -> Option<&'static str> {
        self.pending.as_ref().map(|(reason, _)| *reason)
    }

    /// The conditions that tell of it: type, reason, message.
    pub(crate) fn conditions(&self) -> Vec<(&'static str, &'static str, String)> {
        let pending = self.pending.iter().map(|(reason, message)| (PENDING, *reason, message.clone()));
        let reason = if self.is_failing() { "Error" } else { "" };
        let message = self.failure.clone().unwrap_or_default();
        let in_progress = self.is_in_progress.then_some((IN_PROGRESS, reason, message));
        pending.chain(in_progress).collect()
    }

    /// It does not have what it wants, and this is why.
    fn wait(&mut self, (reason, message): (&'static str, String), old: &Object, new: &Object) {
        let had = || AllocatedResources::of_spec(&old.to_value());
        self.allocated.get_or_insert_with(had);
        let pending = Some((reason, message.clone()));
        if self.pending == pending {
            return;
        }
        self.pending = pending;
        let event = if reason == INFEASIBLE { "ResizeInfeasible" } else { "ResizeDeferred" };
        let text = format!("Pod resize {reason}: {}", summary(new, &message));
        self.events.push(PodEvent::warning(event, text));
    }

    /// It is given what it wants, and its containers do not get it: this is why.
    fn fail(&mut self, message: String, old: &Object, new: &Object) {
        self.allocated.get_or_insert_with(|| AllocatedResources::of_spec(&old.to_value()));
        self.pending = None;
        self.is_in_progress = true;
        self.events.push(told("ResizeStarted", "Pod resize started", new));
        let text = format!("Pod resize error: {}", summary(new, &message));
        self.events.push(PodEvent::warning("ResizeError", text));
        self.failure = Some(message);
    }

    /// It has been looked whether the pod can have what `new` wants; before it was `old`.
    pub(crate) fn take(&mut self, verdict: ResizeVerdict, (old, before): (&Object, &Pod), new: &Object) {
        self.is_in_progress &= self.failure.take().is_none();
        match verdict {
            ResizeVerdict::Same => (self.allocated, self.pending) = (None, None),
            ResizeVerdict::Fails(message) => self.fail(message, old, new),
            ResizeVerdict::Deferred(message) => self.wait((DEFERRED, message), old, new),
            ResizeVerdict::Infeasible(message) => self.wait((INFEASIBLE, message), old, new),
            ResizeVerdict::Fits => {
                (self.allocated, self.pending) = (None, None);
                self.is_in_progress = true;
                self.restarts.extend(restarted(before, new));
                self.events.push(told("ResizeStarted", "Pod resize started", new));
            }
        }
    }

    /// What is to be told, and which containers are to be started again; once.
    pub(crate) fn take_news(&mut self) -> (Vec<PodEvent>, Vec<String>) {
        (std::mem::take(&mut self.events), std::mem::take(&mut self.restarts))
    }

    /// Whether its containers do not have yet what it was given.
    pub(crate) fn is_in_progress(&self) -> bool {
        self.is_in_progress
    }

    /// They have it. What is told of that.
    pub(crate) fn complete(&mut self, pod: &Object) -> PodEvent {
        self.is_in_progress = false;
        told("ResizeCompleted", "Pod resize completed", pod)
    }
}

fn told(reason: &'static str, what: &str, pod: &Object) -> PodEvent {
    PodEvent { event_type: "Normal", ..PodEvent::warning(reason, format!("{what}: {}", summary(pod, ""))) }
}

/// The containers that say so of a resource of which they are given another amount (`resizePolicy`,
/// `computePodResizeAction`).
pub(crate) fn restarted(before: &Pod, new: &Object) -> Vec<String> {
    let after = new.view::<Pod>();
    let tree = new.to_value();
    let all = LISTS.iter().flat_map(|list| items(&tree["spec"], list));
    let is_restarted = |container: &&Value| {
        let policies = items(container, "resizePolicy").iter();
        let mut strict = policies.filter(|policy| text(policy, "restartPolicy") == "RestartContainer");
        strict.any(|policy| {
            let [old, new] = [before, &*after].map(|pod| asked(pod, container, text(policy, "resourceName")));
            old.is_some() && old != new
        })
    };
    all.filter(is_restarted).map(|container| text(container, "name").to_owned()).collect()
}

/// What a container asks for of a resource, and how much it may use; nothing where the pod has none of that
/// name.
fn asked(pod: &Pod, container: &Value, resource: &str) -> Option<(Option<Quantity>, Option<Quantity>)> {
    let own = pod.spec.all_containers().find(|own| own.name == text(container, "name"))?;
    let request = own.resources.requests.get(resource).and_then(|text| Quantity::parse(text).ok());
    Some((request, container_limit(pod, own, resource)))
}

/// What the pod wants, as events tell it (`makeResourceSummaryFromSpec`).
#[derive(Serialize)]
struct ResourceSummary {
    #[serde(rename = "initContainers", skip_serializing_if = "Vec::is_empty")]
    init_containers: Vec<Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    containers: Vec<Value>,
    generation: i64,
    #[serde(skip_serializing_if = "str::is_empty")]
    error: String,
}

fn summary(pod: &Object, error: &str) -> String {
    let tree = pod.to_value();
    let of = |list: &str| {
        let named = |one: &Value| json!({"name": one["name"], "resources": amounts(&one["resources"])});
        items(&tree["spec"], list).iter().map(named).collect()
    };
    let [init_containers, containers] = LISTS.map(of);
    let generation = pod.metadata.generation;
    let summary = ResourceSummary { init_containers, containers, generation, error: error.to_owned() };
    serde_json::to_string(&summary).unwrap_or_default()
}

fn amounts(resources: &Value) -> Value {
    if resources.is_null() { json!({}) } else { resources.clone() }
}
