//! The claims of a pod: which volume is behind each, and whether the pod may have it
//! (`desired_state_of_world_populator.go`, `operation_generator.go`).

use std::sync::Arc;
use std::time::Duration;

use super::in_use::{ClaimedVolume, VolumesInUse};
use super::sources::{self, Found, Source, Sources};
use apimachinery::object::Object;
use apimachinery::status::Status;
use apis::core::node::NODES;
use apis::core::persistent_volume::PERSISTENT_VOLUMES;
use apis::core::persistent_volume_claim::PERSISTENT_VOLUME_CLAIMS;
use apis::storage::csi::CSI_DRIVERS;
use apis::tree::{items, text};
use apis::views::pod_detail::Volume;
use apis::volumes::{attached_as, is_bound, is_for_one_pod};
use client_go::client::Client;
use machine::file_system;

/// A pod whose volume does not come for so long is told (`podAttachAndMountTimeout`).
pub(crate) const ATTACH_TIMEOUT: Duration = Duration::from_secs(123);

/// The code of a refusal to a node.
const FORBIDDEN: u16 = 403;

/// Why a pod does not have its claims yet.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ClaimRefusal {
    /// Volumes of these names are not attached yet.
    NotAttached(Vec<String>),
    /// It cannot have one: the message of `FailedMount`.
    Failed(String),
}

/// Takes the volumes behind a pod's claims, as far as they can be had.
///
/// # Errors
/// Why not all can.
pub(crate) fn mount(
    (uid, namespace, pod): (&Arc<str>, &str, &str),
    volumes: &[Volume],
    found: &Sources,
    in_use: &VolumesInUse,
) -> Result<(), ClaimRefusal> {
    let mut not_attached = Vec::new();
    for volume in volumes {
        let Some(source) = sources::claim(volume, pod) else { continue };
        match (found.get(&source), source) {
            (Some(Found::Volume(found)), _) if !found.is_at_hand => not_attached.push(volume.name.clone()),
            (Some(Found::Volume(found)), _) if !in_use.mount(uid, found) => {
                return Err(ClaimRefusal::Failed(format!(
                    "MountVolume.SetUp failed for volume {:?} : volume uses the ReadWriteOncePod access mode \
                     and is already in use by another pod",
                    found.name
                )));
            }
            (Some(Found::Missing(why)), Source::Claim(claim)) => {
                let why = format!("error processing PVC {namespace}/{claim}: {why}");
                return Err(ClaimRefusal::Failed(unable(&[], &[&volume.name], &why)));
            }
            _ => {}
        }
    }
    if not_attached.is_empty() { Ok(()) } else { Err(ClaimRefusal::NotAttached(not_attached)) }
}

/// The message of `FailedMount` of a pod that waits for volumes (`WaitForAttachAndMount`).
pub(crate) fn unable(unattached: &[&str], failed: &[&str], why: &str) -> String {
    let unmounted: Vec<&str> = unattached.iter().chain(failed).copied().collect();
    let shown = |names: &[&str]| names.join(" ");
    format!(
        "Unable to attach or mount volumes: unmounted volumes=[{}], unattached volumes=[{}], failed to \
         process volumes=[{}]: {why}",
        shown(&unmounted),
        shown(unattached),
        shown(failed)
    )
}

/// Asks which volume is behind a claim, and whether `node` has it.
pub(super) async fn fetch(client: &Client, namespace: &str, claim: &str, node: &str) -> Found {
    match volume_of(client, namespace, claim, node).await {
        Ok(volume) => Found::Volume(Arc::new(volume)),
        Err(why) => Found::Missing(why),
    }
}

