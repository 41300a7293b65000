//! The volumes of claims that the pods of a node use (`desiredStateOfWorld`, `actualStateOfWorld`): what the
//! node's status says to be in use, and who has a volume that only one pod may have.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::host_files::HostFiles;
use sync::Mutex;
use tokio::sync::Notify;

/// The reason of an event about what is not mounted.
pub(crate) const FAILED_MOUNT: &str = "FailedMount";
/// The reason of an event about blocks that are not mapped.
const FAILED_MAP: &str = "FailedMapVolume";

/// The volume behind a claim.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClaimedVolume {
    /// Of the PersistentVolume.
    pub name: String,
    /// As the node's status calls it; nothing when nobody attaches it.
    pub unique_name: Option<String>,
    /// The node's status says that it is attached, or nobody attaches it.
    pub is_at_hand: bool,
    /// Only one pod may have it.
    pub is_for_one_pod: bool,
    /// It has no file system.
    pub is_block: bool,
    /// The folder of its node that it is; empty when it is none.
    pub folder: String,
    /// What that has to be (`HostPathType`).
    pub folder_type: String,
    /// It is one of the node's own (`local`), which nobody makes.
    pub is_local: bool,
    /// Who mounts it knows no blocks, so that one without a file system is never mapped.
    pub is_unmappable: bool,
}

impl ClaimedVolume {
    /// Mounts the folder of the node that it is, if it is one. Says why not: the reason of the event, and its
    /// message.
    pub(crate) fn mount_folder(&self, host: &HostFiles) -> Option<(&'static str, String)> {
        let of_volume = |what: &str, why: String| format!("{what} failed for volume {:?} : {why}", self.name);
        if self.is_local {
            let reason = if self.is_block { FAILED_MAP } else { FAILED_MOUNT };
            let lack = host.lacks_local(&self.folder, self.is_block);
            return lack.map(|(what, why)| (reason, of_volume(what, why)));
        }
        let why = if self.folder.is_empty() { None } else { host.mount(&self.folder, &self.folder_type) };
        why.map(|why| (FAILED_MOUNT, of_volume("MountVolume.SetUp", why)))
    }
}

/// Who uses what on one node.
#[derive(Default)]
pub struct VolumesInUse {
    /// By the names of volumes. Bound: the claims of the node's pods.
    volumes: Mutex<BTreeMap<String, Use>>,
    /// What the node's status says of it is not what it was.
    changed: Arc<Notify>,
}

#[derive(Default)]
struct Use {
    unique_name: Option<String>,
    /// The pods that want it, by uid.
    wanted_by: BTreeSet<Arc<str>>,
    /// Those of them that have it.
    mounted_by: BTreeSet<Arc<str>>,
}

impl VolumesInUse {
    /// Of a node that tells of changes there.
    pub fn telling(changed: Arc<Notify>) -> VolumesInUse {
        VolumesInUse { volumes: Mutex::default(), changed }
    }

    /// A pod wants a volume, if it can have it or not.
    pub fn want(&self, pod: &Arc<str>, volume: &ClaimedVolume) {
        let mut volumes = self.volumes.lock();
        let entry = volumes.entry(volume.name.clone()).or_default();
        let is_news = entry.unique_name.is_none() && volume.unique_name.is_some();
        entry.unique_name.clone_from(&volume.unique_name);
        entry.wanted_by.insert(pod.clone());
        drop(volumes);
        if is_news {
            self.changed.notify_one();
        }
    }

    /// A pod has a volume from now on, unless another one has it alone.
    pub fn mount(&self, pod: &Arc<str>, volume: &ClaimedVolume) -> bool {
        let mut volumes = self.volumes.lock();
        let entry = volumes.entry(volume.name.clone()).or_default();
        if volume.is_for_one_pod && entry.mounted_by.iter().any(|other| other != pod) {
            return false;
        }
        entry.mounted_by.insert(pod.clone());
        true
    }

    /// A pod wants and has none any more.
    pub fn release(&self, pod: &Arc<str>) {
        let mut volumes = self.volumes.lock();
        let mut is_news = false;
        volumes.retain(|_, entry| {
            entry.wanted_by.remove(pod);
            entry.mounted_by.remove(pod);
            let is_used = !(entry.wanted_by.is_empty() && entry.mounted_by.is_empty());
            is_news |= !is_used && entry.unique_name.is_some();
            is_used
        });
        drop(volumes);
        if is_news {
            self.changed.notify_one();
        }
    }

    /// What the node's status says to be in use (`volumesInUse`).
    pub fn names(&self) -> Vec<String> {
        self.volumes.lock().values().filter_map(|entry| entry.unique_name.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    fn volume(is_for_one_pod: bool) -> ClaimedVolume {
        let unique_name = Some("kubernetes.io/csi/d^h".to_owned());
        ClaimedVolume {
            name: "v".into(),
            unique_name,
            is_at_hand: true,
            is_for_one_pod,
            ..ClaimedVolume::default()
        }
    }

    #[test]
    fn a_volume_is_in_use_until_no_pod_wants_it() {
        let changed = Arc::new(Notify::new());
        let volumes = VolumesInUse::telling(changed.clone());
        let told = || changed.notified().now_or_never().is_some();
        let [a, b]: [Arc<str>; 2] = ["a".into(), "b".into()];
        volumes.want(&a, &volume(false));
        assert!(told() && volumes.names() == ["kubernetes.io/csi/d^h"]);
        volumes.want(&b, &volume(false));
        volumes.release(&a);
        assert!(!told() && volumes.names().len() == 1);
        volumes.release(&b);
        assert!(told() && volumes.names().is_empty());
        // Of what nobody attaches the node says nothing.
        volumes.want(&a, &ClaimedVolume { unique_name: None, ..volume(false) });
        assert!(!told() && volumes.names().is_empty());
    }

    #[test]
    fn a_volume_for_one_pod_is_had_by_one_at_a_time() {
        let volumes = VolumesInUse::default();
        let [a, b]: [Arc<str>; 2] = ["a".into(), "b".into()];
        assert!(volumes.mount(&a, &volume(true)) && volumes.mount(&a, &volume(true)));
        assert!(!volumes.mount(&b, &volume(true)));
        assert!(volumes.mount(&b, &volume(false)), "others do not care");
        volumes.release(&b);
        volumes.release(&a);
        assert!(volumes.mount(&b, &volume(true)));
    }
}
