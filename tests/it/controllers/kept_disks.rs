//! Disks and attachments are kept by their drivers until they are deleted and detached.

use kubarium::apis::core::persistent_volume::PERSISTENT_VOLUMES;
use kubarium::apis::core::persistent_volume_claim::PERSISTENT_VOLUME_CLAIMS;
use kubarium::apis::storage::storage_class::STORAGE_CLASSES;
use serde_json::json;

use super::storage::{claim, has_phase};
use super::support::{Fixture, NAMESPACE};

const PROVISIONER_FINALIZER: &str = "external-provisioner.volume.kubernetes.io/finalizer";

/// A disk that is made for the claim `data`, and its name.
async fn made_disk(fixture: &Fixture) -> String {
    let class = json!({"metadata": {"name": "disks"}, "provisioner": "kubarium.dev/simulated-disk"});
    fixture.create(&STORAGE_CLASSES, "", class).await;
    fixture.settle(5).await;
    fixture.create(&PERSISTENT_VOLUME_CLAIMS, NAMESPACE, claim("data", "1Gi", "disks")).await;
    let claim = has_phase(fixture, "data", "Bound").await;
    claim["spec"]["volumeName"].as_str().unwrap().to_owned()
}

/// Whether the provisioner keeps the volume.
async fn is_guarded(fixture: &Fixture, name: &str) -> bool {
    let volume = fixture.get(&PERSISTENT_VOLUMES, name).await.expect("the volume is there");
    volume["metadata"]["finalizers"].as_array().is_some_and(|all| all.contains(&json!(PROVISIONER_FINALIZER)))
}

#[tokio::test]
async fn a_disk_that_is_deleted_before_its_claim_waits_for_it() {
    let fixture = Fixture::start().await;
    let name = made_disk(&fixture).await;
    assert!(is_guarded(&fixture, &name).await);
    fixture.delete(&PERSISTENT_VOLUMES, &name, "Background").await;
    fixture.settle(20).await;
    assert!(is_guarded(&fixture, &name).await, "it is bound");
    fixture.delete(&PERSISTENT_VOLUME_CLAIMS, "data", "Background").await;
    fixture.gone(&PERSISTENT_VOLUMES, &name).await;
}

#[tokio::test]
async fn a_disk_goes_after_its_claim() {
    let fixture = Fixture::start().await;
    let name = made_disk(&fixture).await;
    fixture.delete(&PERSISTENT_VOLUME_CLAIMS, "data", "Background").await;
    fixture.gone(&PERSISTENT_VOLUMES, &name).await;
}

#[tokio::test]
async fn the_finalizer_of_a_disk_follows_its_policy() {
    let fixture = Fixture::start().await;
    let name = made_disk(&fixture).await;
    for (policy, expected) in [("Retain", false), ("Delete", true)] {
        let patch = json!({"spec": {"persistentVolumeReclaimPolicy": policy}});
        fixture.patch(&PERSISTENT_VOLUMES, &name, patch).await;
        let follows = || async { (is_guarded(&fixture, &name).await == expected).then_some(()) };
        fixture.eventually(policy, follows).await;
    }
}
