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
    change.ends(errors);
    change.finished(errors);
    change.index_forms(errors);
    change.indexes(errors);
    change.pods(errors);
    change.criteria(errors);
    change.since(errors);
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

    /// Of a set of conditions what cannot be.
    fn wrong(words: impl AsRef<str>, errors: &mut FieldErrors) {
        errors.push("status.conditions", ErrorType::Invalid, String::new(), words.as_ref());
    }

    fn both(&self, a: &str, b: &str, errors: &mut FieldErrors) {
        if holds(self.new, a) && holds(self.new, b) {
            Self::wrong(format!("cannot set {a}=True and {b}=true conditions"), errors);
        }
    }

    /// How a Job ends, and when.
    fn ends(&self, errors: &mut FieldErrors) {
        for other in ["Failed", "FailureTarget"] {
            if self.flips("Complete") || self.flips(other) {
                self.both("Complete", other, errors);
            }
        }
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
            end.invalid("must be equal to or after `startTime`", errors);
        }
        for (kind, before) in [("Failed", "FailureTarget"), ("Complete", "SuccessCriteriaMet")] {
            let is_judged = self.flips(kind) || self.flips(before);
            if is_judged && holds(self.new, kind) && !holds(self.new, before) {
                let words = format!("cannot set {kind}=True condition without the {before}=true condition");
                Self::wrong(words, errors);
            }
        }
    }

    fn is_judged_at_the_end(&self, field: &str) -> bool {
        is_finished(self.new) && (self.finishes() || self.touches(field))
    }

    fn none_left(&self, name: &str, errors: &mut FieldErrors) {
        let field = self.field(name);
        if field.number() > 0 && self.is_judged_at_the_end(name) {
            field.invalid(format!("{name}>0 is invalid for finished job"), errors);
        }
    }

    /// A Job that is finished has no pods any more.
    fn finished(&self, errors: &mut FieldErrors) {
        self.none_left("active", errors);
        let completions = at(self.new, "spec.completions");
        let never_runs = flag(self.new, "spec.suspend") && *completions == json!(0);
        let start = self.field("startTime");
        if self.is_judged_at_the_end("startTime") && !start.is_set() && !never_runs {
            start.required("startTime is required for finished job", errors);
        }
        let pods = self.field("uncountedTerminatedPods");
        let [succeeded, failed] = ["succeeded", "failed"].map(|name| count(pods.value, name));
        if self.is_judged_at_the_end("uncountedTerminatedPods") && succeeded + failed > 0 {
            // Go shows its own names for the fields, in its own order.
            let [succeeded, failed] = ["succeeded", "failed"].map(|name| at(pods.value, name));
            let shown = format!(r#"{{"Succeeded":{succeeded},"Failed":{failed}}}"#);
            errors.push(pods.path.as_str(), ErrorType::Invalid, shown, "must be empty for finished job");
        }
    }

    fn index_forms(&self, errors: &mut FieldErrors) {
        let completions = number(self.new, "spec.completions");
        let has_limit = is_set(self.new, "spec.backoffLimitPerIndex");
        for (name, is_asked) in [("completedIndexes", true), ("failedIndexes", has_limit)] {
            let field = self.field(name);
            let is_judged = is_asked && self.touches(name) && is_set(self.new, "spec.completions");
            if is_judged && let Err(why) = indexes::count(field.text(), completions) {
                field.invalid(format!("error parsing {name}: {why}"), errors);
            }
        }
    }

    fn indexes(&self, errors: &mut FieldErrors) {
        let (completed, failed) = (self.field("completedIndexes"), self.field("failedIndexes"));
        let spec = &self.new["spec"];
        let touched = [self.touches("completedIndexes"), self.touches("failedIndexes")];
        if touched[0] && !completed.is_zero() && text(spec, "completionMode") != "Indexed" {
            let words = "cannot set non-empty completedIndexes when non-indexed completion mode";
            completed.invalid(words, errors);
        }
        if touched[1] && failed.is_set() && !is_set(spec, "backoffLimitPerIndex") {
            failed.invalid("cannot set non-null failedIndexes when backoffLimitPerIndex is null", errors);
        }
        let completions = number(self.new, "spec.completions");
        if touched.contains(&true)
            && is_set(spec, "completions")
            && failed.is_set()
            && let Some(index) = indexes::overlap(completed.text(), failed.text(), completions)
        {
            let words = format!("failedIndexes and completedIndexes overlap at index: {index}");
            failed.invalid(words, errors);
        }
    }

    fn pods(&self, errors: &mut FieldErrors) {
        self.none_left("terminating", errors);
        let ready = self.field("ready");
        let is_judged = self.touches("ready") || self.touches("active");
        if is_judged && ready.number() > self.field("active").number() {
            ready.invalid("cannot set more ready pods than active", errors);
        }
    }

    fn criteria(&self, errors: &mut FieldErrors) {
        self.both("SuccessCriteriaMet", "Failed", errors);
        self.both("SuccessCriteriaMet", "FailureTarget", errors);
        let has_policy = is_set(self.new, "spec.successPolicy");
        if has_policy && holds(self.new, "Complete") && !holds(self.new, "SuccessCriteriaMet") {
            let words = "cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True";
            Self::wrong(words, errors);
        }
    }

    /// What may not be taken back.
    fn since(&self, errors: &mut FieldErrors) {
        for kind in ["Failed", "Complete", "FailureTarget"] {
            if holds(self.old, kind) && !holds(self.new, kind) {
                Self::wrong(format!("cannot disable the terminal {kind}=True condition"), errors);
            }
        }
        self.counters(errors);
        let (start, end) = (self.field("startTime"), self.field("completionTime"));
        if end.is_set() && is_set(self.old, "status.completionTime") && self.touches("completionTime") {
            end.invalid("field is immutable", errors);
        }
        let was_started = is_set(self.old, "status.startTime");
        if was_started && self.touches("startTime") && !flag(self.new, "spec.suspend") {
            start.invalid("field is immutable for unsuspended job once set", errors);
        }
        let met = |job: &Value| holds(job, "SuccessCriteriaMet");
        if met(self.old) && !met(self.new) {
            Self::wrong("cannot disable the SuccessCriteriaMet=True condition", errors);
        }
        if holds(self.old, "Complete") && !met(self.old) && met(self.new) {
            let words = "cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions";
            Self::wrong(words, errors);
        }
    }

    fn counters(&self, errors: &mut FieldErrors) {
        let spec = &self.new["spec"];
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
