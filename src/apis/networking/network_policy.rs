//! NetworkPolicy: who may talk to whom.

use std::sync::LazyLock;

use crate::apimachinery::object::Object;
use crate::apimachinery::time::Time;
use crate::apis::kind::{Builtin, Kind};
use crate::apis::print::{label_selector, name};
use crate::apis::table::{Column, age};
use crate::apis::tree::*;
use serde_json::Value;

/// `networkpolicies`
pub static NETWORK_POLICIES: Builtin = LazyLock::new(|| {
    Kind::builtin("networking.k8s.io", "v1", "NetworkPolicy", "networkpolicies", "io.k8s.api.networking.v1")
        .short(&["netpol"])
        .with_generation()
        .printed(columns(), cells)
        .defaulted(defaults)
        .into()
});

fn columns() -> Vec<Column> {
    let spec = "io.k8s.api.networking.v1.NetworkPolicySpec";
    vec![Column::name(), Column::of("Pod-Selector", "string", spec, "podSelector"), Column::age()]
}

fn cells(object: &Object, now: Time) -> Vec<Value> {
    vec![name(object), label_selector(&object.to_value(), "spec.podSelector").into(), age(object, now)]
}

fn defaults(policy: &mut Value) {
    for direction in ["spec.ingress", "spec.egress"] {
        for rule in items_mut(policy, direction) {
            for port in items_mut(rule, "ports") {
                set_if_unset(port, "protocol", "TCP");
            }
        }
    }
    let types: &[&str] = if count(policy, "spec.egress") > 0 { &["Ingress", "Egress"] } else { &["Ingress"] };
    set_if_zero(policy, "spec.policyTypes", types);
}
