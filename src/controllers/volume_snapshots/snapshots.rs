//! A snapshot: finds its class, makes its content or takes the one that it names, and says what the content
//! says (`common-controller/snapshot_controller.go`).

use std::sync::Arc;

use serde_json::{Value, json};

use super::contents::{CONTENT_FINALIZER, driver_of, drop_finalizers, handle_of};
use super::kinds::{GROUP, SnapshotKinds};
use super::{RETRY, VolumeSnapshotController};
use crate::controller::{Action, Reconcile};
use apimachinery::labels::Selector;
use apimachinery::object::Object;
use apimachinery::options::{DeleteOptions, ListOptions, PatchType};
use apimachinery::quantity::{Format, Quantity};
use apimachinery::status::Status;
use apimachinery::time::{Time, rfc3339};
use apis::tree::{add_finalizers, annotation, text};

/// Keeps a snapshot that has a content (`VolumeSnapshotBoundFinalizer`).
const BOUND: &str = "snapshot.storage.kubernetes.io/volumesnapshot-bound-protection";
/// Keeps a snapshot of which a volume may be made (`VolumeSnapshotAsSourceFinalizer`).
pub(super) const AS_SOURCE: &str = "snapshot.storage.kubernetes.io/volumesnapshot-as-source-protection";
/// On a class: snapshots that name none have it.
const IS_DEFAULT: &str = "snapshot.storage.kubernetes.io/is-default-class";
/// On a content whose snapshot goes (`AnnVolumeSnapshotBeingDeleted`).
const BEING_DELETED: &str = "snapshot.storage.kubernetes.io/volumesnapshot-being-deleted";

