//! Devices: a node has them, claims get them, pods wait for them, and leave when they are tainted.

use std::time::Duration;

use kubarium::Fault;
use kubarium::apimachinery::options::PatchType;
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
    start_with("attributes: {model: A100}", tolerations).await
}

/// The same, and what else the devices say.
async fn start_with(more: &str, tolerations: Value) -> Fixture {
    let file = format!(
        "nodes: [{{name: gpu, devices: [{{driver: gpu.example.com, name: gpu, count: 2, \
         capacity: {{memory: 80Gi}}, {more}}}]}}]"
    );
    let components = Components::NONE.controllers(true).kubelets(true).scheduler(true);
    let config = Config::new().components(components).nodes(0);
    let config = config.node_groups(NodeGroup::read(&file).unwrap());
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
    let counted = super::counted::counted(&fixture.cluster).await;
    for line in [
        "resourceclaim_controller_creates_total{admin_access=\"false\",status=\"success\"} 1\n",
        "resourceclaim_controller_resource_claims{admin_access=\"false\",allocated=\"true\",source=\"resource_claim_template\"} 1\n",
    ] {
        assert!(counted.contains(line), "{line} in {counted}");
    }
    taint_all(&fixture, json!([{"key": "broken", "effect": "NoExecute"}])).await;
    fixture.told("DeviceTaintManagerEviction", "Marking for deletion").await;
    fixture.gone(&PODS, "train").await;
}

#[tokio::test]
async fn a_taint_counts_from_the_write_that_put_it_on() {
    let fixture = start(json!([])).await;
    taint_all(&fixture, json!([{"key": "broken", "effect": "NoSchedule"}])).await;
    let taint = || async {
        let slice = fixture.get(&RESOURCE_SLICES, SLICE).await.unwrap();
        slice["spec"]["devices"][0]["taints"][0].clone()
    };
    let first = taint().await;
    assert!(first["timeAdded"].is_string(), "{first}");
    fixture.pass(Duration::from_secs(10)).await;
    fixture.patch(&RESOURCE_SLICES, SLICE, json!({"metadata": {"labels": {"other": "write"}}})).await;
    assert_eq!(taint().await, first);
}

#[tokio::test]
async fn slices_that_somebody_deletes_come_back() {
    let fixture = start(json!([])).await;
    let before = fixture.get(&RESOURCE_SLICES, SLICE).await.unwrap();
    for _ in 0..2 {
        fixture.delete(&RESOURCE_SLICES, SLICE, "Background").await;
        fixture.gone(&RESOURCE_SLICES, SLICE).await;
        fixture.pass(Duration::from_secs(31)).await;
        fixture.exists(&RESOURCE_SLICES, SLICE).await;
    }
    let after = fixture.get(&RESOURCE_SLICES, SLICE).await.unwrap();
    assert_ne!(after["metadata"]["uid"], before["metadata"]["uid"]);
    assert_eq!(after["spec"], before["spec"]);
}

/// A node whose devices are parts of one, and others that several have.
const PARTS: &str = "
nodes:
- name: gpu
  devices:
  - {driver: gpu.example.com, name: whole, sharedCounters: [{name: card, counters: {memory: 80Gi}}],
     consumesCounters: [{counterSet: card, counters: {memory: 80Gi}}]}
  - {driver: gpu.example.com, name: half, count: 2, consumesCounters: [{counterSet: card, counters: {memory: 40Gi}}]}
  - {driver: net.example.com, name: nic, allowMultipleAllocations: true,
     capacity: {bandwidth: {value: 10, requestPolicy: {default: 1, validRange: {min: 1, step: 1}}}}}
";

/// A claim of one device of a driver, and a pod that wants it.
async fn claim_one(fixture: &Fixture, name: &str, driver: &str, more: Value) {
    let selector = json!([{"cel": {"expression": format!("device.driver == '{driver}'")}}]);
    let mut exactly = json!({"deviceClassName": "any", "selectors": selector});
    exactly.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let spec = json!({"devices": {"requests": [{"name": "r", "exactly": exactly}]}});
    fixture.create(&RESOURCE_CLAIMS, NAMESPACE, json!({"metadata": {"name": name}, "spec": spec})).await;
    let container = json!({"name": "c", "image": "nginx", "resources": {"claims": [{"name": "d"}]}});
    let claims = json!([{"name": "d", "resourceClaimName": name}]);
    let spec =
        json!({"containers": [container], "resourceClaims": claims, "terminationGracePeriodSeconds": 0});
    fixture.create(&PODS, NAMESPACE, json!({"metadata": {"name": name}, "spec": spec})).await;
}

/// What a claim was given.
async fn given(fixture: &Fixture, claim: &str) -> Value {
    let claim = fixture.get(&RESOURCE_CLAIMS, claim).await.unwrap();
    claim["status"]["allocation"]["devices"]["results"][0].clone()
}

