//! DaemonSet: one pod on every node.

use std::sync::LazyLock;

use crate::apps::deployment::not_decremented;
use crate::apps::replica_set::selector_is_immutable;
use crate::core::pod::defaults::pod_spec;
use crate::core::pod::gates::POD_GATES;
use crate::core::pod::strategy::template_warnings;
use crate::core::pod::validation::{lasting_template, template};
use crate::kind::{Builtin, Kind, Subresource};
use crate::print::{container_cells, container_columns, label_selector, labels, name};
use crate::rules::{RULES, Rules};
use crate::table::{Column, age};
use crate::tree::number;
use crate::tree::*;
use crate::validation::Field;
use crate::validation::labels::{selected_template, workload_selector};
use crate::validation::texts::{at_most_100_percent, number_or_percent, number_or_percent_value};
use apimachinery::field_error::FieldErrors;
use apimachinery::object::Object;
use apimachinery::time::Time;
use serde_json::{Value, json};

/// `daemonsets`
pub static DAEMON_SETS: Builtin = LazyLock::new(|| {
    Kind::builtin("apps", "v1", "DaemonSet", "daemonsets", "io.k8s.api.apps.v1")
        .short(&["ds"])
        .in_categories(&["all"])
        .with(&[Subresource::Status])
        .with_generation()
        .gated("/spec/template/spec", POD_GATES)
        .printed(columns(), cells)
        .defaulted(defaults)
        .governed_by(Rules {
            warnings: |new, _| template_warnings(new, "spec.template"),
            prepare_for_create,
            prepare_for_update,
            validate,
            validate_update: selector_is_immutable,
            validate_status_update,
            ..RULES
        })
        .into()
});

const SPEC: &str = "io.k8s.api.apps.v1.DaemonSetSpec";
const STATUS: &str = "io.k8s.api.apps.v1.DaemonSetStatus";

fn columns() -> Vec<Column> {
    let [containers, images] = container_columns();
    vec![
        Column::name(),
        Column::of("Desired", "integer", STATUS, "desiredNumberScheduled"),
        Column::of("Current", "integer", STATUS, "currentNumberScheduled"),
        Column::of("Ready", "integer", STATUS, "numberReady"),
        Column::of("Up-to-date", "integer", STATUS, "updatedNumberScheduled"),
        Column::of("Available", "integer", STATUS, "numberAvailable"),
        Column::of("Node Selector", "string", "io.k8s.api.core.v1.PodSpec", "nodeSelector"),
        Column::age(),
        containers,
        images,
        Column::of("Selector", "string", SPEC, "selector").wide(),
    ]
}

fn cells(object: &Object, now: Time) -> Vec<Value> {
    let tree = object.to_value();
    let [names, images] = container_cells(&tree, "spec.template.spec");
    let status = |field: &str| Value::from(number(&tree["status"], field));
    vec![
        name(object),
        status("desiredNumberScheduled"),
        status("currentNumberScheduled"),
        status("numberReady"),
        status("updatedNumberScheduled"),
        status("numberAvailable"),
        json!(labels(&tree, "spec.template.spec.nodeSelector")),
        age(object, now),
        names,
        images,
        json!(label_selector(&tree, "spec.selector")),
    ]
}

fn defaults(set: &mut Value) {
    set_if_zero(set, "spec.updateStrategy.type", "RollingUpdate");
    if text(set, "spec.updateStrategy.type") == "RollingUpdate" {
        set_if_unset(set, "spec.updateStrategy.rollingUpdate.maxUnavailable", 1);
        set_if_unset(set, "spec.updateStrategy.rollingUpdate.maxSurge", 0);
    }
    set_if_unset(set, "spec.revisionHistoryLimit", 10);
    pod_spec(set, "spec.template.spec");
}

/// What was a field in older versions lives on as an annotation, in which revisions are looked up.
const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

fn prepare_for_create(set: &mut Value) {
    let generation = template_generation(set).max(1);
    object_mut(set, "metadata.annotations").insert(TEMPLATE_GENERATION.into(), generation.to_string().into());
}

fn prepare_for_update(new: &mut Value, old: &Value) {
    let changed = at(new, "spec.template") != at(old, "spec.template");
    let generation = template_generation(old) + i64::from(changed);
    object_mut(new, "metadata.annotations").insert(TEMPLATE_GENERATION.into(), generation.to_string().into());
}

fn template_generation(set: &Value) -> i64 {
    annotation(set, TEMPLATE_GENERATION).parse().unwrap_or(0)
}

fn validate(set: &Value, errors: &mut FieldErrors) {
    let spec = Field::of(set, "spec");
    let (selector, pods) = (spec.child("selector"), spec.child("template"));
    workload_selector(&selector, "daemonset", errors);
    selected_template(&selector, &pods, errors);
    template(&pods, errors);
    lasting_template(&pods, "DaemonSet", errors);
    spec.child("minReadySeconds").nonnegative(errors);
    update_strategy(&spec.child("updateStrategy"), errors);
    spec.child("revisionHistoryLimit").nonnegative(errors);
}

fn update_strategy(strategy: &Field, errors: &mut FieldErrors) {
    let rolling = strategy.child("rollingUpdate");
    match strategy.child("type").text() {
        "OnDelete" => {}
        "RollingUpdate" => rolling_update(&rolling, errors),
        // Upstream shows the whole strategy here.
        _ => strategy.not_supported(&["RollingUpdate", "OnDelete"], errors),
    }
}

fn rolling_update(rolling: &Field, errors: &mut FieldErrors) {
    let (unavailable, surge) = (rolling.child("maxUnavailable"), rolling.child("maxSurge"));
    for bound in [&unavailable, &surge] {
        number_or_percent(bound, errors);
    }
    for bound in [&unavailable, &surge] {
        at_most_100_percent(bound, errors);
    }
    match (number_or_percent_value(&unavailable) != 0, number_or_percent_value(&surge) != 0) {
        (true, true) => surge.invalid("may not be set when maxUnavailable is non-zero", errors),
        (false, false) => unavailable.required("cannot be 0 when maxSurge is 0", errors),
        _ => {}
    }
}

fn validate_status_update(new: &Value, old: &Value, errors: &mut FieldErrors) {
    let status = Field::of(new, "status");
    let counts = [
        "currentNumberScheduled",
        "numberMisscheduled",
        "desiredNumberScheduled",
        "numberReady",
        "observedGeneration",
        "updatedNumberScheduled",
        "numberAvailable",
        "numberUnavailable",
        "collisionCount",
    ];
    status.all_nonnegative(&counts, errors);
    not_decremented(&status, &Field::of(old, "status"), errors);
}
