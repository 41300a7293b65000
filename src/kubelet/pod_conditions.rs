//! The conditions of a pod that its kubelet owns (`pkg/kubelet/status/generate.go`).

use chrono::SubsecRound;
use serde_json::{Value, json};

use super::allocation::{IN_PROGRESS, PENDING};
use super::kuberuntime::container::KubeContainer;
use super::kuberuntime::state::{is_sidecar, may_restart_all};
use super::pod_workers::{PodWorker, WorkerState};
use super::sandbox_state::Sandbox;
use apimachinery::time::{Time, rfc3339};
use apis::views::meta::{self, Condition};
use apis::views::pod::Container as Spec;

/// Why a condition is false.
struct Unmet {
    reason: &'static str,
    message: String,
}

/// Those that each pod has of its kubelet.
const OF_EACH: [&str; 5] =
    ["PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"];

/// Of pods whose rules may restart all of their containers.
const RESTARTING: &str = "AllContainersRestarting";

impl PodWorker {
    /// The conditions as they were written last.
    pub(crate) fn conditions(&self) -> &[Condition] {
        self.own_conditions.as_deref().unwrap_or(&self.pod.status.conditions)
    }

    /// These are written.
    pub(crate) fn set_conditions(&mut self, own: Vec<Condition>) {
        let has_them = are_found(&own, &self.pod.status.conditions);
        self.own_conditions = (!has_them).then(|| own.into());
    }

    /// The pod has changed, and has these: what was written is remembered where they are others.
    pub(crate) fn keep_conditions(&mut self, found: &[Condition]) {
        let shared = &self.pod.status.conditions;
        if self.own_conditions.is_none() && shared != found {
            let is_own = |condition: &&Condition| {
                let name = condition.condition_type.as_str();
                OF_EACH.contains(&name) || [PENDING, IN_PROGRESS, RESTARTING].contains(&name)
            };
            self.own_conditions = Some(shared.iter().filter(is_own).cloned().collect());
        }
        if self.own_conditions.as_deref().is_some_and(|own| are_found(own, found)) {
            self.own_conditions = None;
        }
    }
}

/// Whether conditions that were written are those that the pod has, which need not be kept once more. A pod
/// that is not as most are keeps its own: which of the others' conditions are its kubelet's does not show.
fn are_found(own: &[Condition], found: &[Condition]) -> bool {
    own.len() == OF_EACH.len()
        && own.iter().all(|own| {
            OF_EACH.contains(&own.condition_type.as_str())
                && meta::condition(found, &own.condition_type) == Some(own)
        })
}

/// The five conditions, and that of a pod that its node ended, in the order in which the kubelet writes them.
pub(crate) fn generate(worker: &PodWorker, phase: &str, generation: i64, now: Time) -> Vec<Condition> {
    let sandbox = match worker.sandbox {
        Sandbox::Ready(_) => Ok(()),
        _ => Err(Unmet { reason: "", message: String::new() }),
    };
    let containers = containers_ready(worker, phase);
    let ready = ready(worker, phase);
    let completed = if phase == "Succeeded" { "PodCompleted" } else { "" };
    let outcomes = [sandbox, initialized(worker), ready, containers, Ok(())];
    let reasons = ["", completed, "", "", ""];
    let conditions = OF_EACH.into_iter().zip(outcomes).zip(reasons);
    let conditions = conditions.map(|((condition_type, outcome), reason)| match outcome {
        Ok(()) => (condition_type, "True", reason, String::new()),
        Err(unmet) => (condition_type, "False", unmet.reason, unmet.message),
    });
    // It is told with the end of the pod (`mergePodStatus`).
    let ended = worker.failure.as_ref().filter(|_| worker.state() == WorkerState::Terminated);
    let disruption = ended.filter(|ending| ending.is_disruption);
    let disruption = disruption
        .map(|ending| ("DisruptionTarget", "True", "TerminationByKubelet", ending.disruption().to_owned()));
    let restarts = may_restart_all(&worker.pod).then(|| restarting(worker, phase));
    let resize = worker.resize.iter().flat_map(|resize| resize.conditions());
    let resize = resize.map(|(name, reason, message)| (name, "True", reason, message));
    // As it is read again.
    let written_now = now.trunc_subsecs(0);
    let made = resize.chain(conditions).chain(disruption).chain(restarts).map(
        |(condition_type, status, reason, message)| {
            let old = meta::condition(worker.conditions(), condition_type).filter(|old| old.status == status);
            Condition {
                condition_type: condition_type.into(),
                status: status.into(),
                reason: reason.into(),
                message,
                last_transition_time: old.and_then(|old| old.last_transition_time).or(Some(written_now)),
                observed_generation: Some(generation).filter(|generation| *generation > 0),
                ..Condition::default()
            }
        },
    );
    made.collect()
}

