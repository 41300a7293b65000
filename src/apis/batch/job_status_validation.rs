//! What is wrong with a change of a Job's status (`validateJobStatus`, `ValidateJobStatusUpdate`).
//!
//! Most rules are asked only of what this change changed: a Job may be older than they are.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::indexes;
use crate::tree::{at, count, flag, is_set, items, number, text};
use crate::validation::{Field, equal};
use apimachinery::field_error::{ErrorType, FieldErrors};
use apimachinery::time::parse;

/// What is wrong with a change of status.
pub(super) fn validate_status_update(new: &Value, old: &Value, errors: &mut FieldErrors) {
    let status = Field::of(new, "status");
    status.all_nonnegative(&["active", "succeeded", "failed", "ready", "terminating"], errors);
    uncounted(&status.child("uncountedTerminatedPods"), errors);
    let change = StatusChange { new, old };
    change.conditions(errors);
    change.times(errors);
    change.finished(errors);
    change.indexes(errors);
    change.counters(errors);
}

/// Pods that ended and are not counted yet: each once.
fn uncounted(pods: &Field, errors: &mut FieldErrors) {
    let mut seen = BTreeSet::new();
    for pod in pods.each("succeeded").into_iter().chain(pods.each("failed")) {
        if pod.is_zero() {
            pod.invalid("must not be empty", errors);
        } else if !seen.insert(pod.text()) {
            pod.duplicate(errors);
        }
    }
}

fn holds(job: &Value, kind: &str) -> bool {
    let is_it = |condition: &Value| text(condition, "type") == kind && text(condition, "status") == "True";
    items(job, "status.conditions").iter().any(is_it)
}

fn is_finished(job: &Value) -> bool {
    holds(job, "Complete") || holds(job, "Failed")
}

struct StatusChange<'a> {
    new: &'a Value,
    old: &'a Value,
}

