//! What makes pods, as `kubectl describe` writes it.

use apimachinery::time::human_duration;
use chrono::DateTime;
use serde_json::Value;

use super::metadata::{
    annotations, conditions, controller, joined, lines_of, list, number, or_none, plain, selector, text, time,
};
use super::page::TabbedPage;
use super::pods::{phases, share, template};

/// Templates of ReplicaSets differ by this label from the one that they are made of.
const HASH: &str = "pod-template-hash";

pub(super) fn deployment(page: &mut TabbedPage, own: &Value, replica_sets: &[Value]) {
    let (metadata, spec, status) = (&own["metadata"], &own["spec"], &own["status"]);
    page.field(0, "Name", text(metadata, "name"));
    page.field(0, "Namespace", text(metadata, "namespace"));
    page.field(0, "CreationTimestamp", time(&metadata["creationTimestamp"]));
    lines_of(page, "Labels", &metadata["labels"]);
    annotations(page, "Annotations", &metadata["annotations"]);
    page.field(0, "Selector", selector(&spec["selector"]));
    let of = |field: &str| number(&status[field]);
    let replicas = format!(
        "{} desired | {} updated | {} total | {} available | {} unavailable",
        number(&spec["replicas"]),
        of("updatedReplicas"),
        of("replicas"),
        of("availableReplicas"),
        of("unavailableReplicas")
    );
    page.field(0, "Replicas", replicas);
    page.field(0, "StrategyType", text(&spec["strategy"], "type"));
    page.field(0, "MinReadySeconds", number(&spec["minReadySeconds"]).to_string());
    let rolling = &spec["strategy"]["rollingUpdate"];
    if rolling.is_object() {
        let (unavailable, surge) = (share(&rolling["maxUnavailable"]), share(&rolling["maxSurge"]));
        page.field(0, "RollingUpdateStrategy", format!("{unavailable} max unavailable, {surge} max surge"));
    }
    template(page, &spec["template"]);
    conditions(page, &status["conditions"], true);
    let is_own = |set: &&Value| {
        list(&set["metadata"]["ownerReferences"]).iter().any(|owner| owner["uid"] == metadata["uid"])
    };
    let (new, old): (Vec<&Value>, Vec<&Value>) =
        replica_sets.iter().filter(is_own).partition(|set| is_newest(set, &spec["template"]));
    if !new.is_empty() || !old.is_empty() {
        page.field(0, "OldReplicaSets", told_sets(&old));
        page.field(0, "NewReplicaSet", told_sets(&new));
    }
}

/// Whether a ReplicaSet has this template, but for the label that tells templates apart.
fn is_newest(set: &Value, template: &Value) -> bool {
    let mut own = set["spec"]["template"].clone();
    if let Some(labels) = own["metadata"]["labels"].as_object_mut() {
        labels.remove(HASH);
    }
    own == *template
}

fn told_sets(sets: &[&Value]) -> String {
    let told = |set: &&Value| {
        let (name, has) = (text(&set["metadata"], "name"), number(&set["status"]["replicas"]));
        format!("{name} ({has}/{} replicas created)", number(&set["spec"]["replicas"]))
    };
    or_none(&sets.iter().map(told).collect::<Vec<_>>().join(", ")).to_owned()
}

pub(super) fn replica_set(page: &mut TabbedPage, own: &Value, pods: &[Value]) {
    let (metadata, spec, status) = (&own["metadata"], &own["spec"], &own["status"]);
    page.field(0, "Name", text(metadata, "name"));
    page.field(0, "Namespace", text(metadata, "namespace"));
    page.field(0, "Selector", or_none(&selector(&spec["selector"])));
    lines_of(page, "Labels", &metadata["labels"]);
    annotations(page, "Annotations", &metadata["annotations"]);
    if let Some(controller) = controller(own) {
        page.field(0, "Controlled By", controller);
    }
    let (has, wants) = (number(&status["replicas"]), number(&spec["replicas"]));
    page.field(0, "Replicas", format!("{has} current / {wants} desired"));
    page.field(0, "Pods Status", phases(pods, own));
    template(page, &spec["template"]);
    conditions(page, &status["conditions"], true);
}

pub(super) fn stateful_set(page: &mut TabbedPage, own: &Value, pods: &[Value]) {
    let (metadata, spec, status) = (&own["metadata"], &own["spec"], &own["status"]);
    page.field(0, "Name", text(metadata, "name"));
    page.field(0, "Namespace", text(metadata, "namespace"));
    page.field(0, "CreationTimestamp", time(&metadata["creationTimestamp"]));
    page.field(0, "Selector", selector(&spec["selector"]));
    lines_of(page, "Labels", &metadata["labels"]);
    annotations(page, "Annotations", &metadata["annotations"]);
    let (wants, has) = (number(&spec["replicas"]), number(&status["replicas"]));
    page.field(0, "Replicas", format!("{wants} desired | {has} total"));
    page.field(0, "Update Strategy", text(&spec["updateStrategy"], "type"));
    let rolling = &spec["updateStrategy"]["rollingUpdate"];
    if let Some(partition) = rolling["partition"].as_i64() {
        page.field(1, "Partition", partition.to_string());
        if !rolling["maxUnavailable"].is_null() {
            page.field(1, "MaxUnavailable", plain(&rolling["maxUnavailable"]));
        }
    }
    page.field(0, "Pods Status", phases(pods, own));
    template(page, &spec["template"]);
    claims(page, &spec["volumeClaimTemplates"]);
}

