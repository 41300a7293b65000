//! StatefulSet: pods with names and storage of their own.

use std::sync::LazyLock;

use crate::apps::deployment::not_decremented;
use crate::core::persistent_volume_claim;
use crate::core::pod::defaults::pod_spec;
use crate::core::pod::gates::POD_GATES;
use crate::core::pod::strategy::template_warnings;
use crate::core::pod::validation::{lasting_template, template_annotations};
use crate::gated::Gated;
use crate::kind::{Builtin, Kind, Subresource};
use crate::print::{container_cells, container_columns, name};
use crate::rules::{RULES, Rules};
use crate::table::{Column, age};
use crate::tree::number;
use crate::tree::*;
use crate::validation::labels::{labels, selected_template, workload_selector};
use crate::validation::texts::{at_most_100_percent, number_or_percent, number_or_percent_value};
use crate::validation::{Field, equal};
use apimachinery::field_error::FieldErrors;
use apimachinery::names;
use apimachinery::object::Object;
use apimachinery::time::Time;
use serde_json::Value;

/// Without its gate one pod is replaced after the other.
const GATES: &[Gated] = &[Gated::new("MaxUnavailableStatefulSet", "rollingUpdate.maxUnavailable")];

/// `statefulsets`
pub static STATEFUL_SETS: Builtin = LazyLock::new(|| {
    Kind::builtin("apps", "v1", "StatefulSet", "statefulsets", "io.k8s.api.apps.v1")
        .short(&["sts"])
        .in_categories(&["all"])
        .with(&[Subresource::Scale, Subresource::Status])
        .with_generation()
        .gated("/spec/template/spec", POD_GATES)
        .gated("/spec/updateStrategy", GATES)
        .printed(columns(), cells)
        .defaulted(defaults)
        .governed_by(Rules {
            warnings: |new, _| template_warnings(new, "spec.template"),
            validate_name: names::dns1123_label,
            validate,
            validate_update,
            validate_status_update,
            ..RULES
        })
        .into()
});

fn columns() -> Vec<Column> {
    let [containers, images] = container_columns();
    vec![
        Column::name(),
        Column::new("Ready", "string", "Number of the pod with ready state"),
        Column::age(),
        containers,
        images,
    ]
}

fn cells(object: &Object, now: Time) -> Vec<Value> {
    let tree = object.to_value();
    let [names, images] = container_cells(&tree, "spec.template.spec");
    let ready = format!("{}/{}", number(&tree, "status.readyReplicas"), number(&tree, "spec.replicas"));
    vec![name(object), ready.into(), age(object, now), names, images]
}

fn defaults(set: &mut Value) {
    set_if_zero(set, "spec.podManagementPolicy", "OrderedReady");
    if text(set, "spec.updateStrategy.type").is_empty() {
        set_if_unset(set, "spec.updateStrategy.type", "RollingUpdate");
        object_mut(set, "spec.updateStrategy.rollingUpdate");
    }
    if text(set, "spec.updateStrategy.type") == "RollingUpdate"
        && is_set(set, "spec.updateStrategy.rollingUpdate")
    {
        set_if_unset(set, "spec.updateStrategy.rollingUpdate.partition", 0);
    }
    set_if_zero(set, "spec.persistentVolumeClaimRetentionPolicy.whenDeleted", "Retain");
    set_if_zero(set, "spec.persistentVolumeClaimRetentionPolicy.whenScaled", "Retain");
    set_if_unset(set, "spec.replicas", 1);
    set_if_unset(set, "spec.revisionHistoryLimit", 10);
    pod_spec(set, "spec.template.spec");
    for claim in items_mut(set, "spec.volumeClaimTemplates") {
        set_if_zero(claim, "apiVersion", "v1");
        set_if_zero(claim, "kind", "PersistentVolumeClaim");
        persistent_volume_claim::defaults(claim);
    }
}

/// The template's spec is looked at when a pod is made of it: its mounts may be of claims that are made then,
/// too.
fn validate(set: &Value, errors: &mut FieldErrors) {
    let spec = Field::of(set, "spec");
    let policy = spec.child("podManagementPolicy");
    if policy.require(errors) && !matches!(policy.text(), "OrderedReady" | "Parallel") {
        policy.invalid("must be 'OrderedReady' or 'Parallel'", errors);
    }
    update_strategy(&spec.child("updateStrategy"), errors);
    for when in ["whenDeleted", "whenScaled"] {
        let retention = spec.child("persistentVolumeClaimRetentionPolicy").child(when);
        retention.one_of_if_set(&["Retain", "Delete"], errors);
    }
    spec.all_nonnegative(&["replicas", "minReadySeconds", "ordinals.start", "revisionHistoryLimit"], errors);
    let (selector, pods) = (spec.child("selector"), spec.child("template"));
    workload_selector(&selector, "statefulset", errors);
    selected_template(&selector, &pods, errors);
    labels(&pods.child("metadata.labels").shown_as(format!("{}.labels", pods.path)), errors);
    template_annotations(&pods, errors);
    lasting_template(&pods, "StatefulSet", errors);
}

fn update_strategy(strategy: &Field, errors: &mut FieldErrors) {
    let rolling = strategy.child("rollingUpdate");
    match strategy.child("type").text() {
        "" => strategy.required("", errors),
        "OnDelete" if rolling.is_set() => {
            rolling.invalid("only allowed for updateStrategy 'RollingUpdate'", errors);
        }
        "OnDelete" => {}
        "RollingUpdate" => {
            rolling.child("partition").nonnegative(errors);
            let unavailable = rolling.child("maxUnavailable");
            if unavailable.is_set() {
                number_or_percent(&unavailable, errors);
                if number_or_percent_value(&unavailable) == 0 {
                    unavailable.invalid("cannot be 0", errors);
                }
                at_most_100_percent(&unavailable, errors);
            }
        }
        _ => strategy.invalid("must be 'RollingUpdate' or 'OnDelete'", errors),
    }
}

fn validate_update(new: &Value, old: &Value, errors: &mut FieldErrors) {
    const MAY_CHANGE: &[&str] = &[
        "replicas",
        "ordinals",
        "template",
        "updateStrategy",
        "revisionHistoryLimit",
        "persistentVolumeClaimRetentionPolicy",
        "minReadySeconds",
    ];
    let rest = |set: &Value| {
        let mut spec = at(set, "spec").clone();
        MAY_CHANGE.iter().for_each(|field| drop(remove(&mut spec, field)));
        spec
    };
    if !equal(&rest(new), &rest(old)) {
        let words = "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', \
            'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and \
            'minReadySeconds' are forbidden";
        errors.forbidden("spec", words);
    }
}

fn validate_status_update(new: &Value, old: &Value, errors: &mut FieldErrors) {
    let status = Field::of(new, "status");
    let parts = ["readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas"];
    status.child("replicas").nonnegative(errors);
    status.all_nonnegative(&parts, errors);
    status.all_nonnegative(&["observedGeneration", "collisionCount"], errors);
    status.at_most(&parts, "replicas", "cannot be greater than status.replicas", errors);
    status.at_most(
        &["availableReplicas"],
        "readyReplicas",
        "cannot be greater than status.readyReplicas",
        errors,
    );
    not_decremented(&status, &Field::of(old, "status"), errors);
}
