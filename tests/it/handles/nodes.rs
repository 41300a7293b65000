//! Nodes as data: in groups from the start, added while the cluster runs, created by users as objects, and
//! what their kubelets are told.

use std::time::Duration;

use kubarium::apimachinery::time::Time;
use kubarium::apis::coordination::lease::LEASES;
use kubarium::cluster::Settle;
use kubarium::kinds::{NODES, PODS};
use kubarium::{Clock, Cluster, Config, DeleteOptions, Entropy, NodeGroup, PatchType};
use serde_json::{Value, json};

use super::ask;

const ROOT: &str = "/kubarium/v1/nodes";

async fn settled(cluster: &Cluster) {
    cluster.settle(Settle::new()).await.unwrap();
}

async fn node(cluster: &Cluster, name: &str) -> Value {
    cluster.client().get(&NODES, "", name).await.unwrap().to_value()
}

fn condition<'a>(node: &'a Value, name: &str) -> &'a Value {
    let all = node["status"]["conditions"].as_array().unwrap();
    all.iter().find(|condition| condition["type"] == name).unwrap_or(&Value::Null)
}

fn stepped() -> Config {
    let clock = Clock::stepped("2026-01-01T00:00:00Z".parse().unwrap());
    Config::new().clock(clock).entropy(Entropy::seeded(7))
}

#[tokio::test]
async fn nodes_of_a_group_are_as_the_group_says() {
    let groups = NodeGroup::read(
        "nodes: [{name: gpu, count: 2, zones: [a, b], roles: [worker], taints: ['gpu=yes:NoSchedule'],
          capacity: {nvidia.com/gpu: 8}, architecture: arm64, kubeletVersion: v1.35.1, images: [nginx]}]",
    );
    let cluster = Cluster::start(stepped().nodes(0).node_groups(groups.unwrap())).await.unwrap();
    settled(&cluster).await;
    let second = node(&cluster, "gpu-2").await;
    let labels = &second["metadata"]["labels"];
    assert_eq!(labels["topology.kubernetes.io/zone"], "b");
    assert_eq!(labels["node-role.kubernetes.io/worker"], "");
    assert_eq!(second["status"]["capacity"]["nvidia.com/gpu"], "8");
    assert_eq!(second["status"]["nodeInfo"]["kubeletVersion"], "v1.35.1");
    assert_eq!(second["status"]["nodeInfo"]["architecture"], "arm64");
    assert_eq!(second["status"]["images"][0]["names"][0], "docker.io/library/nginx:latest");
    assert_eq!(second["spec"]["taints"], json!([{"key": "gpu", "value": "yes", "effect": "NoSchedule"}]));
    cluster.stop().await;
}

/// As those of the apiserver, with the words of the process that they share.
#[tokio::test]
async fn the_debug_pages_of_a_kubelet_are_reached_through_its_node() {
    let cluster = Cluster::start(Config::new().nodes(1)).await.unwrap();
    let debug = "/api/v1/nodes/node-1/proxy/debug";
    for (method, path, body, code) in [
        ("GET", "pprof/", Value::Null, 200),
        ("GET", "pprof/goroutine?debug=1", Value::Null, 200),
        ("GET", "pprof/heap", Value::Null, 200),
        ("GET", "pprof/trace", Value::Null, 501),
        ("GET", "pprof/nothing", Value::Null, 404),
        ("GET", "flags/v", Value::Null, 406),
        // The log of a test is not the cluster's to set.
        ("PUT", "flags/v", json!(2), 400),
        ("PUT", "flags/v", json!("x"), 400),
        ("GET", "nothing", Value::Null, 404),
        ("GET", "flags", Value::Null, 404),
        ("POST", "pprof/", Value::Null, 405),
    ] {
        let (answered, said) = ask(&cluster, "", method, &format!("{debug}/{path}"), body).await;
        assert_eq!(answered, code, "{method} {path}: {said}");
    }
    let request = http::Request::get(format!("{debug}/pprof")).body(axum::body::Body::empty()).unwrap();
    let moved = tower::ServiceExt::oneshot(cluster.service(), request).await.unwrap();
    assert_eq!(moved.headers()["location"], format!("{debug}/pprof/"), "and not to the apiserver's own");
    let (code, _) = ask(&cluster, "jane", "GET", &format!("{debug}/pprof/"), Value::Null).await;
    assert_eq!(code, 403, "who may not ask the kubelet is told nothing");
    cluster.stop().await;
    let mut config = Config::new().nodes(1);
    config.apiserver.debugging.is_profiled = false;
    let cluster = Cluster::start(config).await.unwrap();
    let (code, _) = ask(&cluster, "", "GET", &format!("{debug}/pprof/cmdline"), Value::Null).await;
    assert_eq!(code, 404, "with --profiling=false the process tells nothing, whoever is asked");
    cluster.stop().await;
}

