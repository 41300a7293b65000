//! ServiceCIDR: a range that Services take their addresses from.

use std::net::IpAddr;
use std::sync::LazyLock;

use crate::kind::{Builtin, Kind, StartingObjects, Subresource};
use crate::print::name;
use crate::rules::{RULES, Rules};
use crate::table::{Column, age};
use crate::tree::*;
use crate::validation::texts::{cidr, parse_cidr};
use crate::validation::{Field, IMMUTABLE};
use apimachinery::field_error::FieldErrors;
use apimachinery::object::Object;
use apimachinery::time::Time;
use serde_json::Value;

/// `servicecidrs`
pub static SERVICE_CIDRS: Builtin = LazyLock::new(|| {
    Kind::builtin("networking.k8s.io", "v1", "ServiceCIDR", "servicecidrs", "io.k8s.api.networking.v1")
        .cluster_scoped()
        .with(&[Subresource::Status])
        // Upstream's strategy names them under a group that is not theirs, so it names none.
        .resets(&[])
        .status_resets(&[])
        .status_leaves_metadata()
        .printed(columns(), cells)
        .governed_by(Rules {
            validate_create: |range, errors| validate(&Field::of(range, "spec.cidrs"), errors),
            validate_update,
            ..RULES
        })
        .starting_with(&STARTING)
        .into()
});

static STARTING: StartingObjects = StartingObjects {
    name: "servicecidrs",
    manager: "kube-apiserver",
    objects: || StartingObjects::read(&SERVICE_CIDRS, TEXT),
};
const TEXT: &str = include_str!("../../../manifests/bootstrap/service-cidrs.yaml");

fn columns() -> Vec<Column> {
    let ranges = Column::of("CIDRs", "string", "io.k8s.api.networking.v1.ServiceCIDRSpec", "cidrs");
    vec![Column::name(), ranges, Column::age()]
}

fn cells(object: &Object, now: Time) -> Vec<Value> {
    vec![name(object), texts(&object.to_value(), "spec.cidrs").join(",").into(), age(object, now)]
}

fn validate(ranges: &Field, errors: &mut FieldErrors) {
    if ranges.is_zero() {
        return ranges.required("at least one CIDR required", errors);
    }
    let items = ranges.items();
    if items.len() > 2 {
        return ranges.invalid("may only hold up to 2 values", errors);
    }
    items.iter().for_each(|range| canonical_range(range, errors));
    if let [first, second] = items.as_slice() {
        let is_v4 = |range: &Field| parse_cidr(range.text()).map(|(address, _)| address.is_ipv4());
        if is_v4(first).is_some() && is_v4(first) == is_v4(second) {
            ranges.invalid(
                "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64",
                errors,
            );
        }
    }
}

/// `IsValidCIDR`
fn canonical_range(range: &Field, errors: &mut FieldErrors) {
    let Some((address, length)) = parse_cidr(range.text()) else {
        return range.invalid_each(cidr(range.text()), errors);
    };
    let (bits, width) = match address {
        IpAddr::V4(v4) => (u128::from(v4.to_bits()), 32),
        IpAddr::V6(v6) => (v6.to_bits(), 128),
    };
    let beyond = u128::MAX.checked_shr(128 - (width - length)).unwrap_or(0);
    let canonical = format!("{address}/{length}");
    if matches!(address, IpAddr::V6(v6) if v6.to_ipv4_mapped().is_some()) {
        range.invalid("must not have an IPv4-mapped IPv6 address", errors);
    } else if bits & beyond != 0 {
        range.invalid("must not have bits set beyond the prefix length", errors);
    } else if canonical != range.text() {
        range.invalid(format!("must be in canonical form ({canonical:?})"), errors);
    }
}

/// A range may only gain a second family.
fn validate_update(new: &Value, old: &Value, errors: &mut FieldErrors) {
    let (now, before) = (Field::of(new, "spec.cidrs"), Field::of(old, "spec.cidrs"));
    let (new_items, old_items) = (now.items(), before.items());
    match (old_items.len(), new_items.len()) {
        (1, 2) => {
            if new_items[0].value != old_items[0].value {
                new_items[0].invalid(IMMUTABLE, errors);
            }
            validate(&now, errors);
        }
        _ => now.immutable(&before, errors),
    }
}
