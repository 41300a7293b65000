//! NetworkPolicy: who may talk to whom.

use std::sync::LazyLock;

use crate::kind::{Builtin, Kind};
use crate::print::{self, name};
use crate::rules::{RULES, Rules};
use crate::table::{Column, age};
use crate::tree::*;
use crate::validation::Field;
use crate::validation::labels::label_selector;
use crate::validation::texts;
use apimachinery::field_error::FieldErrors;
use apimachinery::object::Object;
use apimachinery::time::Time;
use serde_json::Value;
use std::net::IpAddr;

/// `networkpolicies`
pub static NETWORK_POLICIES: Builtin = LazyLock::new(|| {
    Kind::builtin("networking.k8s.io", "v1", "NetworkPolicy", "networkpolicies", "io.k8s.api.networking.v1")
        .short(&["netpol"])
        .with_generation()
        .printed(columns(), cells)
        .defaulted(defaults)
        .governed_by(Rules { validate, ..RULES })
        .into()
});

fn columns() -> Vec<Column> {
    let spec = "io.k8s.api.networking.v1.NetworkPolicySpec";
    vec![Column::name(), Column::of("Pod-Selector", "string", spec, "podSelector"), Column::age()]
}

fn cells(object: &Object, now: Time) -> Vec<Value> {
    vec![name(object), print::label_selector(&object.to_value(), "spec.podSelector").into(), age(object, now)]
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

fn validate(policy: &Value, errors: &mut FieldErrors) {
    let spec = Field::of(policy, "spec");
    label_selector(&spec.child("podSelector"), errors);
    for (rules, peers) in [("ingress", "from"), ("egress", "to")] {
        for rule in spec.each(rules) {
            rule.each("ports").iter().for_each(|port| validate_port(port, errors));
            rule.each(peers).iter().for_each(|peer| validate_peer(peer, errors));
        }
    }
    let types = spec.child("policyTypes");
    if types.items().len() > 2 {
        return types.invalid("may not specify more than two policyTypes", errors);
    }
    for kind in types.items().iter().filter(|kind| !matches!(kind.text(), "Ingress" | "Egress")) {
        kind.not_supported(&["Ingress", "Egress"], errors);
    }
}

fn validate_port(port: &Field, errors: &mut FieldErrors) {
    port.child("protocol").one_of_if_set(&["TCP", "UDP", "SCTP"], errors);
    let (first, last) = (port.child("port"), port.child("endPort"));
    if first.is_set() {
        texts::port_number_or_name(&first, errors);
    }
    if !last.is_set() {
        return;
    }
    if !first.is_set() {
        last.invalid("may not be specified when `port` is not specified", errors);
    } else if first.value.is_string() {
        last.invalid("may not be specified when `port` is non-numeric", errors);
    } else {
        if last.number() < first.number() {
            first.shown_as(last.path.as_str()).invalid("must be greater than or equal to `port`", errors);
        }
        last.invalid_each(texts::port_number(last.number()), errors);
    }
}

fn validate_peer(peer: &Field, errors: &mut FieldErrors) {
    let [pods, namespaces, block] =
        ["podSelector", "namespaceSelector", "ipBlock"].map(|name| peer.child(name));
    label_selector(&pods, errors);
    label_selector(&namespaces, errors);
    if block.is_set() {
        validate_block(&block, errors);
    }
    match (pods.is_set() || namespaces.is_set(), block.is_set()) {
        (false, false) => peer.required("must specify a peer", errors),
        (true, true) => peer.forbidden("may not specify both ipBlock and another peer", errors),
        _ => {}
    }
}

fn validate_block(block: &Field, errors: &mut FieldErrors) {
    let cidr = block.child("cidr");
    if !cidr.require(errors) {
        return;
    }
    cidr.invalid_each(texts::cidr(cidr.text()), errors);
    let Some(whole) = texts::parse_cidr(cidr.text()) else { return };
    for except in block.each("except") {
        except.invalid_each(texts::cidr(except.text()), errors);
        if texts::parse_cidr(except.text()).is_some_and(|part| !is_strictly_within(part, whole)) {
            except.invalid("must be a strict subset of `cidr`", errors);
        }
    }
}

fn is_strictly_within(part: (IpAddr, u32), whole: (IpAddr, u32)) -> bool {
    let bits = |address: IpAddr| match address {
        IpAddr::V4(v4) => (u128::from(v4.to_bits()), 32),
        IpAddr::V6(v6) => (v6.to_bits(), 128),
    };
    let ((inner, width), (outer, outer_width)) = (bits(part.0), bits(whole.0));
    let network = |bits: u128| bits.checked_shr(width - whole.1).unwrap_or(0);
    width == outer_width && part.1 > whole.1 && network(inner) == network(outer)
}
