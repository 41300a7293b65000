//! What a claim is to be filled with (`external-provisioner`'s `Provision`): a snapshot, another claim, or
//! whatever somebody else populates volumes with.

use serde_json::Value;

use super::contents::driver_of;
use super::kinds::{GROUP, SnapshotKinds};
use super::snapshots::AS_SOURCE;
use apimachinery::quantity::Quantity;
use apimachinery::status::Status;
use apis::scheme::Scheme;
use apis::tree::{annotation, text, texts};
use client_go::client::Client;
use client_go::lister::Lister;

/// On a content, with a truth: claims of the other volume mode may be filled from it
/// (`annAllowVolumeModeChange`).
const ALLOW_OTHER_MODE: &str = "snapshot.storage.kubernetes.io/allow-volume-mode-change";

/// What there is of it.
pub(crate) enum DataSource {
    /// The volume may be made: of nothing, or of what is there.
    Ready,
    /// Somebody else makes the volume.
    OfOthers,
    /// Not yet, and why.
    Missing(String),
}

/// Where sources are looked for, and by whom.
pub(crate) struct DataSources<'a> {
    pub(crate) client: &'a Client,
    pub(crate) scheme: &'a Scheme,
    pub(crate) claims: &'a Lister,
    pub(crate) volumes: &'a Lister,
    /// As the driver calls itself that is to make the volume; it knows no others' volumes and snapshots.
    pub(crate) drivers: &'a [&'a str],
}

impl DataSources<'_> {
    /// Looks for the source of a claim of a class.
    ///
    /// # Errors
    /// The server's.
    pub(crate) async fn find(&self, claim: &Value, class: &str) -> Result<DataSource, Status> {
        let spec = &claim["spec"];
        let source = if spec["dataSource"].is_null() { &spec["dataSourceRef"] } else { &spec["dataSource"] };
        let namespace = match source["namespace"].as_str().unwrap_or_default() {
            "" => text(claim, "metadata.namespace"),
            namespace => namespace,
        };
        let (kind, name) = (text(source, "kind"), text(source, "name"));
        let found = match (source["apiGroup"].as_str().unwrap_or_default(), kind) {
            ("", "") => Ok(()),
            ("", "PersistentVolumeClaim") => self.clone_of((namespace, name), claim),
            (GROUP, "VolumeSnapshot") => self.restored_from((namespace, name), claim, class).await?,
            _ => return Ok(DataSource::OfOthers),
        };
        Ok(found.map_or_else(
            |why| {
                let of = format!("error getting handle for DataSource Type {kind} by Name {name}");
                DataSource::Missing(format!("{of}: {why}"))
            },
            |()| DataSource::Ready,
        ))
    }

    fn clone_of(&self, (namespace, name): (&str, &str), claim: &Value) -> Result<(), String> {
        let Some(found) = self.claims.get(namespace, name).map(|found| found.to_value()) else {
            return Err(format!(
                "error getting PVC {name} (namespace {namespace:?}) from api server: persistentvolumeclaims \
                 {name:?} not found"
            ));
        };
        let volume = self.volumes.get("", text(&found, "spec.volumeName")).map(|volume| volume.to_value());
        let own = volume.filter(|volume| self.drivers.contains(&driver_of(volume)));
        can_be_cloned(&found, own.as_ref(), claim)
    }

    async fn restored_from(
        &self,
        (namespace, name): (&str, &str),
        claim: &Value,
        class: &str,
    ) -> Result<Result<(), String>, Status> {
        let Some(kinds) = SnapshotKinds::of(self.scheme) else {
            return Ok(Err(format!("no matches for kind \"VolumeSnapshot\" in version \"{GROUP}/v1\"")));
        };
        let snapshot = match self.client.get(&kinds.snapshots, namespace, name).await {
            Ok(snapshot) => snapshot.to_value(),
            Err(status) if status.is_not_found() => {
                let why = status.message;
                return Ok(Err(format!("error getting snapshot {name} from api server: {why}")));
            }
            Err(status) => return Err(status),
        };
        let content = match text(&snapshot, "status.boundVolumeSnapshotContentName") {
            "" => None,
            content => self.client.find(&kinds.contents, "", content).await?,
        };
        let content = content.map(|content| content.to_value());
        let restored = is_source(&snapshot, content.as_ref(), self.drivers, class);
        Ok(restored.and_then(|content| can_be_restored(&snapshot, content, claim)))
    }
}

fn bytes(amount: &Value) -> i64 {
    amount.as_str().and_then(|text| Quantity::parse(text).ok()).map_or(0, |amount| amount.value())
}

fn mode(object: &Value) -> &str {
    object["spec"]["volumeMode"].as_str().unwrap_or("Filesystem")
}

