//! Event: what happened to an object, kept for an hour.

use std::sync::LazyLock;
use std::time::Duration;

use crate::apis::kind::{Builtin, Kind};

/// `events`
pub static EVENTS: Builtin = LazyLock::new(|| {
    Kind::builtin("", "v1", "Event", "events", "io.k8s.api.core.v1")
        .short(&["ev"])
        .living_for(Duration::from_secs(3600))
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
        .selectable_as("source", "source.component", "")
        .into()
});
