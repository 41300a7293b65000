//! What a kubelet looks at itself: whether a pod is one for its node, who makes room, and what others write
//! into its statuses.

use kubarium::apimachinery::options::PatchType;
use kubarium::apis::core::node::NODES;
use kubarium::apis::core::pod::PODS;
use serde_json::{Value, json};

use super::{Nodes, condition, is_ready, nginx};

/// Nobody but its node has looked at it.
fn placed(selector: &Value) -> Value {
    let mut spec = nginx();
    (spec["nodeName"], spec["nodeSelector"]) = ("node-1".into(), selector.clone());
    spec
}

#[tokio::test]
async fn a_pod_for_other_nodes_is_refused() {
    let nodes = Nodes::start(1).await;
    let selector = json!({"disk": "ssd"});
    nodes.create_pod("early", placed(&selector)).await;
    let refused = nodes.pod_when("early", |pod| pod["status"]["phase"] == "Failed").await;
    assert_eq!(refused["status"]["reason"], "NodeAffinity");
    let why =
        "Pod was rejected: Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector";
    assert_eq!(refused["status"]["message"], why);
    let label = json!({"metadata": {"labels": selector}});
    nodes.client.patch(&NODES, "", "node-1", PatchType::Merge, &label).await.unwrap();
    nodes.create_pod("late", placed(&selector)).await;
    nodes.pod_when("late", is_ready).await;
}

#[tokio::test]
async fn a_critical_pod_takes_the_place_of_others() {
    let nodes = Nodes::start(1).await;
    let asking = |cpu: &str| {
        let mut spec = nginx();
        spec["nodeName"] = "node-1".into();
        spec["containers"][0]["resources"] = json!({"requests": {"cpu": cpu}});
        spec
    };
    nodes.create_pod("small", asking("1")).await;
    nodes.create_pod("large", asking("6")).await;
    nodes.pod_when("small", is_ready).await;
    nodes.pod_when("large", is_ready).await;
    nodes.create_pod("plain", asking("2")).await;
    let refused = nodes.pod_when("plain", |pod| pod["status"]["phase"] == "Failed").await;
    assert_eq!(refused["status"]["reason"], "OutOfcpu");
    let mut critical = asking("2");
    critical["priorityClassName"] = "system-node-critical".into();
    nodes.create_pod("critical", critical).await;
    nodes.pod_when("critical", is_ready).await;
    let gone = nodes.pod_when("small", |pod| pod["status"]["phase"] == "Failed").await;
    assert_eq!(gone["status"]["reason"], "Preempting");
    assert_eq!(gone["status"]["message"], "Preempted in order to admit critical pod");
    let target = condition(&gone, "DisruptionTarget");
    assert_eq!(target["reason"], "TerminationByKubelet");
    assert_eq!(target["message"], "Pod was preempted by Kubelet to accommodate a critical pod.");
    assert!(is_ready(&nodes.pod_when("large", |_| true).await));
}

async fn write_status(nodes: &Nodes, pod: &str, status: Value) {
    let patch = json!({"status": status});
    nodes.client.patch_status(&PODS, "default", pod, PatchType::StrategicMerge, &patch).await.unwrap();
}

#[tokio::test]
async fn a_pod_that_somebody_else_ends_has_ended() {
    let nodes = Nodes::start(1).await;
    nodes.create_pod("web", nginx()).await;
    nodes.pod_when("web", is_ready).await;
    write_status(&nodes, "web", json!({"phase": "Failed", "reason": "Judged"})).await;
    let ended = |pod: &Value| !pod["status"]["containerStatuses"][0]["state"]["terminated"].is_null();
    let pod = nodes.pod_when("web", ended).await;
    assert_eq!((&pod["status"]["phase"], &pod["status"]["reason"]), (&json!("Failed"), &json!("Judged")));
    assert_eq!(condition(&pod, "Ready")["reason"], "PodFailed");
}

#[tokio::test]
async fn what_somebody_else_writes_is_put_back() {
    let nodes = Nodes::start(1).await;
    nodes.create_pod("web", nginx()).await;
    let before = nodes.pod_when("web", is_ready).await;
    let mut statuses = before["status"]["containerStatuses"].clone();
    statuses[0]["restartCount"] = 7.into();
    write_status(&nodes, "web", json!({"phase": "Pending", "containerStatuses": statuses})).await;
    let is_as_before = |pod: &Value| pod["status"]["phase"] == "Running" && is_ready(pod);
    let after = nodes.pod_when("web", is_as_before).await;
    assert_eq!(after["status"]["containerStatuses"], before["status"]["containerStatuses"]);
}
