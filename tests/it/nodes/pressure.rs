//! Nodes that run out of something, by what their pods use.

use std::time::Duration;

use kubarium::kinds::{EVENTS, NODES, PODS};
use kubarium::{Clock, Cluster, Config, Entropy, ListOptions};
use serde_json::{Value, json};

async fn cluster(config: Config) -> Cluster {
    let clock = Clock::stepped("2026-01-01T00:00:00Z".parse().unwrap());
    Cluster::start(config.nodes(1).clock(clock).entropy(Entropy::seeded(7))).await.unwrap()
}

async fn pass(cluster: &Cluster, seconds: u64) {
    cluster.pass(Duration::from_secs(seconds)).await.unwrap();
    cluster.settled().await.unwrap();
}

async fn run(cluster: &Cluster, name: &str, (resource, used): (&str, &str), requests: Value) {
    let annotations = json!({format!("kubarium.dev/usage-{resource}"): used});
    let containers = json!([{"name": "c", "image": "nginx", "resources": {"requests": requests}}]);
    let pod =
        json!({"metadata": {"name": name, "annotations": annotations}, "spec": {"containers": containers}});
    cluster.client().create(&PODS, "default", pod).await.unwrap();
    cluster.settled().await.unwrap();
}

async fn status(cluster: &Cluster, name: &str) -> Value {
    cluster.client().get(&PODS, "default", name).await.unwrap().to_value()["status"].clone()
}

/// The status of a condition of the node, and its taints.
async fn node(cluster: &Cluster, condition: &str) -> (String, Vec<String>) {
    let node = cluster.client().get(&NODES, "", "node-1").await.unwrap().to_value();
    let all = node["status"]["conditions"].as_array().unwrap();
    let found = all.iter().find(|found| found["type"] == condition).unwrap();
    let taints = node["spec"]["taints"].as_array().cloned().unwrap_or_default();
    let keys = taints.iter().map(|taint| taint["key"].as_str().unwrap().to_owned()).collect();
    (found["status"].as_str().unwrap().to_owned(), keys)
}

#[tokio::test]
async fn who_uses_more_memory_than_it_requests_goes_when_the_node_has_none_left() {
    let cluster = cluster(Config::new()).await;
    run(&cluster, "modest", ("memory", "1Gi"), json!({"memory": "2Gi"})).await;
    run(&cluster, "hungry", ("memory", "ramp 0 40Gi 10m"), json!({"memory": "1Gi"})).await;
    pass(&cluster, 440).await;
    assert_eq!(status(&cluster, "hungry").await["phase"], "Running");
    assert_eq!(node(&cluster, "MemoryPressure").await, ("False".into(), vec![]));
    pass(&cluster, 60).await;
    let hungry = status(&cluster, "hungry").await;
    assert_eq!((&hungry["phase"], &hungry["reason"]), (&json!("Failed"), &json!("Evicted")));
    let message = hungry["message"].as_str().unwrap();
    let (before, behind) = message.split_once(", available: ").unwrap();
    assert_eq!(before, "The node was low on resource: memory. Threshold quantity: 100Mi");
    assert!(behind.ends_with(", request is 1Gi, has larger consumption of memory. "), "{message}");
    let under = ("True".into(), vec!["node.kubernetes.io/memory-pressure".into()]);
    assert_eq!(node(&cluster, "MemoryPressure").await, under);
    assert_eq!(status(&cluster, "modest").await["phase"], "Running");
    // For five minutes it is remembered.
    pass(&cluster, 200).await;
    assert_eq!(node(&cluster, "MemoryPressure").await, under);
    pass(&cluster, 140).await;
    assert_eq!(node(&cluster, "MemoryPressure").await, ("False".into(), vec![]));
    let events = cluster.client().list(&EVENTS, "", &ListOptions::default()).await.unwrap();
    let told = events.items.iter().map(|event| event.to_value());
    let told: Vec<Value> = told.filter(|event| event["reason"] == "EvictionThresholdMet").collect();
    assert_eq!(told[0]["message"], "Attempting to reclaim memory");
    let metrics = cluster.client();
    let request = http::Request::get("/api/v1/nodes/node-1/proxy/metrics").body(Default::default()).unwrap();
    let answer = http_body_util::BodyExt::collect(metrics.raw(request).await.into_body()).await.unwrap();
    let text = String::from_utf8(answer.to_bytes().to_vec()).unwrap();
    assert!(text.contains("kubelet_evictions{eviction_signal=\"memory.available\"} 1\n"), "{text}");
    cluster.stop().await;
}

