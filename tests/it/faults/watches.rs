//! Watches that go wrong, over memory and over connections, and webhooks that are silent.

use std::time::Duration;

use axum::body::Body;
use http_body_util::BodyExt;
use kubarium::apimachinery::options::ListOptions;
use kubarium::apimachinery::watch::WatchEvent;
use kubarium::apis::admissionregistration::webhook_configuration::VALIDATING_WEBHOOK_CONFIGURATIONS;
use kubarium::kinds::{CONFIG_MAPS, SECRETS};
use kubarium::{Client, Cluster, Fault};
use serde_json::{Value, json};
use tokio::sync::mpsc::Receiver;
use tower::ServiceExt;

use super::{bare, map, operator};

async fn watch(client: &Client) -> Receiver<WatchEvent> {
    client.watch(&CONFIG_MAPS, "default", &ListOptions::default()).await.unwrap()
}

/// The events that come before the watch ends, or before the last of them has come.
async fn told(events: &mut Receiver<WatchEvent>, most: usize) -> Vec<&'static str> {
    let mut told = vec![];
    while told.len() < most
        && let Some(event) = events.recv().await
    {
        told.push(event.type_name());
    }
    told
}

#[tokio::test]
async fn a_watch_ends_expires_and_says_things_twice() {
    let cluster = bare().await;
    let (client, operator) = (cluster.client(), operator(&cluster));
    for name in ["a", "b"] {
        client.create(&CONFIG_MAPS, "default", map(name)).await.unwrap();
    }
    let cases = [
        (Fault::close_watch(1), 9, vec!["ADDED"]),
        (Fault::expire_watch(0), 9, vec!["ERROR"]),
        (Fault::duplicate_events(), 4, vec!["ADDED", "MODIFIED", "ADDED", "MODIFIED"]),
    ];
    for (fault, most, expected) in cases {
        cluster.faults().add(fault.user("operator")).unwrap();
        assert_eq!(told(&mut watch(&operator).await, most).await, expected);
        assert_eq!(told(&mut watch(&client).await, 2).await, ["ADDED", "ADDED"], "of others nothing");
        cluster.faults().clear();
    }
    let mut late = {
        cluster.faults().add(Fault::delay_events(Duration::from_secs(3600))).unwrap();
        watch(&operator).await
    };
    tokio::time::sleep(Duration::from_millis(20)).await;
    assert!(late.try_recv().is_err());
    cluster.stop().await;
}

/// A watch as bytes.
async fn bytes(cluster: &Cluster) -> Body {
    let request = http::Request::get("/api/v1/namespaces/default/configmaps?watch=true");
    let response = cluster.service().oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
    assert_eq!(response.status(), 200);
    response.into_body()
}

#[tokio::test]
async fn watches_that_are_open_end_when_the_rule_comes() {
    let cluster = bare().await;
    cluster.client().create(&CONFIG_MAPS, "default", map("a")).await.unwrap();
    for (fault, is_error) in [(Fault::close_watch(0), false), (Fault::partition("kubernetes-admin"), true)] {
        let mut body = bytes(&cluster).await;
        let first = body.frame().await.unwrap().unwrap().into_data().unwrap();
        assert!(first.starts_with(b"{\"type\":\"ADDED\""), "{first:?}");
        cluster.faults().add(fault).unwrap();
        let end = body.frame().await;
        assert_eq!(end.is_some_and(|frame| frame.is_err()), is_error);
        cluster.faults().clear();
    }
    cluster.faults().add(Fault::expire_watch(0)).unwrap();
    let text = bytes(&cluster).await.collect().await.unwrap().to_bytes();
    let event: Value = serde_json::from_slice(&text).unwrap();
    assert_eq!((&event["type"], &event["object"]["code"]), (&json!("ERROR"), &json!(410)));
    assert_eq!(event["object"]["reason"], "Expired");
    cluster.stop().await;
}

