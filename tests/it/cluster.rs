//! The library: a whole cluster in a plain tokio program, driven by a stock client over memory.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use futures::StreamExt;
use http::Request;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kubarium::apimachinery::options::ListOptions;
use kubarium::apis::apps::deployment::DEPLOYMENTS;
use kubarium::apis::core::config_map::CONFIG_MAPS;
use kubarium::apis::core::namespace::NAMESPACES;
use kubarium::apis::core::node::NODES;
use kubarium::apis::core::pod::PODS;
use kubarium::apis::core::service_account::SERVICE_ACCOUNTS;
use kubarium::apis::kind::Kind;
use kubarium::clock::Clock;
use kubarium::cluster::{COMPONENTS, Settle};
use kubarium::entropy::Entropy;
use kubarium::{Cluster, Config};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use kube::runtime::wait::{await_condition, conditions};
use kube::{Api, Client};
use serde_json::{Value, json};
use tokio::runtime::Handle;
use tower::ServiceExt;

use crate::support::PATIENCE;

/// A stock kube-rs client: no socket, no kubeconfig.
fn stock(cluster: &Cluster) -> Client {
    let over_memory = |request: Request<kube::client::Body>| request.map(axum::body::Body::new);
    Client::new(cluster.service().map_request(over_memory), "default")
}

fn web(replicas: u32) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}}, "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "nginx", "image": "nginx"}]},
        }},
    })
}

fn is_available(deployment: &Deployment, replicas: i32) -> bool {
    let status = deployment.status.clone().unwrap_or_default();
    let conditions = status.conditions.unwrap_or_default();
    let available =
        conditions.iter().any(|condition| condition.type_ == "Available" && condition.status == "True");
    available && status.available_replicas == Some(replicas) && status.replicas == Some(replicas)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stock_client_rolls_out_a_deployment_and_watches_it_become_available() {
    let cluster = Cluster::start(Config::default()).await.unwrap();
    let deployments: Api<Deployment> = Api::default_namespaced(stock(&cluster));
    let created: Deployment = serde_json::from_value(web(3)).unwrap();
    let created = deployments.create(&PostParams::default(), &created).await.unwrap();
    let from = created.metadata.resource_version.unwrap();
    let mut events = deployments.watch(&WatchParams::default(), &from).await.unwrap().boxed();
    loop {
        match events.next().await.expect("the watch goes on").unwrap() {
            WatchEvent::Modified(deployment) if is_available(&deployment, 3) => break,
            WatchEvent::Modified(_) | WatchEvent::Bookmark(_) => {}
            other => panic!("{other:?}"),
        }
    }
    let pods: Api<Pod> = Api::default_namespaced(stock(&cluster));
    let found = pods.list(&ListParams::default().labels("app=web")).await.unwrap();
    assert_eq!(found.items.len(), 3);
    let scale = Patch::Merge(json!({"spec": {"replicas": 1}}));
    deployments.patch_scale("web", &PatchParams::default(), &scale).await.unwrap();
    let scaled =
        |deployment: Option<&Deployment>| deployment.is_some_and(|deployment| is_available(deployment, 1));
    await_condition(deployments.clone(), "web", scaled).await.unwrap();
    let uid = deployments.get("web").await.unwrap().metadata.uid.unwrap();
    deployments.delete("web", &DeleteParams::default()).await.unwrap();
    await_condition(deployments, "web", conditions::is_deleted(&uid)).await.unwrap();
    until("the pods to go", async || pods.list(&ListParams::default()).await.unwrap().items.is_empty()).await;
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_stock_client_gets_wrong_it_is_told_as_it_knows_it() {
    let cluster = Cluster::start(Config::default()).await.unwrap();
    let maps: Api<ConfigMap> = Api::default_namespaced(stock(&cluster));
    let reason = |error: kube::Error| match error {
        kube::Error::Api(status) => (status.code, status.reason.clone()),
        other => panic!("{other}"),
    };
    assert_eq!(reason(maps.get("none").await.unwrap_err()), (404, "NotFound".into()));
    let map: ConfigMap = serde_json::from_value(json!({"metadata": {"name": "a"}})).unwrap();
    let first = maps.create(&PostParams::default(), &map).await.unwrap();
    let again = maps.create(&PostParams::default(), &map).await;
    assert_eq!(reason(again.unwrap_err()), (409, "AlreadyExists".into()));
    let patch = Patch::Merge(json!({"data": {"k": "v"}}));
    maps.patch("a", &PatchParams::default(), &patch).await.unwrap();
    let stale = maps.replace("a", &PostParams::default(), &first).await;
    assert_eq!(reason(stale.unwrap_err()), (409, "Conflict".into()));
}

/// Runs itself again with nothing but this test, in an empty home: what a program with a cluster in it leaves
/// behind is then seen.
#[test]
fn a_cluster_has_no_port_and_no_file() {
    const ALONE: &str = "KUBARIUM_TEST_ALONE";
    if std::env::var_os(ALONE).is_some() {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        return runtime.block_on(async {
            let cluster = Cluster::start(Config::default()).await.unwrap();
            assert!(cluster.address().is_none() && cluster.access().is_none());
            until_available(&cluster, 1).await;
            let sockets = fs::read_dir("/proc/self/fd")
                .unwrap()
                .filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
            let sockets: Vec<_> =
                sockets.filter(|target| target.to_string_lossy().starts_with("socket:")).collect();
            let listening = listening_sockets();
            let ours =
                sockets.iter().filter(|socket| listening.contains(&socket.to_string_lossy().into_owned()));
            assert_eq!(ours.count(), 0, "{sockets:?}");
            cluster.stop().await;
        });
    }
    let (home, temporary) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["cluster::a_cluster_has_no_port_and_no_file", "--exact", "--nocapture"])
        .env(ALONE, "yes")
        .env("HOME", home.path())
        .env("TMPDIR", temporary.path())
        .current_dir(home.path())
        .output()
        .unwrap();
    let printed =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && printed.contains("1 passed"), "{printed}");
    for folder in [&home, &temporary] {
        let left: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert!(left.is_empty(), "{left:?}");
    }
}

