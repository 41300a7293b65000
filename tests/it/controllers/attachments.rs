//! Volumes of storage drivers come to the nodes whose pods use them, and leave them.

use std::time::Duration;

use kubarium::apimachinery::options::{DeleteOptions, ListOptions, PatchType};
use kubarium::apis::core::event::EVENTS;
use kubarium::apis::core::node::NODES;
use kubarium::apis::core::persistent_volume::PERSISTENT_VOLUMES;
use kubarium::apis::core::persistent_volume_claim::PERSISTENT_VOLUME_CLAIMS;
use kubarium::apis::core::pod::PODS;
use kubarium::apis::storage::csi::CSI_DRIVERS;
use kubarium::apis::storage::volume_attachment::VOLUME_ATTACHMENTS;
use kubarium::cluster::{Components, Config};
use serde_json::{Value, json};

use super::support::{Fixture, NAMESPACE};

const UNIQUE: &str = "kubernetes.io/csi/disk.example.com^data";

/// Two nodes, and a claim for a volume of a driver.
async fn start(mode: &str) -> Fixture {
    let components = Components::NONE.controllers(true).kubelets(true);
    let fixture = Fixture::start_configured(Config::new().components(components).nodes(2)).await;
    for node in ["node-1", "node-2"] {
        fixture.exists(&NODES, node).await;
    }
    let volume = json!({"metadata": {"name": "data"}, "spec": {"capacity": {"storage": "1Gi"},
        "accessModes": [mode], "storageClassName": "",
        "csi": {"driver": "disk.example.com", "volumeHandle": "data"}}});
    fixture.create(&PERSISTENT_VOLUMES, "", volume).await;
    let claim = json!({"metadata": {"name": "data"}, "spec": {"accessModes": [mode], "storageClassName": "",
        "resources": {"requests": {"storage": "1Gi"}}}});
    fixture.create(&PERSISTENT_VOLUME_CLAIMS, NAMESPACE, claim).await;
    fixture
}

async fn create_pod(fixture: &Fixture, name: &str, node: &str) {
    let volume = json!({"name": "data", "persistentVolumeClaim": {"claimName": "data"}});
    let pod = json!({"metadata": {"name": name}, "spec": {"nodeName": node, "volumes": [volume],
        "terminationGracePeriodSeconds": 0, "containers": [{"name": "c", "image": "nginx"}]}});
    fixture.create(&PODS, NAMESPACE, pod).await;
}

async fn runs(fixture: &Fixture, pod: &str) {
    let look = || async {
        let pod = fixture.get(&PODS, pod).await?;
        (pod["status"]["phase"] == "Running").then_some(())
    };
    fixture.eventually(&format!("{pod} runs"), look).await;
}

/// The nodes that attachments are for, and whether each is attached.
async fn attachments(fixture: &Fixture) -> Vec<(String, bool)> {
    let list = fixture.client.list(&VOLUME_ATTACHMENTS, "", &ListOptions::default()).await.unwrap();
    let of = |tree: Value| {
        let node = tree["spec"]["nodeName"].as_str().unwrap().to_owned();
        (node, tree["status"]["attached"] == true)
    };
    list.items.iter().map(|object| of(object.to_value())).collect()
}

