//! A silent node is found out, its pods are told of, and leave in time.

use std::time::Duration;

use kubarium::apimachinery::options::PatchType;
use kubarium::apimachinery::time::{rfc3339, rfc3339_micro};
use kubarium::apis::coordination::lease::LEASES;
use kubarium::apis::core::node::NODES;
use kubarium::apis::core::pod::PODS;
use kubarium::cluster::{Components, Config};
use kubarium::controllers::cidr_set::ClusterCidrs;
use serde_json::{Value, json};

use super::support::{Fixture, NAMESPACE, condition};

const LEASE_NAMESPACE: &str = "kube-node-lease";

async fn register(fixture: &Fixture, node: &str) {
    let spec = json!({"taints": [{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]});
    fixture.create(&NODES, "", json!({"metadata": {"name": node}, "spec": spec})).await;
    let now = rfc3339(fixture.clock.now());
    let ready = json!({"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "kubelet is posting ready status",
        "lastHeartbeatTime": now, "lastTransitionTime": now});
    let status = json!({"status": {"conditions": [ready]}});
    fixture.client.patch_status(&NODES, "", node, PatchType::Merge, &status).await.unwrap();
    let spec = json!({"holderIdentity": node, "leaseDurationSeconds": 40, "renewTime": rfc3339_micro(fixture.clock.now())});
    fixture.create(&LEASES, LEASE_NAMESPACE, json!({"metadata": {"name": node}, "spec": spec})).await;
}

async fn renew(fixture: &Fixture, node: &str) {
    let patch = json!({"spec": {"renewTime": rfc3339_micro(fixture.clock.now())}});
    fixture.client.patch(&LEASES, LEASE_NAMESPACE, node, PatchType::Merge, &patch).await.unwrap();
}

fn taints(node: &Value) -> Vec<String> {
    let text =
        |taint: &Value| format!("{}:{}", taint["key"].as_str().unwrap(), taint["effect"].as_str().unwrap());
    node["spec"]["taints"].as_array().into_iter().flatten().map(text).collect()
}

async fn has_taints(fixture: &Fixture, node: &str, expected: &[&str]) {
    fixture
        .eventually(&format!("{node} has the taints {expected:?}"), || async {
            let node = fixture.get(&NODES, node).await?;
            (taints(&node) == expected).then_some(())
        })
        .await;
}

#[tokio::test]
async fn a_silent_node_is_unknown_and_its_pods_leave() {
    let fixture = Fixture::start().await;
    register(&fixture, "alive").await;
    register(&fixture, "silent").await;
    has_taints(&fixture, "alive", &[]).await;
    has_taints(&fixture, "silent", &[]).await;
    let tolerations = json!([{"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute",
        "tolerationSeconds": 300}]);
    let pod = json!({"metadata": {"name": "p"}, "spec": {
        "nodeName": "silent", "tolerations": tolerations, "containers": [{"name": "c", "image": "nginx"}]}});
    fixture.create(&PODS, NAMESPACE, pod).await;
    fixture.set_ready("p", "True", "10.0.0.1").await;
    for _ in 0..8 {
        fixture.clock.advance(Duration::from_secs(8));
        renew(&fixture, "alive").await;
        fixture.settle(10).await;
    }
    let unreachable =
        ["node.kubernetes.io/unreachable:NoSchedule", "node.kubernetes.io/unreachable:NoExecute"];
    has_taints(&fixture, "silent", &unreachable).await;
    has_taints(&fixture, "alive", &[]).await;
    let node = fixture.get(&NODES, "silent").await.unwrap();
    let ready = condition(&node, "Ready");
    assert_eq!((&ready["status"], &ready["reason"]), (&json!("Unknown"), &json!("NodeStatusUnknown")));
    assert_eq!(ready["message"], "Kubelet stopped posting node status.");
    let pod = fixture.get(&PODS, "p").await.unwrap();
    assert_eq!(condition(&pod, "Ready")["status"], "False");
    assert!(pod["metadata"]["deletionTimestamp"].is_null());

    for _ in 0..8 {
        fixture.clock.advance(Duration::from_secs(40));
        renew(&fixture, "alive").await;
        fixture.settle(10).await;
    }
    let leaves = || async {
        let pod = fixture.get(&PODS, "p").await?;
        (!pod["metadata"]["deletionTimestamp"].is_null()).then_some(pod)
    };
    let pod = fixture.eventually("the pod leaves", leaves).await;
    assert_eq!(condition(&pod, "DisruptionTarget")["reason"], "DeletionByTaintManager");
    fixture.told("TaintManagerEviction", "Marking for deletion Pod test/p").await;

    fixture.delete(&NODES, "silent", "Background").await;
    fixture.clock.advance(Duration::from_secs(20));
    fixture.settle(10).await;
    fixture.clock.advance(Duration::from_secs(60));
    fixture.gone(&PODS, "p").await;
}

#[tokio::test]
async fn a_node_that_comes_back_is_ready_again() {
    let fixture = Fixture::start().await;
    register(&fixture, "only").await;
    has_taints(&fixture, "only", &[]).await;
    fixture.clock.advance(Duration::from_secs(70));
    // With no node left at all nobody is driven out: it may well be us.
    has_taints(&fixture, "only", &["node.kubernetes.io/unreachable:NoSchedule"]).await;
    let now = rfc3339(fixture.clock.now());
    let ready =
        json!({"type": "Ready", "status": "True", "lastHeartbeatTime": now, "lastTransitionTime": now});
    let status = json!({"status": {"conditions": [ready]}});
    fixture.client.patch_status(&NODES, "", "only", PatchType::Merge, &status).await.unwrap();
    has_taints(&fixture, "only", &[]).await;
}

#[tokio::test]
async fn cordoning_taints() {
    let fixture = Fixture::start().await;
    register(&fixture, "a").await;
    fixture.patch(&NODES, "a", json!({"spec": {"unschedulable": true, "taints": null}})).await;
    has_taints(&fixture, "a", &["node.kubernetes.io/unschedulable:NoSchedule"]).await;
    fixture.patch(&NODES, "a", json!({"spec": {"unschedulable": null}})).await;
    has_taints(&fixture, "a", &[]).await;
}

#[tokio::test]
async fn what_goes_away_on_a_node_that_is_off_is_gone() {
    let fixture = Fixture::start().await;
    register(&fixture, "dead").await;
    let spec = json!({"nodeName": "dead", "containers": [{"name": "c", "image": "nginx"}]});
    fixture.create(&PODS, NAMESPACE, json!({"metadata": {"name": "p"}, "spec": spec})).await;
    fixture.delete(&PODS, "p", "Background").await;
    for _ in 0..8 {
        fixture.clock.advance(Duration::from_secs(8));
        fixture.settle(10).await;
    }
    assert!(fixture.get(&PODS, "p").await.is_some(), "nobody says that the node is off");
    let node = fixture.get(&NODES, "dead").await.unwrap();
    let mut taints = node["spec"]["taints"].as_array().cloned().unwrap_or_default();
    taints.push(
        json!({"key": "node.kubernetes.io/out-of-service", "value": "nodeshutdown", "effect": "NoExecute"}),
    );
    fixture.patch(&NODES, "dead", json!({"spec": {"taints": taints}})).await;
    fixture.gone(&PODS, "p").await;
}

#[tokio::test]
async fn nodes_get_older_labels_their_time_and_a_range() {
    let mut config = Config::new().components(Components::NONE.controllers(true));
    config.controller_manager.cluster_cidr = ClusterCidrs::parse("10.9.0.0/16,fd00:9::/56").ok();
    config.controller_manager.allocate_node_cidrs = true;
    let fixture = Fixture::start_configured(config).await;
    for name in ["a", "b"] {
        let labels = json!({"kubernetes.io/os": "linux", "kubernetes.io/arch": "arm64"});
        fixture.create(&NODES, "", json!({"metadata": {"name": name, "labels": labels}})).await;
    }
    let look = || async {
        let (a, b) = (fixture.get(&NODES, "a").await?, fixture.get(&NODES, "b").await?);
        let has_all = |node: &Value| {
            let metadata = &node["metadata"];
            metadata["labels"]["beta.kubernetes.io/arch"] == "arm64"
                && metadata["annotations"]["node.alpha.kubernetes.io/ttl"] == "0"
                && node["spec"]["podCIDR"].is_string()
        };
        (has_all(&a) && has_all(&b)).then_some((a, b))
    };
    let (a, b) = fixture.eventually("both have all", look).await;
    let mut ranges = [&a, &b].map(|node| node["spec"]["podCIDR"].as_str().unwrap().to_owned());
    ranges.sort();
    assert_eq!(ranges, ["10.9.0.0/24", "10.9.1.0/24"]);
    assert_eq!(a["spec"]["podCIDRs"][0], a["spec"]["podCIDR"]);
    let mut of_six = [&a, &b].map(|node| node["spec"]["podCIDRs"][1].as_str().unwrap().to_owned());
    of_six.sort();
    assert_eq!(of_six, ["fd00:9:0:1::/64", "fd00:9::/64"]);
}