/// Whether a claim with such a volume can be copied for another (`getPVCSource`).
fn can_be_cloned(found: &Value, volume: Option<&Value>, claim: &Value) -> Result<(), String> {
    let name = text(found, "metadata.name");
    let phase = text(found, "status.phase");
    if phase != "Bound" {
        // The rest of a status of which nothing else is said, as Go prints it.
        let status = format!("{{{phase} [] map[] [] map[] map[] <nil> <nil>}}");
        return Err(format!("the PVC DataSource {name} must have a status of Bound.  Got {status}"));
    }
    if !found["metadata"]["deletionTimestamp"].is_null() {
        return Err(format!("the PVC DataSource {name} is currently being deleted"));
    }
    let size = |claim: &Value| bytes(&claim["spec"]["resources"]["requests"]["storage"]);
    let (size, wanted) = (size(found), size(claim));
    if wanted < size {
        return Err(format!(
            "error, new PVC request must be greater than or equal in size to the specified PVC data source, \
             requested {wanted} but source is {size}"
        ));
    }
    let is_its = |volume: &&Value| {
        volume["spec"]["claimRef"]["uid"] == found["metadata"]["uid"] && volume["status"]["phase"] == "Bound"
    };
    let Some(volume) = volume.filter(is_its) else {
        return Err("claim in dataSource not bound or invalid".to_owned());
    };
    if mode(volume) != mode(claim) {
        return Err(format!(
            "the source PVC and destination PVCs must have the same volume mode for cloning.  Source is {}, \
             but new PVC requested {}",
            mode(volume),
            mode(claim)
        ));
    }
    Ok(())
}

/// The content of a snapshot that one of these drivers may fill a volume from (`getSnapshotSource`).
fn is_source<'a>(
    snapshot: &Value,
    content: Option<&'a Value>,
    drivers: &[&str],
    class: &str,
) -> Result<&'a Value, String> {
    let name = text(snapshot, "metadata.name");
    // One that claims are being filled from stays until they are.
    let is_held = texts(snapshot, "metadata.finalizers").contains(&AS_SOURCE);
    if !snapshot["metadata"]["deletionTimestamp"].is_null() && !is_held {
        return Err(format!("snapshot {name} is being deleted"));
    }
    let bound = text(snapshot, "status.boundVolumeSnapshotContentName");
    if bound.is_empty() {
        return Err(format!("snapshot {name} not bound"));
    }
    let Some(content) = content else {
        return Err(format!("error getting snapshotcontent {bound} for snapshot {name}"));
    };
    if content["spec"]["volumeSnapshotRef"]["uid"] != snapshot["metadata"]["uid"] {
        return Err(format!("snapshotcontent {bound} for snapshot {name} is bound to a different snapshot"));
    }
    if !drivers.contains(&text(content, "spec.driver")) {
        return Err(format!(
            "snapshotcontent {bound} for snapshot {name} is not handled by CSI driver of StorageClass {class}"
        ));
    }
    if snapshot["status"]["readyToUse"] != true {
        return Err(format!("snapshot {name} is not Ready"));
    }
    Ok(content)
}

