//! Snapshots of volumes, once somebody has installed their kinds; claims that are filled from them.

use std::time::Duration;

use kubarium::apis::apiextensions::custom_resource_definition::CUSTOM_RESOURCE_DEFINITIONS;
use kubarium::apis::core::persistent_volume::PERSISTENT_VOLUMES;
use kubarium::apis::core::persistent_volume_claim::PERSISTENT_VOLUME_CLAIMS;
use kubarium::apis::kind::Kind;
use kubarium::apis::storage::csi::CSI_DRIVERS;
use kubarium::apis::storage::storage_class::STORAGE_CLASSES;
use serde_json::{Value, json};

use super::support::{Fixture, NAMESPACE};

const GROUP: &str = "snapshot.storage.k8s.io";
const DRIVER: &str = "kubarium.dev/simulated-disk";

/// As the definitions of external-snapshotter, in short.
fn definition(kind: &str, plural: &str, scope: &str) -> Value {
    let free = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let version = json!({"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": free}});
    let names = json!({"kind": kind, "plural": plural, "singular": kind.to_lowercase(),
        "listKind": format!("{kind}List")});
    let approved = "https://github.com/kubernetes-csi/external-snapshotter/pull/814";
    json!({"metadata": {"name": format!("{plural}.{GROUP}"),
            "annotations": {"api-approved.kubernetes.io": approved}},
        "spec": {"group": GROUP, "scope": scope, "names": names, "versions": [version]}})
}

struct Snapshots {
    fixture: Fixture,
    snapshots: Kind,
    contents: Kind,
    classes: Kind,
}

/// The kinds, a default class with this policy, and a claim that is bound.
async fn start(policy: &str) -> Snapshots {
    let fixture = Fixture::start().await;
    for (kind, plural, scope) in [
        ("VolumeSnapshot", "volumesnapshots", "Namespaced"),
        ("VolumeSnapshotContent", "volumesnapshotcontents", "Cluster"),
        ("VolumeSnapshotClass", "volumesnapshotclasses", "Cluster"),
    ] {
        fixture.create(&CUSTOM_RESOURCE_DEFINITIONS, "", definition(kind, plural, scope)).await;
    }
    let kind = |kind: &str, plural: &str| Kind::builtin(GROUP, "v1", kind, plural, "");
    let cluster_wide = |name: &str, plural: &str| Kind { namespaced: false, ..kind(name, plural) };
    let classes = cluster_wide("VolumeSnapshotClass", "volumesnapshotclasses");
    let class = json!({"metadata": {"name": "disks",
            "annotations": {"snapshot.storage.kubernetes.io/is-default-class": "true"}},
        "driver": DRIVER, "deletionPolicy": policy});
    let served = || async { fixture.client.create(&classes, "", class.clone()).await.ok() };
    fixture.eventually("classes are served", served).await;
    let storage = json!({"metadata": {"name": "disk"}, "provisioner": DRIVER});
    fixture.create(&STORAGE_CLASSES, "", storage).await;
    let snapshots = kind("VolumeSnapshot", "volumesnapshots");
    let contents = cluster_wide("VolumeSnapshotContent", "volumesnapshotcontents");
    let all = Snapshots { fixture, snapshots, contents, classes };
    all.claim("data", "1Gi", Value::Null).await;
    all
}

impl Snapshots {
    async fn claim(&self, name: &str, storage: &str, source: Value) {
        let mut claim = json!({"metadata": {"name": name}, "spec": {"accessModes": ["ReadWriteOnce"],
            "storageClassName": "disk", "resources": {"requests": {"storage": storage}}}});
        if !source.is_null() {
            claim["spec"]["dataSourceRef"] = source;
        }
        self.fixture.create(&PERSISTENT_VOLUME_CLAIMS, NAMESPACE, claim).await;
    }

    async fn is_bound(&self, claim: &str) {
        let look = || async {
            let claim = self.fixture.get(&PERSISTENT_VOLUME_CLAIMS, claim).await?;
            (claim["status"]["phase"] == "Bound").then_some(())
        };
        self.fixture.eventually(&format!("{claim} is bound"), look).await;
    }

    async fn snapshot(&self, name: &str, source: Value) {
        let metadata = json!({"name": name});
        let snapshot = json!({"metadata": metadata, "spec": {"source": source}});
        self.fixture.create(&self.snapshots, NAMESPACE, snapshot).await;
    }

