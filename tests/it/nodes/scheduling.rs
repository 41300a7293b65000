//! Where pods go, and what is said of those that go nowhere.

use std::collections::BTreeMap;

use kubarium::apimachinery::options::PatchType;
use kubarium::apis::core::node::NODES;
use kubarium::kubelet::node_config::NodeConfig;
use serde_json::{Value, json};

use super::{Nodes, condition, is_ready, nginx};

fn asks(cpu: &str) -> Value {
    json!({"containers": [{"name": "a", "image": "nginx", "resources": {"requests": {"cpu": cpu}}}]})
}

#[tokio::test]
async fn pods_spread_over_the_nodes() {
    let nodes = Nodes::start(3).await;
    for index in 0..30 {
        nodes.create_pod(&format!("web-{index}"), asks("100m")).await;
    }
    let all_ready = || async { Some(nodes.pods().await).filter(|pods| pods.iter().all(is_ready)) };
    let pods = nodes.until(all_ready).await;
    let mut counts = BTreeMap::new();
    for pod in &pods {
        *counts.entry(pod["spec"]["nodeName"].as_str().unwrap()).or_insert(0) += 1;
    }
    // Not to the last pod: the node that has the image first is a little better at first.
    assert!(counts.len() == 3 && counts.values().all(|count| (9..=11).contains(count)), "{counts:?}");
}

#[tokio::test]
async fn a_pod_that_fits_nowhere_says_why_and_waits() {
    let nodes = Nodes::start(2).await;
    let cordon = json!({"spec": {"unschedulable": true}});
    nodes.client.patch(&NODES, "", "node-2", PatchType::Merge, &cordon).await.unwrap();
    nodes.create_pod("small", nginx()).await;
    nodes.pod_when("small", is_ready).await;
    nodes.create_pod("big", asks("9")).await;
    let rejected = |pod: &Value| condition(pod, "PodScheduled")["reason"] == "Unschedulable";
    let pod = nodes.pod_when("big", rejected).await;
    let said = "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) were unschedulable. no new claims to \
                deallocate, preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling.";
    assert_eq!(condition(&pod, "PodScheduled")["message"], said);
    assert_eq!(pod["status"]["phase"], "Pending");
    let told = || async { nodes.events("big").await.into_iter().next() };
    assert_eq!(nodes.until(told).await, ("FailedScheduling".to_owned(), said.to_owned()));
    let mut config = NodeConfig::numbered(3);
    config.capacity.insert("cpu".into(), "16".into());
    nodes.start_kubelet(config).await;
    let pod = nodes.pod_when("big", is_ready).await;
    assert_eq!(pod["spec"]["nodeName"], "node-3");
    let scheduled = || async {
        let events = nodes.events("big").await;
        events.into_iter().find(|(reason, _)| reason == "Scheduled")
    };
    assert_eq!(nodes.until(scheduled).await.1, "Successfully assigned default/big to node-3");
}

#[tokio::test]
async fn an_important_pod_takes_the_place_of_another() {
    let nodes = Nodes::start(1).await;
    nodes.create_pod("old", asks("6")).await;
    nodes.pod_when("old", is_ready).await;
    let class = json!({"metadata": {"name": "high"}, "value": 1000});
    let kind = &kubarium::apis::scheduling::priority_class::PRIORITY_CLASSES;
    nodes.client.create(kind, "", class).await.unwrap();
    let mut spec = asks("6");
    spec["priorityClassName"] = "high".into();
    nodes.create_pod("new", spec).await;
    nodes.pod_when("new", is_ready).await;
    let names: Vec<Value> =
        nodes.pods().await.into_iter().map(|pod| pod["metadata"]["name"].clone()).collect();
    assert_eq!(names, ["new"]);
}
