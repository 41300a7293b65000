//! What of a pod may change through `ephemeralcontainers` and `resize`
//! (`ValidatePodEphemeralContainersUpdate`, `ValidatePodResize`).

use serde_json::{Value, json};

use crate::core::pod::qos::quality_of_service;
use crate::tree::{items, remove, text};
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
    let class = match text(old, "status.qosClass") {
        "" => quality_of_service(old),
        class => class,
    };
    if quality_of_service(new) != class {
        let words = "Pod QOS Class may not change as a result of resizing";
        // The one that it has: a status is not what a resize changes.
        errors.invalid("spec", &class.into(), words);
    }
    pod_level(&Field::of(new, "spec.resources"), &Field::of(old, "spec.resources"), errors);
    if !are_same_containers(new, old, errors) {
        return;
    }
    for list in ["initContainers", "containers"] {
        let old_containers = Field::of(old, &format!("spec.{list}")).items();
        for (container, was) in Field::of(new, &format!("spec.{list}")).items().iter().zip(&old_containers) {
            nothing_removed(&container.child("resources"), &was.child("resources"), "resource", errors);
            let is_changed = !equal(&without_amounts(container.value), &without_amounts(was.value));
            if list == "initContainers" {
                init_container(container, was, is_changed, errors);
            } else if is_changed {
                container.shown_as("spec").forbidden("only cpu and memory resources are mutable", errors);
            }
        }
    }
}

/// Of the pod as a whole (`validatePodLevelResourcesResize`).
fn pod_level(new: &Field, old: &Field, errors: &mut FieldErrors) {
    if old.is_set() && !new.is_set() {
        return new.forbidden("pod-level resources cannot be removed", errors);
    }
    nothing_removed(new, old, "pod-level resource", errors);
    let others = |field: &Field| without_amounts(&json!({"resources": field.value}));
    if !equal(&others(new), &others(old)) {
        new.shown_as("spec").forbidden("only cpu and memory resources are mutable at pod-level", errors);
    }
}

/// None comes, goes, has another name or another place.
fn are_same_containers(new: &Value, old: &Value, errors: &mut FieldErrors) -> bool {
    let count = errors.0.len();
    for list in ["containers", "initContainers"] {
        let new = Field::of(new, &format!("spec.{list}"));
        let (containers, old) = (new.items(), Field::of(old, &format!("spec.{list}")).items());
        if containers.len() != old.len() {
            new.forbidden(format!("{list} may not be added or removed on resize"), errors);
        }
        for (container, was) in containers.iter().zip(&old) {
            if container.child("name").text() != was.child("name").text() && containers.len() == old.len() {
                let words = format!("{list} may not be renamed or reordered on resize");
                container.child("name").forbidden(words, errors);
            }
        }
    }
    errors.0.len() == count
}

/// One that runs only once is given other resources for that once: it is not started again for them.
fn init_container(container: &Field, was: &Field, is_changed: bool, errors: &mut FieldErrors) {
    if is_changed {
        let words = "only cpu and memory resources for init or sidecar containers are mutable";
        container.forbidden(words, errors);
    }
    let is_sidecar = text(container.value, "restartPolicy") == "Always";
    let restarts = |policy: &Value| text(policy, "restartPolicy") == "RestartContainer";
    let is_restarted = items(container.value, "resizePolicy").iter().any(restarts);
    if !is_sidecar && is_restarted && !equal(container.value, was.value) {
        let words = "non-sidecar init containers with a resize policy of RestartContainer cannot be resized";
        container.forbidden(words, errors);
    }
}

/// What was said of an amount may not be taken back.
fn nothing_removed(new: &Field, old: &Field, what: &str, errors: &mut FieldErrors) {
    for part in ["requests", "limits"] {
        let (now, before) = (new.child(part), old.child(part));
        if before.members().iter().any(|(name, _)| now.value.get(name).is_none()) {
            now.forbidden(format!("{what} {part} cannot be removed"), errors);
        }
    }
}

