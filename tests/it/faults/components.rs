//! Components that are cut off, cannot renew their leases, or stand still: on a stepped clock.

use std::time::Duration;

use kubarium::kinds::{NODES, PODS};
use kubarium::{Clock, Cluster, Config, Entropy, Fault};
use serde_json::{Value, json};

const MINUTE: Duration = Duration::from_secs(60);

async fn stepped() -> Cluster {
    let clock = Clock::stepped("2030-01-01T00:00:00Z".parse().unwrap());
    Cluster::start(Config::new().clock(clock).entropy(Entropy::seeded(7))).await.unwrap()
}

async fn is_scheduled(cluster: &Cluster, name: &str) -> bool {
    let pod = cluster.client().get(&PODS, "default", name).await.unwrap().to_value();
    pod["spec"]["nodeName"].is_string()
}

async fn create(cluster: &Cluster, name: &str) {
    let spec = json!({"containers": [{"name": "c", "image": "nginx"}]});
    cluster
        .client()
        .create(&PODS, "default", json!({"metadata": {"name": name}, "spec": spec}))
        .await
        .unwrap();
}

async fn ready(cluster: &Cluster) -> Value {
    let node = cluster.client().get(&NODES, "", "node-1").await.unwrap().to_value();
    let conditions = node["status"]["conditions"].as_array().cloned().unwrap();
    conditions.into_iter().find(|one| one["type"] == "Ready").unwrap()["status"].take()
}

#[tokio::test]
async fn a_component_in_this_process_that_is_cut_off_hears_nothing_and_catches_up() {
    let cluster = stepped().await;
    let partition = || Fault::partition("system:kube-scheduler").named("cut");
    cluster.faults().add(partition()).unwrap();
    create(&cluster, "a").await;
    cluster.pass(MINUTE).await.unwrap();
    assert!(!is_scheduled(&cluster, "a").await);
    cluster.faults().remove("cut").unwrap();
    cluster.pass(2 * MINUTE).await.unwrap();
    assert!(is_scheduled(&cluster, "a").await);
    // For a while, and not yet.
    cluster.faults().add(partition().after(MINUTE).lasting(MINUTE)).unwrap();
    create(&cluster, "b").await;
    cluster.settled().await.unwrap();
    assert!(is_scheduled(&cluster, "b").await);
    cluster.pass(MINUTE + Duration::from_secs(1)).await.unwrap();
    create(&cluster, "c").await;
    cluster.settled().await.unwrap();
    assert!(!is_scheduled(&cluster, "c").await);
    cluster.pass(2 * MINUTE).await.unwrap();
    assert!(is_scheduled(&cluster, "c").await);
    cluster.stop().await;
}

#[tokio::test]
async fn a_node_without_its_lease_or_its_kubelet_is_unknown_until_it_is_back() {
    for fault in [Fault::lost_leases("system:node:node-1"), Fault::stop("kubelet/node-1")] {
        let cluster = stepped().await;
        cluster.pass(MINUTE).await.unwrap();
        assert_eq!(ready(&cluster).await, "True");
        let told = fault.to_string();
        cluster.faults().add(fault.named("lost")).unwrap();
        cluster.pass(2 * MINUTE).await.unwrap();
        assert_eq!(ready(&cluster).await, "Unknown", "{told}");
        cluster.faults().remove("lost").unwrap();
        cluster.pass(2 * MINUTE).await.unwrap();
        assert_eq!(ready(&cluster).await, "True", "{told}");
        cluster.stop().await;
    }
}
