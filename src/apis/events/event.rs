//! Event of `events.k8s.io/v1`: the newer form of the core Event, which is how it is stored.

use std::sync::LazyLock;
use std::time::Duration;

use serde_json::{Value, json};

use crate::core::event::{self as core, EVENTS as CORE_EVENTS};
use crate::kind::{Builtin, Kind, StoredAs};
use crate::rules::{RULES, Rules};
use crate::tree::{at, is_zero, text};
use crate::validation::Field;
use apimachinery::field_error::FieldErrors;
use apimachinery::time::parse;

/// What the same field is called in this form and in the core form.
const NAMES: &[(&str, &str)] = &[
    ("note", "message"),
    ("regarding", "involvedObject"),
    ("reportingController", "reportingComponent"),
    ("deprecatedSource", "source"),
    ("deprecatedFirstTimestamp", "firstTimestamp"),
    ("deprecatedLastTimestamp", "lastTimestamp"),
    ("deprecatedCount", "count"),
];

/// `events.events.k8s.io`; its selectable fields stand in the order of the core form's, whose paths they
/// have.
pub static EVENTS: Builtin = LazyLock::new(|| {
    Kind::builtin("events.k8s.io", "v1", "Event", "events", "io.k8s.api.events.v1")
        .short(&["ev"])
        .living_for(Duration::from_secs(3600))
        .selectable_as("regarding.kind", "involvedObject.kind", "")
        .selectable_as("regarding.namespace", "involvedObject.namespace", "")
        .selectable_as("regarding.name", "involvedObject.name", "")
        .selectable_as("regarding.uid", "involvedObject.uid", "")
        .selectable_as("regarding.apiVersion", "involvedObject.apiVersion", "")
        .selectable_as("regarding.resourceVersion", "involvedObject.resourceVersion", "")
        .selectable_as("regarding.fieldPath", "involvedObject.fieldPath", "")
        .selectable_by(&["reason"])
        .selectable_as("reportingController", "reportingComponent", "")
        .selectable_by(&["type"])
        .printed(core::columns(), |object, now| core::cells(object, &to_core(object.to_value()), now))
        .governed_by(Rules { validate_create, validate_update, ..RULES })
        .stored_as(StoredAs { kind: &CORE_EVENTS, encode: to_core, decode: from_core })
        .into()
});

/// What the core group tolerates and this one does not (`ValidateEventCreate`); the tree is of the core form.
fn validate_create(event: &Value, errors: &mut FieldErrors) {
    const UNSET: &str = "needs to be unset";
    if parse(text(event, "eventTime")).is_none() {
        errors.required("eventTime", "");
    }
    let kind = text(event, "type");
    if !matches!(kind, "Normal" | "Warning") {
        errors.invalid("type", &json!(""), format!("has invalid value: {kind}"));
    }
    for field in ["firstTimestamp", "lastTimestamp", "count"] {
        if !is_zero(at(event, field)) {
            errors.invalid(field, &json!(""), UNSET);
        }
    }
    if !text(event, "source.component").is_empty() || !text(event, "source.host").is_empty() {
        errors.invalid("source", &json!(""), UNSET);
    }
}

/// Only the series goes on (`ValidateEventUpdate`).
fn validate_update(new: &Value, old: &Value, errors: &mut FieldErrors) {
    const FIELDS: [&str; 13] = [
        "involvedObject",
        "reason",
        "message",
        "source",
        "firstTimestamp",
        "lastTimestamp",
        "count",
        "type",
        "eventTime",
        "action",
        "related",
        "reportingComponent",
        "reportingInstance",
    ];
    for field in FIELDS {
        let shown = NAMES.iter().find(|(_, core)| *core == field).map_or(field, |(ours, _)| ours);
        let shown = shown.trim_start_matches("deprecated");
        // Upstream speaks of the fields by the names that its own form has.
        let shown = if field == "message" || field == "involvedObject" { field } else { shown };
        let (now, before) = (Field::of(new, field), Field::of(old, field));
        now.shown_as(lower_first(shown)).immutable(&before, errors);
    }
}

fn lower_first(name: &str) -> String {
    let mut letters = name.chars();
    letters.next().map_or(String::new(), |first| first.to_lowercase().chain(letters).collect())
}

/// To the core form.
pub fn to_core(event: Value) -> Value {
    renamed(event, |name| NAMES.iter().find(|(ours, _)| *ours == name).map(|(_, core)| *core))
}

/// From the core form.
pub fn from_core(event: Value) -> Value {
    renamed(event, |name| NAMES.iter().find(|(_, core)| *core == name).map(|(ours, _)| *ours))
}

fn renamed(event: Value, new_name: impl Fn(&str) -> Option<&'static str>) -> Value {
    let Value::Object(fields) = event else { return event };
    let rename = |(name, value): (String, Value)| match new_name(&name) {
        Some(new) => (new.to_owned(), value),
        None => (name, value),
    };
    Value::Object(fields.into_iter().map(rename).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_goes_to_the_core_form_and_back() {
        let event = json!({"metadata": {"name": "a"}, "note": "it works", "regarding": {"kind": "Pod"},
            "reportingController": "me", "deprecatedCount": 3, "action": "Binding"});
        let core = json!({"metadata": {"name": "a"}, "message": "it works", "involvedObject": {"kind": "Pod"},
            "reportingComponent": "me", "count": 3, "action": "Binding"});
        assert_eq!(to_core(event.clone()), core);
        assert_eq!(from_core(core), event);
    }
}
