//! Nodes that fail: under pressure, started again, switched off; and pods that end in order.

use std::time::Duration;

use kubarium::cluster::Settle;
use kubarium::kinds::{EVENTS, NODES, PODS};
use kubarium::{Clock, Cluster, Config, DeleteOptions, Entropy, ListOptions};
use serde_json::{Value, json};

use super::ask;

async fn cluster() -> Cluster {
    let clock = Clock::stepped("2026-01-01T00:00:00Z".parse().unwrap());
    Cluster::start(Config::new().clock(clock).entropy(Entropy::seeded(7))).await.unwrap()
}

async fn pass(cluster: &Cluster, seconds: u64) {
    cluster.settle(Settle::new()).await.unwrap();
    cluster.pass(Duration::from_secs(seconds)).await.unwrap();
    cluster.settle(Settle::new()).await.unwrap();
}

async fn run(cluster: &Cluster, name: &str, spec: Value) {
    let mut spec = spec;
    spec["nodeName"] = "node-1".into();
    let pod = json!({"metadata": {"name": name}, "spec": spec});
    cluster.client().create(&PODS, "default", pod).await.unwrap();
    pass(cluster, 15).await;
}

fn nginx() -> Value {
    json!({"containers": [{"name": "c", "image": "nginx"}]})
}

async fn pod(cluster: &Cluster, name: &str) -> Value {
    cluster.client().get(&PODS, "default", name).await.unwrap().to_value()
}

async fn node(cluster: &Cluster) -> Value {
    cluster.client().get(&NODES, "", "node-1").await.unwrap().to_value()
}

async fn reasons(cluster: &Cluster) -> Vec<String> {
    let events = cluster.client().list(&EVENTS, "", &ListOptions::default()).await.unwrap();
    let reason = |event: &Value| event["reason"].as_str().unwrap_or_default().to_owned();
    events.items.iter().map(|event| reason(&event.to_value())).collect()
}

fn condition<'a>(object: &'a Value, name: &str) -> &'a Value {
    let all = object["status"]["conditions"].as_array().unwrap();
    all.iter().find(|condition| condition["type"] == name).unwrap_or(&Value::Null)
}

async fn tell(cluster: &Cluster, path: &str, body: Value) {
    let (code, answer) = ask(cluster, "", "POST", &format!("/kubarium/v1/nodes/node-1/{path}"), body).await;
    assert_eq!(code, 200, "{answer}");
}

#[tokio::test]
async fn a_full_disk_drives_pods_out_and_lets_none_in() {
    let cluster = cluster().await;
    run(&cluster, "here", nginx()).await;
    tell(&cluster, "conditions", json!({"type": "DiskPressure"})).await;
    pass(&cluster, 12).await;
    let here = pod(&cluster, "here").await;
    assert_eq!((&here["status"]["phase"], &here["status"]["reason"]), (&json!("Failed"), &json!("Evicted")));
    assert_eq!(here["status"]["message"], "The node was low on resource: ephemeral-storage. ");
    assert_eq!(condition(&here, "DisruptionTarget")["reason"], "TerminationByKubelet");
    let story = cluster.flow().trace("pods", "default", "here").story();
    let evicted = "pod default/here was evicted: The node was low on resource: ephemeral-storage.";
    assert!(story.standing.iter().any(|line| line == evicted), "{:?}", story.standing);
    let is_told = |words: &str| story.stages.iter().find(|stage| stage.words.contains(words)).unwrap();
    let told = is_told("kubelet warns of here: Evicted: The node was low on resource: ephemeral-storage.");
    assert_eq!(is_told("ends with exit code").cause, Some(told.number), "{:?}", story.stages);
    run(&cluster, "late", nginx()).await;
    let late = pod(&cluster, "late").await;
    assert_eq!(late["status"]["message"], "Pod was rejected: The node had condition: [DiskPressure]. ");
    let reasons = reasons(&cluster).await;
    for reason in ["NodeHasDiskPressure", "EvictionThresholdMet", "Evicted"] {
        assert!(reasons.iter().any(|it| it == reason), "{reason}: {reasons:?}");
    }
    cluster.stop().await;
}

#[tokio::test]
async fn a_reboot_is_told_and_pods_run_again() {
    let cluster = cluster().await;
    run(&cluster, "web", nginx()).await;
    run(&cluster, "once", json!({"restartPolicy": "Never", "containers": [{"name": "c", "image": "nginx"}]}))
        .await;
    let before = node(&cluster).await["status"]["nodeInfo"]["bootID"].clone();
    tell(&cluster, "reboot", Value::Null).await;
    pass(&cluster, 30).await;
    assert_ne!(node(&cluster).await["status"]["nodeInfo"]["bootID"], before);
    let web = pod(&cluster, "web").await;
    let status = &web["status"]["containerStatuses"][0];
    assert_eq!((&web["status"]["phase"], &status["restartCount"]), (&json!("Running"), &json!(1)), "{web}");
    assert_eq!(status["lastState"]["terminated"]["exitCode"], 255);
    let once = pod(&cluster, "once").await;
    assert_eq!(once["status"]["phase"], "Failed", "{once}");
    let reasons = reasons(&cluster).await;
    for reason in ["Rebooted", "SandboxChanged"] {
        assert!(reasons.iter().any(|it| it == reason), "{reason}: {reasons:?}");
    }
    cluster.stop().await;
}

