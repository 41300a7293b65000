//! ReplicaSets and ReplicationControllers keep their number.

use std::time::Duration;

use kubarium::apimachinery::options::DeleteOptions;
use kubarium::apis::apps::replica_set::REPLICA_SETS;
use kubarium::apis::core::pod::PODS;
use kubarium::apis::core::replication_controller::REPLICATION_CONTROLLERS;
use serde_json::{Value, json};

use super::support::{Fixture, NAMESPACE, name};

fn replica_set(name: &str, replicas: i64, change: Value) -> Value {
    let template = json!({
        "metadata": {"labels": {"app": name}},
        "spec": {"containers": [{"name": "c", "image": "nginx"}]},
    });
    let mut spec =
        json!({"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template});
    for (key, value) in change.as_object().into_iter().flatten() {
        spec[key] = value.clone();
    }
    json!({"metadata": {"name": name}, "spec": spec})
}

async fn has_pods(fixture: &Fixture, selector: &str, count: usize) -> Vec<Value> {
    fixture
        .eventually(&format!("{count} pods of {selector}"), || async {
            let pods = fixture.pods(selector).await;
            (pods.len() == count).then_some(pods)
        })
        .await
}

async fn has_status(fixture: &Fixture, set: &str, what: &str, count: i64) {
    fixture
        .eventually(&format!("{set}: {what} is {count}"), || async {
            fixture.run_pods("").await;
            let set = fixture.get(&REPLICA_SETS, set).await?;
            (set["status"][what].as_i64().unwrap_or(0) == count).then_some(())
        })
        .await;
}

#[tokio::test]
async fn pods_are_made_replaced_and_removed() {
    let fixture = Fixture::start().await;
    fixture.create(&REPLICA_SETS, NAMESPACE, replica_set("web", 3, json!({}))).await;
    let pods = has_pods(&fixture, "app=web", 3).await;
    let owner = &pods[0]["metadata"]["ownerReferences"][0];
    assert_eq!((&owner["kind"], &owner["controller"]), (&json!("ReplicaSet"), &json!(true)));
    assert!(name(&pods[0]).starts_with("web-"));
    has_status(&fixture, "web", "availableReplicas", 3).await;
    fixture.told("SuccessfulCreate", &format!("Created pod: {}", name(&pods[0]))).await;

    let now = DeleteOptions { grace_period_seconds: Some(0), ..DeleteOptions::default() };
    fixture.client.delete(&PODS, NAMESPACE, name(&pods[0]), &now).await.unwrap();
    let after = fixture
        .eventually("another pod", || async {
            let after = fixture.pods("app=web").await;
            (after.len() == 3 && !after.iter().any(|pod| name(pod) == name(&pods[0]))).then_some(after)
        })
        .await;
    has_status(&fixture, "web", "readyReplicas", 3).await;

    fixture.set_ready(name(&after[1]), "False", "10.0.0.9").await;
    has_status(&fixture, "web", "readyReplicas", 2).await;
    fixture.patch(&REPLICA_SETS, "web", json!({"spec": {"replicas": 2}})).await;
    has_pods(&fixture, "app=web", 2).await;
    fixture.told("SuccessfulDelete", &format!("Deleted pod: {}", name(&after[1]))).await;
    has_status(&fixture, "web", "replicas", 2).await;
}

#[tokio::test]
async fn orphans_are_adopted_and_strays_released() {
    let fixture = Fixture::start().await;
    let pod = json!({"metadata": {"name": "stray", "labels": {"app": "web"}},
        "spec": {"containers": [{"name": "c", "image": "nginx"}]}});
    fixture.create(&PODS, NAMESPACE, pod).await;
    fixture.create(&REPLICA_SETS, NAMESPACE, replica_set("web", 2, json!({}))).await;
    let pods = has_pods(&fixture, "app=web", 2).await;
    let stray = pods.iter().find(|pod| name(pod) == "stray").expect("the orphan is one of the two");
    let adopted = || async {
        let stray = fixture.get(&PODS, "stray").await?;
        (stray["metadata"]["ownerReferences"][0]["name"] == "web").then_some(())
    };
    fixture.eventually("the orphan is adopted", adopted).await;
    fixture.patch(&PODS, name(stray), json!({"metadata": {"labels": {"app": "other"}}})).await;
    has_pods(&fixture, "app=web", 2).await;
    let released = || async {
        let stray = fixture.get(&PODS, "stray").await?;
        stray["metadata"]["ownerReferences"].is_null().then_some(())
    };
    fixture.eventually("the stray is released", released).await;
}

#[tokio::test]
async fn availability_waits_for_min_ready_seconds() {
    let fixture = Fixture::start().await;
    fixture.create(&REPLICA_SETS, NAMESPACE, replica_set("slow", 1, json!({"minReadySeconds": 300}))).await;
    has_pods(&fixture, "app=slow", 1).await;
    has_status(&fixture, "slow", "readyReplicas", 1).await;
    has_status(&fixture, "slow", "availableReplicas", 0).await;
    fixture.clock.advance(Duration::from_secs(300));
    has_status(&fixture, "slow", "availableReplicas", 1).await;
}

#[tokio::test]
async fn a_replication_controller_does_the_same() {
    let fixture = Fixture::start().await;
    let mut controller = replica_set("old", 2, json!({}));
    controller["spec"]["selector"] = json!({"app": "old"});
    fixture.create(&REPLICATION_CONTROLLERS, NAMESPACE, controller).await;
    let pods = has_pods(&fixture, "app=old", 2).await;
    assert_eq!(pods[0]["metadata"]["ownerReferences"][0]["kind"], "ReplicationController");
}

#[tokio::test]
async fn the_controllers_go_on_where_they_were_stopped() {
    let fixture = Fixture::start().await;
    fixture.create(&REPLICA_SETS, NAMESPACE, replica_set("web", 2, json!({}))).await;
    has_pods(&fixture, "app=web", 2).await;
    fixture.cluster.stop_component("kube-controller-manager").unwrap();
    fixture.patch(&REPLICA_SETS, "web", json!({"spec": {"replicas": 4}})).await;
    fixture.settle(20).await;
    assert_eq!(fixture.pods("app=web").await.len(), 2);
    fixture.cluster.start_component("kube-controller-manager").unwrap();
    has_pods(&fixture, "app=web", 4).await;
}
