//! Whether a volume that a claim names does for it, and what becomes of one that is not needed any more.
//! Pure.

use serde_json::Value;

use apis::resources::amounts;
use apis::tree::{annotation, at, object_mut, text, texts};
use apis::volumes::BOUND_BY_CONTROLLER;

/// Where the host path plugin may delete what it finds.
const TEMPORARY: &str = "/tmp/";

/// `checkVolumeSatisfyClaim`: the words are the end of an Event's message.
pub(crate) fn mismatch(volume: &Value, claim: &Value) -> Option<String> {
    if !at(volume, "metadata.deletionTimestamp").is_null() {
        return Some(format!("the volume is marked for deletion {:?}", text(volume, "metadata.name")));
    }
    let capacity = amounts(volume, "spec.capacity").remove("storage").unwrap_or_default();
    let wanted = amounts(claim, "spec.resources.requests").remove("storage").unwrap_or_default();
    let differ = |path: &str| text(volume, path) != text(claim, path);
    let modes = texts(volume, "spec.accessModes");
    let why = match () {
        () if capacity < wanted => "requested PV is too small",
        () if differ("spec.storageClassName") => "storageClassName does not match",
        () if differ("spec.volumeAttributesClassName") => "volumeAttributesClassName does not match",
        () if has_other_mode(volume, claim) => "incompatible volumeMode",
        () if !texts(claim, "spec.accessModes").iter().all(|mode| modes.contains(mode)) => {
            "incompatible accessMode"
        }
        () => return None,
    };
    Some(why.into())
}

/// `CheckVolumeModeMismatches`
pub(crate) fn has_other_mode(volume: &Value, claim: &Value) -> bool {
    let is_block = |tree: &Value| text(tree, "spec.volumeMode") == "Block";
    is_block(volume) != is_block(claim)
}

/// A volume without the claim that it was bound to (`unbindVolume`): free, if the controller bound it; else
/// still kept for a claim of that name, as who made it wanted.
pub(crate) fn unbound(mut volume: Value) -> Value {
    if annotation(&volume, BOUND_BY_CONTROLLER).is_empty() {
        object_mut(&mut volume, "spec.claimRef").remove("uid");
    } else {
        object_mut(&mut volume, "metadata.annotations").remove(BOUND_BY_CONTROLLER);
        object_mut(&mut volume, "spec").remove("claimRef");
    }
    volume
}

/// What is to be done with a volume whose claim is gone, and that no provisioner of others looks after.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Reclaim {
    /// It stays as it is.
    Keep,
    /// It goes.
    Delete,
    /// It is emptied, and may be claimed again.
    Recycle,
    /// Nobody can do what its policy says: an Event of this reason and with this message.
    Fail(&'static str, String),
}

/// `reclaimVolume`, with what the plugins in the tree can do.
pub(crate) fn reclaim(volume: &Value) -> Reclaim {
    let host_path = text(volume, "spec.hostPath.path");
    match text(volume, "spec.persistentVolumeReclaimPolicy") {
        "Delete" if host_path.is_empty() => {
            let name = text(volume, "metadata.name");
            let why = "no deletable volume plugin matched";
            let message = format!("error getting deleter volume plugin for volume {name:?}: {why}");
            Reclaim::Fail("VolumeFailedDelete", message)
        }
        "Delete" if host_path.len() > TEMPORARY.len() && host_path.starts_with(TEMPORARY) => Reclaim::Delete,
        "Delete" => {
            let message =
                format!("host_path deleter only supports /tmp/.+ but received provided {host_path}");
            Reclaim::Fail("VolumeFailedDelete", message)
        }
        "Recycle" if !host_path.is_empty() || !at(volume, "spec.nfs").is_null() => Reclaim::Recycle,
        "Recycle" => Reclaim::Fail("VolumeFailedRecycle", "No recycler plugin found for the volume!".into()),
        _ => Reclaim::Keep,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn volume(storage: &str, changed: Value) -> Value {
        let mut spec = json!({"capacity": {"storage": storage}, "accessModes": ["ReadWriteOnce"]});
        for (name, value) in changed.as_object().into_iter().flatten() {
            spec[name] = value.clone();
        }
        json!({"metadata": {"name": "v"}, "spec": spec})
    }

    #[test]
    fn a_volume_that_is_named_must_do() {
        let resources = json!({"requests": {"storage": "2Gi"}});
        let claim = json!({"spec": {"accessModes": ["ReadWriteOnce"], "resources": resources}});
        let why = |storage: &str, changed: Value| mismatch(&volume(storage, changed), &claim);
        assert_eq!(why("2Gi", json!({})), None);
        for (storage, changed, expected) in [
            ("1Gi", json!({}), "requested PV is too small"),
            ("2Gi", json!({"storageClassName": "fast"}), "storageClassName does not match"),
            ("2Gi", json!({"volumeMode": "Block"}), "incompatible volumeMode"),
            ("2Gi", json!({"accessModes": ["ReadOnlyMany"]}), "incompatible accessMode"),
        ] {
            assert_eq!(why(storage, changed).as_deref(), Some(expected));
        }
    }

    #[test]
    fn a_volume_that_is_let_go_is_free_or_kept_for_whom_it_was_made() {
        let reference = json!({"namespace": "ns", "name": "c", "uid": "u"});
        let mut kept = volume("1Gi", json!({"claimRef": reference}));
        assert_eq!(unbound(kept.clone())["spec"]["claimRef"], json!({"namespace": "ns", "name": "c"}));
        kept["metadata"]["annotations"] = json!({BOUND_BY_CONTROLLER: "yes"});
        let free = unbound(kept);
        assert_eq!((&free["spec"]["claimRef"], &free["metadata"]["annotations"]), (&Value::Null, &json!({})));
    }

    #[test]
    fn who_is_not_needed_goes_as_its_plugin_can() {
        let of = |policy: &str, source: Value| {
            let mut spec = source;
            spec["persistentVolumeReclaimPolicy"] = policy.into();
            reclaim(&volume("1Gi", spec))
        };
        assert_eq!(of("Retain", json!({})), Reclaim::Keep);
        assert_eq!(of("Delete", json!({"hostPath": {"path": "/tmp/a"}})), Reclaim::Delete);
        let failed = |outcome: Reclaim| match outcome {
            Reclaim::Fail(reason, message) => (reason, message),
            other => panic!("{other:?}"),
        };
        let (reason, message) = failed(of("Delete", json!({"hostPath": {"path": "/data"}})));
        assert_eq!(reason, "VolumeFailedDelete");
        assert!(message.ends_with("/tmp/.+ but received provided /data"), "{message}");
        let (_, message) = failed(of("Delete", json!({"nfs": {"path": "/", "server": "s"}})));
        assert!(message.ends_with("\"v\": no deletable volume plugin matched"), "{message}");
        assert_eq!(of("Recycle", json!({"nfs": {"path": "/", "server": "s"}})), Reclaim::Recycle);
        assert_eq!(failed(of("Recycle", json!({"csi": {}}))).0, "VolumeFailedRecycle");
    }
}
