//! Static pods, and the mirror pods that tell of them.

use std::time::Duration;

use kubarium::kinds::PODS;
use kubarium::{Clock, Cluster, Config, DeleteOptions, Entropy, NodeGroup};
use serde_json::{Value, json};

async fn start(config: Config) -> Cluster {
    let clock = Clock::stepped("2026-01-01T00:00:00Z".parse().unwrap());
    let cluster = Cluster::start(config.clock(clock).entropy(Entropy::seeded(7))).await.unwrap();
    pass(&cluster, 15).await;
    cluster
}

async fn pass(cluster: &Cluster, seconds: u64) {
    cluster.pass(Duration::from_secs(seconds)).await.unwrap();
    cluster.settled().await.unwrap();
}

async fn pod(cluster: &Cluster, namespace: &str, name: &str) -> Option<Value> {
    Some(cluster.client().get(&PODS, namespace, name).await.ok()?.to_value())
}

fn is_running(pod: &Value) -> bool {
    pod["status"]["phase"] == "Running"
}

#[tokio::test]
async fn a_static_pod_of_a_node_has_a_mirror_that_comes_back() {
    let groups = NodeGroup::read(
        "nodes: [{name: control-plane, staticPods: [{apiVersion: v1, kind: Pod, metadata: {name: etcd, namespace: kube-system},
          spec: {containers: [{name: etcd, image: etcd}]}}]}]",
    );
    let cluster = start(Config::new().nodes(0).node_groups(groups.unwrap())).await;
    let first = pod(&cluster, "kube-system", "etcd-control-plane").await.unwrap();
    assert!(is_running(&first), "{first}");
    let annotations = &first["metadata"]["annotations"];
    assert_eq!(annotations["kubernetes.io/config.source"], "file");
    assert_eq!(annotations["kubernetes.io/config.mirror"], annotations["kubernetes.io/config.hash"]);
    let owner = &first["metadata"]["ownerReferences"][0];
    assert_eq!((&owner["kind"], &owner["name"]), (&json!("Node"), &json!("control-plane")));
    let options = DeleteOptions::default();
    cluster.client().delete(&PODS, "kube-system", "etcd-control-plane", &options).await.unwrap();
    pass(&cluster, 60).await;
    let second = pod(&cluster, "kube-system", "etcd-control-plane").await.unwrap();
    assert!(is_running(&second) && second["metadata"]["uid"] != first["metadata"]["uid"], "{second}");
    // A kubelet that starts again finds it.
    cluster.stop_component("kubelet/control-plane").unwrap();
    cluster.start_component("kubelet/control-plane").unwrap();
    pass(&cluster, 30).await;
    let third = pod(&cluster, "kube-system", "etcd-control-plane").await.unwrap();
    assert_eq!(third["metadata"]["uid"], second["metadata"]["uid"]);
    cluster.stop().await;
}

#[tokio::test]
async fn what_is_in_the_folder_runs_and_what_leaves_it_ends() {
    let folder = tempfile::tempdir().unwrap();
    let write = |image: &str| {
        let text = format!(
            "{{apiVersion: v1, kind: Pod, metadata: {{name: web}}, spec: {{containers: [{{name: c, image: {image}}}]}}}}"
        );
        std::fs::write(folder.path().join("web.yaml"), text).unwrap();
    };
    write("nginx:1");
    let mut config = Config::new().nodes(1);
    config.kubelet.pod_manifest_path = Some(folder.path().to_owned());
    let cluster = start(config).await;
    let image = async || {
        Some(pod(&cluster, "default", "web-node-1").await?["spec"]["containers"][0]["image"].clone())
    };
    assert_eq!(image().await, Some(json!("nginx:1")));
    write("nginx:2");
    pass(&cluster, 60).await;
    assert_eq!(image().await, Some(json!("nginx:2")));
    std::fs::remove_file(folder.path().join("web.yaml")).unwrap();
    pass(&cluster, 60).await;
    assert_eq!(image().await, None);
    cluster.stop().await;
}
