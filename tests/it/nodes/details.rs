//! Containers that have ended are removed, and their logs with them; resources that plugins give out, and
//! those that others advertise; tokens that are renewed; what kubelets say of nodes that are cordoned, and of
//! names that are too many.

use std::time::Duration;

use http_body_util::BodyExt;
use kubarium::apimachinery::options::PatchType;
use kubarium::cluster::Settle;
use kubarium::kinds::{EVENTS, NODES, PODS};
use kubarium::kubelet::node_group::NodeGroup;
use kubarium::kubelet::options::KubeletOptions;
use kubarium::{Clock, Cluster, Config, Entropy, ListOptions};
use serde_json::{Value, json};

async fn start(config: Config) -> Cluster {
    let clock = Clock::stepped("2026-01-01T00:00:00Z".parse().unwrap());
    Cluster::start(config.clock(clock).entropy(Entropy::seeded(7))).await.unwrap()
}

async fn pass(cluster: &Cluster, seconds: u64) {
    cluster.settle(Settle::new()).await.unwrap();
    cluster.pass(Duration::from_secs(seconds)).await.unwrap();
    cluster.settle(Settle::new()).await.unwrap();
}

async fn run(cluster: &Cluster, name: &str, spec: Value) {
    let pod = json!({"metadata": {"name": name}, "spec": spec});
    cluster.client().create(&PODS, "default", pod).await.unwrap();
    cluster.settle(Settle::new()).await.unwrap();
}

/// Fails once, and then ends well.
fn fails_once() -> Value {
    let script =
        "if [ -e /data/was ]; then echo second; exit 0; fi; echo first; touch /data/was; sleep 5; exit 1";
    let mounts = json!([{"name": "data", "mountPath": "/data"}]);
    let container =
        json!({"name": "c", "image": "busybox", "command": ["sh", "-c", script], "volumeMounts": mounts});
    json!({"restartPolicy": "OnFailure", "containers": [container], "volumes": [{"name": "data", "emptyDir": {}}]})
}

async fn log(cluster: &Cluster, pod: &str, query: &str) -> (u16, String) {
    let path = format!("/api/v1/namespaces/default/pods/{pod}/log{query}");
    let answer = cluster.client().raw(http::Request::get(path).body(Default::default()).unwrap()).await;
    let code = answer.status().as_u16();
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    (code, String::from_utf8(body.to_vec()).unwrap())
}

async fn pod(cluster: &Cluster, name: &str) -> Value {
    cluster.client().get(&PODS, "default", name).await.unwrap().to_value()
}