fn claims(page: &mut TabbedPage, claims: &Value) {
    let claims = list(claims);
    if claims.is_empty() {
        return page.field(0, "Volume Claims", "<none>");
    }
    page.line(0, "Volume Claims:");
    for claim in claims {
        page.field(1, "Name", text(&claim["metadata"], "name"));
        page.field(1, "StorageClass", text(&claim["spec"], "storageClassName"));
        lines_of(page, "  Labels", &claim["metadata"]["labels"]);
        lines_of(page, "  Annotations", &claim["metadata"]["annotations"]);
        let capacity = &claim["spec"]["resources"]["requests"]["storage"];
        page.field(1, "Capacity", capacity.as_str().unwrap_or("<default>"));
        let modes: Vec<&str> = list(&claim["spec"]["accessModes"]).iter().filter_map(Value::as_str).collect();
        page.field(1, "Access Modes", format!("[{}]", modes.join(" ")));
    }
}

pub(super) fn daemon_set(page: &mut TabbedPage, own: &Value, pods: &[Value]) {
    let (metadata, spec, status) = (&own["metadata"], &own["spec"], &own["status"]);
    page.field(0, "Name", text(metadata, "name"));
    page.field(0, "Namespace", text(metadata, "namespace"));
    page.field(0, "Selector", selector(&spec["selector"]));
    page.field(0, "Node-Selector", joined(&spec["template"]["spec"]["nodeSelector"]));
    lines_of(page, "Labels", &metadata["labels"]);
    annotations(page, "Annotations", &metadata["annotations"]);
    for (title, field) in [
        ("Desired Number of Nodes Scheduled", "desiredNumberScheduled"),
        ("Current Number of Nodes Scheduled", "currentNumberScheduled"),
        ("Number of Nodes Scheduled with Up-to-date Pods", "updatedNumberScheduled"),
        ("Number of Nodes Scheduled with Available Pods", "numberAvailable"),
        ("Number of Nodes Misscheduled", "numberMisscheduled"),
    ] {
        page.line(0, format!("{title}: {}", number(&status[field])));
    }
    page.field(0, "Pods Status", phases(pods, own));
    template(page, &spec["template"]);
}

pub(super) fn job(page: &mut TabbedPage, own: &Value) {
    let (metadata, spec, status) = (&own["metadata"], &own["spec"], &own["status"]);
    page.field(0, "Name", text(metadata, "name"));
    page.field(0, "Namespace", text(metadata, "namespace"));
    page.field(0, "Selector", selector(&spec["selector"]));
    lines_of(page, "Labels", &metadata["labels"]);
    annotations(page, "Annotations", &metadata["annotations"]);
    if let Some(controller) = controller(own) {
        page.field(0, "Controlled By", controller);
    }
    let mut told = |title: &str, value: &Value| {
        if !value.is_null() {
            page.field(0, title, plain(value));
        }
    };
    told("Parallelism", &spec["parallelism"]);
    let unset = Value::from("<unset>");
    told("Completions", if spec["completions"].is_null() { &unset } else { &spec["completions"] });
    told("Completion Mode", &spec["completionMode"]);
    told("Suspend", &spec["suspend"]);
    told("Backoff Limit", &spec["backoffLimit"]);
    told("TTL Seconds After Finished", &spec["ttlSecondsAfterFinished"]);
    job_status(page, spec, status);
    template(page, &spec["template"]);
}

fn job_status(page: &mut TabbedPage, spec: &Value, status: &Value) {
    let (begun, done) = (&status["startTime"], &status["completionTime"]);
    if begun.is_string() {
        page.field(0, "Start Time", time(begun));
    }
    if done.is_string() {
        page.field(0, "Completed At", time(done));
    }
    let at = |value: &Value| value.as_str().and_then(|text| DateTime::parse_from_rfc3339(text).ok());
    if let (Some(begun), Some(done)) = (at(begun), at(done)) {
        page.field(0, "Duration", human_duration((done - begun).num_seconds()));
    }
    if let Some(seconds) = spec["activeDeadlineSeconds"].as_i64() {
        page.field(0, "Active Deadline Seconds", format!("{seconds}s"));
    }
    let of = |field: &str| number(&status[field]);
    let ready = status["ready"].as_i64().map(|ready| format!(" ({ready} Ready)")).unwrap_or_default();
    let (active, succeeded, failed) = (of("active"), of("succeeded"), of("failed"));
    page.field(
        0,
        "Pods Statuses",
        format!("{active} Active{ready} / {succeeded} Succeeded / {failed} Failed"),
    );
    if spec["completionMode"] == "Indexed" {
        page.field(0, "Completed Indexes", capped(text(status, "completedIndexes")));
    }
}

/// Whole indexes, as many as a line has room for.
fn capped(indexes: &str) -> String {
    const SOFT_LIMIT: usize = 50;
    match indexes.get(SOFT_LIMIT..).and_then(|rest| rest.find(',')) {
        Some(at) => format!("{}...", &indexes[..=SOFT_LIMIT + at]),
        None => or_none(indexes).to_owned(),
    }
}
