//! Volumes and claims that are used stay.

use std::time::Duration;

use kubarium::apimachinery::options::DeleteOptions;
use kubarium::apis::apiextensions::custom_resource_definition::CUSTOM_RESOURCE_DEFINITIONS;
use kubarium::apis::core::event::EVENTS;
use kubarium::apis::core::persistent_volume::PERSISTENT_VOLUMES;
use kubarium::apis::core::persistent_volume_claim::PERSISTENT_VOLUME_CLAIMS;
use kubarium::apis::core::pod::PODS;
use kubarium::apis::storage::storage_class::STORAGE_CLASSES;
use kubarium::apis::storage::volume_attributes_class::VOLUME_ATTRIBUTES_CLASSES;
use kubarium::cluster::Components;
use serde_json::{Value, json};

use super::support::{Fixture, NAMESPACE, condition};

#[tokio::test]
async fn a_claim_stays_as_long_as_a_pod_uses_it() {
    let fixture = Fixture::start().await;
    let claim = json!({"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}}}});
    let created = fixture.create(&PERSISTENT_VOLUME_CLAIMS, NAMESPACE, claim.clone()).await;
    assert_eq!(created.metadata.finalizers, ["kubernetes.io/pvc-protection"]);
    let volume = json!({"name": "data", "persistentVolumeClaim": {"claimName": "data"}});
    let pod = json!({"metadata": {"name": "p"}, "spec": {"nodeName": "n", "volumes": [volume],
        "containers": [{"name": "c", "image": "i"}]}});
    fixture.create(&PODS, NAMESPACE, pod).await;
    fixture.delete(&PERSISTENT_VOLUME_CLAIMS, "data", "Background").await;
    fixture.settle(20).await;
    let claim = fixture.get(&PERSISTENT_VOLUME_CLAIMS, "data").await.expect("it is used");
    assert!(!claim["metadata"]["deletionTimestamp"].is_null());
    let now = DeleteOptions { grace_period_seconds: Some(0), ..DeleteOptions::default() };
    fixture.client.delete(&PODS, NAMESPACE, "p", &now).await.unwrap();
    let gone = || async { fixture.get(&PERSISTENT_VOLUME_CLAIMS, "data").await.is_none().then_some(()) };
    fixture.eventually("the claim goes", gone).await;
}

#[tokio::test]
async fn a_volume_stays_as_long_as_it_is_bound() {
    let fixture = Fixture::start().await;
    fixture.create(&PERSISTENT_VOLUMES, "", volume("v", "1Gi", "")).await;
    fixture.create(&PERSISTENT_VOLUME_CLAIMS, NAMESPACE, claim("data", "1Gi", "")).await;
    has_phase(&fixture, "data", "Bound").await;
    fixture.delete(&PERSISTENT_VOLUMES, "v", "Background").await;
    fixture.settle(20).await;
    assert!(fixture.get(&PERSISTENT_VOLUMES, "v").await.is_some(), "it is bound");
    fixture.delete(&PERSISTENT_VOLUME_CLAIMS, "data", "Background").await;
    let gone = || async { fixture.get(&PERSISTENT_VOLUMES, "v").await.is_none().then_some(()) };
    fixture.eventually("the volume goes", gone).await;
}

/// A volume that a node may have.
pub(super) fn volume(name: &str, storage: &str, class: &str) -> Value {
    json!({"metadata": {"name": name}, "spec": {"capacity": {"storage": storage}, "storageClassName": class,
        "accessModes": ["ReadWriteOnce", "ReadOnlyMany"], "hostPath": {"path": "/data"}}})
}

/// A claim for a volume of a class.
pub(super) fn claim(name: &str, storage: &str, class: &str) -> Value {
    json!({"metadata": {"name": name}, "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": class,
        "resources": {"requests": {"storage": storage}}}})
}

/// The claim, once it is in this phase.
pub(super) async fn has_phase(fixture: &Fixture, name: &str, phase: &str) -> Value {
    let as_expected = || async {
        let claim = fixture.get(&PERSISTENT_VOLUME_CLAIMS, name).await?;
        (claim["status"]["phase"] == phase).then_some(claim)
    };
    fixture.eventually(&format!("claim {name} is {phase}"), as_expected).await
}

#[tokio::test]
async fn a_claim_gets_the_smallest_volume_that_does() {
    let fixture = Fixture::start().await;
    for (name, storage, class) in
        [("small", "1Gi", ""), ("large", "10Gi", ""), ("middle", "5Gi", ""), ("fast", "5Gi", "ssd")]
    {
        fixture.create(&PERSISTENT_VOLUMES, "", volume(name, storage, class)).await;
    }
    fixture.create(&PERSISTENT_VOLUME_CLAIMS, NAMESPACE, claim("data", "3Gi", "")).await;
    let bound = has_phase(&fixture, "data", "Bound").await;
    assert_eq!(bound["spec"]["volumeName"], "middle");
    assert_eq!(bound["status"]["capacity"], json!({"storage": "5Gi"}));
    let volume = fixture.get(&PERSISTENT_VOLUMES, "middle").await.unwrap();
    assert_eq!(
        (&volume["status"]["phase"], &volume["spec"]["claimRef"]["name"]),
        (&json!("Bound"), &json!("data"))
    );
    fixture.create(&PERSISTENT_VOLUME_CLAIMS, NAMESPACE, claim("huge", "1Ti", "")).await;
    let told = || async {
        let message = "no persistent volumes available for this claim and no storage class is set";
        fixture.events("FailedBinding").await.contains_key(message).then_some(())
    };
    fixture.eventually("people are told", told).await;
    fixture.delete(&PERSISTENT_VOLUME_CLAIMS, "data", "Background").await;
    let released = || async {
        let volume = fixture.get(&PERSISTENT_VOLUMES, "middle").await?;
        (volume["status"]["phase"] == "Released").then_some(())
    };
    fixture.eventually("the volume is released", released).await;
}

#[tokio::test]
async fn a_claim_may_wait_for_its_first_consumer() {
    let fixture = Fixture::start().await;
    let class = json!({"metadata": {"name": "ssd"}, "provisioner": "kubernetes.io/no-provisioner",
        "volumeBindingMode": "WaitForFirstConsumer"});
    fixture.create(&STORAGE_CLASSES, "", class).await;
    fixture.create(&PERSISTENT_VOLUMES, "", volume("v", "1Gi", "ssd")).await;
    fixture.create(&PERSISTENT_VOLUME_CLAIMS, NAMESPACE, claim("data", "1Gi", "ssd")).await;
    let told = || async {
        let message = "waiting for first consumer to be created before binding";
        fixture.events("WaitForFirstConsumer").await.contains_key(message).then_some(())
    };
    fixture.eventually("people are told", told).await;
    // Three sync periods.
    fixture.pass(Duration::from_secs(46)).await;
    let again = || async {
        let count = fixture.events("WaitForFirstConsumer").await.into_values().next();
        (count? >= 3).then_some(())
    };
    fixture.eventually("people are told again", again).await;
    let volumes = json!([{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]);
    let pod = json!({"metadata": {"name": "p"}, "spec": {"volumes": volumes,
        "containers": [{"name": "c", "image": "i"}]}});
    fixture.create(&PODS, NAMESPACE, pod).await;
    fixture.settle(5).await;
    has_phase(&fixture, "data", "Pending").await;
    // The scheduler chooses a volume, and keeps it for the claim.
    let reference = json!({"kind": "PersistentVolumeClaim", "name": "data", "namespace": NAMESPACE});
    fixture.patch(&PERSISTENT_VOLUMES, "v", json!({"spec": {"claimRef": reference}})).await;
    has_phase(&fixture, "data", "Bound").await;
}

/// The scheduler does not remember for ever for whom it chose a volume.
#[tokio::test]
async fn a_volume_that_was_released_by_hand_is_chosen_again() {
    let fixture = Fixture::start_with(Components::ALL).await;
    let class = json!({"metadata": {"name": "ssd"}, "provisioner": "kubernetes.io/no-provisioner",
        "volumeBindingMode": "WaitForFirstConsumer"});
    fixture.create(&STORAGE_CLASSES, "", class).await;
    let mut kept = volume("v", "1Gi", "ssd");
    kept["spec"]["persistentVolumeReclaimPolicy"] = "Retain".into();
    fixture.create(&PERSISTENT_VOLUMES, "", kept).await;
    for name in ["first", "second"] {
        fixture.create(&PERSISTENT_VOLUME_CLAIMS, NAMESPACE, claim(name, "1Gi", "ssd")).await;
        let volumes = json!([{"name": "data", "persistentVolumeClaim": {"claimName": name}}]);
        let pod = json!({"metadata": {"name": name}, "spec": {"volumes": volumes, "terminationGracePeriodSeconds": 0,
            "containers": [{"name": "c", "image": "i"}]}});
        fixture.create(&PODS, NAMESPACE, pod).await;
        has_phase(&fixture, name, "Bound").await;
        fixture.delete(&PODS, name, "Background").await;
        fixture.delete(&PERSISTENT_VOLUME_CLAIMS, name, "Background").await;
        fixture.gone(&PERSISTENT_VOLUME_CLAIMS, name).await;
        fixture.patch(&PERSISTENT_VOLUMES, "v", json!({"spec": {"claimRef": null}})).await;
    }
}

#[tokio::test]
async fn a_volume_that_is_named_must_fit() {
    let fixture = Fixture::start().await;
    fixture.create(&PERSISTENT_VOLUMES, "", volume("small", "1Gi", "")).await;
    let mut named = claim("data", "2Gi", "");
    named["spec"]["volumeName"] = "small".into();
    fixture.create(&PERSISTENT_VOLUME_CLAIMS, NAMESPACE, named).await;
    has_phase(&fixture, "data", "Pending").await;
    let message = "Cannot bind to requested volume \"small\": requested PV is too small";
    fixture.told("VolumeMismatch", message).await;
}

#[tokio::test]
async fn a_volume_that_another_has_is_not_given() {
    let fixture = Fixture::start().await;
    fixture.create(&PERSISTENT_VOLUMES, "", volume("v", "1Gi", "")).await;
    fixture.create(&PERSISTENT_VOLUME_CLAIMS, NAMESPACE, claim("first", "1Gi", "")).await;
    has_phase(&fixture, "first", "Bound").await;
    let mut named = claim("second", "1Gi", "");
    named["spec"]["volumeName"] = "v".into();
    fixture.create(&PERSISTENT_VOLUME_CLAIMS, NAMESPACE, named).await;
    fixture.told("FailedBinding", "volume \"v\" already bound to a different claim.").await;
}

#[tokio::test]
async fn a_class_that_comes_late_is_given_to_claims_without_one() {
    let fixture = Fixture::start().await;
    let mut bare = claim("data", "1Gi", "");
    bare["spec"].as_object_mut().unwrap().remove("storageClassName");
    fixture.create(&PERSISTENT_VOLUME_CLAIMS, NAMESPACE, bare).await;
    has_phase(&fixture, "data", "Pending").await;
    let annotations = json!({"storageclass.kubernetes.io/is-default-class": "true"});
    let class = json!({"metadata": {"name": "late", "annotations": annotations},
        "provisioner": "kubarium.dev/simulated-disk"});
    fixture.create(&STORAGE_CLASSES, "", class).await;
    let bound = has_phase(&fixture, "data", "Bound").await;
    assert_eq!(bound["spec"]["storageClassName"], "late");
}

#[tokio::test]
async fn what_nobody_can_delete_has_failed() {
    let fixture = Fixture::start().await;
    let mut kept = volume("v", "1Gi", "");
    kept["spec"]["persistentVolumeReclaimPolicy"] = "Delete".into();
    fixture.create(&PERSISTENT_VOLUMES, "", kept).await;
    fixture.create(&PERSISTENT_VOLUME_CLAIMS, NAMESPACE, claim("data", "1Gi", "")).await;
    has_phase(&fixture, "data", "Bound").await;
    fixture.delete(&PERSISTENT_VOLUME_CLAIMS, "data", "Background").await;
    let look = || async {
        let volume = fixture.get(&PERSISTENT_VOLUMES, "v").await?;
        (volume["status"]["phase"] == "Failed").then_some(volume)
    };
    let failed = fixture.eventually("the volume has failed", look).await;
    let message = "host_path deleter only supports /tmp/.+ but received provided /data";
    assert_eq!(failed["status"]["message"], message);
}

#[tokio::test]
async fn a_claim_grows() {
    let fixture = Fixture::start().await;
    let class = json!({"metadata": {"name": "growing"}, "provisioner": "kubarium.dev/simulated-disk",
        "allowVolumeExpansion": true});
    fixture.create(&STORAGE_CLASSES, "", class).await;
    fixture.create(&PERSISTENT_VOLUME_CLAIMS, NAMESPACE, claim("data", "1Gi", "growing")).await;
    let bound = has_phase(&fixture, "data", "Bound").await;
    let more = json!({"spec": {"resources": {"requests": {"storage": "3Gi"}}}});
    fixture.patch(&PERSISTENT_VOLUME_CLAIMS, "data", more).await;
    let look = || async {
        let claim = fixture.get(&PERSISTENT_VOLUME_CLAIMS, "data").await?;
        (claim["status"]["capacity"]["storage"] == "3Gi").then_some(())
    };
    fixture.eventually("the claim has grown", look).await;
    let volume = fixture.get(&PERSISTENT_VOLUMES, bound["spec"]["volumeName"].as_str().unwrap()).await;
    assert_eq!(volume.unwrap()["spec"]["capacity"]["storage"], "3Gi");
    fixture.told("VolumeResizeSuccessful", "Resize volume succeeded").await;
}

/// A bound claim of a class of our disks, which may grow, and a pod that has it; without kubelets a test says
/// when it runs.
async fn growing(parameters: Value) -> Fixture {
    let fixture = Fixture::start().await;
    let class = json!({"metadata": {"name": "growing"}, "provisioner": "kubarium.dev/simulated-disk",
        "allowVolumeExpansion": true, "parameters": parameters});
    fixture.create(&STORAGE_CLASSES, "", class).await;
    fixture.create(&PERSISTENT_VOLUME_CLAIMS, NAMESPACE, claim("data", "1Gi", "growing")).await;
    has_phase(&fixture, "data", "Bound").await;
    let volume = json!({"name": "d", "persistentVolumeClaim": {"claimName": "data"}});
    let pod = json!({"metadata": {"name": "user"}, "spec": {"nodeName": "n", "volumes": [volume],
        "containers": [{"name": "c", "image": "nginx"}]}});
    fixture.create(&PODS, NAMESPACE, pod).await;
    fixture
}

async fn ask_for(fixture: &Fixture, size: &str) {
    let more = json!({"spec": {"resources": {"requests": {"storage": size}}}});
    fixture.patch(&PERSISTENT_VOLUME_CLAIMS, "data", more).await;
}

/// The claim, once its growth is in this state.
async fn grows(fixture: &Fixture, state: Value) -> Value {
    let look = || async {
        let claim = fixture.get(&PERSISTENT_VOLUME_CLAIMS, "data").await?;
        (claim["status"]["allocatedResourceStatuses"]["storage"] == state).then_some(claim)
    };
    fixture.eventually(&format!("the growth is {state}"), look).await
}

async fn annotate_volume(fixture: &Fixture, key: &str, value: Value) {
    let claim = fixture.get(&PERSISTENT_VOLUME_CLAIMS, "data").await.unwrap();
    let volume = claim["spec"]["volumeName"].as_str().unwrap();
    fixture.patch(&PERSISTENT_VOLUMES, volume, json!({"metadata": {"annotations": {key: value}}})).await;
}

#[tokio::test]
async fn a_file_system_grows_when_a_pod_has_it() {
    let fixture = growing(json!({"nodeExpansion": "required"})).await;
    ask_for(&fixture, "3Gi").await;
    let waits = grows(&fixture, json!("NodeResizePending")).await;
    assert_eq!(waits["status"]["capacity"]["storage"], "1Gi");
    assert_eq!(waits["status"]["allocatedResources"]["storage"], "3Gi");
    let message = "Waiting for user to (re-)start a pod to finish file system resize of volume on node.";
    assert_eq!(condition(&waits, "FileSystemResizePending")["message"], message);
    assert_eq!(condition(&waits, "Resizing")["status"], "True");
    fixture.told("FileSystemResizeRequired", "Require file system resize of volume on node").await;
    fixture.set_ready("user", "True", "10.0.0.1").await;
    let volume = waits["spec"]["volumeName"].as_str().unwrap();
    let message = format!("MountVolume.NodeExpandVolume succeeded for volume {volume:?} n");
    fixture.told("FileSystemResizeSuccessful", &message).await;
    let done = grows(&fixture, Value::Null).await;
    assert_eq!(done["status"]["capacity"]["storage"], "3Gi");
    assert_eq!(done["status"]["conditions"], Value::Null);
}

#[tokio::test]
async fn a_growth_that_fails_can_be_made_smaller_or_mended() {
    let fixture = growing(json!({})).await;
    annotate_volume(&fixture, "kubarium.dev/resize-error", json!("no room")).await;
    ask_for(&fixture, "9Gi").await;
    let failed = grows(&fixture, json!("ControllerResizeInfeasible")).await;
    let message = "failed to expand pvc with rpc error: code = OutOfRange desc = no room";
    assert_eq!(condition(&failed, "ControllerResizeError")["message"], message);
    let volume = failed["spec"]["volumeName"].as_str().unwrap();
    let message = format!(
        "resize volume {volume:?} by resizer \"kubarium.dev/simulated-disk\" failed: rpc error: code = OutOfRange \
         desc = no room"
    );
    fixture.told("VolumeResizeFailed", &message).await;
    let told = fixture.list(&EVENTS, "").await;
    let told = told.iter().find(|event| event["reason"] == "VolumeResizeFailed").unwrap();
    assert_eq!(told["source"]["component"], "external-resizer kubarium.dev/simulated-disk");
    fixture.settle(50).await;
    assert_eq!(fixture.events("VolumeResizeFailed").await[&message], 1, "it is not tried for ever");
    ask_for(&fixture, "2Gi").await;
    let look = || async {
        let claim = fixture.get(&PERSISTENT_VOLUME_CLAIMS, "data").await?;
        (claim["status"]["allocatedResources"]["storage"] == "2Gi").then_some(())
    };
    fixture.eventually("less is tried", look).await;
    annotate_volume(&fixture, "kubarium.dev/resize-error", Value::Null).await;
    let done = grows(&fixture, Value::Null).await;
    assert_eq!(done["status"]["capacity"]["storage"], "2Gi");
}

#[tokio::test]
async fn a_node_that_cannot_grow_a_file_system_says_so() {
    let fixture = growing(json!({})).await;
    fixture.set_ready("user", "True", "10.0.0.1").await;
    annotate_volume(&fixture, "kubarium.dev/node-resize-error", json!("is busy")).await;
    ask_for(&fixture, "2Gi").await;
    let failed = grows(&fixture, json!("NodeResizeInfeasible")).await;
    let message = "failed to expand pvc with rpc error: code = OutOfRange desc = is busy";
    assert_eq!(condition(&failed, "NodeResizeError")["message"], message);
    annotate_volume(&fixture, "kubarium.dev/node-resize-error", Value::Null).await;
    assert_eq!(grows(&fixture, Value::Null).await["status"]["capacity"]["storage"], "2Gi");
}

#[tokio::test]
async fn a_source_that_nobody_fills_volumes_from_is_told() {
    let fixture = Fixture::start().await;
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let version =
        json!({"name": "v1beta1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}});
    let names = json!({"plural": "volumepopulators", "singular": "volumepopulator", "kind": "VolumePopulator",
        "listKind": "VolumePopulatorList"});
    let approved =
        json!({"api-approved.kubernetes.io": "https://github.com/kubernetes/enhancements/pull/2934"});
    let definition = json!({"metadata": {"name": "volumepopulators.populator.storage.k8s.io", "annotations": approved},
        "spec": {"group": "populator.storage.k8s.io", "scope": "Cluster", "names": names, "versions": [version]}});
    fixture.create(&CUSTOM_RESOURCE_DEFINITIONS, "", definition).await;
    let of = |kind: &str| json!({"apiGroup": "example.com", "kind": kind, "name": "source"});
    let wants = |name: &str, kind: &str| {
        let mut claim = claim(name, "1Gi", "none");
        claim["spec"]["dataSourceRef"] = of(kind);
        claim
    };
    let served = || async {
        fixture.cluster.scheme().resource("populator.storage.k8s.io", "v1beta1", "volumepopulators")
    };
    fixture.eventually("populators are served", served).await;
    fixture.create(&PERSISTENT_VOLUME_CLAIMS, NAMESPACE, wants("data", "Nobody")).await;
    let message = "The datasource for this PVC does not match any registered VolumePopulator";
    fixture.told("UnrecognizedDataSourceKind", message).await;
}

#[tokio::test]
async fn a_class_of_attributes_stays_as_long_as_a_claim_names_it() {
    let fixture = Fixture::start().await;
    let class = json!({"metadata": {"name": "gold"}, "driverName": "d", "parameters": {"iops": "9"}});
    let class = fixture.create(&VOLUME_ATTRIBUTES_CLASSES, "", class).await;
    assert_eq!(class.metadata.finalizers, ["kubernetes.io/vac-protection"], "from the start");
    let mut named = claim("data", "1Gi", "none");
    named["spec"]["volumeAttributesClassName"] = "gold".into();
    fixture.create(&PERSISTENT_VOLUME_CLAIMS, NAMESPACE, named).await;
    let held = || async {
        let class = fixture.get(&VOLUME_ATTRIBUTES_CLASSES, "gold").await?;
        (class["metadata"]["finalizers"] == json!(["kubernetes.io/vac-protection"])).then_some(())
    };
    fixture.eventually("the class is held", held).await;
    fixture.delete(&VOLUME_ATTRIBUTES_CLASSES, "gold", "Background").await;
    fixture.settle(20).await;
    assert!(fixture.get(&VOLUME_ATTRIBUTES_CLASSES, "gold").await.is_some(), "it is used");
    fixture.delete(&PERSISTENT_VOLUME_CLAIMS, "data", "Background").await;
    fixture.gone(&VOLUME_ATTRIBUTES_CLASSES, "gold").await;
}

#[tokio::test]
async fn a_claim_that_names_a_volume_waits_for_it_and_nothing_is_said() {
    let fixture = Fixture::start().await;
    let mut named = claim("data", "1Gi", "none");
    named["spec"]["volumeName"] = "late".into();
    fixture.create(&PERSISTENT_VOLUME_CLAIMS, NAMESPACE, named).await;
    fixture.pass(Duration::from_secs(60)).await;
    assert_eq!(fixture.get(&PERSISTENT_VOLUME_CLAIMS, "data").await.unwrap()["status"]["phase"], "Pending");
    for reason in ["ProvisioningFailed", "FailedBinding", "ExternalProvisioning"] {
        assert!(fixture.events(reason).await.is_empty(), "{reason}");
    }
    fixture.create(&PERSISTENT_VOLUMES, "", volume("late", "1Gi", "none")).await;
    has_phase(&fixture, "data", "Bound").await;
}

/// A class of our disks, and one of attributes of them.
async fn disks_with_attributes() -> Fixture {
    let fixture = Fixture::start().await;
    let class = json!({"metadata": {"name": "disks"}, "provisioner": "kubarium.dev/simulated-disk"});
    fixture.create(&STORAGE_CLASSES, "", class).await;
    add_attributes(&fixture, "silver").await;
    fixture
}

async fn add_attributes(fixture: &Fixture, name: &str) {
    let class = json!({"metadata": {"name": name}, "driverName": "kubarium.dev/simulated-disk",
        "parameters": {"iops": "9"}});
    fixture.create(&VOLUME_ATTRIBUTES_CLASSES, "", class).await;
}

async fn wants_attributes(fixture: &Fixture, class: &str) {
    fixture
        .patch(&PERSISTENT_VOLUME_CLAIMS, "data", json!({"spec": {"volumeAttributesClassName": class}}))
        .await;
}

/// The claim, once its volume is being changed like this.
async fn is_modified(fixture: &Fixture, wanted: Value) -> Value {
    let look = || async {
        let claim = fixture.get(&PERSISTENT_VOLUME_CLAIMS, "data").await?;
        (claim["status"]["modifyVolumeStatus"] == wanted).then_some(claim)
    };
    fixture.eventually(&format!("the change is {wanted}"), look).await
}

#[tokio::test]
async fn a_volume_has_the_attributes_that_its_claim_names() {
    let fixture = disks_with_attributes().await;
    let mut named = claim("data", "1Gi", "disks");
    named["spec"]["volumeAttributesClassName"] = "silver".into();
    fixture.create(&PERSISTENT_VOLUME_CLAIMS, NAMESPACE, named).await;
    let bound = has_phase(&fixture, "data", "Bound").await;
    assert_eq!(bound["status"]["currentVolumeAttributesClassName"], "silver");
    let volume = bound["spec"]["volumeName"].as_str().unwrap();
    let made = fixture.get(&PERSISTENT_VOLUMES, volume).await.unwrap();
    assert_eq!(made["spec"]["csi"]["driver"], "simulated-disk.kubarium.dev");
    assert_eq!(made["spec"]["volumeAttributesClassName"], "silver");
    wants_attributes(&fixture, "gold").await;
    let pending = json!({"status": "Pending", "targetVolumeAttributesClassName": "gold"});
    is_modified(&fixture, pending).await;
    fixture.pass(Duration::from_secs(60)).await;
    let missing = "VAC \"gold\" does not exist.";
    assert_eq!(fixture.events("VolumeModifyFailed").await[missing], 1, "it is said once");
    add_attributes(&fixture, "gold").await;
    let look = || async {
        let claim = fixture.get(&PERSISTENT_VOLUME_CLAIMS, "data").await?;
        (claim["status"]["currentVolumeAttributesClassName"] == "gold").then_some(claim)
    };
    let done = fixture.eventually("the volume is of the other class", look).await;
    assert_eq!(done["status"]["modifyVolumeStatus"], Value::Null);
    assert_eq!(condition(&done, "ModifyingVolume"), &Value::Null);
    let changed = fixture.get(&PERSISTENT_VOLUMES, volume).await.unwrap();
    assert_eq!(changed["spec"]["volumeAttributesClassName"], "gold");
    let message = "external resizer is modifying volume data with vac gold";
    fixture.told("VolumeModify", message).await;
    let message = "external resizer modified volume data with vac gold successfully";
    fixture.told("VolumeModifySuccessful", message).await;
}

#[tokio::test]
async fn a_volume_without_attributes_says_so_once() {
    let fixture = disks_with_attributes().await;
    fixture.create(&PERSISTENT_VOLUME_CLAIMS, NAMESPACE, claim("data", "1Gi", "disks")).await;
    has_phase(&fixture, "data", "Bound").await;
    wants_attributes(&fixture, "silver").await;
    let infeasible = json!({"status": "Infeasible", "targetVolumeAttributesClassName": "silver"});
    let refused = is_modified(&fixture, infeasible).await;
    let message = condition(&refused, "ModifyingVolume")["message"].clone();
    assert!(message.as_str().unwrap().contains("is not of a CSI driver and has no attributes"), "{message}");
    fixture.pass(Duration::from_secs(60)).await;
    assert_eq!(fixture.events("VolumeModifyFailed").await.values().sum::<i64>(), 1);
    assert_eq!(fixture.events("VolumeModify").await.values().sum::<i64>(), 1);
    assert!(fixture.events("VolumeModifySuccessful").await.is_empty());
}