/// As `/proc/self/fd` names them: `socket:[4711]`.
fn listening_sockets() -> Vec<String> {
    const LISTEN: &str = "0A";
    let tables = ["/proc/self/net/tcp", "/proc/self/net/tcp6"]
        .map(|path| fs::read_to_string(path).unwrap_or_default());
    let rows = tables.iter().flat_map(|table| table.lines().skip(1));
    let columns = rows.map(|row| row.split_whitespace().collect::<Vec<_>>());
    columns.filter(|row| row[3] == LISTEN).map(|row| format!("socket:[{}]", row[9])).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_clusters_share_nothing_and_leave_nothing() {
    let before = Handle::current().metrics().num_alive_tasks();
    let starting = (0..100).map(|_| Cluster::start(Config::default()));
    let clusters: Vec<Cluster> =
        futures::future::join_all(starting).await.into_iter().map(Result::unwrap).collect();
    for (number, cluster) in clusters.iter().enumerate() {
        let map = json!({"metadata": {"name": "same"}, "data": {"cluster": number.to_string()}});
        cluster.client().create(&CONFIG_MAPS, "default", map).await.unwrap();
    }
    for (number, cluster) in clusters.iter().enumerate() {
        let map = cluster.client().get(&CONFIG_MAPS, "default", "same").await.unwrap();
        assert_eq!(map.to_value()["data"]["cluster"], number.to_string());
    }
    let uid = async |cluster: &Cluster| {
        cluster.client().get(&CONFIG_MAPS, "default", "same").await.unwrap().metadata.uid.clone()
    };
    assert_ne!(uid(&clusters[0]).await, uid(&clusters[1]).await);
    futures::future::join_all(clusters.iter().map(|cluster| until_available(cluster, 1))).await;
    drop(clusters);
    let alive = || Handle::current().metrics().num_alive_tasks();
    until("every task to end", async || alive() <= before).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_are_ready_and_renew_their_leases() {
    let cluster = Cluster::start(Config::new().nodes(3)).await.unwrap();
    until("three ready nodes", async || {
        let nodes = cluster.client().list(&NODES, "", &ListOptions::default()).await.unwrap();
        let is_ready = |node: &Value| {
            let conditions = node["status"]["conditions"].as_array().cloned().unwrap_or_default();
            conditions.iter().any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
        };
        nodes.items.iter().filter(|node| is_ready(&node.to_value())).count() == 3
    })
    .await;
}

/// Whatever is stopped, and whenever: once it runs again, the cluster gets where it was to get.
#[tokio::test(flavor = "multi_thread")]
async fn each_component_can_be_stopped_and_started_at_any_point() {
    let names: Vec<&str> = COMPONENTS.iter().copied().chain(["kubelet/node-1"]).collect();
    for name in &names {
        let cluster = Cluster::start(Config::default()).await.unwrap();
        cluster.stop_component(name).unwrap();
        cluster.stop_component(name).unwrap();
        let client = cluster.client();
        client.create(&DEPLOYMENTS, "default", web(5)).await.unwrap();
        cluster.start_component(name).unwrap();
        until("some pods", async || !pods(&cluster).await.is_empty()).await;
        cluster.stop_component(name).unwrap();
        cluster.start_component(name).unwrap();
        cluster.start_component(name).unwrap();
        until("all five", async || available(&cluster).await == 5).await;
        assert_eq!(pods(&cluster).await.len(), 5, "{name}: none too many");
    }
    let cluster = Cluster::start(Config::default()).await.unwrap();
    let error = cluster.stop_component("kubelet/node-7").unwrap_err();
    assert!(error.to_string().contains("kubelet/node-7"), "{error}");
}

#[tokio::test]
async fn what_is_made_in_this_process_is_read_as_what_comes_over_a_wire() {
    let cluster = Cluster::start(Config::default()).await.unwrap();
    let client = cluster.client();
    let with_requests = |requests: Value| {
        let mut deployment = web(1);
        let container = &mut deployment["spec"]["template"]["spec"]["containers"][0];
        container["resources"] = json!({ "requests": requests });
        deployment
    };
    let wrong = client.create(&DEPLOYMENTS, "default", with_requests(json!({"cpu": "much"}))).await;
    let wrong = wrong.unwrap_err();
    assert_eq!((wrong.code, wrong.reason.as_str()), (400, "BadRequest"), "{wrong}");
    assert!(wrong.message.contains("quantities must match the regular expression"), "{wrong}");
    let numbers = with_requests(json!({"cpu": 1, "memory": "1024Mi"}));
    let made = client.create(&DEPLOYMENTS, "default", numbers).await.unwrap();
    let requests = |tree: &Value| tree["containers"][0]["resources"]["requests"].clone();
    let expected = json!({"cpu": "1", "memory": "1Gi"});
    assert_eq!(requests(&made.to_value()["spec"]["template"]["spec"]), expected);
    // Whoever reads it panics over no number.
    cluster.settle(Settle::new()).await.unwrap();
    let pods = client.list(&PODS, "default", &ListOptions::default()).await.unwrap();
    assert_eq!((pods.items.len(), requests(&pods.items[0].to_value()["spec"])), (1, expected));
    let map = json!({"metadata": {"name": "a", "labels": {"tier": 1}}, "data": {"k": "v"}});
    assert_eq!(client.create(&CONFIG_MAPS, "default", map).await.unwrap_err().code, 400);
    let time = json!({"metadata": {"name": "a", "creationTimestamp": "xxxxxxxxxxxxxxxxxxxZ"}});
    assert_eq!(client.create(&CONFIG_MAPS, "default", time).await.unwrap_err().code, 400);
    let bytes = json!({"metadata": {"name": "a"}, "binaryData": {"k": "!!"}});
    assert_eq!(client.create(&CONFIG_MAPS, "default", bytes).await.unwrap_err().code, 400);
    cluster.stop().await;
}

/// On many threads, who creates first is another each time; what has a name has its uid all the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_seed_gives_what_has_a_name_the_same_uid_on_many_threads() {
    let mut seen = Vec::new();
    for _ in 0..2 {
        let clock = Clock::stepped("2030-01-01T00:00:00Z".parse().unwrap());
        let config = Config::new().nodes(2).clock(clock).entropy(Entropy::seeded(5));
        let cluster = Cluster::start(config).await.unwrap();
        cluster.settled().await.unwrap();
        let mut uids = BTreeMap::new();
        for kind in [&NAMESPACES, &NODES, &SERVICE_ACCOUNTS, &CONFIG_MAPS] {
            let list = cluster.client().list(kind, "", &ListOptions::default()).await.unwrap();
            uids.extend(list.items.iter().map(|object| {
                let object = object.to_value();
                let metadata = &object["metadata"];
                let name = format!("{} {}/{}", kind.plural, metadata["namespace"], metadata["name"]);
                (name, metadata["uid"].clone())
            }));
        }
        cluster.stop().await;
        seen.push(uids);
    }
    assert!(seen[0].len() > 10, "{seen:?}");
    assert_eq!(seen[0], seen[1]);
}

/// A stepped clock, seeded numbers and one thread: the same things happen in the same order at the same time.
#[test]
fn the_same_seed_tells_the_same_story() {
    let tell = |seed| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(story(seed))
    };
    let (first, second, other) = (tell(7), tell(7), tell(8));
    let differs = first.iter().zip(&second).find(|(first, second)| first != second);
    assert_eq!(differs, None);
    assert_eq!(first.len(), second.len());
    assert_ne!(first, other);
}