/// Whether a snapshot with such a content does for a claim.
fn can_be_restored(snapshot: &Value, content: &Value, claim: &Value) -> Result<(), String> {
    let name = text(snapshot, "metadata.name");
    let size = bytes(&snapshot["status"]["restoreSize"]);
    let wanted = bytes(&claim["spec"]["resources"]["requests"]["storage"]);
    if wanted < size {
        return Err(format!(
            "requested volume size {wanted} is less than the size {size} for the source snapshot {name}"
        ));
    }
    let is_alike = content["spec"]["sourceVolumeMode"].as_str().is_none_or(|of| of == mode(claim));
    let content_name = text(content, "metadata.name");
    let why = match annotation(content, ALLOW_OTHER_MODE) {
        _ if is_alike => return Ok(()),
        "1" | "t" | "T" | "true" | "TRUE" | "True" => return Ok(()),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => {
            format!("{ALLOW_OTHER_MODE} is set to false on snapshotcontent {content_name}")
        }
        "" => format!("{ALLOW_OTHER_MODE} annotation is not present on snapshotcontent {content_name}"),
        other => format!(
            "failed to convert {ALLOW_OTHER_MODE} annotation value to boolean with error: strconv.ParseBool: \
             parsing {other:?}: invalid syntax"
        ),
    };
    let (namespace, name) = (text(claim, "metadata.namespace"), text(claim, "metadata.name"));
    Err(format!(
        "requested volume {namespace}/{name} modifies the mode of the source volume but does not have \
         permission to do so. {why}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn wants(storage: &str, mode: &str) -> Value {
        json!({"metadata": {"namespace": "ns", "name": "new"},
            "spec": {"volumeMode": mode, "resources": {"requests": {"storage": storage}}}})
    }

    #[test]
    fn a_claim_is_copied_that_is_bound_and_no_larger_and_of_the_same_mode() {
        let metadata = json!({"namespace": "ns", "name": "data", "uid": "u"});
        let source = |phase: &str, size: &str| {
            json!({"metadata": metadata, "status": {"phase": phase},
                "spec": {"volumeName": "v", "resources": {"requests": {"storage": size}}}})
        };
        let volume = |uid: &str| {
            let status = json!({"phase": "Bound"});
            json!({"metadata": {"name": "v"}, "spec": {"claimRef": {"uid": uid}}, "status": status})
        };
        let own = volume("u");
        let why = |source: &Value, volume: Option<&Value>, mode: &str| {
            can_be_cloned(source, volume, &wants("1Gi", mode)).err().unwrap_or_default()
        };
        let bound = source("Bound", "1Gi");
        assert_eq!(why(&bound, Some(&own), "Filesystem"), "");
        let large = why(&source("Bound", "2Gi"), Some(&own), "Filesystem");
        assert!(large.ends_with("requested 1073741824 but source is 2147483648"), "{large}");
        let waits = why(&source("Pending", "1Gi"), None, "Filesystem");
        assert!(waits.starts_with("the PVC DataSource data must have a status of Bound.  Got {Pending "));
        for volume in [None, Some(&volume("other"))] {
            assert_eq!(why(&bound, volume, "Filesystem"), "claim in dataSource not bound or invalid");
        }
        let other = why(&bound, Some(&own), "Block");
        assert!(other.ends_with("Source is Filesystem, but new PVC requested Block"), "{other}");
        let mut going = bound;
        going["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
        assert_eq!(why(&going, Some(&own), ""), "the PVC DataSource data is currently being deleted");
    }

    #[test]
    fn a_snapshot_is_a_source_for_its_own_driver() {
        let metadata = json!({"name": "s", "uid": "u"});
        let snapshot = |ready: bool| {
            let status = json!({"boundVolumeSnapshotContentName": "c", "readyToUse": ready});
            json!({"metadata": metadata, "status": status})
        };
        let content = |driver: &str, uid: &str| {
            let spec = json!({"driver": driver, "volumeSnapshotRef": {"uid": uid}});
            json!({"metadata": {"name": "c"}, "spec": spec})
        };
        let why = |snapshot: &Value, content: Option<&Value>| {
            is_source(snapshot, content, &["own"], "disk").err().unwrap_or_default()
        };
        let (ready, own) = (snapshot(true), content("own", "u"));
        assert_eq!(why(&ready, Some(&own)), "");
        assert_eq!(why(&json!({"metadata": metadata}), None), "snapshot s not bound");
        assert_eq!(why(&ready, None), "error getting snapshotcontent c for snapshot s");
        let of_another = why(&ready, Some(&content("own", "other")));
        assert_eq!(of_another, "snapshotcontent c for snapshot s is bound to a different snapshot");
        let foreign = why(&ready, Some(&content("other", "u")));
        assert!(foreign.ends_with("is not handled by CSI driver of StorageClass disk"), "{foreign}");
        assert_eq!(why(&snapshot(false), Some(&own)), "snapshot s is not Ready");
        let mut going = ready;
        going["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
        assert_eq!(why(&going, Some(&own)), "snapshot s is being deleted");
        going["metadata"]["finalizers"] = json!([AS_SOURCE]);
        assert_eq!(why(&going, Some(&own)), "", "it is held for who is being filled from it");
    }

    #[test]
    fn what_is_restored_is_no_smaller_and_of_another_mode_by_permission_alone() {
        let snapshot = json!({"metadata": {"name": "s"}, "status": {"restoreSize": "1Gi"}});
        let content = |allowed: Value| {
            json!({"metadata": {"name": "c", "annotations": {ALLOW_OTHER_MODE: allowed}},
                "spec": {"sourceVolumeMode": "Filesystem"}})
        };
        let why = |storage: &str, mode: &str, allowed: Value| {
            can_be_restored(&snapshot, &content(allowed), &wants(storage, mode)).err().unwrap_or_default()
        };
        assert_eq!(why("1Gi", "Filesystem", Value::Null), "");
        assert!(why("1Mi", "Filesystem", Value::Null).contains("is less than the size 1073741824"));
        let refused = why("1Gi", "Block", Value::Null);
        assert!(refused.starts_with("requested volume ns/new modifies the mode of the source volume"));
        assert!(refused.ends_with("annotation is not present on snapshotcontent c"), "{refused}");
        assert!(why("1Gi", "Block", "false".into()).ends_with("is set to false on snapshotcontent c"));
        assert!(why("1Gi", "Block", "x".into()).ends_with("parsing \"x\": invalid syntax"));
        assert_eq!(why("1Gi", "Block", "true".into()), "");
    }
}
