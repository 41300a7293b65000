//! Pods and their templates, as `kubectl describe` writes them.

use chrono::{DateTime, Utc};
use serde_json::Value;

use super::containers::{containers, seccomp};
use super::events::age;
use super::metadata::{
    annotations, conditions, controller, lines_of, list, number, plain, selector, text, time,
};
use super::page::TabbedPage;
use super::resources;
use super::volumes::volumes;

/// A pod, but for its events.
pub(super) fn pod(page: &mut TabbedPage, pod: &Value, now: DateTime<Utc>) {
    beginning(page, pod);
    status(page, pod, now);
    let (spec, status) = (&pod["spec"], &pod["status"]);
    if spec["resources"].is_object() {
        page.line(0, "Resources:");
        resources::of_container(page, &spec["resources"], 1);
    }
    let of = |kind: &str| {
        (
            &spec[kind],
            &status[match kind {
                "initContainers" => "initContainerStatuses",
                "containers" => "containerStatuses",
                _ => "ephemeralContainerStatuses",
            }],
        )
    };
    for (label, kind) in [
        ("Init Containers", "initContainers"),
        ("Containers", "containers"),
        ("Ephemeral Containers", "ephemeralContainers"),
    ] {
        let (own, statuses) = of(kind);
        if kind == "containers" || !list(own).is_empty() {
            containers(page, (label, ""), own, statuses, Some(pod));
        }
    }
    gates(page, pod);
    conditions(page, &status["conditions"], false);
    volumes(page, &spec["volumes"], "");
    page.field(0, "QoS Class", text(status, "qosClass"));
    lines_of(page, "Node-Selectors", &spec["nodeSelector"]);
    tolerations(page, "Tolerations", &spec["tolerations"]);
    spread(page, &spec["topologySpreadConstraints"], "");
}

fn beginning(page: &mut TabbedPage, pod: &Value) {
    let (metadata, spec, status) = (&pod["metadata"], &pod["spec"], &pod["status"]);
    page.field(0, "Name", text(metadata, "name"));
    page.field(0, "Namespace", text(metadata, "namespace"));
    if let Some(priority) = spec["priority"].as_i64() {
        page.field(0, "Priority", priority.to_string());
    }
    let named = [
        ("Priority Class Name", "priorityClassName"),
        ("Runtime Class Name", "runtimeClassName"),
        ("Service Account", "serviceAccountName"),
    ];
    for (title, field) in named {
        if !text(spec, field).is_empty() {
            page.field(0, title, text(spec, field));
        }
    }
    match text(spec, "nodeName") {
        "" => page.field(0, "Node", "<none>"),
        node => page.field(0, "Node", format!("{node}/{}", text(status, "hostIP"))),
    }
    if status["startTime"].is_string() {
        page.field(0, "Start Time", time(&status["startTime"]));
    }
    lines_of(page, "Labels", &metadata["labels"]);
    annotations(page, "Annotations", &metadata["annotations"]);
}

fn status(page: &mut TabbedPage, pod: &Value, now: DateTime<Utc>) {
    let (metadata, status) = (&pod["metadata"], &pod["status"]);
    let phase = text(status, "phase");
    if metadata["deletionTimestamp"].is_string() && !matches!(phase, "Failed" | "Succeeded") {
        let lasts = age(&metadata["deletionTimestamp"], now);
        page.field(0, "Status", format!("Terminating (lasts {lasts})"));
        let grace = number(&metadata["deletionGracePeriodSeconds"]);
        page.field(0, "Termination Grace Period", format!("{grace}s"));
    } else {
        page.field(0, "Status", phase);
    }
    for (title, field) in [("Reason", "reason"), ("Message", "message")] {
        if !text(status, field).is_empty() {
            page.field(0, title, text(status, field));
        }
    }
    seccomp(page, (0, 0), &pod["spec"]["securityContext"]);
    page.field(0, "IP", text(status, "podIP"));
    let addresses = list(&status["podIPs"]);
    page.line(0, if addresses.is_empty() { "IPs:\t<none>" } else { "IPs:" });
    addresses.iter().for_each(|address| page.field(1, "IP", text(address, "ip")));
    if let Some(controller) = controller(pod) {
        page.field(0, "Controlled By", controller);
    }
    if !text(status, "nominatedNodeName").is_empty() {
        page.field(0, "NominatedNodeName", text(status, "nominatedNodeName"));
    }
}

