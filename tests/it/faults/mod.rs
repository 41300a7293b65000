//! Faults on purpose: by Rust, by HTTP, by the command line, each the same.

mod components;
mod cuts;
mod network;
mod watches;
mod ways;

use std::time::Duration;

use http_body_util::BodyExt;
use kubarium::apimachinery::options::ListOptions;
use kubarium::apimachinery::user::UserInfo;
use kubarium::kinds::{CONFIG_MAPS, NODES};
use kubarium::{Client, Cluster, Components, Config, Entropy, Fault};
use serde_json::json;
use tower::ServiceExt;

/// An apiserver, and nobody else.
async fn bare() -> Cluster {
    let config = Config::new().nodes(0).components(Components::NONE).entropy(Entropy::seeded(7));
    Cluster::start(config).await.unwrap()
}

/// A user who may do everything, and is not the one that a test looks with.
fn operator(cluster: &Cluster) -> Client {
    cluster.client().acting_as(UserInfo::authenticated("operator", &["system:masters"]))
}

fn map(name: &str) -> serde_json::Value {
    json!({"metadata": {"name": name}})
}

#[tokio::test]
async fn answers_are_for_those_that_a_rule_is_about() {
    let cluster = bare().await;
    let (client, operator) = (cluster.client(), operator(&cluster));
    let rule = Fault::answer(409).user("operator").verb("write").resource("configmaps").object("a*");
    cluster.faults().add(rule.named("conflicts")).unwrap();
    client.create(&CONFIG_MAPS, "default", map("a")).await.unwrap();
    operator.create(&CONFIG_MAPS, "default", map("b")).await.unwrap();
    let error = operator.update(&CONFIG_MAPS, "default", "a", map("a")).await.unwrap_err();
    assert!(
        error.is_conflict() && error.message.contains("\"a\": the object has been modified"),
        "{error:?}"
    );
    operator.update(&CONFIG_MAPS, "default", "b", map("b")).await.unwrap();
    operator.get(&CONFIG_MAPS, "default", "a").await.unwrap();
    client.update(&CONFIG_MAPS, "default", "a", map("a")).await.unwrap();
    let status = cluster.faults().get("conflicts").unwrap();
    assert_eq!((status.matched, status.hits), (1, 1));
    cluster.faults().remove("conflicts").unwrap();
    operator.update(&CONFIG_MAPS, "default", "a", map("a")).await.unwrap();
    cluster.stop().await;
}

#[tokio::test]
async fn the_nth_the_first_few_and_some_by_chance_are_hit_alike_twice() {
    let hits = async |fault: Fault| {
        let cluster = bare().await;
        let operator = operator(&cluster);
        cluster.faults().add(fault.user("operator").verb("get")).unwrap();
        let mut hits = String::new();
        for _ in 0..20 {
            let answer = operator.get(&NODES, "", "none").await.unwrap_err();
            hits.push(if answer.code == 503 { 'x' } else { '.' });
        }
        cluster.stop().await;
        hits
    };
    assert_eq!(hits(Fault::answer(503).nth(3)).await, "..x.................");
    assert_eq!(hits(Fault::answer(503).count(2)).await, "xx..................");
    let by_chance = hits(Fault::answer(503).probability(0.5)).await;
    assert!(by_chance.contains('x') && by_chance.contains('.'), "{by_chance}");
    assert_eq!(hits(Fault::answer(503).probability(0.5)).await, by_chance);
}

#[tokio::test]
async fn the_first_that_hits_decides_and_the_cluster_itself_is_left_alone() {
    let cluster = bare().await;
    let operator = operator(&cluster);
    cluster.faults().add(Fault::answer(500).verb("get").count(1)).unwrap();
    cluster.faults().add(Fault::answer(503).verb("get")).unwrap();
    let code = async |client: &Client| client.get(&NODES, "", "none").await.unwrap_err().code;
    assert_eq!((code(&operator).await, code(&operator).await), (500, 503));
    let over: Vec<bool> = cluster.faults().list().iter().map(|fault| fault.over).collect();
    assert_eq!(over, [true, false], "it was to hit once");
    let scheduler = operator.acting_as(UserInfo::authenticated("system:kube-scheduler", &["system:masters"]));
    assert_eq!(code(&scheduler).await, 404, "who means components says so");
    cluster.faults().clear();
    cluster.faults().add(Fault::answer(503).user("*")).unwrap();
    assert_eq!(code(&scheduler).await, 503);
    let kit = operator.acting_as(UserInfo::authenticated("kubarium:handles", &["system:masters"]));
    assert_eq!(code(&kit).await, 404, "who means the test kit says so");
    cluster.faults().add(Fault::answer(503).user("kubarium:*")).unwrap();
    assert_eq!(code(&kit).await, 503);
    // The way to take it away again.
    assert_eq!(crate::handles::ask(&cluster, "", "DELETE", "/kubarium/v1/faults", json!(null)).await.0, 200);
    assert_eq!(code(&scheduler).await, 404);
    cluster.stop().await;
}

#[tokio::test]
async fn an_answer_may_be_lost_behind_a_write_that_has_happened() {
    let cluster = bare().await;
    let (client, operator) = (cluster.client(), operator(&cluster));
    for (name, fault, code) in [("a", Fault::lost_answer(500), 500), ("b", Fault::cut(), 503)] {
        cluster.faults().add(fault.user("operator").verb("create").count(1)).unwrap();
        let error = operator.create(&CONFIG_MAPS, "default", map(name)).await.unwrap_err();
        assert_eq!(error.code, code);
        client.get(&CONFIG_MAPS, "default", name).await.unwrap();
    }
    cluster.faults().add(Fault::partition("operator")).unwrap();
    let error = operator.create(&CONFIG_MAPS, "default", map("c")).await.unwrap_err();
    assert!(error.message.contains("connection refused"), "{error:?}");
    assert!(client.get(&CONFIG_MAPS, "default", "c").await.unwrap_err().is_not_found());
    cluster.stop().await;
}

