//! What of a pod may change through `ephemeralcontainers` and `resize`
//! (`ValidatePodEphemeralContainersUpdate`, `ValidatePodResize`).

use serde_json::Value;

use crate::core::pod::qos::quality_of_service;
use crate::tree::{at, items, text};
use crate::validation::{Field, difference, equal};
use apimachinery::field_error::FieldErrors;

/// What is wrong with a change of that part of a pod.
pub(super) fn changes(part: &str, new: &Value, old: &Value, errors: &mut FieldErrors) {
    match part {
        "resize" => resize(new, old, errors),
        _ => ephemeral_containers(new, old, errors),
    }
}

/// They may be added, and nothing else.
fn ephemeral_containers(new: &Value, old: &Value, errors: &mut FieldErrors) {
    const LIST: &str = "spec.ephemeralContainers";
    for was in items(old, LIST) {
        let name = text(was, "name");
        match items(new, LIST).iter().find(|container| text(container, "name") == name) {
            None => {
                errors.forbidden(LIST, format!("existing ephemeral containers {name:?} may not be removed\n"))
            }
            Some(is) if !equal(is, was) => {
                let changes = difference(was, is);
                let words = format!("existing ephemeral containers {name:?} may not be changed\n{changes}");
                errors.forbidden(LIST, words);
            }
            Some(_) => {}
        }
    }
}

fn resize(new: &Value, old: &Value, errors: &mut FieldErrors) {
    if quality_of_service(new) != quality_of_service(old) {
        let words = "Pod QOS Class may not change as a result of resizing";
        errors.invalid("spec", &quality_of_service(new).into(), words);
    }
    for list in ["containers", "initContainers"] {
        let old_containers = Field::of(old, &format!("spec.{list}")).items();
        for (container, was) in Field::of(new, &format!("spec.{list}")).items().iter().zip(&old_containers) {
            let is_sidecar = text(container.value, "restartPolicy") == "Always";
            let differs = !equal(at(container.value, "resources"), at(was.value, "resources"));
            if differs && list == "initContainers" && !is_sidecar {
                container
                    .shown_as("spec")
                    .forbidden("resources for non-sidecar init containers are immutable", errors);
            } else if differs {
                let words = if is_sidecar && list == "initContainers" {
                    "only cpu and memory resources for sidecar containers are mutable"
                } else {
                    "only cpu and memory resources are mutable"
                };
                container_resources(&container.child("resources"), &was.child("resources"), words, errors);
            }
        }
    }
}

/// Only CPU and memory may change, and what was said of them may not be taken back.
fn container_resources(new: &Field, old: &Field, words: &str, errors: &mut FieldErrors) {
    for part in ["requests", "limits"] {
        let (now, before) = (new.child(part), old.child(part));
        let others = |field: &Field| -> Vec<(String, Value)> {
            let members = field.members().into_iter();
            let others = members.filter(|(name, _)| !matches!(*name, "cpu" | "memory"));
            others.map(|(name, value)| (name.to_owned(), value.value.clone())).collect()
        };
        if others(&now) != others(&before) {
            new.shown_as("spec").forbidden(words, errors);
        }
        let is_removed = |name: &str| at(before.value, name) != &Value::Null && at(now.value, name).is_null();
        if ["cpu", "memory"].iter().any(|name| is_removed(name)) {
            now.forbidden(format!("resource {part} cannot be removed"), errors);
        }
    }
}
