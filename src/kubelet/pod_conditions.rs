//! The conditions of a pod that its kubelet owns (`pkg/kubelet/status/generate.go`).

use serde_json::{Value, json};

use super::pod_status::{has_passed, is_ready};
use super::pod_workers::{PodWorker, Sandbox};
use super::runtime::Container;
use crate::apimachinery::time::{Time, rfc3339};
use crate::apis::views::meta::{self, Condition};
use crate::apis::views::pod::Container as Spec;

/// Why a condition is false.
struct Unmet {
    reason: &'static str,
    message: String,
}

/// The five conditions, in the order in which the kubelet writes them.
pub fn generate(worker: &PodWorker, phase: &str, generation: i64, now: Time) -> Vec<Condition> {
    let sandbox = match worker.sandbox {
        Sandbox::Ready { .. } => Ok(()),
        _ => Err(Unmet { reason: "", message: String::new() }),
    };
    let containers = containers_ready(worker, phase);
    let ready = ready(worker, phase);
    let completed = if phase == "Succeeded" { "PodCompleted" } else { "" };
    let conditions = [
        ("PodReadyToStartContainers", sandbox, ""),
        ("Initialized", initialized(worker), completed),
        ("Ready", ready, ""),
        ("ContainersReady", containers, ""),
        ("PodScheduled", Ok(()), ""),
    ];
    let made = conditions.into_iter().map(|(condition_type, outcome, reason)| {
        let (status, reason, message) = match outcome {
            Ok(()) => ("True", reason, String::new()),
            Err(unmet) => ("False", unmet.reason, unmet.message),
        };
        let old = meta::condition(&worker.conditions, condition_type).filter(|old| old.status == status);
        Condition {
            condition_type: condition_type.into(),
            status: status.into(),
            reason: reason.into(),
            message,
            last_transition_time: old.and_then(|old| old.last_transition_time).or(Some(now)),
            last_update_time: None,
            observed_generation: Some(generation),
        }
    });
    made.collect()
}

/// The conditions as a strategic merge patch wants them: what is to vanish is named with a null.
pub fn patch(conditions: &[Condition], written: &[Condition]) -> Value {
    let patched = conditions.iter().map(|condition| {
        let old = meta::condition(written, &condition.condition_type);
        let mut value = json!({
            "type": condition.condition_type,
            "status": condition.status,
            "lastProbeTime": null,
            "lastTransitionTime": condition.last_transition_time.map(rfc3339),
            "observedGeneration": condition.observed_generation,
        });
        let texts = [
            ("reason", &condition.reason, old.map(|old| &old.reason)),
            ("message", &condition.message, old.map(|old| &old.message)),
        ];
        for (name, text, old) in texts {
            if !text.is_empty() {
                value[name] = text.as_str().into();
            } else if old.is_some_and(|old| !old.is_empty()) {
                value[name] = Value::Null;
            }
        }
        value
    });
    patched.collect()
}

/// The directive that puts them in this order.
pub fn order(conditions: &[Condition]) -> Value {
    conditions.iter().map(|condition| json!({"type": condition.condition_type})).collect()
}

fn initialized(worker: &PodWorker) -> Result<(), Unmet> {
    if worker.containers.iter().any(Container::has_run) {
        return Ok(());
    }
    let waits = |(container, spec): &(&Container, &Spec)| !has_passed(container, spec);
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
    let sidecars = sidecars.filter(|(_, spec)| spec.restart_policy.is_some());
    let unready = |(container, spec): &(&Container, &Spec)| !is_ready(container, spec, false);
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

fn names<'a>(containers: impl Iterator<Item = (&'a Container, &'a Spec)>) -> String {
    containers.map(|(_, spec)| spec.name.as_str()).collect::<Vec<_>>().join(" ")
}