async fn volume_of(
    client: &Client,
    namespace: &str,
    claim: &str,
    node: &str,
) -> Result<ClaimedVolume, String> {
    let failed =
        |what: &str, status: Status| format!("failed to fetch {what} from API server: {}", status.message);
    let claim = client.get(&PERSISTENT_VOLUME_CLAIMS, namespace, claim).await;
    let claim = claim.map_err(|status| failed("PVC", status))?;
    let tree = claim.to_value();
    if claim.is_deleting() {
        return Err("PVC is being deleted".into());
    }
    // What says that both sides are bound comes just before the phase: whoever placed the pod went by that.
    if !is_bound(&tree) || text(&tree, "status.phase") == "Lost" {
        return Err("PVC is not bound".into());
    }
    let name = text(&tree, "spec.volumeName");
    match client.get(&PERSISTENT_VOLUMES, "", name).await {
        Ok(volume) => claimed(client, &volume, node).await.map_err(|status| status.message),
        // Who authorizes has not heard yet that the volume is the claim's.
        Err(status) if status.code == FORBIDDEN => {
            Ok(ClaimedVolume { name: name.to_owned(), ..ClaimedVolume::default() })
        }
        Err(status) => Err(failed(&format!("PV {name:?}"), status)),
    }
}

async fn claimed(client: &Client, volume: &Object, node: &str) -> Result<ClaimedVolume, Status> {
    let tree = volume.to_value();
    let driver = match text(&tree, "spec.csi.driver") {
        "" => None,
        driver => client.find(&CSI_DRIVERS, "", driver).await?.map(|driver| driver.to_value()),
    };
    let unique_name = attached_as(&tree, driver.as_ref());
    let is_at_hand = match &unique_name {
        None => true,
        Some(unique_name) => {
            let node = client.get(&NODES, "", node).await?.to_value();
            let mut attached = items(&node, "status.volumesAttached").iter();
            attached.any(|attached| text(attached, "name") == unique_name)
        }
    };
    let folders = [text(&tree, "spec.hostPath.path"), text(&tree, "spec.local.path")];
    let folder = folders.into_iter().find(|folder| !folder.is_empty()).unwrap_or_default();
    let folder = if folder.is_empty() { String::new() } else { file_system::absolute("/", folder) };
    let (name, is_for_one_pod) = (volume.metadata.name.clone(), is_for_one_pod(&tree));
    Ok(ClaimedVolume { name, unique_name, is_at_hand, is_for_one_pod, folder })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;
    use serde_json::json;

    fn volumes() -> Vec<Volume> {
        let claim = json!({"name": "data", "persistentVolumeClaim": {"claimName": "c"}});
        let all = json!([claim, {"name": "own", "ephemeral": {}}, {"name": "tmp", "emptyDir": {}}]);
        Vec::<Volume>::deserialize(all).unwrap()
    }

    fn found(is_at_hand: bool) -> Found {
        let name = "pv".to_owned();
        Found::Volume(Arc::new(ClaimedVolume {
            name,
            is_at_hand,
            is_for_one_pod: true,
            unique_name: None,
            folder: String::new(),
        }))
    }

    #[test]
    fn a_pod_has_its_claims_when_they_are_at_hand_and_nobody_elses() {
        let sources = |data: Found, own: Found| -> Sources {
            [(Source::Claim("c".into()), data), (Source::Claim("p-own".into()), own)].into()
        };
        let in_use = VolumesInUse::default();
        let mount =
            |uid: &str, sources: &Sources| mount((&uid.into(), "ns", "p"), &volumes(), sources, &in_use);
        let waits = mount("a", &sources(found(true), found(false)));
        assert_eq!(waits, Err(ClaimRefusal::NotAttached(vec!["own".into()])));
        let missing = sources(found(true), Found::Missing("PVC is not bound".into()));
        let why = "Unable to attach or mount volumes: unmounted volumes=[own], unattached volumes=[], failed \
                   to process volumes=[own]: error processing PVC ns/p-own: PVC is not bound";
        assert_eq!(mount("a", &missing), Err(ClaimRefusal::Failed(why.into())));
        assert_eq!(mount("a", &sources(found(true), found(true))), Ok(()));
        let taken = "MountVolume.SetUp failed for volume \"pv\" : volume uses the ReadWriteOncePod access mode \
                     and is already in use by another pod";
        let refused = mount("b", &sources(found(true), found(true)));
        assert_eq!(refused, Err(ClaimRefusal::Failed(taken.into())));
    }
}
