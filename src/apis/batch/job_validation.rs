//! What is wrong with a Job, and with the template of one in a CronJob (`pkg/apis/batch/validation`).

use std::collections::BTreeSet;

use serde_json::Value;

use super::indexes;
use crate::core::pod::validation::template;
use crate::tree::{at, items, items_mut, number, remove, set, string_map, text};
use crate::validation::labels::{label_selector, selects};
use crate::validation::texts::domain_prefixed_path;
use crate::validation::{Field, equal};
use apimachinery::field_error::{ErrorType, FieldErrors};
use apimachinery::names::{dns1123_label, qualified_name};

/// An Indexed Job may not run more pods at a time, nor have more failed indexes.
const MAX_INDEXED: i64 = 100_000;
/// An Indexed Job may run so many pods at a time when it has more completions than [`MAX_INDEXED`].
const MAX_WITH_MANY_COMPLETIONS: i64 = 10_000;

/// What is wrong with a Job, new or changed.
pub(super) fn validate(job: &Value, errors: &mut FieldErrors) {
    let spec = Field::of(job, "spec");
    validate_spec(&spec, errors);
    let selector = spec.child("selector");
    if !selector.is_set() {
        return selector.required("", errors);
    }
    label_selector(&selector, errors);
    let labels = spec.child("template.metadata.labels");
    if selects(&selector, &string_map(job, "spec.template.metadata.labels")) == Some(false) {
        labels.invalid("`selector` does not match template `labels`", errors);
    }
}

/// What else is wrong with a new Job.
pub(super) fn validate_create(job: &Value, errors: &mut FieldErrors) {
    generated_labels(job, errors);
    let (name, completions) = (text(job, "metadata.name"), Field::of(job, "spec.completions"));
    if text(job, "spec.completionMode") == "Indexed" && completions.number() > 0 {
        let hostname = format!("{name}-{}", completions.number() - 1);
        if !dns1123_label(&hostname).is_empty() {
            let words = format!("will not able to create pod with invalid DNS label: {hostname}");
            Field::of(job, "metadata.name").invalid(words, errors);
        }
    }
}

/// Its client may not contradict the selector that was made for it.
fn generated_labels(job: &Value, errors: &mut FieldErrors) {
    if Field::of(job, "spec.manualSelector").flag() {
        return;
    }
    let labels = string_map(job, "spec.template.metadata.labels");
    for (label, path) in super::job_labels::LABELS {
        let wanted = text(job, path);
        let path = format!("spec.template.metadata.labels[{label}]");
        match labels.get(label) {
            None => errors.required(path, &format!("must be '{wanted}'")),
            Some(given) if given != wanted => {
                errors.invalid(path, at(job, "spec.template.metadata.labels"), format!("must be '{wanted}'"));
            }
            Some(_) => {}
        }
    }
    let generated =
        super::job_labels::LABELS.map(|(label, path)| (label.to_owned(), text(job, path).to_owned()));
    let selector = Field::of(job, "spec.selector");
    if selects(&selector, &generated.into()) == Some(false) {
        selector.invalid("`selector` not auto-generated", errors);
    }
}

/// `validateJobSpec`: of Jobs and of CronJobs' templates.
pub(super) fn validate_spec(spec: &Field, errors: &mut FieldErrors) {
    let counts = [
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "ttlSecondsAfterFinished",
        "backoffLimitPerIndex",
        "maxFailedIndexes",
    ];
    spec.all_nonnegative(&counts, errors);
    if spec.child("maxFailedIndexes").is_set() && !spec.child("backoffLimitPerIndex").is_set() {
        spec.child("backoffLimitPerIndex").required("when maxFailedIndexes is specified", errors);
    }
    managed_by(&spec.child("managedBy"), errors);
    match spec.child("completionMode").text() {
        "Indexed" => indexed(spec, errors),
        "" | "NonIndexed" => not_indexed(spec, errors),
        _ => spec.child("completionMode").not_supported(&["NonIndexed", "Indexed"], errors),
    }
    let (failure, replacement) = (spec.child("podFailurePolicy"), spec.child("podReplacementPolicy"));
    if failure.is_set() {
        pod_failure_policy(spec, &failure, errors);
        replacement.one_of_if_set(&["Failed"], errors);
    } else {
        replacement.one_of_if_set(&["Failed", "TerminatingOrFailed"], errors);
    }
    success_policy(spec, errors);
    template(&spec.child("template"), errors);
    restart_policy(spec, errors);
}

fn managed_by(field: &Field, errors: &mut FieldErrors) {
    if field.is_set() {
        domain_prefixed_path(field, errors);
        if field.text().len() > 63 {
            errors.too_long(field.path.as_str(), 63);
        }
    }
}