#[tokio::test]
async fn a_silent_webhook_is_judged_by_its_failure_policy() {
    let cluster = bare().await;
    let (client, operator) = (cluster.client(), operator(&cluster));
    let rule = json!({"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]});
    let hook = |name: &str, policy: &str| {
        json!({
            "name": name, "failurePolicy": policy, "sideEffects": "None", "admissionReviewVersions": ["v1"],
            "rules": [rule], "clientConfig": {"url": "https://127.0.0.1:1/x"}, "timeoutSeconds": 30,
            "matchConditions": [{"name": "own", "expression": "object.metadata.name.startsWith('x')"}],
        })
    };
    for (name, policy) in [("open.example.com", "Ignore"), ("closed.example.com", "Fail")] {
        let hooks = json!({"metadata": {"name": name}, "webhooks": [hook(name, policy)]});
        client.create(&VALIDATING_WEBHOOK_CONFIGURATIONS, "", hooks).await.unwrap();
    }
    cluster.faults().add(Fault::silent_webhook("*.example.com").user("operator")).unwrap();
    let error = loop {
        // Who is to be asked is heard of a moment after it is written.
        let name = format!("x{}", kubarium::Entropy::from_system().suffix(8));
        match operator.create(&CONFIG_MAPS, "default", map(&name)).await {
            Err(error) => break error,
            Ok(_) => tokio::task::yield_now().await,
        }
    };
    let words = "failed calling webhook \"closed.example.com\": failed to call webhook: Post \
                 \"https://127.0.0.1:1/x?timeout=30s\": context deadline exceeded";
    assert!(error.message.contains(words), "{}", error.message);
    cluster.stop().await;
}

#[tokio::test]
async fn an_expired_watch_stays_so_until_its_user_lists() {
    let cluster = bare().await;
    let (client, operator) = (cluster.client(), operator(&cluster));
    client.create(&CONFIG_MAPS, "default", map("a")).await.unwrap();
    let since = |list: kubarium::apimachinery::list::List| ListOptions {
        resource_version: Some(list.resource_version.to_string()),
        ..ListOptions::default()
    };
    let cached = ListOptions { resource_version: Some("0".into()), ..ListOptions::default() };
    let listed = since(operator.list(&CONFIG_MAPS, "default", &cached).await.unwrap());
    let rule = Fault::expire_watch(0).user("operator").resource("configmaps").count(1).named("expired");
    cluster.faults().add(rule).unwrap();
    // The store goes on, and the cache of config maps has nothing new to tell.
    client.create(&SECRETS, "default", map("s")).await.unwrap();
    for _ in 0..2 {
        let mut events = operator.watch(&CONFIG_MAPS, "default", &listed).await.unwrap();
        assert_eq!(told(&mut events, 9).await, ["ERROR"]);
    }
    let listed = since(operator.list(&CONFIG_MAPS, "default", &cached).await.unwrap());
    let mut events = operator.watch(&CONFIG_MAPS, "default", &listed).await.unwrap();
    client.create(&CONFIG_MAPS, "default", map("b")).await.unwrap();
    assert_eq!(told(&mut events, 1).await, ["ADDED"]);
    assert_eq!(cluster.faults().get("expired").unwrap().hits, 1);
    cluster.stop().await;
}

/// Events are read as they are in this process: there is no connection that could break.
#[tokio::test]
async fn a_partition_ends_watches_in_this_process_too_and_lets_no_event_through() {
    let cluster = bare().await;
    let (cut_off, other) = (operator(&cluster), cluster.client());
    let (mut events, mut of_other) = (watch(&cut_off).await, watch(&other).await);
    cluster.faults().add(Fault::partition("operator").named("cut")).unwrap();
    other.create(&CONFIG_MAPS, "default", map("a")).await.unwrap();
    assert_eq!(told(&mut of_other, 1).await, ["ADDED"]);
    assert_eq!(told(&mut events, 1).await, [""; 0]);
    assert!(events.is_closed());
    let refused = cut_off.watch(&CONFIG_MAPS, "default", &ListOptions::default()).await.unwrap_err();
    assert_eq!(refused.code, 503);
    cluster.faults().remove("cut").unwrap();
    let mut events = watch(&cut_off).await;
    assert_eq!(told(&mut events, 1).await, ["ADDED"]);
    cluster.stop().await;
}

/// Which of twenty watches that were open, every other one as bytes, end when the rule comes.
async fn ended(fault: Fault) -> String {
    let cluster = bare().await;
    let client = cluster.client();
    let (mut over_memory, mut as_bytes) = (vec![], vec![]);
    for _ in 0..10 {
        over_memory.push(watch(&client).await);
        as_bytes.push(bytes(&cluster).await);
    }
    cluster.faults().add(fault.verb("watch").named("ends")).unwrap();
    let hits = cluster.faults().get("ends").unwrap().hits;
    // Those that go on are told of it, and end with the cluster.
    client.create(&CONFIG_MAPS, "default", map("late")).await.unwrap();
    let mut ends = String::new();
    for (mut events, mut body) in over_memory.into_iter().zip(as_bytes) {
        let frame = body.frame().await.and_then(Result::ok);
        for goes_on in [events.recv().await.is_some(), frame.is_some()] {
            ends.push(if goes_on { '.' } else { 'x' });
        }
    }
    cluster.stop().await;
    assert_eq!(hits as usize, ends.matches('x').count());
    ends
}

#[tokio::test]
async fn of_watches_that_are_open_the_nth_the_oldest_and_some_by_chance_are_hit_alike_twice() {
    assert_eq!(ended(Fault::close_watch(0)).await, "x".repeat(20));
    assert_eq!(ended(Fault::close_watch(0).nth(3)).await, "..x.................");
    assert_eq!(ended(Fault::close_watch(0).count(2)).await, "xx..................");
    assert_eq!(ended(Fault::partition("kubernetes-admin").count(2)).await, "xx..................");
    assert_eq!(ended(Fault::close_watch(1)).await, ".".repeat(20), "what was told before, nobody counted");
    let by_chance = ended(Fault::expire_watch(0).probability(0.5)).await;
    assert!(by_chance.contains('x') && by_chance.contains('.'), "{by_chance}");
    assert_eq!(ended(Fault::expire_watch(0).probability(0.5)).await, by_chance);
}

#[tokio::test]
async fn an_open_watch_that_expires_may_not_begin_where_it_was() {
    let cluster = bare().await;
    let (client, operator) = (cluster.client(), operator(&cluster));
    let made = client.create(&CONFIG_MAPS, "default", map("a")).await.unwrap();
    let since = |revision: u64| ListOptions {
        resource_version: Some(revision.to_string()),
        ..ListOptions::default()
    };
    let mut open = watch(&operator).await;
    assert_eq!(told(&mut open, 1).await, ["ADDED"]);
    cluster.faults().add(Fault::expire_watch(0).user("operator").count(1).named("expired")).unwrap();
    assert_eq!(told(&mut open, 1).await, [""; 0]);
    let seen = since(made.metadata.resource_version);
    let mut again = operator.watch(&CONFIG_MAPS, "default", &seen).await.unwrap();
    assert_eq!(told(&mut again, 9).await, ["ERROR"]);
    let listed = operator.list(&CONFIG_MAPS, "default", &ListOptions::default()).await.unwrap();
    let mut anew = operator.watch(&CONFIG_MAPS, "default", &since(listed.resource_version)).await.unwrap();
    client.create(&CONFIG_MAPS, "default", map("b")).await.unwrap();
    assert_eq!(told(&mut anew, 1).await, ["ADDED"]);
    assert_eq!(cluster.faults().get("expired").unwrap().hits, 1);
    cluster.stop().await;
}