/// Everything that a cluster holds after a rollout, and the rollout's trace.
async fn story(seed: u64) -> Vec<String> {
    let start: DateTime<Utc> = DateTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000);
    let clock = Clock::stepped(start);
    let entropy = Entropy::seeded(seed);
    let config = Config::new().nodes(3).clock(clock.clone()).entropy(entropy);
    let cluster = stepping(&clock, Cluster::start(config)).await.unwrap();
    let told = stepping(&clock, async {
        cluster.client().create(&DEPLOYMENTS, "default", web(4)).await.unwrap();
        while available(&cluster).await < 4 {
            clock.sleep(Duration::from_millis(100)).await;
        }
        // What trails behind, as Events do, has its time as well.
        clock.sleep(Duration::from_secs(30)).await;
        let mut told = Vec::new();
        for kind in kubarium::apis::all() {
            told.extend(all(&cluster, kind).await);
        }
        told
    })
    .await;
    let trace = cluster.flow().trace("deployments.apps", "default", "web");
    told.into_iter().chain([format!("{trace:?}")]).collect()
}

/// The objects of a kind as text. Certificates are drawn by TLS, not by the cluster's entropy.
async fn all(cluster: &Cluster, kind: &Arc<Kind>) -> Vec<String> {
    let Ok(list) = cluster.client().list(kind, "", &ListOptions::default()).await else { return vec![] };
    let mut texts: Vec<String> = list.items.iter().map(|object| object.to_value().to_string()).collect();
    for text in &mut texts {
        if let Some(at) = text.find("-----BEGIN CERTIFICATE-----") {
            text.truncate(at);
        }
    }
    texts
}