/// Why there is no snapshot: the reason and the message of its event.
struct SnapshotFailure(&'static str, String);

type SnapshotOutcome<T> = Result<Result<T, SnapshotFailure>, Status>;

fn fails<T>(reason: &'static str, message: impl Into<String>) -> SnapshotOutcome<T> {
    Ok(Err(SnapshotFailure(reason, message.into())))
}

impl VolumeSnapshotController {
    pub(super) async fn sync_snapshot(
        &self,
        ctx: &Reconcile,
        kinds: &SnapshotKinds,
        (namespace, name): (&str, &str),
    ) -> Result<Action, Status> {
        let snapshot = ctx.client.get(&kinds.snapshots, namespace, name).await?;
        if snapshot.is_deleting() {
            return self.end(ctx, kinds, &snapshot).await;
        }
        if snapshot.to_value()["status"]["readyToUse"] == true {
            return Ok(Action::Done);
        }
        let snapshot = keep(ctx, kinds, snapshot).await?;
        match self.content(ctx, kinds, &snapshot).await? {
            Ok(content) => self.follow_content(ctx, kinds, &snapshot, &content).await,
            Err(failure) => self.fail(ctx, kinds, &snapshot, failure).await,
        }
    }

    /// The content that it names, or the one that was made for it.
    async fn content(
        &self,
        ctx: &Reconcile,
        kinds: &SnapshotKinds,
        snapshot: &Object,
    ) -> SnapshotOutcome<Arc<Object>> {
        let tree = snapshot.to_value();
        let Some(name) = tree["spec"]["source"]["volumeSnapshotContentName"].as_str() else {
            let name = content_name(snapshot);
            return match ctx.client.find(&kinds.contents, "", &name).await? {
                Some(content) => Ok(Ok(content)),
                None => self.make_content(ctx, kinds, snapshot, &name).await,
            };
        };
        let Some(content) = ctx.client.find(&kinds.contents, "", name).await? else {
            return fails("SnapshotContentMissing", "VolumeSnapshotContent is missing");
        };
        let tree_of_content = content.to_value();
        if tree_of_content["spec"]["source"]["snapshotHandle"].is_null() {
            let why =
                "VolumeSnapshotContent is dynamically provisioned while expecting a pre-provisioned one";
            return fails("SnapshotContentMismatch", why);
        }
        let of = tree_of_content["spec"]["volumeSnapshotRef"].clone();
        let metadata = &snapshot.metadata;
        let is_its = text(&of, "name") == metadata.name && text(&of, "namespace") == metadata.namespace;
        match of["uid"].as_str().unwrap_or_default() {
            "" if is_its => {
                let patch = json!({"spec": {"volumeSnapshotRef": {"uid": metadata.uid}}});
                let bound = ctx.client.patch(&kinds.contents, "", name, PatchType::Merge, &patch).await?;
                Ok(Ok(bound))
            }
            uid if is_its && uid == metadata.uid => Ok(Ok(content)),
            _ => fails(
                "SnapshotContentMisbound",
                format!("VolumeSnapshotContent [{name}] is bound to a different snapshot"),
            ),
        }
    }

    async fn make_content(
        &self,
        ctx: &Reconcile,
        kinds: &SnapshotKinds,
        snapshot: &Object,
        name: &str,
    ) -> SnapshotOutcome<Arc<Object>> {
        let (tree, metadata) = (snapshot.to_value(), &snapshot.metadata);
        let volume = match self.volume(metadata.namespace.as_str(), metadata.name.as_str(), &tree) {
            Ok(volume) => volume,
            Err(why) => {
                let why = format!("Failed to create snapshot content with error {why}");
                return fails("SnapshotContentCreationFailed", why);
            }
        };
        let class = match self.class(ctx, kinds, snapshot, driver_of(&volume)).await? {
            Ok(class) => class,
            Err(failure) => return Ok(Err(failure)),
        };
        let of = json!({"apiVersion": format!("{GROUP}/v1"), "kind": "VolumeSnapshot",
            "namespace": metadata.namespace, "name": metadata.name, "uid": metadata.uid,
            "resourceVersion": metadata.resource_version.to_string()});
        let content = json!({
            "metadata": {"name": name, "finalizers": [CONTENT_FINALIZER]},
            "spec": {
                "deletionPolicy": class["deletionPolicy"],
                "driver": class["driver"],
                "source": {"volumeHandle": handle_of(&volume)},
                "sourceVolumeMode": volume["spec"]["volumeMode"],
                "volumeSnapshotClassName": class["metadata"]["name"],
                "volumeSnapshotRef": of,
            },
        });
        let made = ctx.client.create(&kinds.contents, "", content).await?;
        let key = snapshot.key();
        let message = format!("Waiting for a snapshot {key} to be created by the CSI driver.");
        ctx.event(&kinds.snapshots, snapshot, "Normal", "CreatingSnapshot", message);
        Ok(Ok(made))
    }

    /// The volume behind the claim that a snapshot is of.
    fn volume(&self, namespace: &str, name: &str, snapshot: &Value) -> Result<Value, String> {
        let claim = snapshot["spec"]["source"]["persistentVolumeClaimName"].as_str().unwrap_or_default();
        let Some(found) = self.claims.get(namespace, claim) else {
            return Err(format!(
                "snapshot controller failed to update {name} on API server: cannot get claim from snapshot"
            ));
        };
        self.volume_of(&found.to_value())
            .map_err(|why| format!("failed to get input parameters to create snapshot {name}: {why:?}"))
    }

    /// The volume that a claim has (`getVolumeFromVolumeSnapshot`).
    fn volume_of(&self, claim: &Value) -> Result<Value, String> {
        if text(claim, "status.phase") != "Bound" {
            let name = text(claim, "metadata.name");
            return Err(format!(
                "the PVC {name} is not yet bound to a PV, will not attempt to take a snapshot"
            ));
        }
        let name = text(claim, "spec.volumeName");
        let Some(volume) = self.volumes.get("", name).map(|volume| volume.to_value()) else {
            let why = format!("persistentvolumes {name:?} not found");
            return Err(format!("failed to retrieve PV {name} from the API server: {why:?}"));
        };
        if volume["spec"]["claimRef"]["uid"] != claim["metadata"]["uid"] {
            return Err("claim in dataSource not bound or invalid".to_owned());
        }
        Ok(volume)
    }

    /// The class that a snapshot names; or the default one of the driver, which it names from then on.
    async fn class(
        &self,
        ctx: &Reconcile,
        kinds: &SnapshotKinds,
        snapshot: &Object,
        driver: &str,
    ) -> SnapshotOutcome<Value> {
        let tree = snapshot.to_value();
        if let Some(name) = tree["spec"]["volumeSnapshotClassName"].as_str() {
            return match ctx.client.get(&kinds.classes, "", name).await {
                Ok(class) => Ok(Ok(class.to_value())),
                Err(status) if status.is_not_found() => {
                    let why = format!("Failed to get snapshot class with error {}", status.message);
                    fails("GetSnapshotClassFailed", why)
                }
                Err(status) => Err(status),
            };
        }
        let all = ctx.client.list(&kinds.classes, "", &ListOptions::default()).await?;
        let all = all.items.iter().map(|class| class.to_value());
        let is_default = |class: &Value| class["driver"] == driver && annotation(class, IS_DEFAULT) == "true";
        let mut found: Vec<Value> = all.filter(is_default).collect();
        let why = match found.len() {
            0 => "cannot find default snapshot class".to_owned(),
            1 => {
                let class = found.remove(0);
                let patch = json!({"spec": {"volumeSnapshotClassName": class["metadata"]["name"]}});
                let (namespace, name) = (&snapshot.metadata.namespace, &snapshot.metadata.name);
                ctx.client.patch(&kinds.snapshots, namespace, name, PatchType::Merge, &patch).await?;
                return Ok(Ok(class));
            }
            many => format!("{many} default snapshot classes were found"),
        };
        fails(
            "SetDefaultSnapshotClassFailed",
            format!("Failed to set default snapshot class with error {why}"),
        )
    }

    /// Says what the content says.
    async fn follow_content(
        &self,
        ctx: &Reconcile,
        kinds: &SnapshotKinds,
        snapshot: &Object,
        content: &Object,
    ) -> Result<Action, Status> {
        let said = content.to_value()["status"].clone();
        let is_ready = said["readyToUse"] == true;
        let mut status = json!({
            "boundVolumeSnapshotContentName": content.metadata.name, "readyToUse": is_ready, "error": said["error"],
        });
        if let Some(size) = said["restoreSize"].as_i64() {
            status["restoreSize"] = Quantity::new(size, Format::BinarySi).to_string().into();
        }
        if let Some(nanoseconds) = said["creationTime"].as_i64() {
            status["creationTime"] = rfc3339(Time::from_timestamp_nanos(nanoseconds)).into();
        }
        let (namespace, name) = (&snapshot.metadata.namespace, &snapshot.metadata.name);
        let patch = json!({"status": status});
        ctx.client.patch_status(&kinds.snapshots, namespace, name, PatchType::Merge, &patch).await?;
        if is_ready {
            let key = snapshot.key();
            let created = format!("Snapshot {key} was successfully created by the CSI driver.");
            ctx.event(&kinds.snapshots, snapshot, "Normal", "SnapshotCreated", created);
            let ready = format!("Snapshot {key} is ready to use.");
            ctx.event(&kinds.snapshots, snapshot, "Normal", "SnapshotReady", ready);
        }
        Ok(Action::Done)
    }

    /// It is told once why, and tried again.
    async fn fail(
        &self,
        ctx: &Reconcile,
        kinds: &SnapshotKinds,
        snapshot: &Object,
        SnapshotFailure(reason, message): SnapshotFailure,
    ) -> Result<Action, Status> {
        if snapshot.to_value()["status"]["error"]["message"] != *message {
            ctx.event(&kinds.snapshots, snapshot, "Warning", reason, message.clone());
            let error = json!({"message": message, "time": rfc3339(ctx.clock.now())});
            let patch = json!({"status": {"readyToUse": false, "error": error}});
            let (namespace, name) = (&snapshot.metadata.namespace, &snapshot.metadata.name);
            ctx.client.patch_status(&kinds.snapshots, namespace, name, PatchType::Merge, &patch).await?;
        }
        Ok(Action::LookAfter(RETRY))
    }

    /// Its content goes with it, unless that is to be retained; who is being made from it comes first.
    async fn end(&self, ctx: &Reconcile, kinds: &SnapshotKinds, snapshot: &Object) -> Result<Action, Status> {
        let tree = snapshot.to_value();
        // Of one that was made just now nothing is said yet.
        let bound = match text(&tree, "status.boundVolumeSnapshotContentName") {
            "" => content_name(snapshot),
            bound => bound.to_owned(),
        };
        let content = ctx.client.find(&kinds.contents, "", &bound).await?;
        let is_its = |content: &Arc<Object>| {
            content.to_value()["spec"]["volumeSnapshotRef"]["uid"] == *snapshot.metadata.uid
        };
        if let Some(content) = content.filter(is_its) {
            if self.is_being_restored(snapshot) {
                let message = "Snapshot is being used to restore a PVC";
                ctx.event(&kinds.snapshots, snapshot, "Warning", "SnapshotDeletePending", message);
                return Ok(Action::LookAfter(RETRY));
            }
            end_content(ctx, kinds, &content).await?;
        }
        drop_finalizers(ctx, &kinds.snapshots, snapshot, &[BOUND, AS_SOURCE]).await?;
        Ok(Action::Done)
    }

    fn is_being_restored(&self, snapshot: &Object) -> bool {
        let claims = self.claims.list(&snapshot.metadata.namespace, &Selector::everything());
        claims.iter().filter(|claim| !claim.is_deleting()).any(|claim| {
            let tree = claim.to_value();
            let source = &tree["spec"]["dataSource"];
            source["kind"] == "VolumeSnapshot"
                && source["name"] == *snapshot.metadata.name
                && text(&tree, "status.phase") == "Pending"
        })
    }
}

/// The content of a snapshot that goes, unless it is to be retained; it says so in any case.
async fn end_content(ctx: &Reconcile, kinds: &SnapshotKinds, content: &Object) -> Result<(), Status> {
    let (tree, name) = (content.to_value(), &content.metadata.name);
    if annotation(&tree, BEING_DELETED).is_empty() {
        let patch = json!({"metadata": {"annotations": {BEING_DELETED: "yes"}}});
        ctx.client.patch(&kinds.contents, "", name, PatchType::Merge, &patch).await?;
    }
    if content.is_deleting() || tree["spec"]["deletionPolicy"] != "Delete" {
        return Ok(());
    }
    ctx.client.delete(&kinds.contents, "", name, &DeleteOptions::default()).await
}

/// Of the content that is made for a snapshot.
fn content_name(snapshot: &Object) -> String {
    format!("snapcontent-{}", snapshot.metadata.uid)
}

/// With the finalizers that keep it.
async fn keep(ctx: &Reconcile, kinds: &SnapshotKinds, snapshot: Arc<Object>) -> Result<Arc<Object>, Status> {
    let mut tree = snapshot.to_value();
    if !add_finalizers(&mut tree, &[AS_SOURCE, BOUND]) {
        return Ok(snapshot);
    }
    let (namespace, name) = (&snapshot.metadata.namespace, &snapshot.metadata.name);
    ctx.client.update(&kinds.snapshots, namespace, name, tree).await
}
