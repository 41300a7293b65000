//! The content of a snapshot: taken at once, unless its driver has somebody who does (`csi-snapshotter`) or
//! is not there at all.

use serde_json::{Value, json};

use super::kinds::{SnapshotKinds, snapshot_of};
use super::{RETRY, VolumeSnapshotController};
use crate::controller::{Action, Reconcile};
use crate::simulated_disks::is_own_driver;
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
            let source = self.source(&tree);
            if !self.is_simulated(&tree, source.as_ref()) {
                return Ok(Action::LookAfter(RETRY));
            }
            let status = json!({"status": taken(ctx, &content, &tree, source.as_ref())});
            ctx.client.patch_status(&kinds.contents, "", name, PatchType::Merge, &status).await?;
        }
        Ok(Action::Done)
    }

    fn is_external(&self, content: &Value) -> bool {
        let driver = self.drivers.get("", text(content, "spec.driver"));
        driver.is_some_and(|driver| annotation(&driver.to_value(), SNAPSHOTTER) == "external")
    }

    /// Whether its driver is there: that of these disks, or one with a CSIDriver. None takes snapshots of
    /// volumes that are not its own.
    fn is_simulated(&self, content: &Value, source: Option<&Value>) -> bool {
        let name = text(content, "spec.driver");
        let is_there = is_own_driver(name) || self.drivers.get("", name).is_some();
        is_there && source.is_none_or(|volume| has(name, driver_of(volume)))
    }

    /// The volume that it is to be taken of: of those that have its handle its driver's own, if there is one.
    fn source(&self, content: &Value) -> Option<Value> {
        let handle = content["spec"]["source"]["volumeHandle"].as_str()?;
        let volumes = self.volumes.all().into_iter().map(|volume| volume.to_value());
        let meant = volumes.filter(|volume| handle_of(volume) == handle);
        meant.max_by_key(|volume| has(text(content, "spec.driver"), driver_of(volume)))
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

/// What a driver says of a snapshot; one that was there before has the handle that is given.
fn taken(ctx: &Reconcile, content: &Object, tree: &Value, volume: Option<&Value>) -> Value {
    let mut status = json!({
        "creationTime": ctx.clock.now().timestamp_nanos_opt(),
        "readyToUse": true,
        "snapshotHandle": content.metadata.uid,
    });
    if let Some(handle) = tree["spec"]["source"]["snapshotHandle"].as_str() {
        status["snapshotHandle"] = handle.into();
    }
    let size = volume.and_then(|volume| Quantity::parse(text(volume, "spec.capacity.storage")).ok());
    if let Some(size) = size {
        status["restoreSize"] = size.value().into();
    }
    status
}

/// Whether a driver has a volume: these disks have two names, and what is of no driver is a folder as they
/// are.
fn has(driver: &str, of_volume: &str) -> bool {
    driver == of_volume || (is_own_driver(driver) && (of_volume.is_empty() || is_own_driver(of_volume)))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_driver_has_its_own_volumes() {
        let own = "kubarium.dev/simulated-disk";
        let of_csi = "simulated-disk.kubarium.dev";
        for volume in [own, of_csi, ""] {
            assert!(has(own, volume) && has(of_csi, volume), "{volume}");
        }
        assert!(has("csi.example.com", "csi.example.com"));
        for (driver, volume) in [("csi.example.com", own), ("csi.example.com", ""), (own, "csi.example.com")]
        {
            assert!(!has(driver, volume), "{driver} {volume}");
        }
    }
}
