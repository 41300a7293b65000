//! Extended resources that are devices: pods ask for them as for any other, and the scheduler makes a claim.

use std::time::Duration;

use kubarium::Fault;
use kubarium::apis::core::pod::PODS;
use kubarium::apis::resource::device_class::DEVICE_CLASSES;
use kubarium::apis::resource::resource_claim::RESOURCE_CLAIMS;
use kubarium::apis::resource::resource_slice::RESOURCE_SLICES;
use kubarium::cluster::{Components, Config};
use kubarium::kubelet::node_group::NodeGroup;
use serde_json::{Value, json};

use super::support::{Fixture, NAMESPACE};

const RESOURCE: &str = "example.com/gpu";
/// So often it is looked whether a binding has failed.
const ATTEMPTS: usize = 4000;
const IMPLICIT: &str = "deviceclass.resource.kubernetes.io/gpu";

/// A node with two devices, and a class that gives them out as an extended resource.
async fn start() -> Fixture {
    let file = "nodes: [{name: gpu, devices: [{driver: gpu.example.com, name: gpu, count: 2}]}]";
    let components = Components::NONE.controllers(true).kubelets(true).scheduler(true);
    let config = Config::new().components(components).nodes(0);
    let fixture = Fixture::start_configured(config.node_groups(NodeGroup::read(file).unwrap())).await;
    fixture.exists(&RESOURCE_SLICES, "gpu-gpu.example.com-0").await;
    let selector = json!({"cel": {"expression": "device.driver == 'gpu.example.com'"}});
    let spec = json!({"selectors": [selector], "extendedResourceName": RESOURCE});
    fixture.create(&DEVICE_CLASSES, "", json!({"metadata": {"name": "gpu"}, "spec": spec})).await;
    fixture
}

async fn create_pod(fixture: &Fixture, name: &str, limits: Value, more: Value) -> String {
    let container = json!({"name": "c", "image": "nginx", "resources": {"limits": limits}});
    let mut spec = json!({"containers": [container], "terminationGracePeriodSeconds": 0});
    spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let pod = json!({"metadata": {"name": name}, "spec": spec});
    fixture.create(&PODS, NAMESPACE, pod).await.metadata.uid.clone()
}

async fn runs(fixture: &Fixture, name: &str) -> Value {
    let look = || async {
        let pod = fixture.get(&PODS, name).await?;
        (pod["status"]["phase"] == "Running").then_some(pod)
    };
    fixture.eventually(&format!("{name} runs"), look).await
}

/// The claim that a running pod names, which is the only one.
async fn only_claim(fixture: &Fixture, pod: &Value) -> Value {
    let claims = fixture.list(&RESOURCE_CLAIMS, "").await;
    assert_eq!(claims.len(), 1, "{claims:?}");
    let named = &pod["status"]["extendedResourceClaimStatus"]["resourceClaimName"];
    assert_eq!(claims[0]["metadata"]["name"], *named);
    claims[0].clone()
}

/// A pod fits nowhere, and this is part of why.
async fn fits_nowhere(fixture: &Fixture, why: &str) {
    let look = || async {
        let told = fixture.events("FailedScheduling").await;
        told.keys().any(|message| message.contains(why)).then_some(())
    };
    fixture.eventually(why, look).await;
}

