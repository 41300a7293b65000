//! What every cluster has comes back when it is deleted.

use std::time::Duration;

use kubarium::kinds::{CONFIG_MAPS, NAMESPACES, PODS, SERVICES};
use kubarium::{Clock, Cluster, Config, DeleteOptions, Entropy, ListOptions, Listen, PatchType};

const TRACKING: &str = "kube-apiserver-legacy-service-account-token-tracking";

#[tokio::test]
async fn what_every_cluster_has_comes_back() {
    let clock = Clock::stepped("2026-01-01T00:00:00Z".parse().unwrap());
    let cluster = Cluster::start(Config::new().clock(clock).entropy(Entropy::seeded(7))).await.unwrap();
    cluster.settled().await.unwrap();
    let client = cluster.client();
    client.delete(&SERVICES, "default", "kubernetes", &DeleteOptions::default()).await.unwrap();
    client.delete(&NAMESPACES, "", "kube-node-lease", &DeleteOptions::default()).await.unwrap();
    cluster.settled().await.unwrap();
    assert!(client.get(&SERVICES, "default", "kubernetes").await.is_err());
    cluster.pass(Duration::from_secs(25)).await.unwrap();
    let service = client.get(&SERVICES, "default", "kubernetes").await.unwrap().to_value();
    assert_eq!(service["spec"]["clusterIP"], "10.96.0.1");
    let namespace = client.get(&NAMESPACES, "", "kube-node-lease").await.unwrap();
    assert!(!namespace.is_deleting());
    cluster.stop().await;
}

#[tokio::test]
async fn clients_from_outside_are_told_since_when_the_use_of_tokens_is_noted() {
    let clock = Clock::stepped("2026-01-01T00:00:00Z".parse().unwrap());
    let config = Config::new().nodes(0).clock(clock).listen(Listen::loopback());
    let cluster = Cluster::start(config).await.unwrap();
    cluster.settled().await.unwrap();
    let client = cluster.client();
    let since = || async {
        let tracking = client.get(&CONFIG_MAPS, "kube-system", TRACKING).await.unwrap();
        tracking.to_value()["data"]["since"].clone()
    };
    assert_eq!(since().await, "2026-01-01");
    client.delete(&CONFIG_MAPS, "kube-system", TRACKING, &DeleteOptions::default()).await.unwrap();
    cluster.settled().await.unwrap();
    cluster.pass(Duration::from_secs(25)).await.unwrap();
    assert_eq!(since().await, "2026-01-01", "it comes back");
    let nonsense = serde_json::json!({"data": {"since": "always"}});
    client.patch(&CONFIG_MAPS, "kube-system", TRACKING, PatchType::Merge, &nonsense).await.unwrap();
    cluster.pass(Duration::from_secs(25)).await.unwrap();
    assert_eq!(since().await, "2026-01-01", "what is no day is mended");
    cluster.stop().await;
}

#[tokio::test]
async fn pods_of_the_system_appear_for_those_who_look() {
    let clock = Clock::stepped("2026-01-01T00:00:00Z".parse().unwrap());
    let config = Config::new().clock(clock).entropy(Entropy::seeded(7)).system_pods(true);
    let cluster = Cluster::start(config).await.unwrap();
    cluster.settled().await.unwrap();
    cluster.pass(Duration::from_secs(30)).await.unwrap();
    let pods = cluster.client().list(&PODS, "kube-system", &ListOptions::default()).await.unwrap();
    let running = pods.items.iter().filter(|pod| pod.to_value()["status"]["phase"] == "Running");
    let names: Vec<String> = running.map(|pod| pod.metadata.name.to_string()).collect();
    let has = |start: &str| names.iter().any(|name| name.starts_with(start));
    for start in ["coredns-", "kube-proxy-", "metrics-server-", "etcd-node-1", "kube-apiserver-node-1"] {
        assert!(has(start), "{start}: {names:?}");
    }
    assert_eq!(names.len(), 8, "{names:?}");
    let client = cluster.client();
    assert!(client.get(&CONFIG_MAPS, "kube-system", "coredns").await.unwrap().mentions("loadbalance"));
    let apiserver = "kube-apiserver-node-1";
    let first = client.get(&PODS, "kube-system", apiserver).await.unwrap();
    let tree = first.to_value();
    assert!(tree["metadata"]["annotations"]["kubernetes.io/config.mirror"].is_string(), "{tree}");
    assert_eq!(tree["metadata"]["ownerReferences"][0]["kind"], "Node");
    assert!(first.mentions("--service-cluster-ip-range=10.96.0.0/16") && !first.mentions("kube-api-access"));
    client.delete(&PODS, "kube-system", apiserver, &DeleteOptions::default()).await.unwrap();
    cluster.pass(Duration::from_secs(60)).await.unwrap();
    let again = client.get(&PODS, "kube-system", apiserver).await.unwrap();
    assert_ne!(again.metadata.uid, first.metadata.uid, "it comes back");
    cluster.stop().await;
}