fn indexed(spec: &Field, errors: &mut FieldErrors) {
    let [completions, parallelism, failed] =
        ["completions", "parallelism", "maxFailedIndexes"].map(|name| spec.child(name));
    if !completions.is_set() {
        completions.required("when completion mode is Indexed", errors);
    }
    if parallelism.number() > MAX_INDEXED {
        let words = format!("must be less than or equal to {MAX_INDEXED} when completion mode is Indexed");
        parallelism.invalid(words, errors);
    }
    if completions.is_set() && failed.number() > completions.number() {
        failed.invalid("must be less than or equal to completions", errors);
    }
    if failed.number() > MAX_INDEXED {
        failed.invalid(format!("must be less than or equal to {MAX_INDEXED}"), errors);
    }
    if completions.number() > MAX_INDEXED && spec.child("backoffLimitPerIndex").is_set() {
        if !failed.is_set() {
            failed.required(&format!("must be specified when completions is above {MAX_INDEXED}"), errors);
        }
        let words = format!(
            "must be less than or equal to {MAX_WITH_MANY_COMPLETIONS} when completions are above {MAX_INDEXED} and \
             used with backoff limit per index"
        );
        for field in [&parallelism, &failed].iter().filter(|field| field.number() > MAX_WITH_MANY_COMPLETIONS)
        {
            field.invalid(&words, errors);
        }
    }
}

fn not_indexed(spec: &Field, errors: &mut FieldErrors) {
    for field in ["backoffLimitPerIndex", "maxFailedIndexes"].map(|name| spec.child(name)) {
        if field.is_set() {
            field.invalid("requires indexed completion mode", errors);
        }
    }
}

fn restart_policy(spec: &Field, errors: &mut FieldErrors) {
    let policy = spec.child("template.spec.restartPolicy");
    match policy.text() {
        "Always" | "" => policy.required("valid values: \"OnFailure\", \"Never\"", errors),
        "OnFailure" if spec.child("podFailurePolicy").is_set() => {
            policy.invalid("only \"Never\" is supported when podFailurePolicy is specified", errors);
        }
        "OnFailure" | "Never" => {}
        _ => policy.not_supported(&["OnFailure", "Never"], errors),
    }
}

fn pod_failure_policy(spec: &Field, policy: &Field, errors: &mut FieldErrors) {
    let rules = policy.child("rules");
    if rules.items().len() > 20 {
        errors.too_many(rules.path.as_str(), rules.items().len(), 20);
    }
    let lists = ["template.spec.containers", "template.spec.initContainers"];
    let containers = lists.iter().flat_map(|list| spec.each(list));
    let names: BTreeSet<&str> = containers.map(|container| container.child("name").text()).collect();
    for rule in rules.items() {
        pod_failure_rule(spec, &rule, &names, errors);
    }
}

fn pod_failure_rule(spec: &Field, rule: &Field, names: &BTreeSet<&str>, errors: &mut FieldErrors) {
    let action = rule.child("action");
    match action.text() {
        "" => action.required("valid values: [\"Count\" \"FailIndex\" \"FailJob\" \"Ignore\"]", errors),
        "FailIndex" if !spec.child("backoffLimitPerIndex").is_set() => {
            action.invalid("requires the backoffLimitPerIndex to be set", errors);
        }
        "FailIndex" | "Count" | "FailJob" | "Ignore" => {}
        _ => action.not_supported(&["Count", "FailIndex", "FailJob", "Ignore"], errors),
    }
    let (codes, conditions) = (rule.child("onExitCodes"), rule.child("onPodConditions"));
    if codes.is_set() {
        exit_codes(&codes, names, errors);
    }
    if conditions.items().len() > 20 {
        errors.too_many(conditions.path.as_str(), conditions.items().len(), 20);
    }
    for pattern in conditions.items() {
        let kind = pattern.child("type");
        kind.invalid_each(qualified_name(kind.text()), errors);
        pattern.child("status").one_of(&["False", "True", "Unknown"], errors);
    }
    let words = match (codes.is_set(), !conditions.is_zero()) {
        (true, true) => "specifying both OnExitCodes and OnPodConditions is not supported",
        (false, false) => "specifying one of OnExitCodes and OnPodConditions is required",
        _ => return,
    };
    errors.push(rule.path.as_str(), ErrorType::Invalid, String::new(), words);
}

fn exit_codes(codes: &Field, names: &BTreeSet<&str>, errors: &mut FieldErrors) {
    let (operator, container, values) =
        (codes.child("operator"), codes.child("containerName"), codes.child("values"));
    match operator.text() {
        "" => operator.required("valid values: [\"In\" \"NotIn\"]", errors),
        "In" | "NotIn" => {}
        _ => operator.not_supported(&["In", "NotIn"], errors),
    }
    if container.is_set() && !names.contains(container.text()) {
        let words = "must be one of the container or initContainer names in the pod template";
        container.invalid(words, errors);
    }
    let given: Vec<i64> = values.items().iter().map(Field::number).collect();
    match given.len() {
        0 => values.invalid("at least one value is required", errors),
        256.. => errors.too_many(values.path.as_str(), given.len(), 255),
        _ => {}
    }
    for (at, value) in values.items().iter().enumerate() {
        if operator.text() == "In" && value.number() == 0 {
            value.invalid("must not be 0 for the In operator", errors);
        }
        if given[..at].contains(&value.number()) {
            value.duplicate(errors);
        }
    }
    if !given.is_sorted() {
        values.invalid("must be ordered", errors);
    }
}