/// Whether all containers are being started again (`GenerateAllContainersRestartingCondition`).
fn restarting(worker: &PodWorker, phase: &str) -> (&'static str, &'static str, &'static str, String) {
    let name = RESTARTING;
    match phase {
        "Succeeded" => (name, "False", "PodCompleted", String::new()),
        "Failed" => (name, "False", "PodFailed", String::new()),
        _ if worker.restarts_all => {
            let message = "container exited with restart policy rule".into();
            (name, "True", "RestartAllContainersStarted", message)
        }
        _ => (name, "False", "", String::new()),
    }
}

/// Whether one of `own` is not as it was written, whatever else there is.
pub(crate) fn differ(own: &[Condition], found: &[Condition]) -> bool {
    let is_other = |own: &Condition| {
        meta::condition(found, &own.condition_type).is_none_or(|found| {
            found.status != own.status || found.reason != own.reason || found.message != own.message
        })
    };
    own.iter().any(is_other)
}

/// The conditions as they stand in a status.
pub(crate) fn to_value(conditions: &[Condition]) -> Value {
    let written = conditions.iter().map(|condition| {
        let mut value = json!({
            "type": condition.condition_type,
            "status": condition.status,
            "lastProbeTime": null,
            "lastTransitionTime": condition.last_transition_time.map(rfc3339),
        });
        for (name, text) in [("reason", &condition.reason), ("message", &condition.message)] {
            if !text.is_empty() {
                value[name] = text.as_str().into();
            }
        }
        if let Some(generation) = condition.observed_generation {
            value["observedGeneration"] = generation.into();
        }
        value
    });
    written.collect()
}

/// Adds what a strategic merge patch needs beside the conditions themselves: a null for each text that is to
/// vanish, and the order in which they stand. `old` are the conditions that the pod has.
pub(crate) fn complete_patch(status: &mut Value, old: &[Condition]) {
    let Some(conditions) = status["conditions"].as_array_mut() else { return };
    for condition in conditions.iter_mut() {
        let Some(old) = condition["type"].as_str().and_then(|name| meta::condition(old, name)) else {
            continue;
        };
        for (name, text) in [("reason", &old.reason), ("message", &old.message)] {
            if !text.is_empty() && condition[name].is_null() {
                condition[name] = Value::Null;
            }
        }
    }
    let order: Value = conditions.iter().map(|condition| json!({"type": condition["type"]})).collect();
    status["$setElementOrder/conditions"] = order;
}

/// Of a pod whose resources have changed: conditions that it does not have any more go.
pub(crate) fn drop_resize(status: &mut Value) {
    let Some(conditions) = status["conditions"].as_array_mut() else { return };
    for name in [PENDING, IN_PROGRESS] {
        if !conditions.iter().any(|condition| condition["type"] == name) {
            conditions.push(json!({"$patch": "delete", "type": name}));
        }
    }
}

fn initialized(worker: &PodWorker) -> Result<(), Unmet> {
    if worker.containers.iter().any(KubeContainer::has_run) {
        return Ok(());
    }
    let waits = |(container, spec): &(&KubeContainer, &Spec)| !has_passed(container, spec);
    let pairs = worker.init_containers.iter().zip(&worker.pod.spec.init_containers);
    let names = names(pairs.filter(waits));
    match names.as_str() {
        "" => Ok(()),
        names => Err(Unmet {
            reason: "ContainersNotInitialized",
            message: format!("containers with incomplete status: [{names}]"),
        }),
    }
}