    async fn ready(&self, name: &str) -> Value {
        let look = || async {
            self.fixture.get(&self.snapshots, name).await.filter(|it| it["status"]["readyToUse"] == true)
        };
        self.fixture.eventually(&format!("{name} is ready"), look).await
    }
}

fn of_snapshot(name: &str) -> Value {
    json!({"apiGroup": GROUP, "kind": "VolumeSnapshot", "name": name})
}

#[tokio::test]
async fn a_snapshot_is_taken_restored_and_goes_with_its_content() {
    let all = start("Delete").await;
    let fixture = &all.fixture;
    all.claim("early", "1Gi", of_snapshot("snap")).await;
    fixture
        .told(
            "ProvisioningFailed",
            "failed to provision volume with StorageClass \"disk\": error getting handle for DataSource Type \
             VolumeSnapshot by Name snap: error getting snapshot snap from api server: \
             volumesnapshots.snapshot.storage.k8s.io \"snap\" not found",
        )
        .await;
    all.is_bound("data").await;
    all.snapshot("snap", json!({"persistentVolumeClaimName": "data"})).await;
    let snap = all.ready("snap").await;
    assert_eq!(snap["spec"]["volumeSnapshotClassName"], "disks", "the default one");
    assert_eq!(snap["status"]["restoreSize"], "1Gi");
    assert!(snap["status"]["creationTime"].is_string(), "{snap}");
    let name = snap["status"]["boundVolumeSnapshotContentName"].as_str().unwrap().to_owned();
    assert_eq!(name, format!("snapcontent-{}", snap["metadata"]["uid"].as_str().unwrap()));
    let content = fixture.get(&all.contents, &name).await.unwrap();
    assert_eq!(
        (&content["spec"]["driver"], &content["status"]["readyToUse"]),
        (&json!(DRIVER), &json!(true))
    );
    fixture.told("SnapshotReady", "Snapshot test/snap is ready to use.").await;
    all.is_bound("early").await;
    fixture.delete(&all.snapshots, "snap", "Background").await;
    fixture.gone(&all.snapshots, "snap").await;
    fixture.gone(&all.contents, &name).await;
}

#[tokio::test]
async fn what_is_retained_can_be_taken_again() {
    let all = start("Retain").await;
    let fixture = &all.fixture;
    all.is_bound("data").await;
    all.snapshot("snap", json!({"persistentVolumeClaimName": "data"})).await;
    let snap = all.ready("snap").await;
    let name = snap["status"]["boundVolumeSnapshotContentName"].as_str().unwrap().to_owned();
    fixture.delete(&all.snapshots, "snap", "Background").await;
    fixture.gone(&all.snapshots, "snap").await;
    let handle = fixture.get(&all.contents, &name).await.unwrap()["status"]["snapshotHandle"].clone();
    let content = json!({"metadata": {"name": "kept"}, "spec": {"driver": DRIVER, "deletionPolicy": "Retain",
        "source": {"snapshotHandle": handle}, "volumeSnapshotRef": {"name": "again", "namespace": NAMESPACE}}});
    fixture.create(&all.contents, "", content).await;
    all.snapshot("again", json!({"volumeSnapshotContentName": "kept"})).await;
    all.ready("again").await;
    let kept = fixture.get(&all.contents, "kept").await.unwrap();
    assert_eq!(kept["status"]["snapshotHandle"], handle);
    all.snapshot("other", json!({"volumeSnapshotContentName": "kept"})).await;
    let misbound = "VolumeSnapshotContent [kept] is bound to a different snapshot";
    fixture.told("SnapshotContentMisbound", misbound).await;
    all.snapshot("lost", json!({"persistentVolumeClaimName": "none"})).await;
    let why = "Failed to create snapshot content with error snapshot controller failed to update lost on API \
               server: cannot get claim from snapshot";
    fixture.told("SnapshotContentCreationFailed", why).await;
    let waiting = super::storage::claim("waiting", "1Gi", "none");
    fixture.create(&PERSISTENT_VOLUME_CLAIMS, NAMESPACE, waiting).await;
    all.snapshot("early", json!({"persistentVolumeClaimName": "waiting"})).await;
    let why = "Failed to create snapshot content with error failed to get input parameters to create snapshot early: \
               \"the PVC waiting is not yet bound to a PV, will not attempt to take a snapshot\"";
    fixture.told("SnapshotContentCreationFailed", why).await;
}