/// A container, or what has resources like one, without what may change of it.
fn without_amounts(tree: &Value) -> Value {
    let mut rest = tree.clone();
    for list in ["resources.requests", "resources.limits"] {
        for name in ["cpu", "memory"] {
            remove(&mut rest, &format!("{list}.{name}"));
        }
    }
    rest
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is said of a resize of a pod, and of its containers.
    fn refusals(old: &Value, changes: &[(&str, Value)]) -> Vec<String> {
        let mut new = old.clone();
        changes.iter().for_each(|(pointer, value)| *new.pointer_mut(pointer).unwrap() = value.clone());
        let mut errors = FieldErrors::default();
        resize(&new, old, &mut errors);
        errors.0.iter().map(ToString::to_string).collect()
    }

    fn guaranteed() -> Value {
        let amounts = json!({"cpu": "1", "memory": "1Gi"});
        let resources = json!({"requests": amounts, "limits": amounts});
        let container = |name: &str| json!({"name": name, "resources": resources, "resizePolicy": []});
        json!({"status": {"qosClass": "Guaranteed"}, "spec": {"resources": null,
            "containers": [container("a"), container("b")], "initContainers": [container("i")]}})
    }

    #[test]
    fn a_resize_may_not_change_the_class_that_the_pod_has() {
        assert_eq!(
            refusals(&guaranteed(), &[("/spec/containers/0/resources/requests/cpu", json!("500m"))]),
            ["spec: Invalid value: \"Guaranteed\": Pod QOS Class may not change as a result of resizing"]
        );
    }

    #[test]
    fn only_cpu_and_memory_of_the_same_containers_may_change() {
        let pod = guaranteed();
        let more = json!({"cpu": "2", "memory": "2Gi"});
        let more = json!({"requests": more, "limits": more});
        for container in ["containers/0", "initContainers/0"] {
            let pointer = format!("/spec/{container}/resources");
            assert_eq!(refusals(&pod, &[(&pointer, more.clone())]), Vec::<String>::new(), "{container}");
        }
        let restarts = json!([{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]);
        assert_eq!(
            refusals(&pod, &[("/spec/containers/0/resizePolicy", restarts)]),
            ["spec: Forbidden: only cpu and memory resources are mutable"]
        );
        let amounts = json!({"cpu": "1", "memory": "1Gi", "ephemeral-storage": "1Gi"});
        assert_eq!(
            refusals(&pod, &[("/spec/containers/0/resources/limits", amounts)]),
            ["spec: Forbidden: only cpu and memory resources are mutable"]
        );
        assert_eq!(
            refusals(&pod, &[("/spec/containers/0/name", json!("c"))]),
            ["spec.containers[0].name: Forbidden: containers may not be renamed or reordered on resize"]
        );
        assert_eq!(
            refusals(&pod, &[("/spec/initContainers", json!([]))]),
            ["spec.initContainers: Forbidden: initContainers may not be added or removed on resize"]
        );
    }

    #[test]
    fn of_a_whole_pod_amounts_change_and_stay() {
        let mut pod = guaranteed();
        let amounts = json!({"cpu": "2", "memory": "2Gi"});
        pod["spec"]["resources"] = json!({"requests": amounts, "limits": amounts});
        let more = json!({"cpu": "3", "memory": "2Gi"});
        let more = json!({"requests": more, "limits": more});
        assert_eq!(refusals(&pod, &[("/spec/resources", more)]), Vec::<String>::new());
        assert_eq!(
            refusals(&pod, &[("/spec/resources", Value::Null)]),
            ["spec.resources: Forbidden: pod-level resources cannot be removed"]
        );
        let fewer = refusals(&pod, &[("/spec/resources/limits", json!({"cpu": "2"}))]);
        assert!(fewer.iter().any(|error| {
            error == "spec.resources.limits: Forbidden: pod-level resource limits cannot be removed"
        }));
        pod["spec"]["resources"]["limits"]["hugepages-2Mi"] = json!("2Mi");
        assert_eq!(
            refusals(&pod, &[("/spec/resources/limits/hugepages-2Mi", json!("4Mi"))]),
            ["spec: Forbidden: only cpu and memory resources are mutable at pod-level"]
        );
    }
}
