//! ServiceAccount: the identity of what runs in a pod.

use std::sync::LazyLock;

use crate::apimachinery::object::Object;
use crate::apimachinery::time::Time;
use crate::apis::kind::{Builtin, Kind, Subresource};
use crate::apis::print::name;
use crate::apis::table::{Column, age};
use crate::apis::tree::count;
use serde_json::Value;

/// `serviceaccounts`
pub static SERVICE_ACCOUNTS: Builtin = LazyLock::new(|| {
    Kind::builtin("", "v1", "ServiceAccount", "serviceaccounts", "io.k8s.api.core.v1")
        .short(&["sa"])
        .with(&[Subresource::Token])
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
