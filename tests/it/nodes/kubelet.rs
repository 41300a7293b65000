//! Nodes and what becomes of their pods.

use axum::body::Body;
use http_body_util::BodyExt;
use kubarium::apis::coordination::lease::LEASES;
use kubarium::apis::core::node::NODES;
use kubarium::apis::core::secret::SECRETS;
use kubarium::apis::storage::csi::CSI_NODES;
use kubarium::kubelet::node_config::NodeConfig;
use serde_json::{Value, json};

use super::{Nodes, busybox, condition, is_ready, nginx};

#[tokio::test]
async fn a_node_registers_and_keeps_a_lease() {
    let nodes = Nodes::start(1).await;
    let node = nodes.client.get(&NODES, "", "node-1").await.unwrap();
    let value = node.to_value();
    assert_eq!(node.metadata.labels["kubernetes.io/hostname"], "node-1");
    assert_eq!(value["spec"]["podCIDR"], "10.244.1.0/24");
    assert_eq!(value["status"]["nodeInfo"]["kubeletVersion"], "v1.36.2");
    assert_eq!(value["status"]["allocatable"]["pods"], "110");
    assert_eq!(condition(&value, "Ready")["reason"], "KubeletReady");
    assert_eq!(condition(&value, "DiskPressure")["status"], "False");
    let found = || async { nodes.client.get(&LEASES, "kube-node-lease", "node-1").await.ok() };
    let lease = nodes.until(found).await.to_value();
    assert_eq!(lease["spec"]["holderIdentity"], "node-1");
    assert_eq!(lease["metadata"]["ownerReferences"][0]["uid"], node.metadata.uid);
    let found = || async { nodes.client.get(&CSI_NODES, "", "node-1").await.ok() };
    let csi_node = nodes.until(found).await.to_value();
    assert_eq!(csi_node["spec"]["drivers"], json!([]));
    assert_eq!(csi_node["metadata"]["ownerReferences"][0]["uid"], node.metadata.uid);
}

#[tokio::test]
async fn a_pod_runs_and_goes() {
    let nodes = Nodes::start(1).await;
    nodes.create_pod("web", nginx()).await;
    let pod = nodes.pod_when("web", is_ready).await;
    assert_eq!(pod["status"]["phase"], "Running");
    assert_eq!(pod["status"]["podIP"], "10.244.1.2");
    assert_eq!(pod["status"]["hostIP"], "172.18.0.2");
    assert_eq!(pod["status"]["qosClass"], "BestEffort");
    let conditions: Vec<&str> =
        pod["status"]["conditions"].as_array().unwrap().iter().map(|c| c["type"].as_str().unwrap()).collect();
    let order = ["PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"];
    assert_eq!(conditions, order);
    let container = &pod["status"]["containerStatuses"][0];
    assert_eq!(container["image"], "docker.io/library/nginx:latest");
    assert_eq!(container["containerID"].as_str().unwrap().len(), "containerd://".len() + 64);
    assert!(container["state"]["running"]["startedAt"].is_string());
    let told = || async { Some(nodes.events("web").await).filter(|events| events.len() == 5) };
    let reasons: Vec<String> = nodes.until(told).await.into_iter().map(|(reason, _)| reason).collect();
    // Two components tell of it: only each one's own order is sure.
    let of_kubelet: Vec<&String> = reasons.iter().filter(|reason| *reason != "Scheduled").collect();
    assert_eq!(of_kubelet, ["Pulling", "Pulled", "Created", "Started"]);
    nodes.delete_pod("web").await;
    nodes.until(|| async { nodes.pods().await.is_empty().then_some(()) }).await;
}