#[tokio::test]
async fn a_snapshot_stays_as_long_as_a_claim_is_to_be_filled_from_it() {
    let all = start("Retain").await;
    let fixture = &all.fixture;
    all.is_bound("data").await;
    all.snapshot("snap", json!({"persistentVolumeClaimName": "data"})).await;
    let content = all.ready("snap").await["status"]["boundVolumeSnapshotContentName"].clone();
    all.claim("small", "1Mi", of_snapshot("snap")).await;
    let why = "failed to provision volume with StorageClass \"disk\": error getting handle for DataSource Type \
               VolumeSnapshot by Name snap: requested volume size 1048576 is less than the size 1073741824 for \
               the source snapshot snap";
    fixture.told("ProvisioningFailed", why).await;
    fixture.delete(&all.snapshots, "snap", "Background").await;
    fixture.told("SnapshotDeletePending", "Snapshot is being used to restore a PVC").await;
    fixture.delete(&PERSISTENT_VOLUME_CLAIMS, "small", "Background").await;
    fixture.gone(&all.snapshots, "snap").await;
    let content = fixture.get(&all.contents, content.as_str().unwrap()).await.unwrap();
    let annotations = &content["metadata"]["annotations"];
    assert_eq!(annotations["snapshot.storage.kubernetes.io/volumesnapshot-being-deleted"], "yes");
}

#[tokio::test]
async fn claims_are_cloned_and_left_to_populators() {
    let all = start("Delete").await;
    let clone = json!({"kind": "PersistentVolumeClaim", "name": "data"});
    all.claim("copy", "2Gi", clone.clone()).await;
    all.is_bound("copy").await;
    all.claim("smaller", "1Mi", clone).await;
    let why = "failed to provision volume with StorageClass \"disk\": error getting handle for DataSource Type \
               PersistentVolumeClaim by Name data: error, new PVC request must be greater than or equal in size to \
               the specified PVC data source, requested 1048576 but source is 1073741824";
    all.fixture.told("ProvisioningFailed", why).await;
    all.claim("filled", "1Gi", json!({"apiGroup": "hello.example.com", "kind": "Hello", "name": "h"})).await;
    let why = "Assuming an external populator will provision the volume";
    all.fixture.told("Provisioning", why).await;
    let filled = all.fixture.get(&PERSISTENT_VOLUME_CLAIMS, "filled").await.unwrap();
    assert_eq!(filled["status"]["phase"], "Pending");
}

#[tokio::test]
async fn a_snapshot_of_a_driver_that_is_not_there_waits() {
    let all = start("Delete").await;
    let fixture = &all.fixture;
    all.is_bound("data").await;
    let class =
        json!({"metadata": {"name": "others"}, "driver": "csi.example.com", "deletionPolicy": "Delete"});
    fixture.create(&all.classes, "", class).await;
    let volume = json!({"metadata": {"name": "static"}, "spec": {"capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"], "csi": {"driver": "csi.example.com", "volumeHandle": "v"}}});
    fixture.create(&PERSISTENT_VOLUMES, "", volume).await;
    let mut claim = super::storage::claim("others", "1Gi", "");
    claim["spec"]["volumeName"] = "static".into();
    fixture.create(&PERSISTENT_VOLUME_CLAIMS, NAMESPACE, claim).await;
    all.is_bound("others").await;
    for (name, claim) in [("disk", "data"), ("other", "others")] {
        let spec =
            json!({"volumeSnapshotClassName": "others", "source": {"persistentVolumeClaimName": claim}});
        let snapshot = json!({"metadata": {"name": name}, "spec": spec});
        fixture.create(&all.snapshots, NAMESPACE, snapshot).await;
        let waits = format!("Waiting for a snapshot test/{name} to be created by the CSI driver.");
        fixture.told("CreatingSnapshot", &waits).await;
    }
    let snapshots = &all.snapshots;
    let is_ready = |name: &'static str| async move {
        fixture.get(snapshots, name).await.unwrap()["status"]["readyToUse"] == true
    };
    fixture.pass(Duration::from_secs(20)).await;
    assert!(!is_ready("disk").await && !is_ready("other").await);
    let driver = json!({"metadata": {"name": "csi.example.com"}, "spec": {}});
    fixture.create(&CSI_DRIVERS, "", driver).await;
    all.ready("other").await;
    fixture.pass(Duration::from_secs(20)).await;
    assert!(!is_ready("disk").await, "the driver does not know the disk");
}
