//! Many nodes: what it costs when pods are placed among them, run there, and when nothing happens.
//!
//! The scenarios take minutes and memory: they are measured when they are named.

use std::time::{Duration, Instant};

use http::Method;
use serde_json::{Value, json};

use crate::pods::{until_each_ready, until_ready};
use crate::server::{Server, milliseconds, runtime};
use crate::support::wire::{Error, Target};
use crate::table::Row;

/// As many nodes as a large cluster has.
const NODES: usize = 1000;
/// Pods that are placed, in all.
const PLACED: usize = 10_000;
/// The same, where each is looked at against all others.
const PLACED_NEAR: usize = 2000;
/// A cluster that does nothing is watched for so long.
const IDLE: Duration = Duration::from_secs(60);
/// After so long objects rest that nobody reads: it is looked twice, at the bookmarks of each minute.
const REST: Duration = Duration::from_secs(150);

/// 100,000 pods of ten Deployments on 1,000 nodes, and then nothing.
pub(crate) fn crowd() -> Vec<Row> {
    let server = Server::start(NODES);
    let before = server.cpu();
    let elapsed = runtime().block_on(until_each_ready(&server.target, 10, 10_000)).unwrap();
    let cpu = milliseconds(server.wait_until_quiet() - before) / 100_000.0;
    let (busy, idle) = (server.resident_mib(), idle(&server));
    std::thread::sleep(REST - IDLE);
    let at_rest = server.resident_mib();
    vec![
        Row::new("100,000 pods on 1,000 nodes, all Ready", elapsed.as_secs_f64(), "s").budget(90.0),
        Row::new("the same, CPU a pod until all is quiet", cpu, "ms"),
        Row::new("resident memory as soon as 100,000 pods run", busy / 1024.0, "GiB"),
        Row::new("the same when they rest", at_rest / 1024.0, "GiB").budget(1.6),
        Row::new("the same idle, share of a core", idle, "%").budget(5.0),
    ]
}

/// 10,000 pods on 100 nodes that do nothing.
pub(crate) fn idle_pods() -> Vec<Row> {
    let server = Server::start(100);
    runtime().block_on(until_ready(&server.target, 10_000)).unwrap();
    server.wait_until_quiet();
    vec![Row::new("10,000 pods on 100 nodes idle, share of a core", idle(&server), "%")]
}

/// 1,000 nodes and nothing else.
pub(crate) fn idle_nodes() -> Vec<Row> {
    let server = Server::start(NODES);
    vec![Row::new("1,000 nodes idle, share of a core", idle(&server), "%").budget(5.0)]
}

