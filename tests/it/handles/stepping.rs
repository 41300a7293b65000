//! A cluster that is held between two steps, and goes on one by one.

use std::process::Stdio;

use kubarium::kinds::{CONFIG_MAPS, DEPLOYMENTS, PODS};
use kubarium::{Clock, Cluster, Config};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::settle::web;
use super::{ask, bare};
use crate::support::{Kubectl, Up, eventually, kubectls, texts};

const STEP: &str = "/kubarium/v1/step";

async fn step(cluster: &Cluster, path: &str, body: Value) -> Value {
    let (code, said) = ask(cluster, "", "POST", &format!("{STEP}{path}"), body).await;
    assert_eq!(code, 200, "{said}");
    said
}

/// The stages of who is held, in their order.
fn stages(said: &Value) -> Vec<&str> {
    said["held"].as_array().unwrap().iter().map(|held| held["stage"].as_str().unwrap()).collect()
}

/// Creates a config map, in a task that waits for it.
fn creates(cluster: &Cluster, name: &str) -> JoinHandle<()> {
    let (client, map) = (cluster.client(), json!({"metadata": {"name": name}}));
    tokio::spawn(async move {
        client.create(&CONFIG_MAPS, "default", map).await.unwrap();
    })
}

/// Waits until so many are held.
async fn until_held(cluster: &Cluster, count: usize) {
    while cluster.flow().stepping().unwrap().held().len() < count {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn one_request_goes_from_step_to_step_while_time_stands() {
    let cluster = Cluster::start(bare()).await.unwrap();
    assert_eq!(step(&cluster, "/pause", Value::Null).await["paused"], true);
    let now = cluster.clock().now();
    let created = creates(&cluster, "a");
    until_held(&cluster, 1).await;
    // Reads, health checks and handles are never held.
    for path in ["/api/v1/namespaces/default/configmaps", "/readyz", STEP] {
        assert_eq!(ask(&cluster, "", "GET", path, Value::Null).await.0, 200, "{path}");
    }
    let said = step(&cluster, "/next", Value::Null).await;
    let words = said["released"][0]["words"].as_str().unwrap();
    assert_eq!(words, "kube-apiserver: before the request to create /api/v1/namespaces/default/configmaps");
    assert_eq!((stages(&said), &said["held"][0]["of"]), (vec!["admission"], &json!("NamespaceLifecycle")));
    let said = step(&cluster, "/stage", Value::Null).await;
    assert!(said["releasedCount"].as_u64().unwrap() > 1, "{said}");
    assert_eq!((stages(&said), &said["held"][0]["object"]), (vec!["write"], &json!("default/a")));
    let (_, maps) = ask(&cluster, "", "GET", "/api/v1/namespaces/default/configmaps/a", Value::Null).await;
    assert_eq!((&maps["code"], cluster.clock().now()), (&json!(404), now), "it is not written yet");
    assert_eq!(step(&cluster, "/next", Value::Null).await["held"], json!([]));
    created.await.unwrap();
    let (code, _) = ask(&cluster, "", "POST", &format!("{STEP}/next"), json!({"number": 99})).await;
    assert_eq!(code, 404);
    assert_eq!(step(&cluster, "/continue", Value::Null).await["paused"], false);
    creates(&cluster, "b").await.unwrap();
    cluster.stop().await;
}

#[tokio::test]
async fn a_deployment_is_stepped_until_it_is_available() {
    let cluster = Cluster::start(Config::new().nodes(1).step(true)).await.unwrap();
    let client = cluster.client();
    let created = tokio::spawn(async move { client.create(&DEPLOYMENTS, "default", web(1)).await });
    until_held(&cluster, 1).await;
    let until = json!({"object": "deploy/web", "for": "Available", "within": "120s"});
    let said = step(&cluster, "/until", until).await;
    assert_eq!((&said["reached"], &said["paused"]), (&json!(true), &json!(true)), "{said}");
    created.await.unwrap().unwrap();
    let released = said["releasedCount"].as_u64().unwrap();
    assert!(released > 50, "{released}");
    let (_, state) = ask(&cluster, "", "GET", "/api/v1/namespaces/default/pods", Value::Null).await;
    assert_eq!(state["items"][0]["status"]["phase"], "Running", "{state}");
    let (code, refused) = ask(
        &cluster,
        "",
        "POST",
        "/kubarium/v1/time/until",
        json!({
            "object": "deploy/web", "for": "delete",
        }),
    )
    .await;
    let why = refused["message"].as_str().unwrap_or_default();
    assert!(code == 400 && why.contains("kubarium step continue"), "{refused}");
    // It ends although somebody is held.
    let client = cluster.client();
    let held = tokio::spawn(async move { client.create(&DEPLOYMENTS, "default", web(1)).await });
    while !stages(&ask(&cluster, "", "GET", STEP, Value::Null).await.1).contains(&"request") {
        tokio::task::yield_now().await;
    }
    cluster.stop().await;
    drop(held.await);
}

#[tokio::test]
async fn who_lets_all_go_on_while_somebody_steps_has_the_last_word() {
    let cluster = Cluster::start(bare()).await.unwrap();
    step(&cluster, "/pause", Value::Null).await;
    let created = creates(&cluster, "a");
    until_held(&cluster, 1).await;
    let never = json!({"object": "configmap/b", "for": "create", "within": "2s"});
    let stepping = step(&cluster, "/until", never);
    let going_on = async {
        // It has begun to let steps happen.
        created.await.unwrap();
        step(&cluster, "/continue", Value::Null).await
    };
    let (said, _) = tokio::join!(stepping, going_on);
    assert_eq!((&said["reached"], &said["paused"]), (&json!(false), &json!(false)), "{said}");
    assert_eq!(said["instead"], "there is no configmap b in namespace default");
    creates(&cluster, "c").await.unwrap();
    cluster.stop().await;
}

#[tokio::test]
async fn a_cluster_runs_into_its_breakpoints() {
    let clock = Clock::stepped("2030-01-01T00:00:30Z".parse().unwrap());
    let cluster = Cluster::start(Config::new().nodes(1).clock(clock)).await.unwrap();
    let places = [
        ("admission", "resourcequota", "default/web"),
        // As the record calls it, and as kubectl lets one call resources.
        ("reconcile", "replicaset-controller", ""),
        ("scheduling", "", ""),
        ("write", "pod", ""),
        ("sync", "po", ""),
    ];
    for (stage, of, object) in places {
        step(&cluster, "/breakpoints", json!({"stage": stage, "of": of, "object": object})).await;
    }
    let client = cluster.client();
    let created = tokio::spawn(async move { client.create(&DEPLOYMENTS, "default", web(1)).await });
    let mut seen = Vec::new();
    for _ in 0..5 {
        until_held(&cluster, 1).await;
        cluster.settled().await.unwrap();
        let (_, said) = ask(&cluster, "", "GET", STEP, Value::Null).await;
        assert_eq!(said["paused"], true);
        let hit: Vec<&Value> =
            said["held"].as_array().unwrap().iter().filter(|held| held["breakpoint"].is_string()).collect();
        let name = hit[0]["breakpoint"].as_str().unwrap().to_owned();
        let removed = format!("{STEP}/breakpoints?name={}", name.replace(' ', "+"));
        assert_eq!(ask(&cluster, "", "DELETE", &removed, Value::Null).await.0, 200);
        assert_eq!(ask(&cluster, "", "DELETE", &removed, Value::Null).await.0, 404);
        seen.push(name);
        step(&cluster, "/continue", Value::Null).await;
    }
    assert_eq!(
        seen,
        [
            "admission ResourceQuota default/web",
            "reconcile replicaset",
            "write pods",
            "scheduling",
            "sync pods"
        ]
    );
    created.await.unwrap().unwrap();
    cluster.settled().await.unwrap();
    assert_eq!(cluster.client().list(&PODS, "default", &Default::default()).await.unwrap().items.len(), 1);
    for (stage, of, why) in [
        ("write", "nosuch", "no resource \"nosuch\" is served here"),
        ("sync", "deploy", "sync is about pods alone"),
        ("reconcile", "foo", "no controller \"foo\" reconciles here; "),
        ("admission", "Nope", "there is no admission plugin \"Nope\"; "),
        ("admission", "alwayspullimages", "the admission plugin AlwaysPullImages does not run here: "),
        ("request", "get", "say one of create, update, patch, delete, deletecollection"),
    ] {
        let never = json!({"stage": stage, "of": of});
        let (code, refused) = ask(&cluster, "", "POST", &format!("{STEP}/breakpoints"), never).await;
        assert!(code == 400 && refused["message"].as_str().unwrap().contains(why), "{refused}");
    }
    for number in 0..64 {
        step(&cluster, "/breakpoints", json!({"stage": "write", "object": number.to_string()})).await;
    }
    let one_more = json!({"stage": "write", "of": "pods"});
    let (code, refused) = ask(&cluster, "", "POST", &format!("{STEP}/breakpoints"), one_more).await;
    assert!(code == 400 && refused["message"].as_str().unwrap().contains("64"), "{refused}");
    cluster.stop().await;
}

#[tokio::test]
async fn a_stage_ends_at_a_breakpoint_which_has_one_name() {
    let cluster = Cluster::start(bare()).await.unwrap();
    step(&cluster, "/pause", Value::Null).await;
    for of in ["resourcequota", "ResourceQuota"] {
        let said = step(&cluster, "/breakpoints", json!({"stage": "admission", "of": of})).await;
        assert_eq!(said["breakpoints"].as_array().unwrap().len(), 1, "{said}");
    }
    let (client, map) = (cluster.client(), json!({"metadata": {"generateName": "a-"}}));
    let created = tokio::spawn(async move { client.create(&CONFIG_MAPS, "default", map).await });
    until_held(&cluster, 1).await;
    let said = step(&cluster, "/next", Value::Null).await;
    assert_eq!(said["held"][0]["object"], "default/a-", "it has no name yet: {said}");
    let said = step(&cluster, "/stage", Value::Null).await;
    assert_eq!(said["held"][0]["breakpoint"], "admission ResourceQuota", "{said}");
    assert!(said["held"][0]["object"].as_str().unwrap().starts_with("default/a-"), "{said}");
    let said = step(&cluster, "/stage", Value::Null).await;
    assert_eq!(stages(&said), ["write"], "who stands at one goes on from there: {said}");
    step(&cluster, "/continue", Value::Null).await;
    created.await.unwrap().unwrap();
    // It goes by any name by which it could have been added.
    step(&cluster, "/breakpoints", json!({"stage": "write", "of": "pods"})).await;
    for called in ["write+po", "admission+resourceQuota"] {
        let removed = format!("{STEP}/breakpoints?name={called}");
        assert_eq!(ask(&cluster, "", "DELETE", &removed, Value::Null).await.0, 200, "{called}");
    }
    cluster.stop().await;
}

/// Who goes away before the server is tired of waiting is told of, too. However busy the machine is: kubectl
/// goes when it is held, and nothing is asked before the server has seen it go. Nobody else creates Secrets.
fn goes_away_while_it_is_held(up: &Up) {
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "hasty"}});
    up.file("hasty.json", &secret.to_string());
    let kubectl = Kubectl::new(&kubectls()[0], up);
    let is_among = |list: &str| {
        let said: Value = serde_json::from_str(&kubectl.ok(&format!("get --raw {STEP}"))).unwrap();
        let is_it = |step: &Value| {
            step["words"].as_str().is_some_and(|words| words.ends_with("/namespaces/default/secrets"))
        };
        said[list].as_array().unwrap().iter().any(is_it).then_some(())
    };
    let mut hasty = kubectl.command("create -f hasty.json").stderr(Stdio::null()).spawn().unwrap();
    eventually("the request to be held", || is_among("held"));
    hasty.kill().unwrap();
    assert!(!hasty.wait().unwrap().success());
    eventually("the server to see that its client has gone", || is_among("gone"));
}