impl StatusChange<'_> {
    fn flips(&self, kind: &str) -> bool {
        holds(self.new, kind) != holds(self.old, kind)
    }

    fn touches(&self, field: &str) -> bool {
        !equal(at(&self.new["status"], field), at(&self.old["status"], field))
    }

    fn finishes(&self) -> bool {
        is_finished(self.new) != is_finished(self.old)
    }

    fn field(&self, name: &str) -> Field<'_> {
        Field::of(self.new, &format!("status.{name}"))
    }

    fn conditions(&self, errors: &mut FieldErrors) {
        let mut wrong = |words: String| {
            errors.push("status.conditions", ErrorType::Invalid, String::new(), &words);
        };
        let both = |a: &str, b: &str| holds(self.new, a) && holds(self.new, b);
        for (a, b, always) in [
            ("Complete", "Failed", false),
            ("Complete", "FailureTarget", false),
            ("SuccessCriteriaMet", "Failed", true),
            ("SuccessCriteriaMet", "FailureTarget", true),
        ] {
            if both(a, b) && (always || self.flips(a) || self.flips(b)) {
                wrong(format!("cannot set {a}=True and {b}=true conditions"));
            }
        }
        let has_policy = is_set(self.new, "spec.successPolicy");
        if has_policy && holds(self.new, "Complete") && !holds(self.new, "SuccessCriteriaMet") {
            let words = "cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True";
            wrong(words.into());
        }
        for (kind, before) in [("Failed", "FailureTarget"), ("Complete", "SuccessCriteriaMet")] {
            let is_judged = self.flips(kind) || self.flips(before);
            if is_judged && holds(self.new, kind) && !holds(self.new, before) {
                wrong(format!("cannot set {kind}=True condition without the {before}=true condition"));
            }
        }
        for kind in ["Failed", "Complete", "FailureTarget"] {
            if holds(self.old, kind) && !holds(self.new, kind) {
                wrong(format!("cannot disable the terminal {kind}=True condition"));
            }
        }
        let met = |job: &Value| holds(job, "SuccessCriteriaMet");
        if met(self.old) && !met(self.new) {
            wrong("cannot disable the SuccessCriteriaMet=True condition".into());
        }
        if holds(self.old, "Complete") && !met(self.old) && met(self.new) {
            wrong("cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions".into());
        }
    }

    fn times(&self, errors: &mut FieldErrors) {
        let (start, end) = (self.field("startTime"), self.field("completionTime"));
        let is_complete = holds(self.new, "Complete");
        if self.flips("Complete") || self.touches("completionTime") {
            if end.is_set() && !is_complete {
                end.invalid("cannot set completionTime when there is no Complete=True condition", errors);
            }
            if !end.is_set() && is_complete {
                end.required("completionTime is required for Complete jobs", errors);
            }
        }
        let times = parse(start.text()).zip(parse(end.text()));
        let is_judged = self.touches("startTime") || self.touches("completionTime");
        if is_judged && times.is_some_and(|(start, end)| end < start) {
            end.invalid("completionTime cannot be set before startTime", errors);
        }
        if end.is_set() && is_set(self.old, "status.completionTime") && self.touches("completionTime") {
            end.invalid("completionTime cannot be mutated", errors);
        }
        let was_started = is_set(self.old, "status.startTime");
        if was_started && self.touches("startTime") && !flag(self.new, "spec.suspend") {
            start.required("startTime cannot be removed for unsuspended job", errors);
        }
    }

    /// A Job that is finished has no pods any more.
    fn finished(&self, errors: &mut FieldErrors) {
        if !is_finished(self.new) {
            return;
        }
        let is_judged = |field: &str| self.finishes() || self.touches(field);
        for field in ["active", "terminating"].map(|name| self.field(name)) {
            let name = field.path.trim_start_matches("status.");
            if field.number() > 0 && is_judged(name) {
                field.invalid(format!("{name}>0 is invalid for finished job"), errors);
            }
        }
        let completions = at(self.new, "spec.completions");
        let never_runs = flag(self.new, "spec.suspend") && *completions == json!(0);
        let start = self.field("startTime");
        if is_judged("startTime") && !start.is_set() && !never_runs {
            start.required("startTime is required for finished job", errors);
        }
        let pods = self.field("uncountedTerminatedPods");
        if is_judged("uncountedTerminatedPods")
            && count(pods.value, "failed") + count(pods.value, "succeeded") > 0
        {
            pods.invalid("uncountedTerminatedPods needs to be empty for finished job", errors);
        }
    }

    fn indexes(&self, errors: &mut FieldErrors) {
        let (completed, failed) = (self.field("completedIndexes"), self.field("failedIndexes"));
        let (spec, completions) = (&self.new["spec"], number(self.new, "spec.completions"));
        let has_completions = is_set(spec, "completions");
        let touched = [self.touches("completedIndexes"), self.touches("failedIndexes")];
        if touched[0] {
            if let Err(why) = indexes::count(completed.text(), completions)
                && has_completions
            {
                completed.invalid(format!("error parsing completedIndexes: {why}"), errors);
            }
            if !completed.is_zero() && text(spec, "completionMode") != "Indexed" {
                let words = "cannot set non-empty completedIndexes when non-indexed completion mode";
                completed.invalid(words, errors);
            }
        }
        let has_limit = is_set(spec, "backoffLimitPerIndex");
        if touched[1] && failed.is_set() {
            match indexes::count(failed.text(), completions) {
                _ if !has_limit => {
                    let words = "cannot set non-null failedIndexes when backoffLimitPerIndex is null";
                    failed.invalid(words, errors);
                }
                Err(why) if has_completions => {
                    failed.invalid(format!("error parsing failedIndexes: {why}"), errors);
                }
                _ => {}
            }
        }
        if touched.contains(&true)
            && has_completions
            && failed.is_set()
            && let Some(index) = indexes::overlap(completed.text(), failed.text(), completions)
        {
            let words = format!("failedIndexes and completedIndexes overlap at index: {index}");
            failed.invalid(words, errors);
        }
    }

    fn counters(&self, errors: &mut FieldErrors) {
        let (ready, spec) = (self.field("ready"), &self.new["spec"]);
        let is_judged = self.touches("ready") || self.touches("active");
        if is_judged && ready.number() > self.field("active").number() {
            ready.invalid("cannot set more ready pods than active", errors);
        }
        // An elastic Job may be made smaller than what succeeded.
        let is_elastic = text(spec, "completionMode") == "Indexed"
            && equal(at(spec, "completions"), at(spec, "parallelism"));
        for (name, may_decrease) in [("failed", false), ("succeeded", is_elastic)] {
            let (is, was) = (self.field(name), number(self.old, &format!("status.{name}")));
            if is.number() < was && !may_decrease {
                let words = format!("cannot decrease the {name} counter");
                errors.invalid(is.path.as_str(), &json!(is.number()), words);
            }
        }
    }
}