#[tokio::test]
async fn parts_of_a_device_and_shares_of_another_are_said_in_the_node_config() {
    let components = Components::NONE.controllers(true).kubelets(true).scheduler(true);
    let config = Config::new().components(components).nodes(0);
    let fixture = Fixture::start_configured(config.node_groups(NodeGroup::read(PARTS).unwrap())).await;
    for slice in ["gpu-gpu.example.com-0", "gpu-gpu.example.com-1", "gpu-net.example.com-0"] {
        fixture.exists(&RESOURCE_SLICES, slice).await;
    }
    fixture.create(&DEVICE_CLASSES, "", json!({"metadata": {"name": "any"}, "spec": {}})).await;
    for (name, amount) in [("much", "7"), ("default", "0"), ("more", "2")] {
        let asks = json!({"capacity": {"requests": {"bandwidth": amount}}});
        let asks = if name == "default" { json!({}) } else { asks };
        claim_one(&fixture, name, "net.example.com", asks).await;
        runs(&fixture, name).await;
    }
    let (much, more) = (given(&fixture, "much").await, given(&fixture, "more").await);
    assert_eq!((&much["device"], &much["consumedCapacity"]["bandwidth"]), (&json!("nic-0"), &json!("7")));
    assert!(much["shareID"].is_string() && much["shareID"] != more["shareID"], "{much} {more}");
    assert_eq!(given(&fixture, "default").await["consumedCapacity"]["bandwidth"], "1");
    // What is left of neither is enough.
    claim_one(&fixture, "late", "net.example.com", json!({})).await;
    let waits = || async {
        let pod = fixture.get(&PODS, "late").await?;
        let why = pod["status"]["conditions"][0]["message"].as_str()?;
        why.contains("cannot allocate all claims").then_some(())
    };
    fixture.eventually("late waits for its share", waits).await;
    claim_one(&fixture, "halves", "gpu.example.com", json!({"count": 2})).await;
    runs(&fixture, "halves").await;
    assert_eq!(given(&fixture, "halves").await["device"], "half-0", "the whole one is not beside a part");
    claim_one(&fixture, "whole", "gpu.example.com", json!({})).await;
    fixture.delete(&PODS, "halves", "Background").await;
    fixture.gone(&PODS, "halves").await;
    runs(&fixture, "whole").await;
    assert_eq!(given(&fixture, "whole").await["device"], "whole-0");
    let status = fixture.get(&RESOURCE_CLAIMS, "halves").await.unwrap()["status"].clone();
    assert!(status["allocation"].is_null() && status["reservedFor"].is_null(), "{status}");
}

#[tokio::test]
async fn devices_are_free_when_their_claims_are_gone_before_anybody_else_asks() {
    let fixture = start(json!([])).await;
    for round in ["a", "b"] {
        let names = [format!("{round}-1"), format!("{round}-2")];
        for name in &names {
            create_pod(&fixture, name, json!({})).await;
            runs(&fixture, name).await;
        }
        for name in &names {
            fixture.delete(&PODS, name, "Background").await;
        }
        let none = || async { fixture.list(&RESOURCE_CLAIMS, "").await.is_empty().then_some(()) };
        fixture.eventually("no claim is left", none).await;
    }
}

