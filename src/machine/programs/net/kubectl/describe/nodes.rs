//! Nodes, as `kubectl describe` writes them.

use std::collections::BTreeSet;

use apimachinery::quantity::Quantity;
use chrono::{DateTime, Utc};
use serde_json::Value;

use super::events::age;
use super::metadata::{annotations, lines_of, list, text, time};
use super::page::TabbedPage;
use super::resources::{ResourceAmounts, amounts, of_pod, of_pods};

const ROLE: &str = "node-role.kubernetes.io/";
const OLD_ROLE: &str = "kubernetes.io/role";

/// What is asked about a node beside itself.
pub(super) struct NodeSurroundings {
    /// Nothing where it may not be seen, with what the apiserver says.
    pub(super) lease: Result<Value, String>,
    /// The pods on it that have not ended; nothing where they may not be seen.
    pub(super) pods: Option<Vec<Value>>,
}

pub(super) fn node(page: &mut TabbedPage, own: &Value, around: &NodeSurroundings, now: DateTime<Utc>) {
    let (metadata, spec, status) = (&own["metadata"], &own["spec"], &own["status"]);
    page.field(0, "Name", text(metadata, "name"));
    page.field(0, "Roles", roles(&metadata["labels"]));
    lines_of(page, "Labels", &metadata["labels"]);
    annotations(page, "Annotations", &metadata["annotations"]);
    page.field(0, "CreationTimestamp", time(&metadata["creationTimestamp"]));
    taints(page, &spec["taints"]);
    page.field(0, "Unschedulable", (spec["unschedulable"] == true).to_string());
    lease(page, &around.lease);
    conditions(page, &status["conditions"]);
    page.line(0, "Addresses:");
    for address in list(&status["addresses"]) {
        page.field(1, text(address, "type"), text(address, "address"));
    }
    for (title, field) in [("Capacity", "capacity"), ("Allocatable", "allocatable")] {
        let amounts = amounts(&status[field]);
        if amounts.is_empty() {
            continue;
        }
        page.line(0, format!("{title}:"));
        amounts.iter().for_each(|(name, amount)| page.field(1, name, amount.to_string()));
    }
    system(page, &status["nodeInfo"]);
    let ranges: Vec<&str> = list(&spec["podCIDRs"]).iter().filter_map(Value::as_str).collect();
    for (title, value) in [
        ("PodCIDR", text(spec, "podCIDR")),
        ("PodCIDRs", &ranges.join(",")),
        ("ProviderID", text(spec, "providerID")),
    ] {
        if !value.is_empty() {
            page.field(0, title, value);
        }
    }
    match &around.pods {
        Some(pods) => allocated(page, status, pods, now),
        None => page.field(0, "Pods", "not authorized"),
    }
}

fn roles(labels: &Value) -> String {
    let members = labels.as_object().into_iter().flatten();
    let roles: BTreeSet<&str> = members
        .filter_map(|(key, value)| match key.strip_prefix(ROLE) {
            Some(role) => Some(role),
            None => value.as_str().filter(|_| key == OLD_ROLE),
        })
        .filter(|role| !role.is_empty())
        .collect();
    let roles: Vec<&str> = roles.into_iter().collect();
    super::metadata::or_none(&roles.join(",")).to_owned()
}

fn taints(page: &mut TabbedPage, taints: &Value) {
    page.begin(0, "Taints:\t");
    let mut all: Vec<&Value> = list(taints).iter().collect();
    if all.is_empty() {
        return page.line(0, "<none>");
    }
    all.sort_by_key(|taint| (text(taint, "effect"), text(taint, "key")));
    for (at, taint) in all.into_iter().enumerate() {
        let indent = if at == 0 { "" } else { "\t" };
        let (key, value, effect) = (text(taint, "key"), text(taint, "value"), text(taint, "effect"));
        let value = if value.is_empty() { String::new() } else { format!("={value}") };
        page.line(0, format!("{indent}{key}{value}:{effect}"));
    }
}

fn lease(page: &mut TabbedPage, lease: &Result<Value, String>) {
    let spec = match lease {
        Ok(lease) => &lease["spec"],
        Err(why) => return page.field(0, "Lease", format!("Failed to get lease: {why}")),
    };
    page.line(0, "Lease:");
    let unset = || "<unset>".to_owned();
    let at = |field: &str| if spec[field].is_string() { time(&spec[field]) } else { unset() };
    let holder = spec["holderIdentity"].as_str().map_or_else(unset, str::to_owned);
    page.field(1, "HolderIdentity", holder);
    page.field(1, "AcquireTime", at("acquireTime"));
    page.field(1, "RenewTime", at("renewTime"));
}

