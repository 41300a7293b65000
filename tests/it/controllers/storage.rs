//! Volumes and claims that are used stay.

use kubarium::apimachinery::options::{DeleteOptions, PatchType};
use kubarium::apis::core::persistent_volume::PERSISTENT_VOLUMES;
use kubarium::apis::core::persistent_volume_claim::PERSISTENT_VOLUME_CLAIMS;
use kubarium::apis::core::pod::PODS;
use serde_json::json;

use super::support::{Fixture, NAMESPACE};

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
    let volume = json!({"metadata": {"name": "v"}, "spec": {"capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/data"}}});
    fixture.create(&PERSISTENT_VOLUMES, "", volume).await;
    let (bound, released) = (json!({"status": {"phase": "Bound"}}), json!({"status": {"phase": "Released"}}));
    let (kind, merge) = (&PERSISTENT_VOLUMES, PatchType::Merge);
    fixture.client.patch_status(kind, "", "v", merge, &bound).await.unwrap();
    fixture.delete(&PERSISTENT_VOLUMES, "v", "Background").await;
    fixture.settle(20).await;
    assert!(fixture.get(&PERSISTENT_VOLUMES, "v").await.is_some(), "it is bound");
    fixture.client.patch_status(kind, "", "v", merge, &released).await.unwrap();
    let gone = || async { fixture.get(&PERSISTENT_VOLUMES, "v").await.is_none().then_some(()) };
    fixture.eventually("the volume goes", gone).await;
}
