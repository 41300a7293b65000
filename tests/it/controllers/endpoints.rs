//! Services know their pods; budgets count them.

use kubarium::apimachinery::options::{DeleteOptions, PatchType};
use kubarium::apis::apps::deployment::DEPLOYMENTS;
use kubarium::apis::core::endpoints::ENDPOINTS;
use kubarium::apis::core::node::NODES;
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
async fn services_that_ask_for_it_share_endpoints_out_by_zones() {
    let fixture = Fixture::start().await;
    let node = |zone: &str, cpu: &str| {
        json!({"metadata": {"name": zone, "labels": {"topology.kubernetes.io/zone": zone}},
            "status": {"allocatable": {"cpu": cpu}, "conditions": [{"type": "Ready", "status": "True"}]}})
    };
    for (zone, cpu) in [("a", "1"), ("b", "3")] {
        fixture.create(&NODES, "", node(zone, cpu)).await;
    }
    with_service(&fixture).await;
    for (number, zone) in ["a", "a", "b", "b"].iter().enumerate() {
        let name = format!("web-{number}");
        let pod = json!({"metadata": {"name": name, "labels": {"app": "web"}},
            "spec": {"nodeName": zone, "containers": [{"name": "c", "image": "nginx"}]}});
        fixture.create(&PODS, NAMESPACE, pod).await;
        fixture.set_ready(&name, "True", &format!("10.0.0.{}", number + 1)).await;
    }
    let hints = || async {
        let slices = fixture.list(&ENDPOINT_SLICES, OF_WEB).await;
        let endpoints = slices.first().and_then(|slice| slice["endpoints"].as_array().cloned());
        let zone =
            |endpoint: &Value| endpoint["hints"]["forZones"][0]["name"].as_str().unwrap_or("-").to_owned();
        let mut zones: Vec<String> = endpoints.iter().flatten().map(zone).collect();
        zones.sort();
        zones.concat()
    };
    let has = |wanted: &'static str| {
        let hints = &hints;
        move || async move { (hints().await == wanted).then_some(()) }
    };
    fixture.eventually("there are no hints", has("----")).await;
    let mode =
        |mode: Value| json!({"metadata": {"annotations": {"service.kubernetes.io/topology-mode": mode}}});
    fixture.patch(&SERVICES, "web", mode(json!("Auto"))).await;
    fixture.eventually("one for zone a, three for b", has("abbb")).await;
    let enabled = "Topology Aware Hints has been enabled, addressType: IPv4";
    fixture.told("TopologyAwareHintsEnabled", enabled).await;
    let even = json!({"status": {"allocatable": {"cpu": "3"}}});
    fixture.client.patch_status(&NODES, "", "a", PatchType::Merge, &even).await.unwrap();
    fixture.eventually("two each", has("aabb")).await;
    fixture.patch(&SERVICES, "web", mode(Value::Null)).await;
    fixture.eventually("they are gone", has("----")).await;
    let disabled = "Topology Aware Hints has been disabled, addressType: IPv4";
    fixture.told("TopologyAwareHintsDisabled", disabled).await;
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
