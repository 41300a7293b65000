//! Services know their pods; budgets count them.

use kubarium::apimachinery::options::DeleteOptions;
use kubarium::apis::apps::deployment::DEPLOYMENTS;
use kubarium::apis::core::endpoints::ENDPOINTS;
use kubarium::apis::core::pod::PODS;
use kubarium::apis::core::service::SERVICES;
use kubarium::apis::discovery::endpoint_slice::ENDPOINT_SLICES;
use kubarium::apis::policy::pod_disruption_budget::POD_DISRUPTION_BUDGETS;
use serde_json::{Value, json};

use super::support::{Fixture, NAMESPACE, condition, deployment, name};

const OF_WEB: &str = "kubernetes.io/service-name=web";

fn ips(addresses: &Value) -> usize {
    addresses.as_array().map_or(0, Vec::len)
}

async fn with_service(fixture: &Fixture) {
    let port = json!({"port": 80, "targetPort": 8080});
    let service = json!({
        "metadata": {"name": "web", "labels": {"team": "a"}},
        "spec": {"selector": {"app": "web"}, "ports": [port]},
    });
    fixture.create(&SERVICES, NAMESPACE, service).await;
}

#[tokio::test]
async fn endpoints_follow_the_pods() {
    let fixture = Fixture::start().await;
    with_service(&fixture).await;
    let empty = fixture.exists(&ENDPOINTS, "web").await;
    assert!(empty["subsets"].is_null() || empty["subsets"] == json!([]));
    assert_eq!(empty["metadata"]["labels"]["team"], "a");
    fixture.create(&DEPLOYMENTS, NAMESPACE, deployment("web", 2, "nginx", json!({}))).await;
    fixture.rolled_out("web").await;
    let both = || async {
        let endpoints = fixture.get(&ENDPOINTS, "web").await?;
        let subset = &endpoints["subsets"][0];
        (ips(&subset["addresses"]) == 2).then_some(subset.clone())
    };
    let subset = fixture.eventually("two addresses", both).await;
    assert_eq!(subset["ports"][0]["port"], 8080);
    assert_eq!(subset["addresses"][0]["targetRef"]["kind"], "Pod");
    let pod = name(&fixture.pods("").await[0]).to_owned();
    fixture.set_ready(&pod, "False", "10.0.0.1").await;
    let one = || async {
        let subset = &fixture.get(&ENDPOINTS, "web").await?["subsets"][0];
        (ips(&subset["addresses"]) == 1 && ips(&subset["notReadyAddresses"]) == 1).then_some(())
    };
    fixture.eventually("one is not ready", one).await;
    fixture.delete(&SERVICES, "web", "Background").await;
    fixture.gone(&ENDPOINTS, "web").await;
}

#[tokio::test]
async fn slices_follow_the_pods_and_go_with_the_service() {
    let fixture = Fixture::start().await;
    with_service(&fixture).await;
    let slices = |count: usize, ready: usize| {
        let fixture = &fixture;
        move || async move {
            let slices = fixture.list(&ENDPOINT_SLICES, OF_WEB).await;
            let endpoints =
                slices.iter().flat_map(|slice| slice["endpoints"].as_array().cloned().unwrap_or_default());
            let is_ready = |endpoint: &Value| endpoint["conditions"]["ready"] == true;
            (slices.len() == count && endpoints.filter(is_ready).count() == ready).then_some(slices)
        }
    };
    let empty = fixture.eventually("an empty slice", slices(1, 0)).await;
    assert!(name(&empty[0]).starts_with("web-"));
    assert_eq!(empty[0]["metadata"]["ownerReferences"][0]["kind"], "Service");
    fixture.create(&DEPLOYMENTS, NAMESPACE, deployment("web", 3, "nginx", json!({}))).await;
    fixture.rolled_out("web").await;
    let full = fixture.eventually("three endpoints in that slice", slices(1, 3)).await;
    assert_eq!(name(&full[0]), name(&empty[0]));
    assert_eq!((&full[0]["addressType"], &full[0]["ports"][0]["port"]), (&json!("IPv4"), &json!(8080)));
    fixture.delete(&SERVICES, "web", "Background").await;
    fixture.eventually("no slices", slices(0, 0)).await;
}

#[tokio::test]
async fn a_budget_allows_what_is_above_it() {
    let fixture = Fixture::start().await;
    let spec = json!({"minAvailable": "60%", "selector": {"matchLabels": {"app": "web"}}});
    fixture
        .create(&POD_DISRUPTION_BUDGETS, NAMESPACE, json!({"metadata": {"name": "web"}, "spec": spec}))
        .await;
    fixture.create(&DEPLOYMENTS, NAMESPACE, deployment("web", 3, "nginx", json!({}))).await;
    fixture.rolled_out("web").await;
    let counted = |healthy: i64| {
        let fixture = &fixture;
        move || async move {
            let budget = fixture.get(&POD_DISRUPTION_BUDGETS, "web").await?;
            let is_counted =
                budget["status"]["currentHealthy"] == healthy && budget["status"]["expectedPods"] == 3;
            is_counted.then_some(budget)
        }
    };
    let budget = fixture.eventually("three healthy pods", counted(3)).await;
    assert_eq!(budget["status"]["desiredHealthy"], 2);
    assert_eq!(budget["status"]["disruptionsAllowed"], 1);
    assert_eq!(condition(&budget, "DisruptionAllowed")["reason"], "SufficientPods");
    let pod = name(&fixture.pods("").await[0]).to_owned();
    let now = DeleteOptions { grace_period_seconds: Some(0), ..DeleteOptions::default() };
    fixture.client.delete(&PODS, NAMESPACE, &pod, &now).await.unwrap();
    let budget = fixture.eventually("two healthy pods", counted(2)).await;
    assert_eq!(budget["status"]["disruptionsAllowed"], 0);
    assert_eq!(condition(&budget, "DisruptionAllowed")["reason"], "InsufficientPods");
}
