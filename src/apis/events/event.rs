//! Event of `events.k8s.io/v1`: the newer form of the core Event, which is how it is stored.

use std::sync::LazyLock;
use std::time::Duration;

use serde_json::Value;

use crate::apis::core::event::{self as core, EVENTS as CORE_EVENTS};
use crate::apis::kind::{Builtin, Kind, StoredAs};

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
        .stored_as(StoredAs { kind: &CORE_EVENTS, encode: to_core, decode: from_core })
        .into()
});

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
    use serde_json::json;

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