#[tokio::test]
async fn soft_thresholds_take_their_time_and_a_full_disk_is_emptied() {
    let mut config = Config::new();
    config.kubelet.eviction_hard = "nodefs.available<10%".parse().unwrap();
    config.kubelet.eviction_soft = "pid.available<32000".parse().unwrap();
    config.kubelet.eviction_soft_grace_period = "pid.available=90s".parse().unwrap();
    let cluster = cluster(config).await;
    run(&cluster, "writes", ("ephemeral-storage", "steps 0, 95Gi at 5m"), json!({})).await;
    run(&cluster, "forks", ("pids", "1000"), json!({})).await;
    pass(&cluster, 60).await;
    assert_eq!(node(&cluster, "PIDPressure").await.0, "True");
    assert_eq!(status(&cluster, "forks").await["phase"], "Running");
    pass(&cluster, 60).await;
    let forks = status(&cluster, "forks").await;
    let text = "The node was low on resource: pids. Threshold quantity: 32k, available: 31767. ";
    assert_eq!((&forks["reason"], &forks["message"]), (&json!("Evicted"), &json!(text)));
    assert_eq!(node(&cluster, "DiskPressure").await.0, "False");
    pass(&cluster, 240).await;
    let writes = status(&cluster, "writes").await;
    let message = writes["message"].as_str().unwrap_or_default();
    assert!(message.starts_with("The node was low on resource: ephemeral-storage. Threshold "), "{writes}");
    assert_eq!(node(&cluster, "DiskPressure").await.0, "True");
    cluster.stop().await;
}

/// The messages of events about the node.
async fn told(cluster: &Cluster, reason: &str) -> Vec<String> {
    let events = cluster.client().list(&EVENTS, "", &ListOptions::default()).await.unwrap();
    let events = events.items.iter().map(|event| event.to_value());
    let of_reason = events.filter(|event| event["reason"] == reason);
    of_reason.map(|event| event["message"].as_str().unwrap().to_owned()).collect()
}

async fn images(cluster: &Cluster) -> Vec<String> {
    let node = cluster.client().get(&NODES, "", "node-1").await.unwrap().to_value();
    let all = node["status"]["images"].as_array().cloned().unwrap_or_default();
    all.iter().map(|image| image["names"][0].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn images_that_nobody_uses_go_when_the_disk_is_nearly_full() {
    let mut config = Config::new();
    // Else the pod that fills it goes at the same share.
    config.kubelet.eviction_hard = "nodefs.available<5%".parse().unwrap();
    let cluster = cluster(config).await;
    run(&cluster, "once", ("cpu", "1m"), json!({})).await;
    cluster.client().delete(&PODS, "default", "once", &Default::default()).await.unwrap();
    pass(&cluster, 60).await;
    let spec = json!({"containers": [{"name": "c", "image": "busybox", "command": ["sleep", "36000"]}]});
    let annotations = json!({"kubarium.dev/usage-ephemeral-storage": "steps 0, 86Gi at 2m"});
    let writes = json!({"metadata": {"name": "writes", "annotations": annotations}, "spec": spec});
    cluster.client().create(&PODS, "default", writes).await.unwrap();
    pass(&cluster, 30).await;
    let nginx = "docker.io/library/nginx:latest".to_owned();
    assert!(images(&cluster).await.contains(&nginx));
    pass(&cluster, 900).await;
    let left = images(&cluster).await;
    assert!(!left.contains(&nginx) && left.iter().any(|image| image.contains("busybox")), "{left:?}");
    let why = told(&cluster, "FreeDiskSpaceFailed").await.remove(0);
    assert!(
        why.starts_with("Failed to garbage collect required amount of images. Attempted to free "),
        "{why}"
    );
    assert!(!told(&cluster, "ImageGCFailed").await.is_empty(), "it failed twice");
    assert_eq!(status(&cluster, "writes").await["phase"], "Running");
    cluster.stop().await;
}

/// A disk of 100Gi has room for 6,553,600 files.
#[tokio::test]
async fn too_many_files_are_disk_pressure_too() {
    let cluster = cluster(Config::new()).await;
    run(&cluster, "few", ("inodes", "1k"), json!({})).await;
    run(&cluster, "many", ("inodes", "steps 0, 6300k at 1m"), json!({})).await;
    pass(&cluster, 30).await;
    assert_eq!(node(&cluster, "DiskPressure").await.0, "False");
    pass(&cluster, 60).await;
    assert_eq!(node(&cluster, "DiskPressure").await.0, "True");
    let many = status(&cluster, "many").await;
    let text = "The node was low on resource: inodes. Threshold quantity: 320Ki, available: 252600. ";
    assert_eq!((&many["reason"], &many["message"]), (&json!("Evicted"), &json!(text)));
    assert_eq!(status(&cluster, "few").await["phase"], "Running");
    cluster.stop().await;
}

#[tokio::test]
async fn a_soft_threshold_without_a_period_is_refused() {
    let mut config = Config::new();
    config.kubelet.eviction_soft = "memory.available<1Gi".parse().unwrap();
    let refused = Cluster::start(config).await.err().unwrap().to_string();
    assert!(
        refused.contains("grace period must be specified for the soft eviction threshold memory.available"),
        "{refused}"
    );
}