fn success_policy(spec: &Field, errors: &mut FieldErrors) {
    let policy = spec.child("successPolicy");
    if !policy.is_set() {
        return;
    }
    if spec.child("completionMode").text() != "Indexed" {
        return policy.invalid("requires indexed completion mode", errors);
    }
    let (rules, completions) = (policy.child("rules"), spec.child("completions").number());
    match rules.items().len() {
        0 => {
            rules.required("at least one rules must be specified when the successPolicy is specified", errors)
        }
        21.. => errors.too_many(rules.path.as_str(), rules.items().len(), 20),
        _ => {}
    }
    for rule in rules.items() {
        let (count, indexes) = (rule.child("succeededCount"), rule.child("succeededIndexes"));
        if !count.is_set() && !indexes.is_set() {
            rule.required("at least one of succeededCount or succeededIndexes must be specified", errors);
        }
        let total = succeeded_indexes(&indexes, completions, errors);
        count.nonnegative(errors);
        if count.number() > completions {
            let words =
                format!("must be less than or equal to {completions} (the number of specified completions)");
            count.invalid(words, errors);
        }
        if indexes.is_set() && count.number() > total {
            let words = format!(
                "must be less than or equal to {total} (the number of indexes in the specified succeededIndexes field)"
            );
            count.invalid(words, errors);
        }
    }
}

/// How many they are.
fn succeeded_indexes(given: &Field, completions: i64, errors: &mut FieldErrors) -> i64 {
    const MOST_BYTES: usize = 64 * 1024;
    if given.text().len() > MOST_BYTES {
        errors.too_long(given.path.as_str(), MOST_BYTES);
    }
    match indexes::count(given.text(), completions) {
        Ok(total) => total,
        Err(why) => {
            given.invalid(format!("error parsing succeededIndexes: {why}"), errors);
            0
        }
    }
}

/// What of a Job may change.
pub(super) fn validate_update(new: &Value, old: &Value, errors: &mut FieldErrors) {
    let (spec, was) = (Field::of(new, "spec"), Field::of(old, "spec"));
    let (completions, parallelism) = (spec.child("completions"), spec.child("parallelism"));
    let is_elastic = spec.child("completionMode").text() == "Indexed";
    if !equal(completions.value, was.child("completions").value) {
        if !is_elastic {
            completions.immutable(&was.child("completions"), errors);
        } else if completions.is_set() && completions.number() != parallelism.number() {
            completions.invalid("can only be modified in tandem with spec.parallelism", errors);
        }
    }
    spec.child("selector").immutable(&was.child("selector"), errors);
    let shown = template_with_old_directives(new, old);
    if !equal(&shown, was.child("template").value) {
        spec.child("template").invalid(crate::validation::IMMUTABLE, errors);
    }
    for field in ["completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy"]
    {
        spec.child(field).immutable(&was.child(field), errors);
    }
}

/// While a Job is suspended and has no pods, it may still be told where they shall go and what they need
/// (`MutableSchedulingDirectivesForSuspendedJobs`, `MutablePodResourcesForSuspendedJobs`).
fn template_with_old_directives(new: &Value, old: &Value) -> Value {
    const DIRECTIVES: [&str; 6] = [
        "spec.affinity.nodeAffinity",
        "spec.nodeSelector",
        "spec.tolerations",
        "metadata.annotations",
        "metadata.labels",
        "spec.schedulingGates",
    ];
    let mut template = at(new, "spec.template").clone();
    if !is_at_rest(old) {
        return template;
    }
    let was = at(old, "spec.template");
    for path in DIRECTIVES {
        match at(was, path) {
            Value::Null => drop(remove(&mut template, path)),
            value => set(&mut template, path, value.clone()),
        }
    }
    for list in ["spec.containers", "spec.initContainers"] {
        for (container, was) in items_mut(&mut template, list).iter_mut().zip(items(was, list)) {
            set(container, "resources", at(was, "resources").clone());
        }
    }
    template
}

fn is_at_rest(job: &Value) -> bool {
    let was_started = Field::of(job, "status.startTime").is_set();
    let has_stopped = items(job, "status.conditions")
        .iter()
        .any(|condition| text(condition, "type") == "Suspended" && text(condition, "status") == "True");
    let has_pods = number(job, "status.active") > 0;
    Field::of(job, "spec.suspend").flag() && !has_pods && (!was_started || has_stopped)
}
