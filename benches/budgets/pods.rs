//! Many pods: how long until they run, and what they cost while they are there.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use http::Method;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::server::{Process, Server, milliseconds, runtime};
use crate::support::wire::{Error, Target};
use crate::table::Row;

/// Pods of the scenarios that are about size.
const MANY: usize = 10_000;
const LISTS: u32 = 20;

/// A Deployment of 1,000 replicas on 10 nodes, from its creation until its status says that all are ready.
pub(crate) fn deployment() -> Vec<Row> {
    // In turn, so that what else the machine does falls on both.
    let rounds = (0..3).map(|_| (roll_out(1000, 10, false), roll_out(1000, 10, true)));
    let (unseen, seen): (Vec<_>, Vec<_>) = rounds.unzip();
    let (seconds, cpu_milliseconds) = middle(unseen);
    let (seconds_seen, cpu_seen) = middle(seen);
    vec![
        Row::new("Deployment of 1,000 replicas on 10 nodes, all Ready", seconds, "s").budget(0.5).real("3.3"),
        Row::new("the same, CPU a pod until all is quiet", cpu_milliseconds / 1000.0, "ms")
            .budget(0.8)
            .real("6.1"),
        Row::new("the same Deployment while a page follows, times as long", seconds_seen / seconds, "")
            .budget(1.3),
        Row::new("the same, CPU a pod until all is quiet", cpu_seen / 1000.0, "ms"),
    ]
}

/// The round that took neither longest nor shortest.
fn middle(mut rounds: Vec<(f64, f64)>) -> (f64, f64) {
    rounds.sort_by(|a, b| a.0.total_cmp(&b.0));
    rounds[rounds.len() / 2]
}

/// Seconds until all are ready, and milliseconds of processor time until all is quiet; if `is_followed` while
/// somebody reads what an open page reads.
fn roll_out(replicas: usize, nodes: usize, is_followed: bool) -> (f64, f64) {
    let server = Server::start(nodes);
    let before = server.cpu();
    let runtime = runtime();
    let elapsed = runtime.block_on(async {
        let following = if is_followed { Some(follow(&server.target).await?) } else { None };
        let elapsed = until_ready(&server.target, replicas).await;
        drop(following);
        elapsed
    });
    (elapsed.unwrap().as_secs_f64(), milliseconds(server.wait_until_quiet() - before))
}

/// Reads the causal record with headers and bodies, as the page does, until this is dropped.
async fn follow(target: &Target) -> Result<tokio::task::JoinSet<()>, Error> {
    let mut lines = target.http1().await?.watch("/kubarium/v1/flow?follow=true&bodies=true&since=").await?;
    // What was before: from here on it hears of what comes.
    lines.next_line().await?;
    let mut following = tokio::task::JoinSet::new();
    following.spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
    Ok(following)
}

/// A Deployment of so many replicas, from its creation until its status says that all are ready.
pub(crate) async fn until_ready(target: &Target, replicas: usize) -> Result<Duration, Error> {
    until_each_ready(target, 1, replicas).await
}

/// The same of several Deployments, which are created one after the other.
pub(crate) async fn until_each_ready(
    target: &Target,
    deployments: usize,
    replicas: usize,
) -> Result<Duration, Error> {
    let collection = "/apis/apps/v1/namespaces/default/deployments";
    let mut events = target.http1().await?.watch(&format!("{collection}?watch=true")).await?;
    let start = Instant::now();
    let mut wire = target.http1().await?;
    for number in 0..deployments {
        let created = wire.send(Method::POST, collection, &web(number, replicas)).await?;
        assert_eq!(created.code, 201, "{}", created.json());
    }
    let mut ready = BTreeSet::new();
    while let Some(event) = events.next().await? {
        if event["object"]["status"]["readyReplicas"] == replicas {
            ready.insert(event["object"]["metadata"]["name"].to_string());
        }
        if ready.len() == deployments {
            return Ok(start.elapsed());
        }
    }
    Err("the watch ended".into())
}

fn web(number: usize, replicas: usize) -> Value {
    let app = format!("web-{number}");
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": app},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": app}}, "template": {
            "metadata": {"labels": {"app": app}},
            "spec": {"containers": [{"name": "nginx", "image": "nginx"}]},
        }},
    })
}

