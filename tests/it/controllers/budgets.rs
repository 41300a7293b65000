//! Budgets of disruptions over what is no kind of the server's own, and pods of nobody.

use kubarium::apimachinery::options::PatchType;
use kubarium::apimachinery::time::rfc3339;
use kubarium::apis::apiextensions::custom_resource_definition::CUSTOM_RESOURCE_DEFINITIONS;
use kubarium::apis::core::event::EVENTS;
use kubarium::apis::core::pod::PODS;
use kubarium::apis::policy::pod_disruption_budget::POD_DISRUPTION_BUDGETS;
use serde_json::{Value, json};

use super::support::{Fixture, NAMESPACE, condition};

fn definition() -> Value {
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let scale = json!({"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"});
    let version = json!({"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema},
        "subresources": {"scale": scale}});
    json!({"metadata": {"name": "bands.music.example"}, "spec": {"group": "music.example", "scope": "Namespaced",
        "names": {"plural": "bands", "singular": "band", "kind": "Band", "listKind": "BandList"},
        "versions": [version]}})
}

fn pod(name: &str, owner: Value) -> Value {
    json!({"metadata": {"name": name, "labels": {"app": "band"}, "ownerReferences": owner},
        "spec": {"containers": [{"name": "c", "image": "nginx"}]}})
}

fn budget() -> Value {
    json!({"metadata": {"name": "budget"}, "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "band"}}}})
}

#[tokio::test]
async fn a_budget_counts_by_the_scale_of_a_custom_resource() {
    let fixture = Fixture::start().await;
    fixture.create(&CUSTOM_RESOURCE_DEFINITIONS, "", definition()).await;
    let look = || async { fixture.cluster.scheme().resource("music.example", "v1", "bands") };
    let kind = fixture.eventually("the kind is served", look).await;
    let band = json!({"metadata": {"name": "four"}, "spec": {"replicas": 4}});
    let band = fixture.create(&kind, NAMESPACE, band).await;
    let owner = json!([{"apiVersion": "music.example/v1", "kind": "Band", "name": "four", "controller": true,
        "uid": band.metadata.uid}]);
    fixture.create(&PODS, NAMESPACE, pod("john", owner)).await;
    fixture.create(&POD_DISRUPTION_BUDGETS, NAMESPACE, budget()).await;
    let look = || async {
        let budget = fixture.get(&POD_DISRUPTION_BUDGETS, "budget").await?;
        (budget["status"]["expectedPods"] == 4).then_some(budget)
    };
    let budget = fixture.eventually("the budget knows the scale", look).await;
    assert_eq!(budget["status"]["desiredHealthy"], 3);
}

#[tokio::test]
async fn pods_of_nobody_and_those_that_were_spared_are_told_of() {
    let fixture = Fixture::start().await;
    fixture.create(&PODS, NAMESPACE, pod("alone", Value::Null)).await;
    fixture.create(&POD_DISRUPTION_BUDGETS, NAMESPACE, budget()).await;
    let look = || async {
        let events = fixture.list(&EVENTS, "").await;
        events.into_iter().find(|event| event["reason"] == "UnmanagedPods")
    };
    let event = fixture.eventually("it is said that nobody has them", look).await;
    let selector = "&LabelSelector{MatchLabels:map[string]string{app: band,},MatchExpressions:[]LabelSelectorRequirement{},}";
    assert!(event["message"].as_str().unwrap().contains(selector), "{event}");

    let since = rfc3339(fixture.clock.now());
    let target = json!({"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI",
        "lastTransitionTime": since});
    let status = json!({"status": {"conditions": [target]}});
    fixture.client.patch_status(&PODS, NAMESPACE, "alone", PatchType::StrategicMerge, &status).await.unwrap();
    fixture.clock.advance(std::time::Duration::from_secs(60));
    fixture.settle(20).await;
    let pod = fixture.get(&PODS, "alone").await.unwrap();
    assert_eq!(condition(&pod, "DisruptionTarget")["status"], "True");
    fixture.clock.advance(std::time::Duration::from_secs(61));
    let look = || async {
        let pod = fixture.get(&PODS, "alone").await?;
        (condition(&pod, "DisruptionTarget")["status"] == "False").then_some(())
    };
    fixture.eventually("the pod is spared", look).await;
}

#[tokio::test]
async fn two_budgets_for_a_pod_and_one_that_was_not_deleted_are_told_of() {
    let fixture = Fixture::start().await;
    let mut other = budget();
    other["metadata"]["name"] = "other".into();
    fixture.create(&POD_DISRUPTION_BUDGETS, NAMESPACE, budget()).await;
    fixture.create(&POD_DISRUPTION_BUDGETS, NAMESPACE, other).await;
    fixture.settle(20).await;
    fixture.create(&PODS, NAMESPACE, pod("alone", Value::Null)).await;
    let chosen =
        "Pod \"test\"/\"alone\" matches multiple PodDisruptionBudgets.  Chose \"budget\" arbitrarily.";
    fixture.told("MultiplePodDisruptionBudgets", chosen).await;

    let granted = json!({"status": {"disruptedPods": {"alone": rfc3339(fixture.clock.now())}}});
    let (client, kind) = (&fixture.client, &POD_DISRUPTION_BUDGETS);
    client.patch_status(kind, NAMESPACE, "budget", PatchType::Merge, &granted).await.unwrap();
    fixture.settle(20).await;
    assert!(fixture.events("NotDeleted").await.is_empty(), "it has two minutes");
    fixture.clock.advance(std::time::Duration::from_secs(122));
    fixture.told("NotDeleted", "Pod was expected by PDB test/test to be deleted but it wasn't").await;
}
