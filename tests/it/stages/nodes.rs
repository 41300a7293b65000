//! kwok's stages of nodes: those that somebody creates, with its annotation.

use kubarium::apis::coordination::lease::LEASES;
use kubarium::kinds::NODES;
use serde_json::{Value, json};

use super::Stages;

fn ready(node: &Value) -> &Value {
    let conditions = node["status"]["conditions"].as_array().unwrap();
    conditions.iter().find(|condition| condition["type"] == "Ready").unwrap()
}

#[tokio::test]
async fn node_stages_play_nodes_in_place_of_their_kubelets() {
    let stages = Stages::start().await;
    for folder in ["node/fast", "node/heartbeat", "node/chaos"] {
        stages.publish(folder).await;
    }
    let annotations = json!({"kwok.x-k8s.io/node": "fake"});
    let node = json!({"metadata": {"name": "fake-1", "annotations": annotations}});
    stages.client.create(&NODES, "", node).await.unwrap();
    stages.settle().await;
    let node = async || stages.client.get(&NODES, "", "fake-1").await.unwrap().to_value();
    let first = node().await;
    assert_eq!((&first["status"]["phase"], &ready(&first)["status"]), (&json!("Running"), &json!("True")));
    assert_eq!(first["status"]["capacity"]["cpu"], "1k");
    assert!(stages.client.get(&LEASES, "kube-node-lease", "fake-1").await.is_ok());
    // Its heart beats; the kubelet of another node is not disturbed.
    stages.pass(60).await;
    let beaten = node().await;
    assert_ne!(ready(&beaten)["lastHeartbeatTime"], ready(&first)["lastHeartbeatTime"]);
    assert_eq!(beaten["status"]["capacity"]["cpu"], "1k");
    let other = stages.client.get(&NODES, "", "node-1").await.unwrap().to_value();
    assert_eq!((&other["status"]["phase"], &ready(&other)["status"]), (&Value::Null, &json!("True")));

    let prefix = "node-not-ready.stage.kwok.x-k8s.io";
    let metadata = json!({"labels": {prefix: "true"}, "annotations": {format!("{prefix}/reason"): "Broken"}});
    let patch = json!({"metadata": metadata});
    stages.client.patch(&NODES, "", "fake-1", kubarium::PatchType::Merge, &patch).await.unwrap();
    stages.pass(5).await;
    let broken = node().await;
    assert_eq!((&ready(&broken)["status"], &ready(&broken)["reason"]), (&json!("False"), &json!("Broken")));
}
