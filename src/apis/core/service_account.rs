//! ServiceAccount: the identity of what runs in a pod.

use std::sync::LazyLock;

use crate::kind::{Builtin, Kind, Subresource};
use crate::print::name;
use crate::table::{Column, age};
use crate::tree::count;
use apimachinery::object::Object;
use apimachinery::time::Time;
use serde_json::Value;

/// `serviceaccounts`
pub static SERVICE_ACCOUNTS: Builtin = LazyLock::new(|| {
    Kind::builtin("", "v1", "ServiceAccount", "serviceaccounts", "io.k8s.api.core.v1")
        .short(&["sa"])
        .with(&[Subresource::Token])
        .returns_deleted()
        .printed(columns(), cells)
        .into()
});

fn columns() -> Vec<Column> {
    let secrets = Column::of("Secrets", "string", "io.k8s.api.core.v1.ServiceAccount", "secrets");
    vec![Column::name(), secrets, Column::age()]
}

fn cells(object: &Object, now: Time) -> Vec<Value> {
    vec![name(object), count(&object.to_value(), "secrets").into(), age(object, now)]
}