#[tokio::test]
async fn a_node_whose_clock_is_wrong_says_what_its_clock_says() {
    let groups = NodeGroup::read("nodes: [{name: late, clockSkew: -1h}, {name: right}]").unwrap();
    let cluster = Cluster::start(stepped().nodes(0).node_groups(groups)).await.unwrap();
    settled(&cluster).await;
    let now = cluster.clock().now();
    for (name, skew) in [("late", 60), ("right", 0)] {
        let node = node(&cluster, name).await;
        let heartbeat: Time =
            condition(&node, "Ready")["lastHeartbeatTime"].as_str().unwrap().parse().unwrap();
        assert_eq!((now - heartbeat).num_minutes(), skew, "{name}");
        let lease = cluster.client().get(&LEASES, "kube-node-lease", name).await.unwrap().to_value();
        let renewed: Time = lease["spec"]["renewTime"].as_str().unwrap().parse().unwrap();
        assert_eq!((now - renewed).num_minutes(), skew, "{name}");
    }
    cluster.stop().await;
}

#[tokio::test]
async fn a_node_that_a_user_creates_has_a_kubelet_until_it_is_deleted() {
    let cluster = Cluster::start(stepped()).await.unwrap();
    let annotations = json!({"kwok.x-k8s.io/node": "fake"});
    let status = json!({"capacity": {"cpu": "2", "memory": "4Gi", "pods": "10"}});
    let made = json!({"metadata": {"name": "mine", "annotations": annotations}, "status": status});
    cluster.client().create(&NODES, "", made).await.unwrap();
    settled(&cluster).await;
    let mine = node(&cluster, "mine").await;
    assert_eq!(condition(&mine, "Ready")["status"], "True");
    assert_eq!(mine["status"]["capacity"]["cpu"], "2");
    let spec = json!({"nodeName": "mine", "containers": [{"name": "c", "image": "nginx"}]});
    let pod = json!({"metadata": {"name": "p"}, "spec": spec});
    cluster.client().create(&PODS, "default", pod).await.unwrap();
    settled(&cluster).await;
    cluster.pass(Duration::from_secs(10)).await.unwrap();
    let pod = cluster.client().get(&PODS, "default", "p").await.unwrap().to_value();
    assert_eq!(pod["status"]["phase"], "Running");
    // A fork has it, too.
    let fork = cluster.fork().await.unwrap();
    assert!(fork.node_names().contains(&"mine".to_owned()));
    fork.stop().await;
    cluster.client().delete(&NODES, "", "mine", &DeleteOptions::default()).await.unwrap();
    settled(&cluster).await;
    assert_eq!(cluster.node_names(), ["node-1"]);
    cluster.stop().await;
}