#[tokio::test]
async fn a_short_command_ends_and_its_log_stays() {
    let nodes = Nodes::start(1).await;
    nodes.create_pod("once", busybox("echo hello; echo $HOSTNAME; exit 3")).await;
    let pod = nodes.pod_when("once", |pod| pod["status"]["phase"] == "Failed").await;
    let ended = &pod["status"]["containerStatuses"][0]["state"]["terminated"];
    assert_eq!((&ended["exitCode"], &ended["reason"]), (&json!(3), &json!("Error")));
    assert_eq!(condition(&pod, "Ready")["reason"], "PodFailed");
    assert_eq!(log(&nodes, "once", "").await, (200, "hello\nonce\n".into()));
    assert_eq!(log(&nodes, "once", "?tailLines=1").await, (200, "once\n".into()));
    assert_eq!(log(&nodes, "once", "?follow=true").await, (200, "hello\nonce\n".into()));
    let (code, text) = log(&nodes, "once", "?previous=true").await;
    let said: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(code, 400);
    assert_eq!(said["message"], r#"previous terminated container "main" in pod "once" not found"#);
}

#[tokio::test]
async fn an_image_that_is_not_there_keeps_a_pod_pending() {
    let nodes = Nodes::start(1).await;
    let spec = json!({"containers": [{"name": "app", "image": "nginx:does-not-exist"}]});
    nodes.create_pod("web", spec).await;
    let waits = |reason: &'static str| {
        move |pod: &Value| pod["status"]["containerStatuses"][0]["state"]["waiting"]["reason"] == reason
    };
    let pod = nodes.pod_when("web", waits("ErrImagePull")).await;
    assert_eq!(pod["status"]["phase"], "Pending");
    assert_eq!(condition(&pod, "Ready")["message"], "containers with unready status: [app]");
    let (_, text) = log(&nodes, "web", "").await;
    assert!(
        text.contains(r#"container \"app\" in pod \"web\" is waiting to start: image can't be pulled"#),
        "{text}"
    );
    nodes.pod_when("web", waits("ImagePullBackOff")).await;
    nodes.delete_pod("web").await;
    nodes.until(|| async { nodes.pods().await.is_empty().then_some(()) }).await;
}

#[tokio::test]
async fn a_pod_is_told_of_secrets_for_registries_that_are_not_there() {
    let nodes = Nodes::start(1).await;
    let secret = json!({"metadata": {"name": "there"}, "type": "kubernetes.io/dockerconfigjson",
        "stringData": {".dockerconfigjson": "{\"auths\": {}}"}});
    nodes.client.create(&SECRETS, "default", secret).await.unwrap();
    let mut spec = nginx();
    spec["imagePullSecrets"] = json!([{"name": "there"}, {"name": "gone"}, {"name": "lost"}]);
    nodes.create_pod("web", spec).await;
    nodes.pod_when("web", is_ready).await;
    let told = nodes.until(|| async {
        let events = nodes.events("web").await;
        events.into_iter().find(|(reason, _)| reason == "FailedToRetrieveImagePullSecret")
    });
    let why = "Unable to retrieve some image pull secrets (gone, lost); attempting to pull the image may not succeed.";
    assert_eq!(told.await.1, why);
}

#[tokio::test]
async fn a_kubelet_that_comes_back_finds_its_pods_running() {
    let nodes = Nodes::start(1).await;
    nodes.create_pod("web", nginx()).await;
    let before = nodes.pod_when("web", is_ready).await;
    nodes.stop_kubelet("node-1");
    nodes.create_pod("late", nginx()).await;
    nodes.start_kubelet(NodeConfig::numbered(1)).await;
    nodes.pod_when("late", is_ready).await;
    let after = nodes.pod_when("web", is_ready).await;
    assert_eq!(before["status"]["containerStatuses"], after["status"]["containerStatuses"]);
    assert_eq!(before["status"]["podIP"], after["status"]["podIP"]);
    let late = nodes.pod_when("late", is_ready).await;
    assert_ne!(late["status"]["podIP"], after["status"]["podIP"]);
}

#[tokio::test]
async fn a_condition_that_somebody_else_writes_over_is_put_back() {
    let nodes = Nodes::start(1).await;
    nodes.create_pod("web", nginx()).await;
    nodes.pod_when("web", is_ready).await;
    let other = json!({"status": {"conditions": [{"type": "Ready", "status": "False"}]}});
    let patch = kubarium::apimachinery::options::PatchType::StrategicMerge;
    let kind = &kubarium::apis::core::pod::PODS;
    let written = nodes.client.patch_status(kind, "default", "web", patch, &other).await.unwrap();
    assert!(!is_ready(&written.to_value()));
    nodes.pod_when("web", is_ready).await;
}

#[tokio::test]
async fn a_pod_that_is_removed_by_force_leaves_its_address() {
    let nodes = Nodes::start(1).await;
    let mut spec = nginx();
    spec["readinessGates"] = json!([{"conditionType": "example.com/gate"}]);
    nodes.create_pod("gated", spec).await;
    let closed = |pod: &Value| condition(pod, "Ready")["reason"] == "ReadinessGatesNotReady";
    let pod = nodes.pod_when("gated", closed).await;
    let gate = json!({"status": {"conditions": [{"type": "example.com/gate", "status": "True"}]}});
    let patch = kubarium::apimachinery::options::PatchType::StrategicMerge;
    let kind = &kubarium::apis::core::pod::PODS;
    nodes.client.patch_status(kind, "default", "gated", patch, &gate).await.unwrap();
    let opened = nodes.pod_when("gated", is_ready).await;
    assert!(condition(&opened, "Ready")["reason"].is_null(), "{opened}");
    assert_eq!(pod["status"]["podIP"], opened["status"]["podIP"]);
    let now = kubarium::apimachinery::options::DeleteOptions {
        grace_period_seconds: Some(0),
        ..Default::default()
    };
    nodes.client.delete(kind, "default", "gated", &now).await.unwrap();
    assert!(nodes.pods().await.is_empty());
}

/// Code and body of `GET pods/NAME/log`.
async fn log(nodes: &Nodes, pod: &str, query: &str) -> (u16, String) {
    let path = format!("/api/v1/namespaces/default/pods/{pod}/log{query}");
    let response = nodes.client.raw(http::Request::get(path).body(Body::empty()).unwrap()).await;
    let (parts, body) = response.into_parts();
    let bytes = body.collect().await.unwrap().to_bytes();
    (parts.status.as_u16(), String::from_utf8_lossy(&bytes).into_owned())
}

/// A Secret with a login for `registry.example.com`.
async fn login(nodes: &Nodes, name: &str, user: &str, password: &str) {
    let config = json!({"auths": {"registry.example.com": {"username": user, "password": password}}});
    let secret = json!({"metadata": {"name": name}, "type": "kubernetes.io/dockerconfigjson",
        "stringData": {".dockerconfigjson": config.to_string()}});
    nodes.client.create(&SECRETS, "default", secret).await.unwrap();
}

#[tokio::test]
async fn a_private_registry_gives_its_images_to_whom_it_knows() {
    let nodes = Nodes::start(0).await;
    let mut config = NodeConfig::numbered(1);
    config.options.private_registries = "registry.example.com=alice:secret".parse().unwrap();
    nodes.start_kubelet(config).await;
    let app = |secrets: Value| {
        json!({"containers": [{"name": "app", "image": "registry.example.com/team/app:1"}],
            "imagePullSecrets": secrets})
    };
    let says = |words: &'static str| {
        move |pod: &Value| {
            let waiting = &pod["status"]["containerStatuses"][0]["state"]["waiting"];
            waiting["reason"] == "ErrImagePull" && waiting["message"].as_str().unwrap().ends_with(words)
        }
    };
    login(&nodes, "wrong", "alice", "guess").await;
    nodes.create_pod("anonymous", app(json!([]))).await;
    nodes.create_pod("stranger", app(json!([{"name": "wrong"}]))).await;
    nodes.create_pod("late", app(json!([{"name": "wrong"}, {"name": "right"}]))).await;
    nodes.pod_when("anonymous", says("authorization failed: no basic auth credentials")).await;
    let unauthorized = "https://registry.example.com/v2/team/app/manifests/1: 401 Unauthorized";
    nodes.pod_when("stranger", says(unauthorized)).await;
    nodes.pod_when("late", says(unauthorized)).await;
    login(&nodes, "right", "alice", "secret").await;
    nodes.pod_when("late", is_ready).await;
    nodes.create_pod("other", app(json!([]))).await;
    nodes.pod_when("other", says("no basic auth credentials")).await;
    let mut never = app(json!([]));
    never["containers"][0]["imagePullPolicy"] = "Never".into();
    nodes.create_pod("never", never).await;
    let refused = nodes.pod_when("never", |pod| {
        pod["status"]["containerStatuses"][0]["state"]["waiting"]["reason"] == "ErrImageNeverPull"
    });
    let message = "Container image \"registry.example.com/team/app:1\" is present with pull policy of Never but \
                   does not have the proper credentials to access the image";
    let refused = refused.await;
    assert_eq!(refused["status"]["containerStatuses"][0]["state"]["waiting"]["message"], message);
}
