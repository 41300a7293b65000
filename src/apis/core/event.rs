//! Event: what happened to an object, kept for an hour.

use std::sync::LazyLock;
use std::time::Duration;

use crate::kind::{Builtin, Kind};
use crate::print::{name, or};
use crate::rules::{RULES, Rules};
use crate::strategy::GarbageCollectionPolicy;
use crate::table::{Column, since};
use crate::tree::{at, number, text};
use crate::validation::Field;
use apimachinery::field_error::FieldErrors;
use apimachinery::names;
use apimachinery::object::Object;
use apimachinery::time::{Time, parse};
use serde_json::{Value, json};

/// `events`
pub static EVENTS: Builtin = LazyLock::new(|| {
    Kind::builtin("", "v1", "Event", "events", "io.k8s.api.core.v1")
        .short(&["ev"])
        .living_for(Duration::from_secs(3600))
        .without_watch_cache()
        .selectable_by(&[
            "involvedObject.kind",
            "involvedObject.namespace",
            "involvedObject.name",
            "involvedObject.uid",
            "involvedObject.apiVersion",
            "involvedObject.resourceVersion",
            "involvedObject.fieldPath",
            "reason",
            "reportingComponent",
            "type",
        ])
        .selectable_or("source", "source.component", "reportingComponent")
        .printed(columns(), |object, now| cells(object, &object.to_value(), now))
        .governed_by(Rules {
            allow_create_on_update: true,
            default_garbage_collection: GarbageCollectionPolicy::Unsupported,
            validate_name: names::path_segment_name,
            validate,
            ..RULES
        })
        .into()
});

const DEFINITION: &str = "io.k8s.api.core.v1.Event";

/// The columns of both forms of Event.
pub fn columns() -> Vec<Column> {
    vec![
        Column::of("Last Seen", "string", DEFINITION, "lastTimestamp"),
        Column::of("Type", "string", DEFINITION, "type"),
        Column::of("Reason", "string", DEFINITION, "reason"),
        Column::of("Object", "string", DEFINITION, "involvedObject"),
        Column::of("Subobject", "string", "io.k8s.api.core.v1.ObjectReference", "fieldPath").wide(),
        Column::of("Source", "string", DEFINITION, "source").wide(),
        Column::of("Message", "string", DEFINITION, "message"),
        Column::of("First Seen", "string", DEFINITION, "firstTimestamp").wide(),
        Column::of("Count", "string", DEFINITION, "count").wide(),
        Column::name().wide(),
    ]
}

/// The row of an event; `tree` is its core form.
pub fn cells(object: &Object, tree: &Value, now: Time) -> Vec<Value> {
    let time = |path: &str| parse(text(tree, path));
    let first = time("firstTimestamp").or(time("eventTime"));
    let (last, count) = match at(tree, "series") {
        Value::Null => (time("lastTimestamp").or(first), number(tree, "count").max(1)),
        series => (time("series.lastObservedTime"), number(series, "count")),
    };
    vec![
        since(last, now).into(),
        json!(text(tree, "type")),
        json!(text(tree, "reason")),
        target(tree).into(),
        json!(text(tree, "involvedObject.fieldPath")),
        source(tree).into(),
        json!(text(tree, "message").trim()),
        since(first, now).into(),
        count.into(),
        name(object),
    ]
}

fn target(tree: &Value) -> String {
    let kind = text(tree, "involvedObject.kind").to_lowercase();
    match text(tree, "involvedObject.name") {
        "" => kind,
        name => format!("{kind}/{name}"),
    }
}

fn source(tree: &Value) -> String {
    let component = or(text(tree, "source.component"), text(tree, "reportingComponent"));
    match or(text(tree, "source.host"), text(tree, "reportingInstance")) {
        "" => component.to_owned(),
        instance => format!("{component}, {instance}"),
    }
}

/// `legacyValidateEvent`: an event is in the namespace of what it speaks of.
fn validate(event: &Value, errors: &mut FieldErrors) {
    let namespace = text(event, "metadata.namespace");
    let involved = text(event, "involvedObject.namespace");
    let has_time = parse(text(event, "eventTime")).is_some();
    let is_right = match (has_time, involved) {
        (false, "") => matches!(namespace, "" | "default"),
        (false, involved) => namespace == involved,
        (true, "") => matches!(namespace, "default" | "kube-system"),
        (true, _) => true,
    };
    if !is_right {
        errors.invalid("involvedObject.namespace", &json!(involved), "does not match event.namespace");
    }
    if has_time {
        reported(event, errors);
    }
    for wrong in names::dns1123_subdomain(namespace) {
        errors.invalid("namespace", &json!(namespace), wrong);
    }
}

/// What the newer recorders must say.
fn reported(event: &Value, errors: &mut FieldErrors) {
    let controller = Field::of(event, "reportingComponent").shown_as("reportingController");
    controller.require(errors);
    for wrong in names::qualified_name(controller.text()) {
        errors.invalid("reportingController", &json!(controller.text()), wrong);
    }
    for (name, most) in [("reportingInstance", 128), ("action", 128), ("reason", 128)] {
        let field = Field::of(event, name);
        field.require(errors);
        if field.text().len() > most {
            errors.invalid(name, &json!(""), format!("can have at most {most} characters"));
        }
    }
    if text(event, "message").len() > 1024 {
        errors.invalid("message", &json!(""), "can have at most 1024 characters");
    }
}
