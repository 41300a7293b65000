//! The claims of a pod: which volume is behind each, and whether the pod may have it
//! (`desired_state_of_world_populator.go`, `operation_generator.go`).

use std::sync::Arc;
use std::time::Duration;

use super::claimed_files::ClaimedFiles;
use super::host_files::HostFiles;
use super::in_use::{ClaimedVolume, FAILED_MOUNT, VolumesInUse};
use super::sources::{self, Found, Source, Sources};
use apimachinery::object::Object;
use apimachinery::status::Status;
use apis::core::node::NODES;
use apis::core::persistent_volume::PERSISTENT_VOLUMES;
use apis::core::persistent_volume_claim::PERSISTENT_VOLUME_CLAIMS;
use apis::storage::csi::CSI_DRIVERS;
use apis::tree::{at, items, text};
use apis::views::pod_detail::PodDetail;
use apis::volumes::{attached_as, is_bound, is_for_one_pod};
use client_go::client::Client;
use machine::file_system;

/// A pod whose volume does not come for so long is told (`podAttachAndMountTimeout`).
pub(crate) const ATTACH_TIMEOUT: Duration = Duration::from_secs(123);

/// The code of a refusal to a node.
const FORBIDDEN: u16 = 403;

/// Sources of volumes whose plugins know files alone (no `BlockVolumePlugin`).
const FILES_ONLY: [&str; 6] = ["hostPath", "nfs", "cephfs", "glusterfs", "flexVolume", "quobyte"];

/// Gives what is in the volumes behind a pod's claims to its group, where it names one (`fsGroup`). Folders
/// of a node that are not made to be volumes stay whose they are.
pub(crate) fn give(detail: &PodDetail, found: &Sources, host: &HostFiles, claimed: &ClaimedFiles) {
    let Some(group) = detail.spec.security_context.fs_group else { return };
    for volume in found.values().filter_map(Found::volume).filter(|volume| !volume.is_block) {
        match volume.folder.as_str() {
            "" => claimed.give(&volume.name, group),
            folder if volume.is_local => host.give(folder, group),
            _ => {}
        }
    }
}

/// Why a pod does not have its claims yet.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ClaimRefusal {
    /// Volumes of these names are not attached yet.
    NotAttached(Vec<String>),
    /// Volumes of these names are attached, and nobody maps their blocks.
    NotMapped(Vec<String>),
    /// It cannot have one: the reason and the message of the event.
    Failed(&'static str, String),
}

/// Takes the volumes behind a pod's claims, as far as they can be had.
///
/// # Errors
/// Why not all can.
pub(crate) fn mount(
    (uid, namespace, pod): (&Arc<str>, &str, &str),
    detail: &PodDetail,
    found: &Sources,
    (in_use, host): (&VolumesInUse, &HostFiles),
) -> Result<(), ClaimRefusal> {
    let mut not_attached = Vec::new();
    let mut not_mapped = Vec::new();
    for volume in &detail.spec.volumes {
        let Some(source) = sources::claim(volume, pod) else { continue };
        let unprocessed = |why: &str| {
            let failed = std::slice::from_ref(&volume.name);
            ClaimRefusal::Failed(FAILED_MOUNT, unable(&Unready { failed, ..Unready::default() }, why))
        };
        match (found.get(&source), source) {
            (Some(Found::Volume(found)), _) => {
                if let Some(why) = misuse(&volume.name, found, detail) {
                    return Err(unprocessed(&why));
                }
                if !found.is_at_hand {
                    not_attached.push(volume.name.clone());
                } else if found.is_block && found.is_unmappable {
                    not_mapped.push(volume.name.clone());
                } else {
                    take(uid, found, in_use, host)?;
                }
            }
            (Some(Found::Missing(why)), Source::Claim(claim)) => {
                return Err(unprocessed(&format!("error processing PVC {namespace}/{claim}: {why}")));
            }
            _ => {}
        }
    }
    if !not_attached.is_empty() {
        Err(ClaimRefusal::NotAttached(not_attached))
    } else if !not_mapped.is_empty() {
        Err(ClaimRefusal::NotMapped(not_mapped))
    } else {
        Ok(())
    }
}