/// 10,000 pods of about the size of a real cluster's, which nobody schedules: what storing and listing costs.
pub(crate) fn stored() -> Vec<Row> {
    let server = Server::start(1);
    let runtime = runtime();
    runtime.block_on(create_pods(&server.target)).unwrap();
    server.wait_until_quiet();
    let resident = server.resident_mib();
    let ListCost { cpu, elapsed, megabytes } = list_cost(&runtime, &server);
    vec![
        Row::new("resident memory with 10,000 pods stored", resident, "MiB").budget(150.0).real("677"),
        Row::new("list of 10,000 pods over TLS, CPU", cpu, "ms").budget(30.0).real("220"),
        Row::new(format!("the same ({megabytes:.1} MB), until the client has it"), elapsed, "ms").real("230"),
        Row::new("resident memory after these lists", server.resident_mib(), "MiB"),
    ]
}

/// What a list of all pods costs, in milliseconds.
pub(crate) struct ListCost {
    /// Of the server.
    pub cpu: f64,
    /// Until the client has it.
    pub elapsed: f64,
    /// How much that is.
    pub megabytes: f64,
}

/// Lists all pods again and again.
pub(crate) fn list_cost(runtime: &Runtime, process: &Process) -> ListCost {
    let before = process.cpu();
    let start = Instant::now();
    let bytes = runtime.block_on(list_pods(&process.target)).unwrap();
    let elapsed = milliseconds(start.elapsed()) / f64::from(LISTS);
    let cpu = milliseconds(process.cpu() - before) / f64::from(LISTS);
    ListCost { cpu, elapsed, megabytes: bytes as f64 / 1e6 }
}

/// Over connections side by side, a request after the other on each.
pub(crate) async fn create_pods(target: &Target) -> Result<(), Error> {
    let mut connections = tokio::task::JoinSet::new();
    let at_once = 8;
    for first in 0..at_once {
        let mut wire = target.http1().await?;
        connections.spawn(async move {
            for number in (first..MANY).step_by(at_once) {
                let path = "/api/v1/namespaces/default/pods";
                let answer = wire.send(Method::POST, path, &pod(number)).await.unwrap();
                assert_eq!(answer.code, 201, "{}", answer.json());
            }
        });
    }
    connections.join_all().await;
    Ok(())
}

async fn list_pods(target: &Target) -> Result<usize, Error> {
    let mut wire = target.http1().await?;
    let mut bytes = 0;
    for _ in 0..LISTS {
        let answer = wire.get("/api/v1/pods").await?;
        assert_eq!(answer.code, 200);
        bytes = answer.body.len();
    }
    Ok(bytes)
}

/// 10,000 pods that a Deployment made and kubelets run.
pub(crate) fn running() -> Vec<Row> {
    let server = Server::start(100);
    let before = server.cpu();
    let elapsed = runtime().block_on(until_ready(&server.target, MANY)).unwrap();
    let cpu = milliseconds(server.wait_until_quiet() - before) / MANY as f64;
    vec![
        Row::new("Deployment of 10,000 replicas on 100 nodes, all Ready", elapsed.as_secs_f64(), "s"),
        Row::new("the same, CPU a pod until all is quiet", cpu, "ms").budget(0.6),
        Row::new("resident memory with 10,000 pods running", server.resident_mib(), "MiB").budget(250.0),
    ]
}

/// As a web server's pod looks: probes, resources, environment, a volume. About 2.6 KB once it is stored.
fn pod(number: usize) -> Value {
    let probe = |path: &str| json!({"httpGet": {"path": path, "port": 8080}, "periodSeconds": 10, "timeoutSeconds": 2});
    let variables: Vec<Value> = (0..8)
        .map(|at| json!({"name": format!("SETTING_{at}"), "value": format!("the value of setting {at} of this pod")}))
        .collect();
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": format!("web-5d4f7c9b8-{number:05}"),
            "labels": {"app": "web", "pod-template-hash": "5d4f7c9b8", "tier": "frontend"},
            "annotations": {"example.com/checksum": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"},
        },
        "spec": {
            "schedulerName": "nobody",
            "containers": [{
                "name": "web", "image": "registry.example.com/team/web:1.2.3",
                "args": ["--listen=:8080", "--log-level=info"],
                "ports": [{"name": "http", "containerPort": 8080}],
                "env": variables,
                "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "256Mi"}},
                "livenessProbe": probe("/healthz"), "readinessProbe": probe("/ready"),
                "volumeMounts": [{"name": "data", "mountPath": "/data"}],
            }],
            "volumes": [{"name": "data", "emptyDir": {}}],
        },
    })
}
