//! Volumes with the policy `Recycle`: a recycler pod empties them before they may be claimed again.

use kubarium::apimachinery::object::Object;
use kubarium::apimachinery::options::{DeleteOptions, ListOptions, PatchType};
use kubarium::apis::core::event::EVENTS;
use kubarium::apis::core::persistent_volume::PERSISTENT_VOLUMES;
use kubarium::apis::core::persistent_volume_claim::PERSISTENT_VOLUME_CLAIMS;
use kubarium::apis::core::pod::PODS;
use kubarium::apis::core::resource_quota::RESOURCE_QUOTAS;
use kubarium::cluster::{Components, Config};
use serde_json::{Value, json};
use std::sync::Arc;

use super::storage::{claim, has_phase, volume};
use super::support::{Fixture, NAMESPACE};

/// Where recycler pods are, and events of volumes.
const DEFAULT: &str = "default";
const RECYCLER: &str = "recycler-for-v";

fn recycled() -> Value {
    let mut volume = volume("v", "1Gi", "");
    volume["spec"]["persistentVolumeReclaimPolicy"] = "Recycle".into();
    volume
}

/// A volume whose claim is bound to it.
async fn bound(fixture: &Fixture) {
    fixture.create(&PERSISTENT_VOLUMES, "", recycled()).await;
    fixture.create(&PERSISTENT_VOLUME_CLAIMS, NAMESPACE, claim("data", "1Gi", "")).await;
    has_phase(fixture, "data", "Bound").await;
}

/// The same, and nobody needs it any more.
async fn released(fixture: &Fixture) {
    bound(fixture).await;
    fixture.delete(&PERSISTENT_VOLUME_CLAIMS, "data", "Background").await;
}

/// The volume, once it is in this phase.
async fn volume_is(fixture: &Fixture, phase: &str) -> Value {
    let look = || async {
        let volume = fixture.get(&PERSISTENT_VOLUMES, "v").await?;
        (volume["status"]["phase"] == phase).then_some(volume)
    };
    fixture.eventually(&format!("the volume is {phase}"), look).await
}

/// What was told of the volume for a reason, with its type, as often as it says.
async fn told(fixture: &Fixture, reason: &str) -> Vec<String> {
    let events = fixture.client.list(&EVENTS, DEFAULT, &ListOptions::default()).await.unwrap();
    let events = events.items.iter().map(|event| event.to_value());
    let its = events.filter(|event| event["reason"] == reason && event["involvedObject"]["name"] == "v");
    let words =
        |event: Value| ["type", "message"].map(|field| event[field].as_str().unwrap_or_default().to_owned());
    its.map(|event| words(event).join(" ")).collect()
}

async fn hears(fixture: &Fixture, reason: &str, text: &str) {
    let look =
        || async { told(fixture, reason).await.iter().any(|told| told.starts_with(text)).then_some(()) };
    fixture.eventually(&format!("{reason}: {text}"), look).await;
}

async fn recycler_pod(fixture: &Fixture) -> Option<Arc<Object>> {
    fixture.client.find(&PODS, DEFAULT, RECYCLER).await.unwrap()
}

/// A pod that runs a script where the volume is, until it has ended well.
async fn runs(fixture: &Fixture, name: &str, script: &str) {
    let pod = json!({"metadata": {"name": name}, "spec": {
        "restartPolicy": "Never",
        "containers": [{"name": "c", "image": "busybox", "command": ["sh", "-c", script],
            "volumeMounts": [{"name": "data", "mountPath": "/data"}]}],
        "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}],
    }});
    fixture.create(&PODS, NAMESPACE, pod).await;
    let look = || async { (fixture.get(&PODS, name).await?["status"]["phase"] == "Succeeded").then_some(()) };
    fixture.eventually(&format!("pod {name} ends well"), look).await;
    fixture.delete(&PODS, name, "Background").await;
}