#[tokio::test]
async fn a_node_that_is_shut_down_ends_its_pods_and_comes_back() {
    let cluster = cluster().await;
    run(&cluster, "web", nginx()).await;
    tell(&cluster, "shutdown", json!({"gracePeriod": "30s", "criticalGracePeriod": "10s"})).await;
    pass(&cluster, 1).await;
    let ready = condition(&node(&cluster).await, "Ready").clone();
    assert_eq!((&ready["status"], &ready["message"]), (&json!("False"), &json!("node is shutting down")));
    pass(&cluster, 31).await;
    let web = pod(&cluster, "web").await;
    assert_eq!((&web["status"]["phase"], &web["status"]["reason"]), (&json!("Failed"), &json!("Terminated")));
    let message = "Pod was terminated in response to imminent node shutdown.";
    assert_eq!(web["status"]["message"], message);
    tell(&cluster, "start", Value::Null).await;
    pass(&cluster, 5).await;
    assert_eq!(condition(&node(&cluster).await, "Ready")["status"], "True");
    assert!(reasons(&cluster).await.iter().any(|reason| reason == "Shutdown"));
    cluster.stop().await;
}

#[tokio::test]
async fn sidecars_end_in_reverse_order_one_after_the_other() {
    let cluster = cluster().await;
    let lifecycle = json!({"preStop": {"sleep": {"seconds": 4}}});
    let sidecar = |name: &str| json!({"name": name, "image": "nginx", "restartPolicy": "Always", "lifecycle": lifecycle});
    let containers = json!([{"name": "c", "image": "nginx"}]);
    let spec = json!({"initContainers": [sidecar("first"), sidecar("second")], "containers": containers});
    run(&cluster, "web", spec).await;
    cluster.client().delete(&PODS, "default", "web", &DeleteOptions::default()).await.unwrap();
    pass(&cluster, 6).await;
    let web = pod(&cluster, "web").await;
    let states = web["status"]["initContainerStatuses"].clone();
    assert!(states[0]["state"]["running"].is_object(), "{states}");
    assert!(states[1]["state"]["terminated"].is_object(), "{states}");
    pass(&cluster, 6).await;
    assert!(cluster.client().get(&PODS, "default", "web").await.is_err());
    cluster.stop().await;
}

#[tokio::test]
async fn an_init_container_that_is_never_restarted_is_no_sidecar() {
    let cluster = cluster().await;
    let init =
        json!([{"name": "i", "image": "busybox", "command": ["sleep", "60"], "restartPolicy": "Never"}]);
    let containers = json!([{"name": "c", "image": "nginx"}]);
    run(&cluster, "web", json!({"initContainers": init, "containers": containers})).await;
    assert_eq!(pod(&cluster, "web").await["status"]["phase"], "Pending");
    pass(&cluster, 60).await;
    assert_eq!(pod(&cluster, "web").await["status"]["phase"], "Running");
    cluster.stop().await;
}

#[tokio::test]
async fn nobody_runs_as_root_who_may_not() {
    let cluster = cluster().await;
    let mut spec = nginx();
    spec["securityContext"] = json!({"runAsNonRoot": true});
    run(&cluster, "root", spec.clone()).await;
    let root = pod(&cluster, "root").await;
    let waiting = &root["status"]["containerStatuses"][0]["state"]["waiting"];
    assert_eq!(waiting["reason"], "CreateContainerConfigError");
    let message = waiting["message"].as_str().unwrap();
    assert!(
        message.starts_with("container has runAsNonRoot and image will run as root (pod: \"root_default(")
    );
    spec["securityContext"]["runAsUser"] = 1000.into();
    run(&cluster, "user", spec).await;
    let user = pod(&cluster, "user").await;
    let status = &user["status"]["containerStatuses"][0];
    assert_eq!(status["user"]["linux"], json!({"uid": 1000, "gid": 0, "supplementalGroups": [0]}));
    cluster.stop().await;
}

