//! Conditions (`ValidateConditions` of `k8s.io/apimachinery/pkg/apis/meta/v1/validation`).

use super::{Field, labels::label_name};
use apimachinery::field_error::FieldErrors;
use apimachinery::repeats::repeats;
use serde_json::json;

const MOST_REASON_BYTES: usize = 1024;
const MOST_MESSAGE_BYTES: usize = 32 * 1024;
const REASON: &str = "a condition reason must start with alphabetic character, optionally followed by a string of \
alphanumeric characters or '_,:', and must end with an alphanumeric character or '_' (e.g. 'my_name',  or 'MY_NAME',  or \
'MyName',  or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB', regex used for validation is \
'[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?')";

/// What is wrong with a list of conditions.
pub fn conditions(list: &Field, errors: &mut FieldErrors) {
    let all = list.items();
    let is_again = repeats(all.iter().map(|one| one.child("type").text()));
    for (at, condition) in all.iter().enumerate() {
        let kind = condition.child("type");
        if is_again[at] {
            kind.duplicate(errors);
        }
        condition_of(condition, errors);
    }
}

fn condition_of(condition: &Field, errors: &mut FieldErrors) {
    let [kind, status, generation, time, reason, message] =
        ["type", "status", "observedGeneration", "lastTransitionTime", "reason", "message"]
            .map(|name| condition.child(name));
    label_name(&json!(kind.text()), &kind.path, errors);
    if !matches!(status.text(), "True" | "False" | "Unknown") {
        let supported = ["False", "True", "Unknown"];
        errors.not_supported(status.path.as_str(), &json!(status.text()), &supported);
    }
    if generation.number() < 0 {
        generation.invalid("must be greater than or equal to zero", errors);
    }
    if time.is_zero() {
        time.required("", errors);
    }
    if reason.is_zero() {
        reason.required("", errors);
    } else {
        if !is_reason(reason.text()) {
            reason.invalid(REASON, errors);
        }
        if reason.text().len() > MOST_REASON_BYTES {
            errors.too_long(reason.path.as_str(), MOST_REASON_BYTES);
        }
    }
    if message.text().len() > MOST_MESSAGE_BYTES {
        errors.too_long(message.path.as_str(), MOST_MESSAGE_BYTES);
    }
}

fn is_reason(text: &str) -> bool {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.ends_with(is_word)
        && text.chars().all(|c| is_word(c) || matches!(c, ',' | ':'))
}