/// Runs a future to its end; whenever nothing else can happen, time passes until something can.
async fn stepping<T>(clock: &Clock, future: impl Future<Output = T>) -> T {
    /// After so many rounds without anything to do, everybody waits for time.
    const ROUNDS: usize = 500;
    let mut future = std::pin::pin!(future);
    loop {
        for _ in 0..ROUNDS {
            tokio::select! {
                biased;
                output = &mut future => return output,
                () = tokio::task::yield_now() => {}
            }
        }
        if let Some(pause) = clock.next_wake() {
            clock.advance(pause);
        }
    }
}

async fn until_available(cluster: &Cluster, replicas: u32) {
    cluster.client().create(&DEPLOYMENTS, "default", web(replicas)).await.unwrap();
    until("the deployment to be available", async || available(cluster).await == u64::from(replicas)).await;
}

async fn available(cluster: &Cluster) -> u64 {
    let deployment = cluster.client().get(&DEPLOYMENTS, "default", "web").await.unwrap();
    deployment.to_value()["status"]["availableReplicas"].as_u64().unwrap_or(0)
}

async fn pods(cluster: &Cluster) -> BTreeMap<String, String> {
    let list = cluster.client().list(&PODS, "", &ListOptions::default()).await.unwrap();
    list.items.iter().map(|pod| (pod.key(), pod.metadata.uid.clone())).collect()
}

async fn until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let waiting = async {
        while !is_so().await {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    if tokio::time::timeout(PATIENCE, waiting).await.is_err() {
        panic!("waited in vain for {what}");
    }
}