#[tokio::test]
async fn a_volume_is_emptied_by_a_pod_before_the_next_claim_has_it() {
    let fixture = Fixture::start_configured(Config::new()).await;
    bound(&fixture).await;
    runs(&fixture, "writes", "mkdir /data/.d && echo old > /data/.d/f && echo old > /data/g").await;
    fixture.delete(&PERSISTENT_VOLUME_CLAIMS, "data", "Background").await;
    let free = volume_is(&fixture, "Available").await;
    assert_eq!(free["spec"]["claimRef"], Value::Null);
    hears(&fixture, "VolumeRecycled", "Normal Volume recycled").await;
    let assigned = "Normal Recycler pod: Successfully assigned default/recycler-for-v to ";
    hears(&fixture, "RecyclerPod", assigned).await;
    hears(&fixture, "RecyclerPod", "Normal Recycler pod: Container started").await;
    let gone = || async { recycler_pod(&fixture).await.is_none().then_some(()) };
    fixture.eventually("the recycler pod is gone", gone).await;
    fixture.create(&PERSISTENT_VOLUME_CLAIMS, NAMESPACE, claim("data", "1Gi", "")).await;
    has_phase(&fixture, "data", "Bound").await;
    runs(&fixture, "reads", "test -z \"$(ls -A /data)\"").await;
}

#[tokio::test]
async fn what_cannot_be_emptied_has_failed_until_it_can() {
    let fixture = Fixture::start_with(Components::NONE.controllers(true)).await;
    let quota = json!({"metadata": {"name": "none"}, "spec": {"hard": {"pods": "0"}}});
    fixture.create(&RESOURCE_QUOTAS, DEFAULT, quota).await;
    let counted = || async {
        let quota = fixture.client.get(&RESOURCE_QUOTAS, DEFAULT, "none").await.unwrap().to_value();
        (quota["status"]["used"]["pods"] == "0").then_some(())
    };
    fixture.eventually("the quota was counted", counted).await;
    released(&fixture).await;
    let failed = volume_is(&fixture, "Failed").await;
    let why = "Recycle failed: unexpected error creating recycler pod:  pods \"recycler-for-v\" is forbidden";
    assert!(failed["status"]["message"].as_str().unwrap().starts_with(why), "{failed}");
    hears(&fixture, "VolumeFailedRecycle", &format!("Warning {why}")).await;
    fixture.client.delete(&RESOURCE_QUOTAS, DEFAULT, "none", &DeleteOptions::default()).await.unwrap();
    let first = || recycler_pod(&fixture);
    let first = fixture.eventually("it is tried again", first).await;
    fixture.client.delete(&PODS, DEFAULT, RECYCLER, &DeleteOptions::default()).await.unwrap();
    let second =
        || async { recycler_pod(&fixture).await.filter(|pod| pod.metadata.uid != first.metadata.uid) };
    fixture.eventually("and again, since its pod was deleted", second).await;
    let done = json!({"status": {"phase": "Succeeded"}});
    fixture.client.patch_status(&PODS, DEFAULT, RECYCLER, PatchType::Merge, &done).await.unwrap();
    let free = volume_is(&fixture, "Available").await;
    assert_eq!((&free["spec"]["claimRef"], &free["status"]["message"]), (&Value::Null, &Value::Null));
    assert_eq!(told(&fixture, "VolumeFailedRecycle").await.len(), 1, "once, not with each attempt");
}

#[tokio::test]
async fn a_pod_that_fails_and_one_that_was_there_before_empty_nothing() {
    let fixture = Fixture::start_with(Components::NONE.controllers(true)).await;
    let forged =
        json!({"metadata": {"name": RECYCLER}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let forged = fixture.create(&PODS, DEFAULT, forged).await;
    released(&fixture).await;
    let own = || async { recycler_pod(&fixture).await.filter(|pod| pod.metadata.uid != forged.metadata.uid) };
    let own = fixture.eventually("another pod instead of that", own).await.to_value();
    assert_eq!(own["spec"]["activeDeadlineSeconds"], 60);
    assert_eq!(own["spec"]["volumes"][0]["hostPath"]["path"], "/data");
    let failed = json!({"status": {"phase": "Failed", "message": "too slow"}});
    fixture.client.patch_status(&PODS, DEFAULT, RECYCLER, PatchType::Merge, &failed).await.unwrap();
    let volume = volume_is(&fixture, "Failed").await;
    assert_eq!(volume["status"]["message"], "Recycle failed: failed to recycle volume: too slow");
    let again =
        || async { recycler_pod(&fixture).await.filter(|pod| pod.metadata.uid != own["metadata"]["uid"]) };
    fixture.eventually("it is tried again", again).await;
    let keep = json!({"spec": {"persistentVolumeReclaimPolicy": "Retain"}});
    fixture.patch(&PERSISTENT_VOLUMES, "v", keep).await;
    let gone = || async { recycler_pod(&fixture).await.is_none().then_some(()) };
    fixture.eventually("nobody is to empty it any more", gone).await;
}
