//! Devices: a node has them, claims get them, pods wait for them, and leave when they are tainted.

use std::time::Duration;

use kubarium::Fault;
use kubarium::apis::core::pod::PODS;
use kubarium::apis::resource::device_class::DEVICE_CLASSES;
use kubarium::apis::resource::resource_claim::{RESOURCE_CLAIM_TEMPLATES, RESOURCE_CLAIMS};
use kubarium::apis::resource::resource_slice::RESOURCE_SLICES;
use kubarium::cluster::{Components, Config};
use kubarium::kubelet::node_group::NodeGroup;
use serde_json::{Value, json};

use super::support::{Fixture, NAMESPACE};

const SLICE: &str = "gpu-gpu.example.com-0";

/// A node with two devices, and a class and a template for them.
async fn start(tolerations: Value) -> Fixture {
    let file = "nodes: [{name: gpu, devices: [{driver: gpu.example.com, name: gpu, count: 2, \
                attributes: {model: A100}, capacity: {memory: 80Gi}}]}]";
    let components = Components::NONE.controllers(true).kubelets(true).scheduler(true);
    let config = Config::new().components(components).nodes(0);
    let config = config.node_groups(NodeGroup::read(file).unwrap());
    let fixture = Fixture::start_configured(config).await;
    fixture.exists(&RESOURCE_SLICES, SLICE).await;
    let class = json!({"metadata": {"name": "gpu"}, "spec": {"selectors": [
        {"cel": {"expression": "device.driver == 'gpu.example.com'"}}]}});
    fixture.create(&DEVICE_CLASSES, "", class).await;
    let request = json!({"name": "gpu", "exactly": {"deviceClassName": "gpu", "tolerations": tolerations}});
    let template =
        json!({"metadata": {"name": "gpu"}, "spec": {"spec": {"devices": {"requests": [request]}}}});
    fixture.create(&RESOURCE_CLAIM_TEMPLATES, NAMESPACE, template).await;
    fixture
}

async fn create_pod(fixture: &Fixture, name: &str, more: Value) {
    let container = json!({"name": "c", "image": "nginx", "resources": {"claims": [{"name": "gpu"}]}});
    let claims = json!([{"name": "gpu", "resourceClaimTemplateName": "gpu"}]);
    let mut spec = json!({"containers": [container], "resourceClaims": claims,
        "terminationGracePeriodSeconds": 0});
    spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    fixture.create(&PODS, NAMESPACE, json!({"metadata": {"name": name}, "spec": spec})).await;
}

async fn runs(fixture: &Fixture, name: &str) {
    let look = || async {
        let pod = fixture.get(&PODS, name).await?;
        (pod["status"]["phase"] == "Running").then_some(())
    };
    fixture.eventually(&format!("{name} runs"), look).await;
}

/// Which of the two devices has the taint.
async fn taint_all(fixture: &Fixture, taints: Value) {
    let mut devices = fixture.get(&RESOURCE_SLICES, SLICE).await.unwrap()["spec"]["devices"].clone();
    for device in devices.as_array_mut().unwrap() {
        device["taints"] = taints.clone();
    }
    fixture.patch(&RESOURCE_SLICES, SLICE, json!({"spec": {"devices": devices}})).await;
}

#[tokio::test]
async fn a_pod_has_a_device_of_its_node_until_it_is_tainted() {
    let fixture = start(json!([])).await;
    let slice = fixture.get(&RESOURCE_SLICES, SLICE).await.unwrap();
    assert_eq!(slice["metadata"]["ownerReferences"][0]["kind"], "Node");
    assert_eq!(slice["spec"]["devices"][1]["name"], "gpu-1");
    create_pod(&fixture, "train", json!({})).await;
    runs(&fixture, "train").await;
    let claims = fixture.list(&RESOURCE_CLAIMS, "").await;
    let result = &claims[0]["status"]["allocation"]["devices"]["results"][0];
    assert_eq!((&result["driver"], &result["pool"]), (&json!("gpu.example.com"), &json!("gpu")));
    taint_all(&fixture, json!([{"key": "broken", "effect": "NoExecute"}])).await;
    fixture.told("DeviceTaintManagerEviction", "Marking for deletion").await;
    fixture.gone(&PODS, "train").await;
}

#[tokio::test]
async fn a_pod_stays_as_long_as_its_claim_tolerates_the_taint() {
    let fixture = start(json!([{"key": "broken", "operator": "Exists", "effect": "NoExecute",
        "tolerationSeconds": 30}]))
    .await;
    for name in ["train", "other"] {
        create_pod(&fixture, name, json!({})).await;
        runs(&fixture, name).await;
    }
    taint_all(&fixture, json!([{"key": "broken", "effect": "NoExecute"}])).await;
    fixture.pass(Duration::from_secs(20)).await;
    runs(&fixture, "train").await;
    taint_all(&fixture, json!([])).await;
    fixture.told("DeviceTaintManagerEviction", "Cancelling deletion").await;
    fixture.pass(Duration::from_secs(30)).await;
    runs(&fixture, "train").await;
    taint_all(&fixture, json!([{"key": "broken", "effect": "NoExecute"}])).await;
    fixture.pass(Duration::from_secs(31)).await;
    fixture.gone(&PODS, "train").await;
    fixture.gone(&PODS, "other").await;
}

#[tokio::test]
async fn a_pod_waits_until_its_devices_are_prepared() {
    let fixture = start(json!([])).await;
    // Nobody has placed it: its claim is not its own yet.
    create_pod(&fixture, "train", json!({"nodeName": "gpu", "schedulerName": "nobody"})).await;
    let made = || async { fixture.list(&RESOURCE_CLAIMS, "").await.into_iter().next() };
    let claim = fixture.eventually("a claim is made", made).await;
    let (name, uid) =
        (claim["metadata"]["name"].as_str().unwrap(), claim["metadata"]["uid"].as_str().unwrap());
    let pod = fixture.get(&PODS, "train").await.unwrap();
    let pod_uid = pod["metadata"]["uid"].as_str().unwrap();
    let message = format!(
        "Failed to prepare dynamic resources: prepare dynamic resources: pod train ({pod_uid}) is not allowed to \
         use ResourceClaim {name} ({uid})"
    );
    fixture.told("FailedPrepareDynamicResources", &message).await;
    assert_eq!(fixture.get(&PODS, "train").await.unwrap()["status"]["phase"], "Pending");
}

#[tokio::test]
async fn a_claim_that_the_cache_does_not_know_yet_is_not_made_again() {
    let fixture = start(json!([])).await;
    let manager = "system:kube-controller-manager";
    let late = Fault::delay_events(Duration::from_secs(30)).user(manager).resource("resourceclaims");
    fixture.cluster.faults().add(late.named("late")).unwrap();
    create_pod(&fixture, "a", json!({})).await;
    runs(&fixture, "a").await;
    let claims = || fixture.list(&RESOURCE_CLAIMS, "");
    let first = claims().await;
    // Each change makes the controller look again.
    for number in 0..3 {
        fixture.patch(&PODS, "a", json!({"metadata": {"labels": {"number": number.to_string()}}})).await;
        fixture.settle(20).await;
    }
    fixture.cluster.faults().remove("late").unwrap();
    fixture.settle(20).await;
    let named = |claims: &[Value]| -> Vec<Value> {
        claims.iter().map(|claim| claim["metadata"]["name"].clone()).collect()
    };
    assert_eq!((named(&first).len(), named(&claims().await)), (1, named(&first)));
}