#[tokio::test]
async fn nodes_are_added_stopped_unwell_and_removed_over_http() {
    let cluster = Cluster::start(stepped()).await.unwrap();
    let (code, added) = ask(&cluster, "", "POST", ROOT, json!({"name": "late", "count": 2})).await;
    assert_eq!((code, &added["added"]), (200, &json!(["late-1", "late-2"])), "{added}");
    let taken = ask(&cluster, "", "POST", ROOT, json!({"name": "late-1"})).await;
    assert!(taken.0 == 400 && taken.1["message"].as_str().unwrap().contains("already"), "{taken:?}");
    let many = ask(&cluster, "", "POST", ROOT, json!({"name": "n", "count": 1_000_000})).await;
    assert!(many.1["message"].as_str().unwrap().contains("a cluster takes 3000"), "{many:?}");

    let late = format!("{ROOT}/late-1");
    let unwell = json!({"type": "DiskPressure"});
    let said = ask(&cluster, "", "POST", &format!("{late}/conditions"), unwell).await;
    assert_eq!(said.0, 200, "{said:?}");
    settled(&cluster).await;
    let full = node(&cluster, "late-1").await;
    assert_eq!(condition(&full, "DiskPressure")["reason"], "KubeletHasDiskPressure");
    assert_eq!(full["spec"]["taints"][0]["key"], "node.kubernetes.io/disk-pressure");
    ask(&cluster, "", "DELETE", &format!("{late}/conditions?type=DiskPressure"), Value::Null).await;
    settled(&cluster).await;
    let well = node(&cluster, "late-1").await;
    assert_eq!(
        (condition(&well, "DiskPressure")["status"].as_str(), &well["spec"]["taints"]),
        (Some("False"), &Value::Null)
    );

    assert_eq!(ask(&cluster, "", "POST", &format!("{late}/stop"), Value::Null).await.0, 200);
    let (_, list) = ask(&cluster, "", "GET", ROOT, Value::Null).await;
    assert_eq!(list["nodes"][0], json!({"name": "late-1", "simulated": true, "running": false}));
    let stopped = ask(&cluster, "", "POST", &format!("{late}/conditions"), json!({"type": "Ready"})).await;
    assert_eq!(stopped.0, 409, "{stopped:?}");
    cluster.pass(Duration::from_secs(70)).await.unwrap();
    assert_eq!(condition(&node(&cluster, "late-1").await, "Ready")["status"], "Unknown");
    ask(&cluster, "", "POST", &format!("{late}/start"), Value::Null).await;
    settled(&cluster).await;
    assert_eq!(condition(&node(&cluster, "late-1").await, "Ready")["status"], "True");

    assert_eq!(ask(&cluster, "", "DELETE", &late, Value::Null).await.0, 200);
    assert_eq!(ask(&cluster, "", "DELETE", &late, Value::Null).await.0, 404);
    assert!(cluster.client().get(&NODES, "", "late-1").await.is_err());
    assert_eq!(cluster.node_names(), ["late-2", "node-1"]);
    cluster.stop().await;
}

#[tokio::test]
async fn a_kubelet_that_starts_again_leaves_the_labels_of_others() {
    let groups = NodeGroup::read("nodes: [{name: gpu, zones: [a], roles: [worker], labels: {team: red}}]");
    let cluster = Cluster::start(stepped().nodes(0).node_groups(groups.unwrap())).await.unwrap();
    settled(&cluster).await;
    let labels = json!({"metadata": {"labels": {"team": "blue", "topology.kubernetes.io/zone": "b",
        "node-role.kubernetes.io/worker": null}}});
    cluster.client().patch(&NODES, "", "gpu", PatchType::Merge, &labels).await.unwrap();
    for what in ["stop", "start"] {
        assert_eq!(ask(&cluster, "", "POST", &format!("{ROOT}/gpu/{what}"), Value::Null).await.0, 200);
        settled(&cluster).await;
    }
    cluster.pass(Duration::from_secs(1)).await.unwrap();
    settled(&cluster).await;
    let labels = node(&cluster, "gpu").await["metadata"]["labels"].clone();
    assert_eq!((&labels["team"], &labels["topology.kubernetes.io/zone"]), (&json!("blue"), &json!("a")));
    assert!(labels["node-role.kubernetes.io/worker"].is_null(), "{labels}");
    cluster.stop().await;
}

#[tokio::test]
async fn nodes_keep_their_addresses_whatever_others_there_are() {
    let cluster =
        Cluster::start(stepped().node_groups([NodeGroup { name: "gpu".into(), ..NodeGroup::default() }]))
            .await
            .unwrap();
    settled(&cluster).await;
    let range = |node: Value| node["spec"]["podCIDR"].as_str().unwrap().to_owned();
    assert_eq!(range(node(&cluster, "gpu").await), "10.244.2.0/24");
    cluster.remove_node("node-1").await.unwrap();
    // What was removed is not there in a fork, either.
    let fork = cluster.fork().await.unwrap();
    assert_eq!(fork.node_names(), ["gpu"]);
    fork.stop().await;
    let snapshot = cluster.snapshot().unwrap();
    cluster.stop().await;
    let again = Cluster::start(stepped().snapshot(snapshot).nodes(1)).await.unwrap();
    let more = NodeGroup { name: "late".into(), count: Some(2), ..NodeGroup::default() };
    again.add_nodes(&more).await.unwrap();
    let ranges = [range(node(&again, "late-1").await), range(node(&again, "late-2").await)];
    assert!(!ranges.contains(&"10.244.2.0/24".to_owned()), "{ranges:?}");
    again.stop().await;
}