#[tokio::test]
async fn a_volume_is_attached_while_a_pod_uses_it() {
    let fixture = start("ReadWriteOnce").await;
    create_pod(&fixture, "web", "node-1").await;
    runs(&fixture, "web").await;
    assert_eq!(attachments(&fixture).await, [("node-1".to_owned(), true)]);
    fixture.told("SuccessfulAttachVolume", "AttachVolume.Attach succeeded for volume \"data\" ").await;
    let volumes =
        |node: &Value| (node["status"]["volumesAttached"].clone(), node["status"]["volumesInUse"].clone());
    let told = || async {
        let (attached, in_use) = volumes(&fixture.get(&NODES, "node-1").await?);
        (attached == json!([{"name": UNIQUE, "devicePath": ""}]) && in_use == json!([UNIQUE])).then_some(())
    };
    fixture.eventually("the node says so", told).await;
    let finalizer = json!("external-attacher/disk-example-com");
    let attachment = fixture.client.list(&VOLUME_ATTACHMENTS, "", &ListOptions::default()).await.unwrap();
    assert_eq!(attachment.items[0].to_value()["metadata"]["finalizers"], json!([finalizer]));
    let volume = fixture.get(&PERSISTENT_VOLUMES, "data").await.unwrap();
    assert!(volume["metadata"]["finalizers"].as_array().unwrap().contains(&finalizer));
    fixture.delete(&PODS, "web", "Background").await;
    let detached = || async { attachments(&fixture).await.is_empty().then_some(()) };
    fixture.eventually("it is detached", detached).await;
    let free = || async {
        (volumes(&fixture.get(&NODES, "node-1").await?) == (Value::Null, Value::Null)).then_some(())
    };
    fixture.eventually("the node says so", free).await;
    // Its attacher lets go a volume that is to go.
    fixture.delete(&PERSISTENT_VOLUMES, "data", "Background").await;
    fixture.delete(&PERSISTENT_VOLUME_CLAIMS, "data", "Background").await;
    fixture.gone(&PERSISTENT_VOLUMES, "data").await;
}

#[tokio::test]
async fn a_volume_for_one_node_waits_until_another_node_has_let_it_go() {
    let fixture = start("ReadWriteOnce").await;
    create_pod(&fixture, "first", "node-1").await;
    runs(&fixture, "first").await;
    create_pod(&fixture, "second", "node-2").await;
    let message = "Multi-Attach error for volume \"data\" Volume is already used by pod(s) first";
    fixture.told("FailedAttachVolume", message).await;
    fixture.settle(20).await;
    assert_eq!(attachments(&fixture).await, [("node-1".to_owned(), true)]);
    assert_eq!(fixture.events("FailedAttachVolume").await[message], 1, "once");
    fixture.delete(&PODS, "first", "Background").await;
    runs(&fixture, "second").await;
    assert_eq!(attachments(&fixture).await, [("node-2".to_owned(), true)]);
}

#[tokio::test]
async fn a_pod_waits_for_a_volume_that_cannot_be_attached() {
    let fixture = start("ReadWriteOnce").await;
    let error = |error: Value| json!({"metadata": {"annotations": {"kubarium.dev/attach-error": error}}});
    fixture.patch(&PERSISTENT_VOLUMES, "data", error(json!("disk is on fire"))).await;
    create_pod(&fixture, "web", "node-1").await;
    let message = "AttachVolume.Attach failed for volume \"data\" : disk is on fire";
    fixture.told("FailedAttachVolume", message).await;
    fixture.pass(Duration::from_secs(250)).await;
    let timed_out = "Unable to attach or mount volumes: unmounted volumes=[data], unattached volumes=[data], \
                     failed to process volumes=[]: context deadline exceeded";
    fixture.told("FailedMount", timed_out).await;
    fixture.patch(&PERSISTENT_VOLUMES, "data", error(Value::Null)).await;
    // The kubelet looks again with pauses that grow.
    fixture.pass(Duration::from_secs(125)).await;
    runs(&fixture, "web").await;
}

/// A node that has a volume and does not answer any more, and a pod that wants it elsewhere.
async fn lost(fixture: &Fixture) {
    create_pod(fixture, "first", "node-1").await;
    runs(fixture, "first").await;
    fixture.cluster.stop_component("kubelet/node-1").unwrap();
    let condition = json!({"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown"});
    let silent = json!({"status": {"conditions": [condition]}});
    let patched = fixture.client.patch_status(&NODES, "", "node-1", PatchType::StrategicMerge, &silent);
    patched.await.unwrap();
    let now = DeleteOptions { grace_period_seconds: Some(0), ..DeleteOptions::default() };
    fixture.client.delete(&PODS, NAMESPACE, "first", &now).await.unwrap();
    create_pod(fixture, "second", "node-2").await;
}

async fn is_forced(fixture: &Fixture, reason: &str) {
    let text = super::counted::counted(&fixture.cluster).await;
    let line = format!("attachdetach_controller_forced_detaches{{reason=\"{reason}\"}} 1");
    assert!(text.contains(&line), "{line}\n{text}");
}

