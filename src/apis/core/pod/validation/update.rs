//! What of a pod may change once it exists (`ValidatePodUpdate`).

use std::collections::BTreeSet;

use serde_json::Value;

use crate::tree::{get_mut, is_set, items_mut, number, remove, set};
use crate::validation::texts::in_range;
use crate::validation::{Field, difference, equal};
use apimachinery::field_error::FieldErrors;

const WORDS: &str = "pod updates may not change fields other than `spec.containers[*].image`,\
`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing \
tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

/// What is wrong with a change of a pod.
pub fn validate_update(new: &Value, old: &Value, errors: &mut FieldErrors) {
    let (spec, old_spec) = (Field::of(new, "spec"), Field::of(old, "spec"));
    mirror_annotation(new, old, errors);
    for list in ["containers", "initContainers"] {
        if spec.each(list).len() != old_spec.each(list).len() {
            return spec.child(list).forbidden("pod updates may not add or remove containers", errors);
        }
    }
    if !active_deadline(&spec, &old_spec, errors) {
        return;
    }
    only_added_tolerations(&spec, &old_spec, errors);
    only_deleted_gates(&spec, &old_spec, errors);
    let mut allowed = new.clone();
    set_back_what_may_change(&mut allowed, old, errors);
    let (changed, was) = (&allowed["spec"], old_spec.value);
    if !equal(changed, was) {
        spec.forbidden(format!("{WORDS}\n{}", difference(was, changed)), errors);
    }
}

fn mirror_annotation(new: &Value, old: &Value, errors: &mut FieldErrors) {
    const MIRROR: &str = "kubernetes.io/config.mirror";
    let of = |pod: &Value| crate::tree::at(pod, "metadata.annotations").get(MIRROR).cloned();
    let path = format!("metadata.annotations[{MIRROR}]");
    match (of(new), of(old)) {
        (Some(_), None) => errors.forbidden(path, "may not add mirror pod annotation"),
        (new, Some(old)) if new.as_ref() != Some(&old) => {
            errors.forbidden(path, "may not remove or update mirror pod annotation");
        }
        _ => {}
    }
}

/// It may be set, and lowered. Whether to look further.
fn active_deadline(spec: &Field, old: &Field, errors: &mut FieldErrors) -> bool {
    let (new, old) = (spec.child("activeDeadlineSeconds"), old.child("activeDeadlineSeconds"));
    match (new.is_set(), old.is_set()) {
        (true, _) if !in_range(new.number(), 0, i64::from(i32::MAX)).is_empty() => {
            new.invalid_each(in_range(new.number(), 0, i64::from(i32::MAX)), errors);
            return false;
        }
        (true, true) if old.number() < new.number() => {
            new.invalid("must be less than or equal to previous value", errors);
            return false;
        }
        (false, true) => new.invalid("must not update from a positive integer to nil value", errors),
        _ => {}
    }
    true
}

fn only_added_tolerations(spec: &Field, old: &Field, errors: &mut FieldErrors) {
    let without_seconds = |toleration: &Field| {
        let mut value = toleration.value.clone();
        remove(&mut value, "tolerationSeconds");
        value
    };
    let new: Vec<Value> = spec.each("tolerations").iter().map(without_seconds).collect();
    let kept = |old: &Field| new.iter().any(|new| equal(new, &without_seconds(old)));
    if !old.each("tolerations").iter().all(kept) {
        let words = "existing toleration can not be modified except its tolerationSeconds";
        spec.child("tolerations").forbidden(words, errors);
    }
}

fn only_deleted_gates(spec: &Field, old: &Field, errors: &mut FieldErrors) {
    let known: BTreeSet<&str> =
        old.each("schedulingGates").iter().map(|gate| gate.child("name").text()).collect();
    for name in spec.each("schedulingGates").iter().map(|gate| gate.child("name")) {
        if !known.contains(name.text()) {
            let words = format!("only deletion is allowed, but found new scheduling gate '{}'", name.text());
            name.forbidden(words, errors);
        }
    }
}

/// Puts the old values of what may change into `new`, so that only what may not is left to differ.
fn set_back_what_may_change(new: &mut Value, old: &Value, errors: &mut FieldErrors) {
    let put_back = |new: &mut Value, path: &str| match crate::tree::at(old, path) {
        Value::Null => drop(remove(new, path)),
        was => set(new, path, was.clone()),
    };
    for list in ["spec.containers", "spec.initContainers"] {
        let images = crate::tree::items(old, list);
        for (container, was) in items_mut(new, list).iter_mut().zip(images) {
            set(container, "image", was["image"].clone());
        }
    }
    for path in ["spec.activeDeadlineSeconds", "spec.schedulingGates", "spec.tolerations"] {
        put_back(new, path);
    }
    const GRACE: &str = "spec.terminationGracePeriodSeconds";
    if number(old, GRACE) < 0 && number(new, GRACE) == 1 {
        put_back(new, GRACE);
    }
    if !Field::of(old, "spec.schedulingGates").is_zero() {
        gated_node_selector(new, old, errors);
        put_back(new, "spec.nodeSelector");
        // A pod that waits may be told more precisely where to go.
        put_back(new, "spec.affinity.nodeAffinity");
        if !is_set(old, "spec.affinity")
            && get_mut(new, "spec.affinity").is_some_and(|rest| equal(rest, &Value::Null))
        {
            remove(new, "spec.affinity");
        }
    }
}

fn gated_node_selector(new: &Value, old: &Value, errors: &mut FieldErrors) {
    let selector = Field::of(new, "spec.nodeSelector");
    let was = Field::of(old, "spec.nodeSelector");
    let kept = |(name, value): &(&str, Field)| selector.value.get(name) == Some(value.value);
    if !was.members().iter().all(kept) {
        let words = "only additions to spec.nodeSelector are allowed (no mutations or deletions)";
        selector.invalid(words, errors);
    }
}