fn gates(page: &mut TabbedPage, pod: &Value) {
    let gates = list(&pod["spec"]["readinessGates"]);
    if gates.is_empty() {
        return;
    }
    page.line(0, "Readiness Gates:\n  Type\tStatus");
    for gate in gates {
        let conditions = list(&pod["status"]["conditions"]);
        let condition = conditions.iter().find(|condition| condition["type"] == gate["conditionType"]);
        let status = condition.map_or("<none>", |condition| text(condition, "status"));
        page.line(1, format!("{} \t{status} ", text(gate, "conditionType")));
    }
}

fn tolerations(page: &mut TabbedPage, title: &str, tolerations: &Value) {
    page.begin(0, format!("{title}:\t"));
    let mut all: Vec<&Value> = list(tolerations).iter().collect();
    if all.is_empty() {
        return page.line(0, "<none>");
    }
    all.sort_by_key(|toleration| text(toleration, "key"));
    for (at, toleration) in all.into_iter().enumerate() {
        let of = |field: &str| text(toleration, field);
        let mut told = if at == 0 { String::new() } else { "\t".to_owned() };
        told.push_str(of("key"));
        if !of("value").is_empty() {
            told.push_str(&format!("={}", of("value")));
        }
        if !of("effect").is_empty() {
            told.push_str(&format!(":{}", of("effect")));
        }
        if of("operator") == "Exists" && of("value").is_empty() {
            // One that says no more tolerates everything.
            let is_all = of("key").is_empty() && of("effect").is_empty();
            told.push_str(if is_all { "op=Exists" } else { " op=Exists" });
        }
        if let Some(seconds) = toleration["tolerationSeconds"].as_i64() {
            told.push_str(&format!(" for {seconds}s"));
        }
        page.line(0, told);
    }
}

fn spread(page: &mut TabbedPage, constraints: &Value, space: &str) {
    let mut all: Vec<&Value> = list(constraints).iter().collect();
    if all.is_empty() {
        return;
    }
    all.sort_by_key(|constraint| text(constraint, "topologyKey"));
    page.begin(0, format!("{space}Topology Spread Constraints:\t"));
    for (at, constraint) in all.into_iter().enumerate() {
        let indent = if at == 0 { String::new() } else { format!("{space}\t") };
        let (key, when) = (text(constraint, "topologyKey"), text(constraint, "whenUnsatisfiable"));
        let skew = number(&constraint["maxSkew"]);
        let of = match &constraint["labelSelector"] {
            Value::Null => String::new(),
            own => format!(" for selector {}", super::metadata::or_none(&selector(own))),
        };
        page.line(0, format!("{indent}{key}:{when} when max skew {skew} is exceeded{of}"));
    }
}

/// What a workload makes its pods of.
pub(super) fn template(page: &mut TabbedPage, template: &Value) {
    page.line(0, "Pod Template:");
    let (metadata, spec) = (&template["metadata"], &template["spec"]);
    lines_of(page, "  Labels", &metadata["labels"]);
    if metadata["annotations"].as_object().is_some_and(|annotations| !annotations.is_empty()) {
        annotations(page, "  Annotations", &metadata["annotations"]);
    }
    if !text(spec, "serviceAccountName").is_empty() {
        page.field(1, "Service Account", text(spec, "serviceAccountName"));
    }
    if !list(&spec["initContainers"]).is_empty() {
        containers(page, ("Init Containers", "  "), &spec["initContainers"], &Value::Null, None);
    }
    containers(page, ("Containers", "  "), &spec["containers"], &Value::Null, None);
    volumes(page, &spec["volumes"], "  ");
    spread(page, &spec["topologySpreadConstraints"], "  ");
    if !text(spec, "priorityClassName").is_empty() {
        page.field(1, "Priority Class Name", text(spec, "priorityClassName"));
    }
    lines_of(page, "  Node-Selectors", &spec["nodeSelector"]);
    tolerations(page, "  Tolerations", &spec["tolerations"]);
}

/// How many of a controller's pods are in which phase.
pub(super) fn phases(pods: &[Value], owner: &Value) -> String {
    let uid = &owner["metadata"]["uid"];
    let is_own = |pod: &&Value| {
        let owners = list(&pod["metadata"]["ownerReferences"]);
        owners.iter().any(|owner| owner["controller"] == true && owner["uid"] == *uid)
    };
    let count =
        |phase: &str| pods.iter().filter(is_own).filter(|pod| pod["status"]["phase"] == phase).count();
    let (running, waiting) = (count("Running"), count("Pending"));
    let (succeeded, failed) = (count("Succeeded"), count("Failed"));
    format!("{running} Running / {waiting} Waiting / {succeeded} Succeeded / {failed} Failed")
}

/// A number or a share, as fields that take both have it.
pub(super) fn share(value: &Value) -> String {
    if value.is_null() { "<nil>".to_owned() } else { plain(value) }
}
