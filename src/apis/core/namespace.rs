//! Namespace: a room for names.

use std::sync::LazyLock;

use crate::apimachinery::object::Object;
use crate::apimachinery::time::Time;
use crate::apis::kind::{Builtin, Kind, Subresource};
use crate::apis::print::name;
use crate::apis::table::{Column, age};
use crate::apis::tree::text;
use serde_json::{Value, json};

/// `namespaces`
pub static NAMESPACES: Builtin = LazyLock::new(|| {
    Kind::builtin("", "v1", "Namespace", "namespaces", "io.k8s.api.core.v1")
        .cluster_scoped()
        .short(&["ns"])
        .only(&["create", "delete", "get", "list", "patch", "update", "watch"])
        .with(&[Subresource::Finalize, Subresource::Status])
        .selectable_by(&["status.phase"])
        .printed(columns(), cells)
        .into()
});

fn columns() -> Vec<Column> {
    vec![Column::name(), Column::new("Status", "string", "The status of the namespace"), Column::age()]
}

fn cells(object: &Object, now: Time) -> Vec<Value> {
    vec![name(object), json!(text(&object.to_value(), "status.phase")), age(object, now)]
}