fn containers_ready(worker: &PodWorker, phase: &str) -> Result<(), Unmet> {
    match phase {
        "Succeeded" => return Err(Unmet { reason: "PodCompleted", message: String::new() }),
        "Failed" => return Err(Unmet { reason: "PodFailed", message: String::new() }),
        _ => {}
    }
    let spec = &worker.pod.spec;
    let sidecars = worker.init_containers.iter().zip(&spec.init_containers);
    let sidecars = sidecars.filter(|(_, spec)| is_sidecar(spec));
    let unready = |(container, spec): &(&KubeContainer, &Spec)| !is_ready(container, spec, false);
    let names = names(sidecars.chain(worker.containers.iter().zip(&spec.containers)).filter(unready));
    match names.as_str() {
        "" => Ok(()),
        names => Err(Unmet {
            reason: "ContainersNotReady",
            message: format!("containers with unready status: [{names}]"),
        }),
    }
}

/// Ready are pods whose containers are ready and whose readiness gates are open.
fn ready(worker: &PodWorker, phase: &str) -> Result<(), Unmet> {
    containers_ready(worker, phase)?;
    let closed = worker.pod.spec.readiness_gates.iter().filter_map(|gate| {
        let name = &gate.condition_type;
        match meta::condition(&worker.pod.status.conditions, name) {
            None => Some(format!("corresponding condition of pod readiness gate {name:?} does not exist.")),
            Some(condition) if condition.status != "True" => Some(format!(
                "the status of pod readiness gate {name:?} is not \"True\", but {}",
                condition.status
            )),
            Some(_) => None,
        }
    });
    let closed: Vec<String> = closed.collect();
    if closed.is_empty() {
        return Ok(());
    }
    Err(Unmet { reason: "ReadinessGatesNotReady", message: closed.join(", ") })
}

fn names<'a>(containers: impl Iterator<Item = (&'a KubeContainer, &'a Spec)>) -> String {
    containers.map(|(_, spec)| spec.name.as_str()).collect::<Vec<_>>().join(" ")
}

/// Whether an init container lets the next one start: it has ended well, or, a sidecar, it has started.
pub(crate) fn has_passed(container: &KubeContainer, spec: &Spec) -> bool {
    if is_sidecar(spec) { container.started } else { container.has_succeeded() }
}

/// Whether its part of the pod is ready: an init container is when it has ended well.
pub(crate) fn is_ready(container: &KubeContainer, spec: &Spec, is_init: bool) -> bool {
    let ends = is_init && !is_sidecar(spec);
    if ends { container.has_succeeded() } else { container.is_running() && container.ready }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use apimachinery::object::Object;

    use super::*;
    use crate::stories::{node, object};

    /// The pod of a worker with this status.
    fn seen(status: &Value) -> Arc<Object> {
        object(&json!({
            "metadata": {"name": "p", "uid": "u", "generation": 3},
            "spec": {"containers": [{"name": "c", "image": "nginx"}]},
            "status": status,
        }))
    }

    #[test]
    fn what_the_pod_has_is_not_kept_once_more_until_somebody_else_changes_it() {
        let now = Time::UNIX_EPOCH + chrono::TimeDelta::milliseconds(1234);
        let mut worker = PodWorker::new(seen(&json!({})), &node(), now);
        let written = worker.status(&["10.0.0.1"], now);
        assert_eq!(worker.own_conditions.as_ref().map(|own| own.len()), Some(5), "nobody else has them");
        worker.update(seen(&written));
        assert_eq!(worker.own_conditions, None);
        let later = now + chrono::TimeDelta::seconds(60);
        assert_eq!(worker.status(&["10.0.0.1"], later), written, "times of transition stay");
        assert_eq!(worker.own_conditions, None);

        let mut foreign = written.clone();
        foreign["conditions"][4]["status"] = "False".into();
        foreign["conditions"]
            .as_array_mut()
            .unwrap()
            .push(json!({"type": "example.com/gate", "status": "True"}));
        worker.update(seen(&foreign));
        let own = worker.own_conditions.as_deref().expect("what was written is remembered");
        assert_eq!(to_value(own), written["conditions"]);
        assert!(differ(worker.conditions(), &worker.pod.status.conditions));
        assert_eq!(worker.status(&["10.0.0.1"], later), written);
        // Somebody's own condition is none of the kubelet's.
        foreign["conditions"][4]["status"] = "True".into();
        worker.update(seen(&foreign));
        assert_eq!(worker.own_conditions, None);
        worker.update(seen(&written));
        assert_eq!(worker.own_conditions, None);
    }
}