#[tokio::test]
async fn handles_that_write_are_not_held_and_who_waits_too_long_is_told_why() {
    let cluster = Cluster::start(Config::new().nodes(1)).await.unwrap();
    cluster.settled().await.unwrap();
    step(&cluster, "/pause", Value::Null).await;
    let (code, said) = ask(&cluster, "", "DELETE", "/kubarium/v1/nodes/node-1", Value::Null).await;
    assert_eq!(code, 200, "{said}");
    let map = json!({"metadata": {"name": "late"}});
    cluster.stop().await;
    let up = Up::start_with(&["--step"]);
    let path = "/api/v1/namespaces/default/configmaps?timeout=500ms";
    let file = up.file("late.json", &map.to_string());
    let (_, answered) = texts(&up.kubectl(&["create", "--raw", path, "-f", &file]));
    assert!(answered.contains("somebody steps this cluster, and held it in kube-apiserver"), "{answered}");
    let (shown, err) = texts(&up.kubarium(&["step", "show"]));
    assert!(shown.contains("gave up  kube-apiserver: before the request to create"), "{shown}{err}");
    let (shown, err) = texts(&up.kubarium(&["step", "break", "write", "secrets"]));
    assert!(shown.contains("breakpoint  write secrets\nheld"), "{shown}{err}");
    let (shown, err) = texts(&up.kubarium(&["step", "unbreak", "write", "secrets"]));
    assert!(!shown.contains("breakpoint"), "{shown}{err}");
    goes_away_while_it_is_held(&up);
    let (shown, err) = texts(&up.kubarium(&["step", "continue"]));
    assert!(
        shown.contains("gave up  ") && shown.ends_with("the cluster goes on by itself\n"),
        "{shown}{err}"
    );
    let (shown, err) = texts(&up.kubarium(&["step", "show"]));
    assert!(!shown.contains("gave up  "), "it is told once: {shown}{err}");
    let (story, err) = texts(&up.kubarium(&["trace", "secret/hasty"]));
    assert!(story.contains("504"), "{story}{err}");
    let (_, refused) = texts(&up.kubarium(&["step", "unbreak", "nosuch"]));
    assert!(refused.contains("`kubarium step show`"), "{refused}");
}
