//! A cluster in a test, as envtest or kind would give one, but with everything in this process: no etcd or
//! kube-apiserver to download, no port, no container, and controllers, scheduler and nodes that work.
//!
//! `cargo run --example cluster_in_a_test`

use std::error::Error;
use std::time::Duration;

use kubarium::kinds::{DEPLOYMENTS, PODS};
use kubarium::{Client, Cluster, Config, ListOptions};
use serde_json::json;

#[tokio::main]
pub(crate) async fn main() -> Result<(), Box<dyn Error>> {
    // One node, in memory. With `Components::NONE` it would be what envtest is: an apiserver alone.
    let cluster = Cluster::start(Config::new().nodes(2)).await?;
    let client = cluster.client();

    let pod = json!({"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "nginx"}]}});
    let web = json!({
        "metadata": {"name": "web"},
        "spec": {"replicas": 3, "selector": {"matchLabels": {"app": "web"}}, "template": pod},
    });
    client.create(&DEPLOYMENTS, "default", web).await?;

    // With envtest nothing would happen now. Here the pods are made, scheduled and "run".
    wait_for_replicas(&client, 3).await?;
    let pods = client.list(&PODS, "default", &ListOptions::default()).await?;
    for pod in pods.items.iter() {
        let pod = pod.to_value();
        let (name, node) = (&pod["metadata"]["name"], &pod["spec"]["nodeName"]);
        assert_eq!(pod["status"]["phase"], "Running", "{name} on {node}");
    }

    // What a real server would refuse is refused, in its words.
    let refused = client.create(&DEPLOYMENTS, "default", json!({"metadata": {"name": "Web!"}})).await;
    let status = refused.expect_err("that is no name");
    assert_eq!(status.code, 422);

    // Dropped or stopped, a cluster leaves nothing. Have one for each test: they share nothing.
    cluster.stop().await;
    Ok(())
}

/// As `kubectl rollout status` waits. A test that must never wait for real time steps the clock: see
/// `stepped_time.rs`.
async fn wait_for_replicas(client: &Client, wanted: u64) -> Result<(), Box<dyn Error>> {
    loop {
        let web = client.get(&DEPLOYMENTS, "default", "web").await?.to_value();
        if web["status"]["availableReplicas"].as_u64() == Some(wanted) {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