/// The messages of the events for a reason.
async fn told(cluster: &Cluster, reason: &str) -> Vec<String> {
    let events = cluster.client().list(&EVENTS, "", &ListOptions::default()).await.unwrap();
    let events = events.items.iter().map(|event| event.to_value());
    let own = events.filter(|event| event["reason"] == reason);
    own.map(|event| event["message"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn the_log_of_an_older_run_goes_within_a_minute() {
    let cluster = start(Config::new()).await;
    run(&cluster, "p", fails_once()).await;
    pass(&cluster, 10).await;
    let ended = pod(&cluster, "p").await;
    let status = &ended["status"]["containerStatuses"][0];
    assert_eq!(
        (&ended["status"]["phase"], &status["restartCount"]),
        (&json!("Succeeded"), &json!(1)),
        "{ended}"
    );
    assert_eq!(log(&cluster, "p", "?previous=true").await, (200, "first\n".into()));
    pass(&cluster, 61).await;
    let id = status["lastState"]["terminated"]["containerID"].as_str().unwrap();
    let gone = format!("unable to retrieve container logs for {id}");
    assert_eq!(log(&cluster, "p", "?previous=true").await, (200, gone));
    assert_eq!(log(&cluster, "p", "").await, (200, "second\n".into()));
    // What its status says stays.
    assert_eq!(pod(&cluster, "p").await["status"]["containerStatuses"][0]["lastState"], status["lastState"]);
    cluster.stop().await;
}

/// No time passes between the first run and the second.
#[tokio::test]
async fn runs_that_began_at_one_instant_have_logs_of_their_own() {
    let cluster = start(Config::new()).await;
    let script = "if [ -e /data/was ]; then echo second; sleep 1000; fi; echo first; touch /data/was; exit 1";
    let mounts = json!([{"name": "data", "mountPath": "/data"}]);
    let container =
        json!({"name": "c", "image": "busybox", "command": ["sh", "-c", script], "volumeMounts": mounts});
    run(&cluster, "p", json!({"containers": [container], "volumes": [{"name": "data", "emptyDir": {}}]}))
        .await;
    let status = pod(&cluster, "p").await["status"]["containerStatuses"][0].take();
    let began = [&status["state"]["running"]["startedAt"], &status["lastState"]["terminated"]["startedAt"]];
    assert!(began[0].is_string() && began[0] == began[1], "{status}");
    assert_eq!(log(&cluster, "p", "?previous=true").await, (200, "first\n".into()));
    assert_eq!(log(&cluster, "p", "").await, (200, "second\n".into()));
    cluster.stop().await;
}

#[tokio::test]
async fn so_many_are_kept_as_flags_say() {
    let mut options = KubeletOptions::default();
    options.maximum_dead_containers = 1;
    let cluster = start(Config::new().kubelet(options)).await;
    let spec = |word: &str| json!({"restartPolicy": "Never", "containers": [{"name": "c", "image": "busybox", "command": ["echo", word]}]});
    run(&cluster, "older", spec("one")).await;
    pass(&cluster, 5).await;
    run(&cluster, "newer", spec("two")).await;
    assert_eq!(log(&cluster, "older", "").await, (200, "one\n".into()));
    pass(&cluster, 61).await;
    let (code, text) = log(&cluster, "older", "").await;
    assert!(code == 200 && text.starts_with("unable to retrieve container logs for containerd://"), "{text}");
    assert_eq!(log(&cluster, "newer", "").await, (200, "two\n".into()));
    cluster.stop().await;
}

#[tokio::test]
async fn a_container_says_which_devices_a_plugin_gave_it() {
    let file = "nodes: [{name: gpu, capacity: {example.com/gpu: '3'}}]";
    let cluster = start(Config::new().nodes(0).node_groups(NodeGroup::read(file).unwrap())).await;
    let spec = |count: &str| {
        json!({"terminationGracePeriodSeconds": 0,
            "containers": [{"name": "c", "image": "nginx", "resources": {"limits": {"example.com/gpu": count}}}]})
    };
    let devices = |pod: &Value| pod["status"]["containerStatuses"][0]["allocatedResourcesStatus"].clone();
    run(&cluster, "a", spec("2")).await;
    run(&cluster, "b", spec("1")).await;
    let health = |device: &str, health: &str| json!({"resourceID": device, "health": health});
    let both = json!([health("gpu-0", "Healthy"), health("gpu-1", "Healthy")]);
    assert_eq!(devices(&pod(&cluster, "a").await), json!([{"name": "example.com/gpu", "resources": both}]));
    let last = json!([health("gpu-2", "Healthy")]);
    assert_eq!(devices(&pod(&cluster, "b").await), json!([{"name": "example.com/gpu", "resources": last}]));
    let ill = json!({"metadata": {"annotations": {"kubarium.dev/device-health": "gpu-1=Unhealthy"}}});
    cluster.client().patch(&PODS, "default", "a", PatchType::Merge, &ill).await.unwrap();
    pass(&cluster, 1).await;
    let told = json!([health("gpu-0", "Healthy"), health("gpu-1", "Unhealthy")]);
    assert_eq!(devices(&pod(&cluster, "a").await), json!([{"name": "example.com/gpu", "resources": told}]));
    cluster.stop().await;
}

#[tokio::test]
async fn a_node_that_is_cordoned_says_so() {
    let cluster = start(Config::new()).await;
    for (is_cordoned, reason) in [(true, "NodeNotSchedulable"), (false, "NodeSchedulable")] {
        let patch = json!({"spec": {"unschedulable": is_cordoned}});
        cluster.client().patch(&NODES, "", "node-1", PatchType::Merge, &patch).await.unwrap();
        cluster.settle(Settle::new()).await.unwrap();
        assert_eq!(told(&cluster, reason).await, [format!("Node node-1 status is now: {reason}")]);
    }
    cluster.stop().await;
}

#[tokio::test]
async fn names_are_asked_for_at_three_servers_at_most() {
    let cluster = start(Config::new()).await;
    let dns = json!({"nameservers": ["1.1.1.1", "2.2.2.2", "3.3.3.3"]});
    let container = json!({"name": "c", "image": "busybox", "command": ["cat", "/etc/resolv.conf"]});
    run(&cluster, "p", json!({"restartPolicy": "Never", "dnsConfig": dns, "containers": [container]})).await;
    let why = "Nameserver limits were exceeded, some nameservers have been omitted, the applied nameserver line is: \
        10.96.0.10 1.1.1.1 2.2.2.2";
    assert_eq!(told(&cluster, "DNSConfigForming").await, [why]);
    let (_, text) = log(&cluster, "p", "").await;
    assert!(text.contains("nameserver 2.2.2.2\n") && !text.contains("3.3.3.3"), "{text}");
    cluster.stop().await;
}

#[tokio::test]
async fn a_container_that_fails_again_and_again_waits_as_long_as_is_said() {
    let mut options = KubeletOptions::default();
    options.max_container_restart_period = Duration::from_secs(3);
    let cluster = start(Config::new().kubelet(options)).await;
    run(&cluster, "p", json!({"containers": [{"name": "c", "image": "busybox", "command": ["false"]}]}))
        .await;
    pass(&cluster, 30).await;
    let failing = pod(&cluster, "p").await;
    let status = &failing["status"]["containerStatuses"][0];
    let message = status["state"]["waiting"]["message"].as_str().unwrap();
    assert!(message.starts_with("back-off 3s restarting failed container=c"), "{message}");
    assert!(status["restartCount"].as_i64().unwrap() >= 8, "{status}");
    cluster.stop().await;
}

/// An amount of the first node's, as `capacity` or `allocatable`.
async fn amount(cluster: &Cluster, part: &str, resource: &str) -> Value {
    let node = cluster.client().get(&NODES, "", "node-1").await.unwrap().to_value();
    node["status"][part][resource].clone()
}

/// As somebody advertises an extended resource, who writes into the node's status what it has; a kubelet
/// looks at that when it looks at its status next.
#[tokio::test]
async fn what_others_say_a_node_has_pods_may_use_until_it_is_withdrawn() {
    let cluster = start(Config::new().nodes(1)).await;
    let dongle = "example.com/dongle";
    let say = async |status: Value| {
        let status = json!({"status": status});
        let said = cluster.client().patch_status(&NODES, "", "node-1", PatchType::Merge, &status).await;
        said.unwrap();
        pass(&cluster, 10).await;
    };
    say(json!({"capacity": {dongle: "4"}})).await;
    assert_eq!(amount(&cluster, "allocatable", dongle).await, "4");
    let wants = |count: u32| {
        let resources = json!({"limits": {dongle: count.to_string()}});
        json!({"containers": [{"name": "c", "image": "nginx", "resources": resources}]})
    };
    run(&cluster, "fits", wants(3)).await;
    run(&cluster, "waits", wants(2)).await;
    pass(&cluster, 5).await;
    assert_eq!(pod(&cluster, "fits").await["status"]["phase"], "Running");
    assert_eq!(pod(&cluster, "waits").await["spec"]["nodeName"], Value::Null);
    say(json!({"capacity": {dongle: null}})).await;
    assert_eq!(amount(&cluster, "allocatable", dongle).await, Value::Null);
    // What is the kubelet's own it puts right.
    say(json!({"capacity": {"cpu": "100"}, "allocatable": {"cpu": "100"}})).await;
    for part in ["capacity", "allocatable"] {
        assert_eq!(amount(&cluster, part, "cpu").await, "8", "{part}");
    }
    cluster.stop().await;
}

/// What upstream's `test/e2e/auth/service_accounts.go` looks at of a client in a pod: it uses one token after
/// the other, and none that has expired.
#[tokio::test]
async fn a_token_in_a_volume_is_renewed_before_it_expires() {
    let cluster = start(Config::new().nodes(1)).await;
    let folder = "/var/run/secrets/kubernetes.io/serviceaccount";
    let authority = json!({"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]});
    let sources = json!([{"serviceAccountToken": {"path": "token", "expirationSeconds": 600}}, {"configMap": authority}]);
    let container = json!({"name": "c", "image": "registry.k8s.io/e2e-test-images/agnhost:2.53",
        "args": ["inclusterclient"], "volumeMounts": [{"name": "access", "mountPath": folder}]});
    let spec = json!({"containers": [container],
        "volumes": [{"name": "access", "projected": {"sources": sources}}]});
    run(&cluster, "client", spec).await;
    pass(&cluster, 1500).await;
    let (code, log) = log(&cluster, "client", "").await;
    assert_eq!(code, 200, "{log}");
    assert!(!log.contains("status=failed"), "{log}");
    let headers = log.lines().filter_map(|line| line.split_once("authz_header="));
    let mut tokens: Vec<&str> = headers.map(|(_, header)| header).collect();
    assert!(tokens.len() > 40, "{log}");
    tokens.dedup();
    // Each is used for eight minutes, and found to be stale within one more.
    assert_eq!(tokens.len(), 3, "{log}");
    cluster.stop().await;
}

/// What failed was the container of the other image.
#[tokio::test]
async fn a_container_with_another_image_has_not_failed_yet() {
    let cluster = start(Config::new()).await;
    let command = ["sh", "-c", "sleep 5; exit 1"];
    run(&cluster, "p", json!({"containers": [{"name": "c", "image": "busybox:1.36", "command": command}]}))
        .await;
    pass(&cluster, 600).await;
    let status = |pod: &Value| pod["status"]["containerStatuses"][0].clone();
    let waiting = status(&pod(&cluster, "p").await);
    let message = waiting["state"]["waiting"]["message"].as_str().unwrap().to_owned();
    assert!(message.starts_with("back-off 5m0s restarting failed container=c"), "{waiting}");
    let image = json!({"spec": {"containers": [{"name": "c", "image": "busybox:1.37"}]}});
    cluster.client().patch(&PODS, "default", "p", PatchType::StrategicMerge, &image).await.unwrap();
    pass(&cluster, 1).await;
    let running = status(&pod(&cluster, "p").await);
    assert!(running["state"]["running"].is_object(), "{running}");
    assert!(running["image"].as_str().unwrap().ends_with("busybox:1.37"), "{running}");
    pass(&cluster, 6).await;
    let waiting = status(&pod(&cluster, "p").await);
    let message = waiting["state"]["waiting"]["message"].as_str().unwrap();
    assert!(message.starts_with("back-off 10s restarting failed container=c"), "{waiting}");
    cluster.stop().await;
}