#[tokio::test]
async fn a_pod_has_devices_by_the_name_of_a_resource_until_it_goes() {
    let fixture = start().await;
    create_pod(&fixture, "train", json!({ "cpu": "1", RESOURCE: "2" }), json!({})).await;
    let pod = runs(&fixture, "train").await;
    let mapping =
        json!({"containerName": "c", "resourceName": RESOURCE, "requestName": "container-0-request-1"});
    assert_eq!(pod["status"]["extendedResourceClaimStatus"]["requestMappings"], json!([mapping]));
    let claim = only_claim(&fixture, &pod).await;
    let (metadata, uid) = (&claim["metadata"], &pod["metadata"]["uid"]);
    assert!(metadata["name"].as_str().unwrap().starts_with("train-extended-resources-"));
    assert_eq!(metadata["annotations"], json!({"resource.kubernetes.io/extended-resource-claim": "true"}));
    let owner = json!([{"apiVersion": "v1", "kind": "Pod", "name": "train", "uid": uid, "controller": true}]);
    assert_eq!(metadata["ownerReferences"], owner);
    let reserved = json!([{"resource": "pods", "name": "train", "uid": uid}]);
    assert_eq!(claim["status"]["reservedFor"], reserved);
    assert_eq!(claim["status"]["allocation"]["devices"]["results"].as_array().unwrap().len(), 2);
    create_pod(&fixture, "other", json!({ IMPLICIT: "1" }), json!({})).await;
    fits_nowhere(&fixture, "1 cannot allocate all claims").await;
    fixture.delete(&PODS, "train", "Background").await;
    let pod = runs(&fixture, "other").await;
    fixture.gone(&RESOURCE_CLAIMS, metadata["name"].as_str().unwrap()).await;
    only_claim(&fixture, &pod).await;
}

#[tokio::test]
async fn the_claim_of_a_pod_that_is_done_goes() {
    let fixture = start().await;
    let job = json!({"restartPolicy": "Never", "containers": [{"name": "c", "image": "busybox",
        "command": ["sleep", "60"], "resources": {"limits": {RESOURCE: "1"}}}]});
    create_pod(&fixture, "train", json!({}), job).await;
    let claim = only_claim(&fixture, &runs(&fixture, "train").await).await;
    fixture.gone(&RESOURCE_CLAIMS, claim["metadata"]["name"].as_str().unwrap()).await;
    assert_eq!(fixture.get(&PODS, "train").await.unwrap()["status"]["phase"], "Succeeded");
}

#[tokio::test]
async fn the_claim_of_a_binding_that_fails_is_taken_back() {
    let fixture = start().await;
    let fault = Fault::answer(500).user("system:kube-scheduler").verb("create").resource("pods/binding");
    fixture.cluster.faults().add(fault.count(1)).unwrap();
    create_pod(&fixture, "train", json!({ RESOURCE: "2" }), json!({})).await;
    // So little time goes on meanwhile that the pod is not tried again.
    for step in 0..ATTEMPTS {
        if !fixture.events("FailedScheduling").await.is_empty() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
        if step < 50 {
            fixture.clock.advance(Duration::from_millis(10));
        }
    }
    let told = fixture.events("FailedScheduling").await;
    assert!(told.keys().any(|message| message.starts_with("running Bind plugin")), "{told:?}");
    assert!(fixture.list(&RESOURCE_CLAIMS, "").await.is_empty());
    let pod = runs(&fixture, "train").await;
    only_claim(&fixture, &pod).await;
}

#[tokio::test]
async fn a_claim_that_is_left_over_goes_before_the_pod_is_placed() {
    let fixture = start().await;
    let gated = json!({"schedulingGates": [{"name": "example.com/wait"}]});
    let uid = create_pod(&fixture, "train", json!({ RESOURCE: "1" }), gated).await;
    let owner = json!({"apiVersion": "v1", "kind": "Pod", "name": "train", "uid": uid, "controller": true});
    let request = json!({"name": "container-0-request-0", "exactly": {"deviceClassName": "gpu"}});
    let left = json!({
        "metadata": {"name": "left", "ownerReferences": [owner],
            "annotations": {"resource.kubernetes.io/extended-resource-claim": "true"}},
        "spec": {"devices": {"requests": [request]}},
    });
    fixture.create(&RESOURCE_CLAIMS, NAMESPACE, left).await;
    fixture.settle(20).await;
    fixture.patch(&PODS, "train", json!({"spec": {"schedulingGates": null}})).await;
    fits_nowhere(&fixture, "1 cannot schedule extended resource claim. deletion of ResourceClaim completed")
        .await;
    let pod = runs(&fixture, "train").await;
    only_claim(&fixture, &pod).await;
}
