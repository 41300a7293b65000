//! ComponentStatus: whether the parts of the control plane are well. Asked each time, never kept.

use std::sync::LazyLock;

use crate::kind::{Builtin, Kind};
use crate::print::name;
use crate::table::Column;
use crate::tree::*;
use apimachinery::object::Object;
use apimachinery::time::Time;
use serde_json::{Value, json};

/// `componentstatuses`
pub static COMPONENT_STATUSES: Builtin = LazyLock::new(|| {
    Kind::builtin("", "v1", "ComponentStatus", "componentstatuses", "io.k8s.api.core.v1")
        .cluster_scoped()
        .short(&["cs"])
        .only(&["get", "list"])
        .printed(columns(), cells)
        .derived(statuses)
        .deprecated("v1 ComponentStatus is deprecated in v1.19+")
        .into()
});

/// What upstream asks: the other parts of a control plane, and its store. Whatever answers this is in one
/// process with them.
fn statuses() -> Vec<Value> {
    ["controller-manager", "etcd-0", "scheduler"]
        .map(|name| {
            let condition = json!({"type": "Healthy", "status": "True", "message": "ok"});
            json!({"metadata": {"name": name}, "conditions": [condition]})
        })
        .into()
}

fn columns() -> Vec<Column> {
    let of = |name, description| Column::new(name, "string", description);
    vec![
        Column::name(),
        of("Status", "Status of the component conditions"),
        of("Message", "Message of the component conditions"),
        of("Error", "Error of the component conditions"),
    ]
}

fn cells(object: &Object, _: Time) -> Vec<Value> {
    let tree = object.to_value();
    let healthy = items(&tree, "conditions").iter().rfind(|condition| text(condition, "type") == "Healthy");
    let status = match healthy.map(|condition| text(condition, "status")) {
        None => "Unknown",
        Some("True") => "Healthy",
        Some(_) => "Unhealthy",
    };
    let said = |field: &str| json!(healthy.map_or("", |condition| text(condition, field)));
    vec![name(object), json!(status), said("message"), said("error")]
}