fn conditions(page: &mut TabbedPage, conditions: &Value) {
    let conditions = list(conditions);
    if conditions.is_empty() {
        return;
    }
    page.line(0, "Conditions:\n  Type\tStatus\tLastHeartbeatTime\tLastTransitionTime\tReason\tMessage");
    page.line(1, "----\t------\t-----------------\t------------------\t------\t-------");
    for own in conditions {
        let of = |field: &str| text(own, field);
        let (beat, changed) = (time(&own["lastHeartbeatTime"]), time(&own["lastTransitionTime"]));
        let (kind, status, reason, message) = (of("type"), of("status"), of("reason"), of("message"));
        page.line(1, format!("{kind} \t{status} \t{beat} \t{changed} \t{reason} \t{message}"));
    }
}

fn system(page: &mut TabbedPage, info: &Value) {
    page.line(0, "System Info:");
    for (title, field) in [
        ("Machine ID", "machineID"),
        ("System UUID", "systemUUID"),
        ("Boot ID", "bootID"),
        ("Kernel Version", "kernelVersion"),
        ("OS Image", "osImage"),
        ("Operating System", "operatingSystem"),
        ("Architecture", "architecture"),
        ("Container Runtime Version", "containerRuntimeVersion"),
        ("Kubelet Version", "kubeletVersion"),
    ] {
        page.field(1, title, text(info, field));
    }
}

/// An amount, and its share of what the node has.
struct AmountOfNode<'a> {
    name: &'a str,
    has: &'a ResourceAmounts,
}

impl AmountOfNode<'_> {
    fn told(&self, amounts: &ResourceAmounts) -> String {
        let zero = Quantity::parse("0").ok();
        let Some(amount) = amounts.get(self.name).or(zero.as_ref()) else { return String::new() };
        let of = |amount: &Quantity| {
            if self.name == "cpu" { amount.milli_value() as f64 } else { amount.value() as f64 }
        };
        let all = self.has.get(self.name).map_or(0.0, of);
        let share = if all == 0.0 { 0.0 } else { of(amount) / all * 100.0 };
        format!("{amount} ({}%)", share as i64)
    }
}

fn allocated(page: &mut TabbedPage, status: &Value, pods: &[Value], now: DateTime<Utc>) {
    let has = match amounts(&status["allocatable"]) {
        allocatable if allocatable.is_empty() => amounts(&status["capacity"]),
        allocatable => allocatable,
    };
    let of = |name| AmountOfNode { name, has: &has };
    page.field(0, "Non-terminated Pods", format!("({} in total)", pods.len()));
    page.line(1, "Namespace\tName\t\tCPU Requests\tCPU Limits\tMemory Requests\tMemory Limits\tAge");
    page.line(1, "---------\t----\t\t------------\t----------\t---------------\t-------------\t---");
    for pod in pods {
        let (requests, limits) = (of_pod(pod, "requests"), of_pod(pod, "limits"));
        let metadata = &pod["metadata"];
        let columns = [
            text(metadata, "namespace").to_owned(),
            text(metadata, "name").to_owned(),
            String::new(),
            of("cpu").told(&requests),
            of("cpu").told(&limits),
            of("memory").told(&requests),
            of("memory").told(&limits),
            age(&metadata["creationTimestamp"], now),
        ];
        page.line(1, columns.join("\t"));
    }
    page.line(0, "Allocated resources:\n  (Total limits may be over 100 percent, i.e., overcommitted.)");
    page.line(1, "Resource\tRequests\tLimits");
    page.line(1, "--------\t--------\t------");
    let (requests, limits) = (of_pods(pods, "requests"), of_pods(pods, "limits"));
    for name in ["cpu", "memory", "ephemeral-storage"] {
        page.line(1, format!("{name}\t{}\t{}", of(name).told(&requests), of(name).told(&limits)));
    }
    let is_other = |name: &&String| !matches!(name.as_str(), "cpu" | "memory" | "ephemeral-storage" | "pods");
    let (pages, others): (Vec<&String>, Vec<&String>) =
        has.keys().filter(is_other).partition(|name| name.starts_with("hugepages-"));
    let amount =
        |amounts: &ResourceAmounts, name: &str| amounts.get(name).map_or("0".to_owned(), Quantity::to_string);
    for name in pages {
        page.line(1, format!("{name}\t{}\t{}", of(name).told(&requests), of(name).told(&limits)));
    }
    for name in others {
        page.line(1, format!("{name}\t{}\t{}", amount(&requests, name), amount(&limits, name)));
    }
}
