//! ResourceQuota: what all objects of a namespace together may ask for.

use std::sync::LazyLock;

use crate::apimachinery::object::Object;
use crate::apimachinery::time::Time;
use crate::apis::kind::{Builtin, Kind, Subresource};
use crate::apis::print::name;
use crate::apis::table::{Column, age};
use crate::apis::tree::{at, members};
use serde_json::Value;

/// `resourcequotas`
pub static RESOURCE_QUOTAS: Builtin = LazyLock::new(|| {
    Kind::builtin("", "v1", "ResourceQuota", "resourcequotas", "io.k8s.api.core.v1")
        .short(&["quota"])
        .with(&[Subresource::Status])
        .printed(columns(), cells)
        .into()
});

fn columns() -> Vec<Column> {
    let request = "Request represents a minimum amount of cpu/memory that a container may consume.";
    let limit = "Limits control the maximum amount of cpu/memory that a container may use independent of contention on \
        the node.";
    vec![
        Column::name(),
        Column::new("Request", "string", request),
        Column::new("Limit", "string", limit),
        Column::age(),
    ]
}

fn cells(object: &Object, now: Time) -> Vec<Value> {
    let tree = object.to_value();
    let used = at(&tree, "status.used");
    let pieces = |is_limit: bool| -> Value {
        let of_column =
            members(&tree, "status.hard").filter(|(name, _)| name.starts_with("limits.") == is_limit);
        let piece = |(name, hard): (&String, &Value)| {
            let used = used.get(name).and_then(Value::as_str).unwrap_or("0");
            format!("{name}: {used}/{}", hard.as_str().unwrap_or("0"))
        };
        of_column.map(piece).collect::<Vec<_>>().join(", ").into()
    };
    vec![name(object), pieces(false), pieces(true), age(object, now)]
}
