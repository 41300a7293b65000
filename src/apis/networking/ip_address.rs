//! IPAddress: one address that a Service holds, so that no two hold the same.

use std::net::IpAddr;
use std::sync::LazyLock;

use crate::kind::{Builtin, Kind};
use crate::print::name;
use crate::rules::{RULES, Rules};
use crate::table::{Column, age};
use crate::tree::*;
use crate::validation::Field;
use apimachinery::field_error::FieldErrors;
use apimachinery::names::{dns1123_subdomain, path_segment_name};
use apimachinery::object::Object;
use apimachinery::time::Time;
use serde_json::Value;

/// `ipaddresses`
pub static IP_ADDRESSES: Builtin = LazyLock::new(|| {
    Kind::builtin("networking.k8s.io", "v1", "IPAddress", "ipaddresses", "io.k8s.api.networking.v1")
        .cluster_scoped()
        .short(&["ip"])
        .selectable_as("spec.parentRef.resource", "spec.parentRef.resource", "")
        .selectable_as("spec.parentRef.name", "spec.parentRef.name", "")
        .printed(columns(), cells)
        .governed_by(Rules {
            validate_name,
            validate_create: |address, errors| parent(&Field::of(address, "spec.parentRef"), errors),
            validate_update: |new, old, errors| {
                let parent = Field::of(new, "spec.parentRef");
                parent.immutable(&Field::of(old, "spec.parentRef"), errors);
            },
            ..RULES
        })
        .into()
});

fn columns() -> Vec<Column> {
    let parent = Column::of("ParentRef", "string", "io.k8s.api.networking.v1.IPAddressSpec", "parentRef");
    vec![Column::name(), parent, Column::age()]
}

fn cells(object: &Object, now: Time) -> Vec<Value> {
    vec![name(object), parent_cell(at(&object.to_value(), "spec.parentRef")).into(), age(object, now)]
}

/// `services/default/kubernetes`
fn parent_cell(parent: &Value) -> String {
    if parent.is_null() {
        return "<none>".into();
    }
    let resource = match (text(parent, "resource"), text(parent, "group")) {
        (resource, "") => resource.to_owned(),
        (resource, group) => format!("{resource}.{group}"),
    };
    let namespace = text(parent, "namespace");
    let namespace = if namespace.is_empty() { String::new() } else { format!("/{namespace}") };
    format!("{}{namespace}/{}", resource.to_lowercase(), text(parent, "name"))
}

/// `ValidateIPAddressName`: the address itself, as it is written canonically.
fn validate_name(name: &str) -> Vec<String> {
    match name.parse::<IpAddr>() {
        Err(_) => vec!["must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)".into()],
        Ok(address) if address.to_string() != name => {
            vec![format!("must be in canonical form (\"{address}\")")]
        }
        Ok(_) => vec![],
    }
}

fn parent(parent: &Field, errors: &mut FieldErrors) {
    if !parent.is_set() {
        return parent.required("", errors);
    }
    parent.child("group").follows(dns1123_subdomain, errors);
    for name in ["resource", "name", "namespace"] {
        let field = parent.child(name);
        if field.is_zero() && name != "namespace" {
            field.required("", errors);
        } else {
            field.follows(path_segment_name, errors);
        }
    }
}
