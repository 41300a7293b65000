//! Job: pods that run to their end.

use std::sync::LazyLock;

use super::job_labels::{CONTROLLER_UID, LABELS};
use super::{job_status_validation, job_validation};
use crate::core::pod::defaults::pod_spec;
use crate::core::pod::gates::POD_GATES;
use crate::core::pod::strategy::template_warnings;
use crate::kind::{Builtin, Kind, Subresource};
use crate::print::{container_cells, container_columns, label_selector, name};
use crate::rules::{RULES, Rules};
use crate::strategy::GarbageCollectionPolicy;
use crate::table::{Column, age};
use crate::tree::*;
use apimachinery::object::Object;
use apimachinery::time::{Time, human_duration, parse};
use serde_json::{Value, json};

/// `jobs`
pub static JOBS: Builtin = LazyLock::new(|| {
    Kind::builtin("batch", "v1", "Job", "jobs", "io.k8s.api.batch.v1")
        .in_categories(&["all"])
        .with(&[Subresource::Status])
        .selectable_as("status.successful", "status.succeeded", "0")
        .with_generation()
        .gated("/spec/template/spec", POD_GATES)
        .printed(columns(), cells)
        .defaulted(defaults)
        .governed_by(Rules {
            warnings: |new, _| template_warnings(new, "spec.template"),
            prepare_for_create,
            default_garbage_collection: GarbageCollectionPolicy::Orphan,
            validate: job_validation::validate,
            validate_create: job_validation::validate_create,
            validate_update: job_validation::validate_update,
            validate_status_update: job_status_validation::validate_status_update,
            ..RULES
        })
        .into()
});

const SPEC: &str = "io.k8s.api.batch.v1.JobSpec";
const STATUS: &str = "io.k8s.api.batch.v1.JobStatus";

fn columns() -> Vec<Column> {
    let [containers, images] = container_columns();
    vec![
        Column::name(),
        Column::new("Status", "string", "Status of the job."),
        Column::of("Completions", "string", STATUS, "succeeded"),
        Column::new("Duration", "string", "Time required to complete the job."),
        Column::age(),
        containers,
        images,
        Column::of("Selector", "string", SPEC, "selector").wide(),
    ]
}

fn cells(object: &Object, now: Time) -> Vec<Value> {
    let tree = object.to_value();
    let [names, images] = container_cells(&tree, "spec.template.spec");
    vec![
        name(object),
        status(object, &tree).into(),
        completions(&tree).into(),
        duration(&tree, now).into(),
        age(object, now),
        names,
        images,
        json!(label_selector(&tree, "spec.selector")),
    ]
}

fn status(object: &Object, tree: &Value) -> &'static str {
    let conditions = items(tree, "status.conditions");
    let has = |kind: &str| {
        let found = conditions.iter().find(|condition| text(condition, "type") == kind);
        found.is_some_and(|condition| text(condition, "status") == "True")
    };
    match () {
        () if has("Complete") => "Complete",
        () if has("Failed") => "Failed",
        () if object.is_deleting() => "Terminating",
        () if has("Suspended") => "Suspended",
        () if has("FailureTarget") => "FailureTarget",
        () => "Running",
    }
}

fn completions(tree: &Value) -> String {
    let succeeded = number(tree, "status.succeeded");
    match (at(tree, "spec.completions").as_i64(), number(tree, "spec.parallelism")) {
        (Some(completions), _) => format!("{succeeded}/{completions}"),
        (None, parallelism) if parallelism > 1 => format!("{succeeded}/1 of {parallelism}"),
        (None, _) => format!("{succeeded}/1"),
    }
}

fn duration(tree: &Value, now: Time) -> String {
    let Some(start) = parse(text(tree, "status.startTime")) else { return String::new() };
    let end =
        if is_set(tree, "status.completionTime") { parse(text(tree, "status.completionTime")) } else { None };
    human_duration((end.unwrap_or(now) - start).num_seconds())
}

fn defaults(job: &mut Value) {
    if !is_set(job, "spec.completions") && !is_set(job, "spec.parallelism") {
        set(job, "spec.completions", 1);
    }
    set_if_unset(job, "spec.parallelism", 1);
    // With a limit for each index, the limit for all of them together is as good as none.
    let limit = if is_set(job, "spec.backoffLimitPerIndex") { i32::MAX } else { 6 };
    set_if_unset(job, "spec.backoffLimit", limit);
    label_as_pods(job);
    set_if_unset(job, "spec.completionMode", "NonIndexed");
    set_if_unset(job, "spec.suspend", false);
    let replacement = if is_set(job, "spec.podFailurePolicy") { "Failed" } else { "TerminatingOrFailed" };
    set_if_unset(job, "spec.podReplacementPolicy", replacement);
    set_if_unset(job, "spec.manualSelector", false);
    default_spec(job, "spec");
}

/// A Job without labels has those of its pods.
fn label_as_pods(job: &mut Value) {
    let labels = at(job, "spec.template.metadata.labels").clone();
    if !is_zero(&labels) {
        set_if_zero(job, "metadata.labels", labels);
    }
}

/// What holds for the spec of a Job and for that in a CronJob's template.
pub fn default_spec(tree: &mut Value, path: &str) {
    for rule in items_mut(tree, &format!("{path}.podFailurePolicy.rules")) {
        for pattern in items_mut(rule, "onPodConditions") {
            set_if_zero(pattern, "status", "True");
        }
    }
    pod_spec(tree, &format!("{path}.template.spec"));
}

/// Unless its client chose a selector itself, a Job selects its pods by its own uid. Their labels are made
/// here, and those of the Job follow: upstream's come by the defaults of what is read from etcd.
fn prepare_for_create(job: &mut Value) {
    if flag(job, "spec.manualSelector") {
        return;
    }
    for (label, path) in LABELS {
        let value = at(job, path).clone();
        object_mut(job, "spec.template.metadata.labels").entry(label).or_insert(value);
    }
    let uid = at(job, "metadata.uid").clone();
    object_mut(job, "spec.selector.matchLabels").entry(CONTROLLER_UID).or_insert(uid);
    label_as_pods(job);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_selects_its_pods_by_its_own_uid() {
        let mut job = json!({"metadata": {"name": "j", "uid": "u"}, "spec": {}});
        JOBS.strategy.prepare_for_create(&mut job);
        let labels = json!({"job-name": "j", "batch.kubernetes.io/job-name": "j", "controller-uid": "u",
            "batch.kubernetes.io/controller-uid": "u"});
        assert_eq!(job["spec"]["template"]["metadata"]["labels"], labels);
        assert_eq!(job["metadata"]["labels"], labels);
        let mut own = json!({"metadata": {"name": "j", "uid": "u", "labels": {"a": "b"}}, "spec": {}});
        JOBS.strategy.prepare_for_create(&mut own);
        assert_eq!(own["metadata"]["labels"], json!({"a": "b"}));
        assert_eq!(
            job["spec"]["selector"]["matchLabels"],
            json!({"batch.kubernetes.io/controller-uid": "u"})
        );
    }

    #[test]
    fn a_selector_of_the_clients_own_is_left_alone() {
        let mut job = json!({"spec": {"manualSelector": true, "selector": {"matchLabels": {"a": "b"}}}});
        let given = job.clone();
        JOBS.strategy.prepare_for_create(&mut job);
        assert_eq!(job, given);
    }
}