/// Nobody looked while they had them.
#[tokio::test]
async fn devices_are_free_when_their_claims_have_given_them_back_before_anybody_else_asks() {
    let fixture = start(json!([])).await;
    let class = json!({"metadata": {"name": "any"}, "spec": {}});
    fixture.create(&DEVICE_CLASSES, "", class).await;
    for round in ["a", "b"] {
        let names = [format!("{round}-1"), format!("{round}-2")];
        for name in &names {
            claim_one(&fixture, name, "gpu.example.com", json!({})).await;
            runs(&fixture, name).await;
        }
        for name in &names {
            fixture.delete(&PODS, name, "Background").await;
            let is_free = || async {
                let claim = fixture.get(&RESOURCE_CLAIMS, name).await?;
                claim["status"]["allocation"].is_null().then_some(())
            };
            fixture.eventually(&format!("{name} has given its device back"), is_free).await;
        }
    }
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
async fn a_container_says_how_its_devices_are() {
    let fixture = start(json!([])).await;
    create_pod(&fixture, "train", json!({})).await;
    runs(&fixture, "train").await;
    let says = |health: Value| {
        let fixture = &fixture;
        let look = move || {
            let health = health.clone();
            async move {
                let pod = fixture.get(&PODS, "train").await?;
                let told = &pod["status"]["containerStatuses"][0]["allocatedResourcesStatus"][0];
                assert_eq!(told["name"], "claim:gpu");
                assert_eq!(told["resources"][0]["resourceID"], "gpu.example.com/gpu/gpu-0");
                (told["resources"][0]["health"] == health).then(|| told["resources"][0].clone())
            }
        };
        async move { fixture.eventually("the health is told", look).await }
    };
    says("Healthy".into()).await;
    let annotations = json!({"kubarium.dev/device-health": "gpu-0=Unhealthy: too many ECC errors"});
    fixture.patch(&PODS, "train", json!({"metadata": {"annotations": annotations}})).await;
    assert_eq!(says("Unhealthy".into()).await["message"], "too many ECC errors");
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

/// What somebody outside says of the device that a claim has.
async fn say_of_device(fixture: &Fixture, claim: &Value, condition: &str) {
    let result = &claim["status"]["allocation"]["devices"]["results"][0];
    let said = json!({"type": condition, "status": "True", "reason": "Because", "message": "so it is",
        "lastTransitionTime": "2026-01-01T00:00:00Z"});
    let device = json!({"driver": result["driver"], "pool": result["pool"], "device": result["device"],
        "conditions": [said]});
    let (name, patch) =
        (claim["metadata"]["name"].as_str().unwrap(), json!({"status": {"devices": [device]}}));
    let kind = PatchType::Merge;
    fixture.client.patch_status(&RESOURCE_CLAIMS, NAMESPACE, name, kind, &patch).await.unwrap();
}

/// The claim of a pod, once it has devices and nothing is said of them.
async fn allocated(fixture: &Fixture, pod: &str) -> Value {
    let look = || async {
        let claims = fixture.list(&RESOURCE_CLAIMS, "").await;
        let is_it = |claim: &Value| {
            claim["status"]["reservedFor"][0]["name"] == pod && claim["status"]["devices"].is_null()
        };
        claims.into_iter().find(is_it)
    };
    fixture.eventually(&format!("the claim of {pod} has devices"), look).await
}

const SLOW: &str = "bindingConditions: [Attached], bindingFailureConditions: [Broken]";
const PENDING: (&str, &str) =
    ("BindingConditionsPending", "waiting for binding conditions for device on node gpu");

#[tokio::test]
async fn a_pod_is_bound_when_its_device_is_ready() {
    let fixture = start_with(SLOW, json!([])).await;
    create_pod(&fixture, "train", json!({})).await;
    fixture.told(PENDING.0, PENDING.1).await;
    let claim = allocated(&fixture, "train").await;
    assert!(claim["status"]["allocation"]["allocationTimestamp"].is_string());
    fixture.pass(Duration::from_secs(20)).await;
    assert!(fixture.get(&PODS, "train").await.unwrap()["spec"]["nodeName"].is_null());
    say_of_device(&fixture, &claim, "Attached").await;
    runs(&fixture, "train").await;
}

#[tokio::test]
async fn a_device_that_is_never_ready_is_given_back() {
    let fixture = start_with(SLOW, json!([])).await;
    create_pod(&fixture, "train", json!({})).await;
    fixture.told(PENDING.0, PENDING.1).await;
    let claim = allocated(&fixture, "train").await;
    let name = claim["metadata"]["name"].as_str().unwrap();
    say_of_device(&fixture, &claim, "Broken").await;
    let message = format!(
        "running PreBind plugin \"DynamicResources\": claim {name} binding failed: reason=Because, \
         message=\"so it is\""
    );
    fixture.told("FailedScheduling", &message).await;
    let message = "0/1 nodes are available: 1 resourceclaim not available on the node. deallocation of \
                   ResourceClaim completed, preemption: 0/1 nodes are available: 1 Preemption is not helpful \
                   for scheduling.";
    fixture.told("FailedScheduling", message).await;
    let again = allocated(&fixture, "train").await;
    say_of_device(&fixture, &again, "Attached").await;
    runs(&fixture, "train").await;
}

#[tokio::test]
async fn devices_have_ten_minutes_to_become_ready() {
    let fixture = start_with(SLOW, json!([])).await;
    create_pod(&fixture, "train", json!({})).await;
    let claim = allocated(&fixture, "train").await;
    fixture.pass(Duration::from_secs(590)).await;
    assert!(fixture.events("FailedScheduling").await.keys().all(|message| !message.contains("timeout")));
    fixture.pass(Duration::from_secs(15)).await;
    let is_timeout = |message: &String| {
        message.starts_with("running PreBind plugin \"DynamicResources\": ") && message.ends_with("timeout")
    };
    let told = || async { fixture.events("FailedScheduling").await.keys().any(is_timeout).then_some(()) };
    fixture.eventually("it took too long", told).await;
    let since = &claim["status"]["allocation"]["allocationTimestamp"];
    let anew = || async {
        let again = allocated(&fixture, "train").await;
        (again["status"]["allocation"]["allocationTimestamp"] != *since).then_some(())
    };
    fixture.eventually("it is tried anew", anew).await;
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

#[tokio::test]
async fn a_template_that_is_not_there_is_told() {
    let fixture = start(json!([])).await;
    let claims = json!([{"name": "gpu", "resourceClaimTemplateName": "nothere"}]);
    create_pod(&fixture, "a", json!({"resourceClaims": claims})).await;
    let message = "PodResourceClaim gpu: resource claim template \"nothere\": \
                   resourceclaimtemplate.resource.k8s.io \"nothere\" not found";
    fixture.told("FailedResourceClaimCreation", message).await;
}
