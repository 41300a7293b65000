//! What both kinds of the group have in common.

use serde_json::Value;

use crate::kind::StartingObjects;
use crate::tree::text;
use crate::validation::Field;
use apimachinery::field_error::FieldErrors;
use apimachinery::repeats::repeats;

/// Who makes the objects that every server has: the part of priority and fairness that does so upstream.
pub(super) const PRODUCER: &str = "api-priority-and-fairness-config-producer-v1";

/// Whether upstream keeps an object as it is, whoever writes it.
pub(super) fn is_mandatory(object: &Value) -> bool {
    matches!(text(object, "metadata.name"), "exempt" | "catch-all")
}

/// What an object is when a cluster starts.
pub(super) fn fixed(starting: &StartingObjects, object: &Value) -> Option<Value> {
    let name = text(object, "metadata.name");
    (starting.objects)().into_iter().find(|one| one.name() == name).map(|one| one.object)
}

/// The conditions of a status: of each type one.
pub(super) fn conditions(object: &Value, errors: &mut FieldErrors) {
    let all = Field::of(object, "status.conditions").items();
    let is_again = repeats(all.iter().map(|one| one.child("type").text()));
    for (at, condition) in all.iter().enumerate() {
        let kind = condition.child("type");
        if is_again[at] {
            kind.duplicate(errors);
        }
        if kind.is_zero() {
            kind.required("must not be empty", errors);
        }
    }
}