/// The volume is the other node's.
async fn moved(fixture: &Fixture) {
    let is_moved = || async { (attachments(fixture).await == [("node-2".to_owned(), true)]).then_some(()) };
    fixture.eventually("the other node has it", is_moved).await;
}

#[tokio::test]
async fn a_silent_node_loses_its_volumes_after_six_minutes() {
    let fixture = start("ReadWriteOnce").await;
    lost(&fixture).await;
    fixture.pass(Duration::from_secs(300)).await;
    assert_eq!(attachments(&fixture).await, [("node-1".to_owned(), true)], "it may still be writing");
    fixture.pass(Duration::from_secs(70)).await;
    moved(&fixture).await;
    is_forced(&fixture, "timeout").await;
}

#[tokio::test]
async fn a_node_that_is_off_loses_its_volumes_at_once() {
    let fixture = start("ReadWriteOnce").await;
    lost(&fixture).await;
    fixture.settle(20).await;
    assert_eq!(attachments(&fixture).await, [("node-1".to_owned(), true)]);
    let taint =
        json!({"key": "node.kubernetes.io/out-of-service", "value": "nodeshutdown", "effect": "NoExecute"});
    fixture.patch(&NODES, "node-1", json!({"spec": {"taints": [taint]}})).await;
    moved(&fixture).await;
    is_forced(&fixture, "out-of-service").await;
}

#[tokio::test]
async fn drivers_may_do_without_attaching_or_do_it_themselves() {
    let fixture = start("ReadWriteOnce").await;
    let driver = json!({"metadata": {"name": "disk.example.com"}, "spec": {"attachRequired": false}});
    fixture.create(&CSI_DRIVERS, "", driver).await;
    fixture.settle(5).await;
    create_pod(&fixture, "web", "node-1").await;
    runs(&fixture, "web").await;
    assert!(attachments(&fixture).await.is_empty());
    fixture.delete(&PODS, "web", "Background").await;
    fixture.gone(&PODS, "web").await;
    fixture.delete(&CSI_DRIVERS, "disk.example.com", "Background").await;
    let metadata = json!({"name": "disk.example.com", "annotations": {"kubarium.dev/attacher": "external"}});
    fixture.create(&CSI_DRIVERS, "", json!({"metadata": metadata, "spec": {}})).await;
    fixture.settle(5).await;
    create_pod(&fixture, "again", "node-1").await;
    let wanted = || async { (attachments(&fixture).await == [("node-1".to_owned(), false)]).then_some(()) };
    fixture.eventually("somebody else is to attach it", wanted).await;
    fixture.settle(20).await;
    assert_eq!(attachments(&fixture).await, [("node-1".to_owned(), false)]);
}

#[tokio::test]
async fn a_node_has_a_volume_for_one_pod_only_once() {
    let fixture = start("ReadWriteOncePod").await;
    create_pod(&fixture, "first", "node-1").await;
    runs(&fixture, "first").await;
    create_pod(&fixture, "second", "node-1").await;
    let message = "MountVolume.SetUp failed for volume \"data\" : volume uses the ReadWriteOncePod access mode \
                   and is already in use by another pod";
    fixture.told("FailedMount", message).await;
    fixture.delete(&PODS, "first", "Background").await;
    runs(&fixture, "second").await;
}

#[tokio::test]
async fn a_pod_without_its_claim_does_not_start() {
    let fixture = start("ReadWriteOnce").await;
    let volume = json!({"name": "data", "persistentVolumeClaim": {"claimName": "none"}});
    let pod = json!({"metadata": {"name": "web"}, "spec": {"nodeName": "node-1", "volumes": [volume],
        "containers": [{"name": "c", "image": "nginx"}]}});
    fixture.create(&PODS, NAMESPACE, pod).await;
    let told = || async {
        let events = fixture.list(&EVENTS, "").await;
        let why = "error processing PVC test/none: failed to fetch PVC from API server: \
                   persistentvolumeclaims \"none\" not found";
        let is_it = |event: &&Value| {
            event["reason"] == "FailedMount" && event["message"].as_str().is_some_and(|it| it.ends_with(why))
        };
        events.iter().find(is_it).map(drop)
    };
    fixture.eventually("people are told", told).await;
    assert_eq!(fixture.get(&PODS, "web").await.unwrap()["status"]["phase"], "Pending");
}
