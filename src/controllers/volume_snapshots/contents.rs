//! The content of a snapshot: taken at once, unless its driver has somebody who does (`csi-snapshotter`).

use serde_json::{Value, json};

use super::VolumeSnapshotController;
use super::kinds::{SnapshotKinds, snapshot_of};
use crate::controller::{Action, Reconcile};
use apimachinery::object::{Object, split_key};
use apimachinery::options::PatchType;
use apimachinery::quantity::Quantity;
use apimachinery::status::Status;
use apis::tree::{annotation, remove_finalizers, text};
use apis::volumes::PROVISIONED_BY;

/// Keeps a content for its snapshot (`VolumeSnapshotContentFinalizer`).
pub(super) const CONTENT_FINALIZER: &str =
    "snapshot.storage.kubernetes.io/volumesnapshotcontent-bound-protection";
/// On a CSIDriver, with the value `external`: somebody else takes its snapshots.
const SNAPSHOTTER: &str = "kubarium.dev/snapshotter";

/// The driver that has a volume.
pub(super) fn driver_of(volume: &Value) -> &str {
    match volume["spec"]["csi"]["driver"].as_str() {
        Some(driver) => driver,
        None => annotation(volume, PROVISIONED_BY),
    }
}

/// What the driver calls a volume; where none is, its own name.
pub(super) fn handle_of(volume: &Value) -> &str {
    volume["spec"]["csi"]["volumeHandle"].as_str().unwrap_or_else(|| text(volume, "metadata.name"))
}

impl VolumeSnapshotController {
    pub(super) async fn sync_content(
        &self,
        ctx: &Reconcile,
        kinds: &SnapshotKinds,
        name: &str,
    ) -> Result<Action, Status> {
        let content = ctx.client.get(&kinds.contents, "", name).await?;
        let tree = content.to_value();
        if content.is_deleting() {
            self.let_go(ctx, kinds, &content, &tree).await?;
        } else if tree["status"]["readyToUse"] != true && !self.is_external(&tree) {
            let status = json!({"status": self.taken(ctx, &content, &tree)});
            ctx.client.patch_status(&kinds.contents, "", name, PatchType::Merge, &status).await?;
        }
        Ok(Action::Done)
    }

    fn is_external(&self, content: &Value) -> bool {
        let driver = self.drivers.get("", content["spec"]["driver"].as_str().unwrap_or_default());
        driver.is_some_and(|driver| annotation(&driver.to_value(), SNAPSHOTTER) == "external")
    }

    /// What a driver says of a snapshot; one that was there before has the handle that is given.
    fn taken(&self, ctx: &Reconcile, content: &Object, tree: &Value) -> Value {
        let source = &tree["spec"]["source"];
        let mut status = json!({
            "creationTime": ctx.clock.now().timestamp_nanos_opt(),
            "readyToUse": true,
            "snapshotHandle": content.metadata.uid,
        });
        if let Some(handle) = source["snapshotHandle"].as_str() {
            status["snapshotHandle"] = handle.into();
        }
        let handle = source["volumeHandle"].as_str().unwrap_or_default();
        let volumes = self.volumes.all().into_iter().map(|volume| volume.to_value());
        let volume = volumes.into_iter().find(|volume| handle_of(volume) == handle);
        let size = volume.and_then(|volume| Quantity::parse(text(&volume, "spec.capacity.storage")).ok());
        if let Some(size) = size {
            status["restoreSize"] = size.value().into();
        }
        status
    }

    /// It stays as long as its snapshot.
    async fn let_go(
        &self,
        ctx: &Reconcile,
        kinds: &SnapshotKinds,
        content: &Object,
        tree: &Value,
    ) -> Result<(), Status> {
        let key = snapshot_of(tree);
        let (namespace, name) = split_key(&key);
        let uid = tree["spec"]["volumeSnapshotRef"]["uid"].as_str().unwrap_or_default();
        let found = ctx.client.find(&kinds.snapshots, namespace, name).await?;
        if found.is_some_and(|snapshot| snapshot.metadata.uid == uid && !snapshot.is_deleting()) {
            Ok(())
        } else {
            drop_finalizers(ctx, &kinds.contents, content, &[CONTENT_FINALIZER]).await
        }
    }
}

/// Writes an object without these finalizers, if it has one of them.
pub(super) async fn drop_finalizers(
    ctx: &Reconcile,
    kind: &apis::kind::Kind,
    object: &Object,
    finalizers: &[&str],
) -> Result<(), Status> {
    let mut tree = object.to_value();
    if !remove_finalizers(&mut tree, finalizers) {
        return Ok(());
    }
    ctx.client.update(kind, &object.metadata.namespace, &object.metadata.name, tree).await.map(drop)
}