#[tokio::test]
async fn bytes_end_in_the_middle_of_a_body() {
    let cluster = bare().await;
    cluster.faults().add(Fault::cut_after(10).resource("configmaps")).unwrap();
    let request = http::Request::get("/api/v1/configmaps").body(axum::body::Body::empty()).unwrap();
    let mut body = cluster.service().oneshot(request).await.unwrap().into_body();
    let first = body.frame().await.unwrap().unwrap().into_data().unwrap();
    assert_eq!(first.len(), 10);
    assert!(body.frame().await.unwrap().is_err());
    cluster.stop().await;
}

#[tokio::test]
async fn a_rule_has_its_time_and_requests_wait_by_the_clock_of_the_cluster() {
    let clock = kubarium::Clock::stepped(chrono::DateTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000));
    let config = Config::new().nodes(0).components(Components::NONE).clock(clock.clone());
    let cluster = Cluster::start(config).await.unwrap();
    let operator = operator(&cluster);
    let code = async || operator.get(&NODES, "", "none").await.unwrap_err().code;
    let (after, lasting) = (Duration::from_secs(10), Duration::from_secs(5));
    cluster.faults().add(Fault::answer(503).after(after).lasting(lasting)).unwrap();
    let mut seen = vec![];
    for _ in 0..4 {
        let is_over = cluster.faults().list()[0].over;
        seen.push((code().await, is_over));
        clock.advance(Duration::from_secs(5));
    }
    assert_eq!(seen, [(404, false), (404, false), (503, false), (404, true)]);
    cluster.faults().add(Fault::latency(Duration::from_secs(3)).user("operator")).unwrap();
    let mut waiting = std::pin::pin!(code());
    assert!(futures::poll!(&mut waiting).is_pending());
    clock.advance(Duration::from_secs(3));
    assert_eq!(waiting.await, 404);
    cluster.stop().await;
}

#[tokio::test]
async fn reads_that_take_any_state_may_get_the_past() {
    let cluster = bare().await;
    let (client, operator) = (cluster.client(), operator(&cluster));
    client.create(&CONFIG_MAPS, "default", map("a")).await.unwrap();
    cluster.faults().add(Fault::stale_reads().user("operator")).unwrap();
    client.create(&CONFIG_MAPS, "default", map("b")).await.unwrap();
    client.delete(&CONFIG_MAPS, "default", "a", &Default::default()).await.unwrap();
    let names = async |resource_version: Option<&str>| {
        let options =
            ListOptions { resource_version: resource_version.map(Into::into), ..ListOptions::default() };
        let list = operator.list(&CONFIG_MAPS, "default", &options).await.unwrap();
        let names = list.items.iter().map(|map| map.metadata.name.to_string());
        names.filter(|name| name.len() == 1).collect::<Vec<_>>()
    };
    assert_eq!((names(Some("0")).await, names(None).await), (vec!["a".to_owned()], vec!["b".to_owned()]));
    let get = async |path: &str| operator.get_path(path).await;
    let maps = "/api/v1/namespaces/default/configmaps";
    assert_eq!(get(&format!("{maps}/a?resourceVersion=0")).await.unwrap()["metadata"]["name"], "a");
    assert!(get(&format!("{maps}/b?resourceVersion=0")).await.unwrap_err().is_not_found());
    assert!(get(&format!("{maps}/a")).await.unwrap_err().is_not_found());
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_component_stands_still_until_its_fault_is_gone() {
    let cluster = Cluster::start(Config::default()).await.unwrap();
    let client = cluster.client();
    let error = cluster.faults().add(Fault::stop("kubelet/node-9")).unwrap_err().to_string();
    assert!(error.contains("kubelet/node-9"), "{error}");
    cluster.faults().add(Fault::stop("kube-scheduler").named("asleep")).unwrap();
    let pod = json!({"metadata": {"name": "web"}, "spec": {"containers": [{"name": "c", "image": "nginx"}]}});
    client.create(&kubarium::kinds::PODS, "default", pod).await.unwrap();
    tokio::time::sleep(Duration::from_millis(50)).await;
    let node = async || {
        let pod = client.get(&kubarium::kinds::PODS, "default", "web").await.unwrap();
        pod.to_value()["spec"]["nodeName"].as_str().map(str::to_owned)
    };
    assert_eq!(node().await, None);
    cluster.faults().remove("asleep").unwrap();
    while node().await.is_none() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    cluster.stop().await;
}

#[tokio::test]
async fn the_past_is_no_older_than_what_compaction_has_left() {
    let clock = kubarium::Clock::stepped(chrono::DateTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000));
    let config = Config::new().nodes(0).components(Components::NONE).clock(clock);
    let cluster = Cluster::start(config).await.unwrap();
    cluster.client().create(&CONFIG_MAPS, "default", map("a")).await.unwrap();
    cluster.faults().add(Fault::stale_reads().user("operator")).unwrap();
    cluster.client().create(&CONFIG_MAPS, "default", map("b")).await.unwrap();
    // Beyond two compactions: the first notes where the second is to begin.
    cluster.pass(Duration::from_secs(15 * 60)).await.unwrap();
    let path = "/api/v1/namespaces/default/configmaps/a?resourceVersion=0";
    assert_eq!(operator(&cluster).get_path(path).await.unwrap()["metadata"]["name"], "a");
    cluster.stop().await;
}
