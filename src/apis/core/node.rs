//! Node: a machine that runs pods.

use std::sync::LazyLock;

use crate::kind::{Builtin, Kind, Subresource};
use crate::print::{name, or};
use crate::rules::{RULES, Rules};
use crate::table::{Column, age};
use crate::tree::*;
use crate::validation::Field;
use crate::validation::resources::resource_quantity;
use crate::validation::texts::cidr;
use apimachinery::field_error::{ErrorType, FieldErrors};
use apimachinery::names::{label_value, qualified_name};
use apimachinery::object::Object;
use apimachinery::repeats::repeats;
use apimachinery::time::Time;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// `nodes`
pub static NODES: Builtin = LazyLock::new(|| {
    Kind::builtin("", "v1", "Node", "nodes", "io.k8s.api.core.v1")
        .cluster_scoped()
        .short(&["no"])
        .etcd_key("minions")
        .with(&[Subresource::Proxy, Subresource::Status])
        .selectable_as("spec.unschedulable", "spec.unschedulable", "false")
        .printed(columns(), cells)
        .defaulted(defaults)
        .governed_by(Rules {
            keeps_status_on_create: true,
            validate,
            validate_update: |new, old, errors| {
                unchanged(new, old, errors);
                addresses(new, errors)
            },
            validate_status_update: |new, _, errors| {
                resources(new, errors);
                addresses(new, errors)
            },
            ..RULES
        })
        .into()
});

const STATUS: &str = "io.k8s.api.core.v1.NodeStatus";
const SYSTEM: &str = "io.k8s.api.core.v1.NodeSystemInfo";

fn columns() -> Vec<Column> {
    vec![
        Column::name(),
        Column::new("Status", "string", "The status of the node"),
        Column::new("Roles", "string", "The roles of the node"),
        Column::age(),
        Column::of("Version", "string", SYSTEM, "kubeletVersion"),
        Column::of("Internal-IP", "string", STATUS, "addresses").wide(),
        Column::of("External-IP", "string", STATUS, "addresses").wide(),
        Column::of("OS-Image", "string", SYSTEM, "osImage").wide(),
        Column::of("Kernel-Version", "string", SYSTEM, "kernelVersion").wide(),
        Column::of("Container-Runtime", "string", SYSTEM, "containerRuntimeVersion").wide(),
    ]
}

fn cells(object: &Object, now: Time) -> Vec<Value> {
    let tree = object.to_value();
    let info = |field: &str| json!(or(text(&tree["status"]["nodeInfo"], field), "<unknown>"));
    vec![
        name(object),
        status(&tree).into(),
        roles(object).into(),
        age(object, now),
        json!(text(&tree, "status.nodeInfo.kubeletVersion")),
        json!(address(&tree, "InternalIP")),
        json!(address(&tree, "ExternalIP")),
        info("osImage"),
        info("kernelVersion"),
        info("containerRuntimeVersion"),
    ]
}

fn status(tree: &Value) -> String {
    // The last one of a type counts, as upstream keeps them in a map.
    let ready = items(tree, "status.conditions").iter().rfind(|condition| text(condition, "type") == "Ready");
    let status = match ready.map(|condition| text(condition, "status")) {
        None => "Unknown",
        Some("True") => "Ready",
        Some(_) => "NotReady",
    };
    let cordoned = if flag(tree, "spec.unschedulable") { ",SchedulingDisabled" } else { "" };
    format!("{status}{cordoned}")
}

fn roles(object: &Object) -> String {
    let role = |(key, value): (&String, &String)| match key.strip_prefix("node-role.kubernetes.io/") {
        Some(role) => Some(role.to_owned()),
        None if key == "kubernetes.io/role" => Some(value.clone()),
        None => None,
    };
    let roles: BTreeSet<String> = object.metadata.labels.iter().filter_map(role).collect();
    let roles: Vec<String> = roles.into_iter().filter(|role| !role.is_empty()).collect();
    or(&roles.join(","), "<none>").to_owned()
}

fn address<'a>(tree: &'a Value, kind: &str) -> &'a str {
    let mut addresses = items(tree, "status.addresses").iter();
    addresses.find(|address| text(address, "type") == kind).map_or("<none>", |found| text(found, "address"))
}

fn defaults(node: &mut Value) {
    if is_set(node, "status.capacity") {
        let capacity = at(node, "status.capacity").clone();
        set_if_unset(node, "status.allocatable", capacity);
    }
    // `podCIDR` is the first of `podCIDRs`; on a difference the single one wins.
    let single = text(node, "spec.podCIDR").to_owned();
    let first = texts(node, "spec.podCIDRs").first().copied().unwrap_or("").to_owned();
    if !single.is_empty() && single != first {
        set(node, "spec.podCIDRs", json!([single]));
    } else if single.is_empty() && !first.is_empty() {
        set(node, "spec.podCIDR", first);
    }
}

fn validate(node: &Value, errors: &mut FieldErrors) {
    // Upstream says metadata, although they are in the spec.
    taints(&Field::of(node, "spec.taints").shown_as("metadata.taints"), errors);
    resources(node, errors);
    let ranges = Field::of(node, "spec.podCIDRs");
    ranges.items().iter().for_each(|range| range.invalid_each(cidr(range.text()), errors));
    let families: Vec<bool> = ranges.items().iter().map(|range| range.text().contains(':')).collect();
    if families.len() > 2 || families.len() == 2 && families[0] == families[1] {
        ranges.invalid("may specify no more than one CIDR for each IP family", errors);
    }
}

fn taints(taints: &Field, errors: &mut FieldErrors) {
    let mut seen = BTreeSet::new();
    for taint in taints.items() {
        let (key, value, effect) = (taint.child("key"), taint.child("value"), taint.child("effect"));
        key.invalid_each(qualified_name(key.text()), errors);
        let wrong = label_value(value.text());
        if !wrong.is_empty() {
            value.invalid(wrong.join(";"), errors);
        }
        effect.one_of(&["NoSchedule", "PreferNoSchedule", "NoExecute"], errors);
        if !seen.insert((key.text(), effect.text())) {
            let words = "taints must be unique by key and effect pair";
            errors.push(taint.path.as_str(), ErrorType::Duplicate, taint.value.to_string(), words);
        }
    }
}

fn resources(node: &Value, errors: &mut FieldErrors) {
    for list in ["status.capacity", "status.allocatable"] {
        for (name, quantity) in Field::of(node, list).members() {
            resource_quantity(name, &quantity.shown_as(format!("{list}.{name}")), errors);
        }
    }
}

fn addresses(node: &Value, errors: &mut FieldErrors) {
    let addresses = Field::of(node, "status.addresses").items();
    let is_again = repeats(addresses.iter().map(|one| one.value));
    for (at, address) in addresses.iter().enumerate() {
        if is_again[at] {
            address.duplicate(errors);
        }
    }
}

fn unchanged(new: &Value, old: &Value, errors: &mut FieldErrors) {
    if count(old, "spec.podCIDRs") > 0 && at(old, "spec.podCIDRs") != at(new, "spec.podCIDRs") {
        errors.forbidden("spec.podCIDRs", "node updates may not change podCIDR except from \"\" to valid");
    }
    let provider = text(old, "spec.providerID");
    if !provider.is_empty() && provider != text(new, "spec.providerID") {
        errors
            .forbidden("spec.providerID", "node updates may not change providerID except from \"\" to valid");
    }
}