/// A container that wants files where there are blocks, or blocks where there are files
/// (`createVolumeSpec`).
fn misuse(name: &str, volume: &ClaimedVolume, detail: &PodDetail) -> Option<String> {
    let is_mounted = || detail.containers().any(|it| it.volume_mounts.iter().any(|it| it.name == name));
    let is_device = || detail.containers().any(|it| it.volume_devices.iter().any(|it| it.name == name));
    let (is_misused, mode, place) = if volume.is_block {
        (is_mounted(), "Block", "volumeMounts")
    } else {
        (is_device(), "Filesystem", "volumeDevices")
    };
    is_misused.then(|| format!("volume {name} has volumeMode {mode}, but is specified in {place}"))
}

/// A volume that is at the node: no other pod may have it alone, and its folder is what it is said to be.
fn take(
    uid: &Arc<str>,
    volume: &ClaimedVolume,
    in_use: &VolumesInUse,
    host: &HostFiles,
) -> Result<(), ClaimRefusal> {
    let why = if in_use.mount(uid, volume) {
        volume.mount_folder(host)
    } else {
        let why = "volume uses the ReadWriteOncePod access mode and is already in use by another pod";
        Some((FAILED_MOUNT, format!("MountVolume.SetUp failed for volume {:?} : {why}", volume.name)))
    };
    why.map_or(Ok(()), |(reason, message)| Err(ClaimRefusal::Failed(reason, message)))
}

/// The names of a pod's volumes that it does not have.
#[derive(Default)]
pub(crate) struct Unready<'a> {
    /// They are not attached.
    pub(crate) unattached: &'a [String],
    /// They are, and are not mapped.
    pub(crate) unmapped: &'a [String],
    /// What they are is not known.
    pub(crate) failed: &'a [String],
}

