//! What a claim is to be filled with (`external-provisioner`'s `Provision`): a snapshot, another claim, or
//! whatever somebody else populates volumes with.

use serde_json::Value;

use super::kinds::{GROUP, SnapshotKinds};
use apimachinery::quantity::Quantity;
use apimachinery::status::Status;
use apis::scheme::Scheme;
use apis::tree::text;
use client_go::client::Client;
use client_go::lister::Lister;

/// What there is of it.
pub(crate) enum DataSource {
    /// The volume may be made: of nothing, or of what is there.
    Ready,
    /// Somebody else makes the volume.
    OfOthers,
    /// Not yet, and why.
    Missing(String),
}

/// Looks for the source of a claim.
///
/// # Errors
/// The server's.
pub(crate) async fn find(
    client: &Client,
    scheme: &Scheme,
    claims: &Lister,
    claim: &Value,
) -> Result<DataSource, Status> {
    let spec = &claim["spec"];
    let source = if spec["dataSource"].is_null() { &spec["dataSourceRef"] } else { &spec["dataSource"] };
    let namespace = match source["namespace"].as_str().unwrap_or_default() {
        "" => text(claim, "metadata.namespace"),
        namespace => namespace,
    };
    let (kind, name) = (text(source, "kind"), text(source, "name"));
    let missing = |why: String| {
        DataSource::Missing(format!("error getting handle for DataSource Type {kind} by Name {name}: {why}"))
    };
    match (source["apiGroup"].as_str().unwrap_or_default(), kind) {
        ("", "") => Ok(DataSource::Ready),
        ("", "PersistentVolumeClaim") => {
            let found = claims.get(namespace, name).map(|found| found.to_value());
            Ok(clone_of(found.as_ref(), (namespace, name), claim)
                .map_or_else(missing, |()| DataSource::Ready))
        }
        (GROUP, "VolumeSnapshot") => match SnapshotKinds::of(scheme) {
            None => Ok(missing(format!("no matches for kind \"VolumeSnapshot\" in version \"{GROUP}/v1\""))),
            Some(kinds) => match client.get(&kinds.snapshots, namespace, name).await {
                Ok(found) => {
                    let restored = restored_from(&found.to_value(), name, claim);
                    Ok(restored.map_or_else(missing, |()| DataSource::Ready))
                }
                Err(status) if status.is_not_found() => {
                    let why = format!("error getting snapshot {name} from api server: {}", status.message);
                    Ok(missing(why))
                }
                Err(status) => Err(status),
            },
        },
        _ => Ok(DataSource::OfOthers),
    }
}

fn bytes(amount: &Value) -> i64 {
    amount.as_str().and_then(|text| Quantity::parse(text).ok()).map_or(0, |amount| amount.value())
}

fn clone_of(found: Option<&Value>, (namespace, name): (&str, &str), claim: &Value) -> Result<(), String> {
    let Some(found) = found else {
        return Err(format!(
            "error getting PVC {name} (namespace {namespace:?}) from api server: persistentvolumeclaims {name:?} \
             not found"
        ));
    };
    if text(found, "status.phase") != "Bound" || text(found, "spec.volumeName").is_empty() {
        return Err("claim in dataSource not bound or invalid".to_owned());
    }
    let (size, wanted) = (
        bytes(&found["status"]["capacity"]["storage"]),
        bytes(&claim["spec"]["resources"]["requests"]["storage"]),
    );
    if wanted < size {
        return Err(format!(
            "error, new PVC request must be greater than or equal in size to the specified PVC data source, \
             requested {wanted} but source is {size}"
        ));
    }
    Ok(())
}

fn restored_from(snapshot: &Value, name: &str, claim: &Value) -> Result<(), String> {
    if !snapshot["metadata"]["deletionTimestamp"].is_null() {
        return Err(format!("snapshot {name} is being deleted"));
    }
    if snapshot["status"]["readyToUse"] != true {
        return Err(format!("snapshot {name} is not Ready"));
    }
    let size = bytes(&snapshot["status"]["restoreSize"]);
    let wanted = bytes(&claim["spec"]["resources"]["requests"]["storage"]);
    if wanted < size {
        return Err(format!(
            "requested volume size {wanted} is less than the size {size} for the source snapshot {name}"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_smaller_or_not_there_yet_is_no_source() {
        let claim = json!({"spec": {"resources": {"requests": {"storage": "1Gi"}}}});
        let of = ("ns", "data");
        assert!(
            clone_of(None, of, &claim).unwrap_err().ends_with("persistentvolumeclaims \"data\" not found")
        );
        let bound = |size: &str| json!({"spec": {"volumeName": "v"}, "status": {"phase": "Bound", "capacity": {"storage": size}}});
        assert_eq!(clone_of(Some(&bound("1Gi")), of, &claim), Ok(()));
        let why = clone_of(Some(&bound("2Gi")), of, &claim).unwrap_err();
        assert!(why.ends_with("requested 1073741824 but source is 2147483648"), "{why}");
        let why = clone_of(Some(&json!({"status": {"phase": "Pending"}})), of, &claim).unwrap_err();
        assert_eq!(why, "claim in dataSource not bound or invalid");
        let snapshot =
            |size: &str, ready: bool| json!({"status": {"readyToUse": ready, "restoreSize": size}});
        assert_eq!(restored_from(&snapshot("1Gi", true), "s", &claim), Ok(()));
        assert_eq!(
            restored_from(&snapshot("1Gi", false), "s", &claim),
            Err("snapshot s is not Ready".to_owned())
        );
        assert!(
            restored_from(&snapshot("2Gi", true), "s", &claim).unwrap_err().contains("is less than the size")
        );
    }
}
