//! Claims and volumes that were bound to each other, and are not any more.

use kubarium::apis::core::persistent_volume::PERSISTENT_VOLUMES;
use kubarium::apis::core::persistent_volume_claim::PERSISTENT_VOLUME_CLAIMS;
use serde_json::{Value, json};

use super::storage::{claim, has_phase, volume};
use super::support::{Fixture, NAMESPACE};

/// A claim `data` that has the volume `v`.
async fn bound() -> (Fixture, Value) {
    let fixture = Fixture::start().await;
    fixture.create(&PERSISTENT_VOLUMES, "", volume("v", "1Gi", "")).await;
    fixture.create(&PERSISTENT_VOLUME_CLAIMS, NAMESPACE, claim("data", "1Gi", "")).await;
    let bound = has_phase(&fixture, "data", "Bound").await;
    (fixture, bound)
}

fn reference(claim: &Value) -> Value {
    let metadata = &claim["metadata"];
    json!({"kind": "PersistentVolumeClaim", "namespace": NAMESPACE, "name": metadata["name"],
        "uid": metadata["uid"]})
}

/// The volume, once it is in this phase and this is who it is for.
async fn volume_is(fixture: &Fixture, name: &str, phase: &str, uid: &Value) -> Value {
    let look = || async {
        let volume = fixture.get(&PERSISTENT_VOLUMES, name).await?;
        let is_it = volume["status"]["phase"] == phase && volume["spec"]["claimRef"]["uid"] == *uid;
        is_it.then_some(volume)
    };
    fixture.eventually(&format!("volume {name} is {phase}"), look).await
}

#[tokio::test]
async fn a_claim_whose_volume_is_gone_is_lost_until_that_is_back() {
    let (fixture, data) = bound().await;
    fixture.delete(&PERSISTENT_VOLUMES, "v", "Background").await;
    fixture.patch(&PERSISTENT_VOLUMES, "v", json!({"metadata": {"finalizers": null}})).await;
    let lost = has_phase(&fixture, "data", "Lost").await;
    assert_eq!((&lost["status"]["capacity"], &lost["status"]["accessModes"]), (&Value::Null, &Value::Null));
    let message = "Bound claim has lost its PersistentVolume. Data on the volume is lost!";
    fixture.told("ClaimLost", message).await;
    let mut back = volume("v", "1Gi", "");
    back["spec"]["claimRef"] = reference(&data);
    fixture.create(&PERSISTENT_VOLUMES, "", back).await;
    let found = has_phase(&fixture, "data", "Bound").await;
    assert_eq!(found["status"]["capacity"], json!({"storage": "1Gi"}));
    volume_is(&fixture, "v", "Bound", &data["metadata"]["uid"]).await;
}

/// What populators of volumes do when the volume of their own claim is full.
#[tokio::test]
async fn a_volume_can_be_given_to_another_claim() {
    let (fixture, _) = bound().await;
    let waiting = fixture.create(&PERSISTENT_VOLUME_CLAIMS, NAMESPACE, claim("waiting", "1Gi", "")).await;
    let waiting = waiting.to_value();
    let patch = json!({"spec": {"claimRef": reference(&waiting)}});
    fixture.patch(&PERSISTENT_VOLUMES, "v", patch).await;
    has_phase(&fixture, "waiting", "Bound").await;
    has_phase(&fixture, "data", "Lost").await;
    let message = "Two claims are bound to the same volume, this one is bound incorrectly";
    fixture.told("ClaimMisbound", message).await;
    volume_is(&fixture, "v", "Bound", &waiting["metadata"]["uid"]).await;
}

#[tokio::test]
async fn a_volume_that_its_claim_still_names_is_bound_again() {
    let (fixture, data) = bound().await;
    fixture.patch(&PERSISTENT_VOLUMES, "v", json!({"spec": {"claimRef": null}})).await;
    volume_is(&fixture, "v", "Bound", &data["metadata"]["uid"]).await;
}

#[tokio::test]
async fn what_a_claim_has_no_need_of_is_let_go() {
    let (fixture, data) = bound().await;
    let second = |name: &str, annotations: Value| {
        let mut second = volume(name, "1Gi", "");
        second["metadata"]["annotations"] = annotations;
        second["spec"]["claimRef"] = reference(&data);
        second["spec"]["persistentVolumeReclaimPolicy"] = "Delete".into();
        second
    };
    fixture.create(&PERSISTENT_VOLUMES, "", second("kept", Value::Null)).await;
    let kept = volume_is(&fixture, "kept", "Available", &Value::Null).await;
    assert_eq!(kept["spec"]["claimRef"]["name"], "data", "as who made it wanted");
    let chosen = json!({"pv.kubernetes.io/bound-by-controller": "yes"});
    fixture.create(&PERSISTENT_VOLUMES, "", second("chosen", chosen)).await;
    let chosen = volume_is(&fixture, "chosen", "Available", &Value::Null).await;
    assert_eq!(chosen["spec"]["claimRef"], Value::Null);
    let made = json!({"pv.kubernetes.io/provisioned-by": "example.com"});
    fixture.create(&PERSISTENT_VOLUMES, "", second("made", made)).await;
    volume_is(&fixture, "made", "Released", &data["metadata"]["uid"]).await;
}