/// The message of `FailedMount` of a pod that waits for volumes (`WaitForAttachAndMount`).
pub(crate) fn unable(Unready { unattached, unmapped, failed }: &Unready<'_>, why: &str) -> String {
    let unmounted = [*unattached, *unmapped, *failed].concat();
    let shown = |names: &[String]| names.join(" ");
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
    let (is_block, is_for_one_pod) = (text(&tree, "spec.volumeMode") == "Block", is_for_one_pod(&tree));
    let (name, folder_type) = (volume.metadata.name.clone(), text(&tree, "spec.hostPath.type").to_owned());
    let is_local = !at(&tree, "spec.local").is_null();
    let is_unmappable = FILES_ONLY.iter().any(|source| !at(&tree, &format!("spec.{source}")).is_null());
    Ok(ClaimedVolume {
        name,
        unique_name,
        is_at_hand,
        is_for_one_pod,
        is_block,
        folder,
        folder_type,
        is_local,
        is_unmappable,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;
    use serde_json::{Value, json};

    fn detail(containers: Value) -> PodDetail {
        let claim = json!({"name": "data", "persistentVolumeClaim": {"claimName": "c"}});
        let all = json!([claim, {"name": "own", "ephemeral": {}}, {"name": "tmp", "emptyDir": {}}]);
        PodDetail::deserialize(json!({"spec": {"volumes": all, "containers": containers}})).unwrap()
    }

    fn claimed_volume() -> ClaimedVolume {
        ClaimedVolume {
            name: "pv".into(),
            is_at_hand: true,
            is_for_one_pod: true,
            ..ClaimedVolume::default()
        }
    }

    fn found(is_at_hand: bool) -> Found {
        Found::Volume(Arc::new(ClaimedVolume { is_at_hand, ..claimed_volume() }))
    }

    /// What a pod with these containers is told of a volume.
    fn told(containers: Value, volume: ClaimedVolume, host: &HostFiles) -> Option<String> {
        let sources = Sources::from([(Source::Claim("c".into()), Found::Volume(Arc::new(volume)))]);
        let taken =
            mount((&"a".into(), "ns", "p"), &detail(containers), &sources, (&VolumesInUse::default(), host));
        match taken {
            Err(ClaimRefusal::Failed(_, why)) => Some(why),
            _ => None,
        }
    }

    #[test]
    fn a_pod_has_its_claims_when_they_are_at_hand_and_nobody_elses() {
        let sources = |data: Found, own: Found| -> Sources {
            [(Source::Claim("c".into()), data), (Source::Claim("p-own".into()), own)].into()
        };
        let in_use = VolumesInUse::default();
        let host = HostFiles::default();
        let detail = detail(json!([]));
        let mount = |uid: &str, sources: &Sources| {
            mount((&uid.into(), "ns", "p"), &detail, sources, (&in_use, &host))
        };
        let waits = mount("a", &sources(found(true), found(false)));
        assert_eq!(waits, Err(ClaimRefusal::NotAttached(vec!["own".into()])));
        let missing = sources(found(true), Found::Missing("PVC is not bound".into()));
        let why = "Unable to attach or mount volumes: unmounted volumes=[own], unattached volumes=[], failed \
                   to process volumes=[own]: error processing PVC ns/p-own: PVC is not bound";
        assert_eq!(mount("a", &missing), Err(ClaimRefusal::Failed("FailedMount", why.into())));
        assert_eq!(mount("a", &sources(found(true), found(true))), Ok(()));
        let taken = "MountVolume.SetUp failed for volume \"pv\" : volume uses the ReadWriteOncePod access mode \
                     and is already in use by another pod";
        let refused = mount("b", &sources(found(true), found(true)));
        assert_eq!(refused, Err(ClaimRefusal::Failed("FailedMount", taken.into())));
    }

    #[test]
    fn blocks_are_no_files() {
        let host = HostFiles::default();
        let mounts = || json!([{"name": "x", "volumeMounts": [{"name": "data", "mountPath": "/d"}]}]);
        let blocks = || json!([{"name": "x", "volumeDevices": [{"name": "data", "devicePath": "/dev/x"}]}]);
        let block = || ClaimedVolume { is_block: true, ..claimed_volume() };
        let why = told(mounts(), block(), &host).unwrap();
        assert!(
            why.ends_with(": volume data has volumeMode Block, but is specified in volumeMounts"),
            "{why}"
        );
        let why = told(blocks(), claimed_volume(), &host).unwrap();
        assert!(why.ends_with("has volumeMode Filesystem, but is specified in volumeDevices"), "{why}");
        assert_eq!(told(mounts(), claimed_volume(), &host), None);
        assert_eq!(told(blocks(), block(), &host), None);
    }

    #[test]
    fn a_local_volume_is_what_its_node_has() {
        let host = HostFiles::default();
        let of = |folder: &str, is_block: bool| {
            let volume =
                ClaimedVolume { folder: folder.into(), is_local: true, is_block, ..claimed_volume() };
            told(json!([]), volume, &host)
        };
        let why = "MountVolume.NewMounter initialization failed for volume \"pv\" : path \"/data/x\" does not \
                   exist";
        assert_eq!(of("/data/x", false).as_deref(), Some(why));
        let why =
            "MapVolume.EvalHostSymlinks failed for volume \"pv\" : lstat /data/x: no such file or directory";
        assert_eq!(of("/data/x", true).as_deref(), Some(why));
        assert_eq!(host.mount("/data/x", "DirectoryOrCreate"), None);
        assert_eq!((of("/data/x", false), of("/tmp", false), of("/dev/sdb", true)), (None, None, None));
        assert!(of("/data/x", true).is_some_and(|why| why.ends_with("/data/x: is not a block device")));
        assert_eq!(host.mount("/data/file", "FileOrCreate"), None);
        let why = of("/data/file", false).unwrap();
        assert!(why.ends_with("only directory and block device are supported"), "{why}");
    }

    #[test]
    fn blocks_are_not_mapped_by_who_knows_files_alone() {
        let volume = ClaimedVolume { is_block: true, is_unmappable: true, ..claimed_volume() };
        let sources = Sources::from([(Source::Claim("c".into()), Found::Volume(Arc::new(volume)))]);
        let blocks = json!([{"name": "x", "volumeDevices": [{"name": "data", "devicePath": "/dev/x"}]}]);
        let taken = mount(
            (&"a".into(), "ns", "p"),
            &detail(blocks),
            &sources,
            (&VolumesInUse::default(), &HostFiles::default()),
        );
        assert_eq!(taken, Err(ClaimRefusal::NotMapped(vec!["data".into()])));
    }

    #[test]
    fn the_folder_of_a_volume_is_what_it_says() {
        let host = HostFiles::default();
        let of = |folder_type: &str| {
            let folder_type = folder_type.to_owned();
            let volume = ClaimedVolume { folder: "/data/x".into(), folder_type, ..claimed_volume() };
            told(json!([]), volume, &host)
        };
        let why = "MountVolume.SetUp failed for volume \"pv\" : hostPath type check failed: /data/x is not a \
                   directory";
        assert_eq!(of("Directory").as_deref(), Some(why));
        assert_eq!((of("DirectoryOrCreate"), of("Directory")), (None, None));
    }
}