#[tokio::test]
async fn a_shutdown_that_is_overtaken_by_a_start_does_nothing_more() {
    let cluster = cluster().await;
    let sleeps = json!({"preStop": {"sleep": {"seconds": 20}}});
    run(&cluster, "web", json!({"containers": [{"name": "c", "image": "nginx", "lifecycle": sleeps}]})).await;
    tell(&cluster, "shutdown", json!({"gracePeriod": "30s"})).await;
    pass(&cluster, 1).await;
    tell(&cluster, "start", Value::Null).await;
    pass(&cluster, 60).await;
    assert_eq!(condition(&node(&cluster).await, "Ready")["status"], "True");
    cluster.kubelet("node-1").unwrap();
    // Without any grace it is off when that is answered: what follows finds it so.
    tell(&cluster, "shutdown", json!({})).await;
    assert!(cluster.kubelet("node-1").is_err());
    tell(&cluster, "start", Value::Null).await;
    cluster.kubelet("node-1").unwrap();
    cluster.stop().await;
}

#[tokio::test]
async fn a_report_that_failed_is_made_up_for() {
    let cluster = cluster().await;
    pass(&cluster, 1).await;
    let rule = json!({"users": ["system:node:node-1"], "verbs": ["write"], "resources": ["nodes/status"],
        "answer": {"code": 500}});
    let (code, fault) = ask(&cluster, "", "POST", "/kubarium/v1/faults", rule).await;
    assert_eq!(code, 200, "{fault}");
    tell(&cluster, "conditions", json!({"type": "DiskPressure"})).await;
    pass(&cluster, 1).await;
    assert_eq!(condition(&node(&cluster).await, "DiskPressure")["status"], "False");
    let name = fault["name"].as_str().unwrap();
    let removed = ask(&cluster, "", "DELETE", &format!("/kubarium/v1/faults/{name}"), Value::Null).await;
    assert!(removed.0 == 200 && removed.1["hits"] != 0, "{removed:?}");
    pass(&cluster, 25).await;
    assert_eq!(condition(&node(&cluster).await, "DiskPressure")["status"], "True");
    cluster.stop().await;
}

#[tokio::test]
async fn why_a_pod_ends_is_told_when_it_has_ended() {
    let cluster = cluster().await;
    let ignores = json!(["sh", "-c", "trap '' TERM; while true; do sleep 1; done"]);
    let containers = json!([{"name": "c", "image": "busybox", "command": ignores}]);
    let spec = json!({"terminationGracePeriodSeconds": 60, "containers": containers});
    run(&cluster, "web", spec).await;
    tell(&cluster, "shutdown", json!({"gracePeriod": "12s", "criticalGracePeriod": "5s"})).await;
    pass(&cluster, 3).await;
    let web = pod(&cluster, "web").await;
    let status = &web["status"];
    assert_eq!(
        (&status["phase"], &status["reason"], &status["message"]),
        (&json!("Running"), &Value::Null, &Value::Null)
    );
    assert!(condition(&web, "DisruptionTarget").is_null(), "{web}");
    pass(&cluster, 12).await;
    tell(&cluster, "start", Value::Null).await;
    pass(&cluster, 5).await;
    let web = pod(&cluster, "web").await;
    let status = &web["status"];
    assert_eq!((&status["phase"], &status["reason"]), (&json!("Failed"), &json!("Terminated")), "{web}");
    assert_eq!(condition(&web, "DisruptionTarget")["reason"], "TerminationByKubelet");
    assert_eq!(status["containerStatuses"][0]["ready"], false);
    cluster.stop().await;
}

#[tokio::test]
async fn a_pod_waits_for_a_path_of_its_node() {
    let cluster = cluster().await;
    let on = |path_type: &str| {
        let volumes = json!([{"name": "v", "hostPath": {"path": "/data/x", "type": path_type}}]);
        let mounts = json!([{"name": "v", "mountPath": "/x"}]);
        json!({"volumes": volumes, "containers": [{"name": "c", "image": "nginx", "volumeMounts": mounts}]})
    };
    run(&cluster, "waits", on("Directory")).await;
    let waits = pod(&cluster, "waits").await;
    let waiting = &waits["status"]["containerStatuses"][0]["state"]["waiting"];
    assert_eq!(waiting["reason"], "ContainerCreating", "{waits}");
    let events = cluster.client().list(&EVENTS, "default", &ListOptions::default()).await.unwrap();
    let failed =
        events.items.iter().map(|event| event.to_value()).find(|event| event["reason"] == "FailedMount");
    let why =
        "MountVolume.SetUp failed for volume \"v\" : hostPath type check failed: /data/x is not a directory";
    assert_eq!(failed.expect("it is told")["message"], why);
    run(&cluster, "makes", on("DirectoryOrCreate")).await;
    pass(&cluster, 60).await;
    for name in ["makes", "waits"] {
        assert_eq!(pod(&cluster, name).await["status"]["phase"], "Running", "{name}");
    }
    cluster.stop().await;
}