/// Pods that are placed in a second among 1,000 nodes, and what that costs; there are no kubelets and no
/// controllers, so that nothing else is done.
pub(crate) fn placed() -> Vec<Row> {
    let web = json!({"matchLabels": {"app": "web"}});
    let (zone, host) = ("topology.kubernetes.io/zone", "kubernetes.io/hostname");
    let spread = json!([{"maxSkew": 1, "topologyKey": zone, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": web}]);
    let required = |key: &str| json!({"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": key, "labelSelector": web}]});
    let mut rows = Vec::new();
    for (what, more, pods, floor) in [
        ("plain pods", json!({}), PLACED, None),
        ("pods that spread over zones", json!({ "topologySpreadConstraints": spread }), PLACED, Some(3000.0)),
        (
            "pods near each other",
            json!({"affinity": {"podAffinity": required(zone)}}),
            PLACED_NEAR,
            Some(500.0),
        ),
        (
            "pods apart from each other",
            json!({"affinity": {"podAntiAffinity": required(host)}}),
            NODES,
            Some(500.0),
        ),
    ] {
        let (rate, cpu) = place(&more, pods);
        let row = Row::new(format!("{what}, placed among 1,000 nodes"), rate, "a second");
        rows.push(match floor {
            Some(floor) => row.at_least(floor),
            None => row,
        });
        rows.push(Row::new("the same, CPU each", cpu, "ms"));
    }
    rows
}

/// So many in a second, and milliseconds of processor time for each. The pods are there before the scheduler is.
fn place(more: &Value, pods: usize) -> (f64, f64) {
    let server = Server::start_alone(&["--nodes", "0", "--controllers=-*"]);
    let runtime = runtime();
    let (elapsed, cpu) = runtime
        .block_on(async {
            tell_scheduler(&server.target, "stop").await?;
            prepare(&server.target, more, pods).await?;
            server.wait_until_quiet();
            let before = server.cpu();
            let start = Instant::now();
            tell_scheduler(&server.target, "start").await?;
            until_placed(&server.target, pods).await?;
            Ok::<_, Error>((start.elapsed(), server.cpu() - before))
        })
        .unwrap();
    (pods as f64 / elapsed.as_secs_f64(), milliseconds(cpu) / pods as f64)
}

async fn tell_scheduler(target: &Target, verb: &str) -> Result<(), Error> {
    let mut wire = target.http1().await?;
    let path = format!("/kubarium/v1/components/{verb}");
    let answer = wire.send(Method::POST, &path, &json!({"name": "kube-scheduler"})).await?;
    assert_eq!(answer.code, 200, "{}", answer.json());
    Ok(())
}

/// The nodes of ten zones, and the pods.
async fn prepare(target: &Target, more: &Value, pods: usize) -> Result<(), Error> {
    let mut wire = target.http1().await?;
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}});
    wire.send(Method::POST, "/api/v1/namespaces/default/serviceaccounts", &account).await?;
    for number in 0..NODES {
        let node = node(number);
        let created = wire.send(Method::POST, "/api/v1/nodes", &node).await?.json();
        let path = format!("/api/v1/nodes/node-{number}");
        let mut untainted = created.clone();
        untainted["spec"] = json!({});
        let updated = wire.send(Method::PUT, &path, &untainted).await?;
        assert_eq!(updated.code, 200, "{}", updated.json());
        let mut status = updated.json();
        status["status"] = node["status"].clone();
        let updated = wire.send(Method::PUT, &format!("{path}/status"), &status).await?;
        assert_eq!(updated.code, 200, "{}", updated.json());
    }
    for number in 0..pods {
        let mut spec = json!({"containers": [{"name": "c", "image": "nginx", "resources": {"requests": {"cpu": "100m"}}}]});
        for (name, value) in more.as_object().into_iter().flatten() {
            spec[name] = value.clone();
        }
        let metadata = json!({"name": format!("web-{number}"), "labels": {"app": "web"}});
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec});
        let created = wire.send(Method::POST, "/api/v1/namespaces/default/pods", &pod).await?;
        assert_eq!(created.code, 201, "{}", created.json());
    }
    Ok(())
}

fn node(number: usize) -> Value {
    let name = format!("node-{number}");
    let labels = json!({"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": format!("zone-{}", number % 10)});
    let capacity = json!({"cpu": "64", "memory": "256Gi", "pods": "1000"});
    json!({
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels},
        "status": {"capacity": capacity, "allocatable": capacity},
    })
}

/// Until the scheduler has counted so many.
async fn until_placed(target: &Target, pods: usize) -> Result<(), Error> {
    let mut wire = target.http1().await?;
    let line = format!(
        "scheduler_schedule_attempts_total{{profile=\"default-scheduler\",result=\"scheduled\"}} {pods}"
    );
    loop {
        let page = wire.get("/kubarium/v1/components/metrics?name=kube-scheduler").await?;
        if String::from_utf8_lossy(&page.body).lines().any(|own| own == line) {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Percent of a core that it takes when nobody asks anything.
fn idle(server: &Server) -> f64 {
    let before = server.cpu();
    std::thread::sleep(IDLE);
    milliseconds(server.cpu() - before) / milliseconds(IDLE) * 100.0
}
