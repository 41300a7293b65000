//! NetworkPolicy: who may talk to whom.

use std::sync::LazyLock;

use crate::apimachinery::object::Object;
use crate::apimachinery::time::Time;
use crate::apis::kind::{Builtin, Kind};
use crate::apis::print::{label_selector, name};
use crate::apis::table::{Column, age};
use serde_json::Value;

/// `networkpolicies`
pub static NETWORK_POLICIES: Builtin = LazyLock::new(|| {
    Kind::builtin("networking.k8s.io", "v1", "NetworkPolicy", "networkpolicies", "io.k8s.api.networking.v1")
        .short(&["netpol"])
        .with_generation()
        .printed(columns(), cells)
        .into()
});

fn columns() -> Vec<Column> {
    let spec = "io.k8s.api.networking.v1.NetworkPolicySpec";
    vec![Column::name(), Column::of("Pod-Selector", "string", spec, "podSelector"), Column::age()]
}

fn cells(object: &Object, now: Time) -> Vec<Value> {
    vec![name(object), label_selector(&object.to_value(), "spec.podSelector").into(), age(object, now)]
}
