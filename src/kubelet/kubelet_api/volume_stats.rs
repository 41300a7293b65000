//! What is in the volumes of claims (`kubelet_volume_stats_*`, `volume` of `/stats/summary`): their size from
//! the claim, what is in them from what the pod says or what was written.

use std::fmt::Write;

use serde_json::{Value, json};

use crate::kubelet::Kubelet;
use apimachinery::quantity::Quantity;
use apimachinery::time::{Time, rfc3339};
use apis::core::persistent_volume_claim::PERSISTENT_VOLUME_CLAIMS;
use apis::tree::{at, items, text};
use component_base::metrics::heading;

/// A file system of ext4 has an inode for so many bytes, unless somebody says otherwise.
const BYTES_PER_INODE: u64 = 16_384;
/// So many of them it uses itself.
const OWN_INODES: u64 = 11;

/// The volume of a claim in a pod.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct VolumeOfClaim {
    /// The pod that has it.
    uid: String,
    /// As the pod calls it.
    name: String,
    namespace: String,
    claim: String,
    capacity: u64,
    used: u64,
    files: u64,
}

impl VolumeOfClaim {
    fn inodes(&self) -> u64 {
        self.capacity / BYTES_PER_INODE
    }

    fn inodes_used(&self) -> u64 {
        (OWN_INODES + self.files).min(self.inodes())
    }

    fn available(&self) -> u64 {
        self.capacity.saturating_sub(self.used)
    }

    /// As the summary has it, if that pod has it.
    pub(super) fn in_pod(&self, uid: &str, now: Time) -> Option<Value> {
        if self.uid != uid {
            return None;
        }
        let inodes_free = self.inodes() - self.inodes_used();
        Some(json!({
            "time": rfc3339(now), "name": self.name,
            "availableBytes": self.available(), "capacityBytes": self.capacity, "usedBytes": self.used,
            "inodesFree": inodes_free, "inodes": self.inodes(), "inodesUsed": self.inodes_used(),
            "pvcRef": {"name": self.claim, "namespace": self.namespace},
            "volumeHealthStats": {"abnormal": false},
        }))
    }
}

impl Kubelet {
    /// Those that pods have whose containers run. A claim that cannot be read has none.
    pub(super) async fn volumes_of_claims(&self, now: Time) -> Vec<VolumeOfClaim> {
        let mut found = Vec::new();
        for pod in self.pods_here().await.into_iter().filter(|pod| !pod.running.is_empty()) {
            let tree = pod.object.to_value();
            for volume in items(&tree, "spec.volumes") {
                let Some(claim) = claim_of(volume, pod.name()) else { continue };
                let (name, kind) = (text(volume, "name"), &PERSISTENT_VOLUME_CLAIMS);
                let stored = self.shared.context.client.get(kind, pod.namespace(), &claim).await;
                let Ok(stored) = stored.map(|claim| claim.to_value()) else { continue };
                let Some(capacity) = capacity(&stored) else { continue };
                let files = self.shared.node.claimed_files.files(text(&stored, "spec.volumeName"));
                let written: usize = files.values().map(|file| file.size()).sum();
                let said = self.shared.node.runtime.volume_bytes(&pod.pod, name, pod.start_time, now);
                found.push(VolumeOfClaim {
                    uid: pod.object.metadata.uid.clone(),
                    name: name.to_owned(),
                    namespace: pod.namespace().to_owned(),
                    used: said.unwrap_or(written as u64).min(capacity),
                    files: files.len() as u64,
                    claim,
                    capacity,
                });
            }
        }
        found
    }
}

/// The claim of a volume; an ephemeral one is called after its pod.
pub(super) fn claim_of(volume: &Value, pod: &str) -> Option<String> {
    if !at(volume, "ephemeral").is_null() {
        return Some(format!("{pod}-{}", text(volume, "name")));
    }
    Some(text(volume, "persistentVolumeClaim.claimName").to_owned()).filter(|claim| !claim.is_empty())
}

/// How large the volume of a claim is; none of one that is a device and no file system.
fn capacity(claim: &Value) -> Option<u64> {
    if text(claim, "spec.volumeMode") == "Block" {
        return None;
    }
    let capacity = Quantity::parse(text(claim, "status.capacity.storage")).ok()?;
    u64::try_from(capacity.value()).ok()
}

/// `kubelet_volume_stats_*`, each claim once however many pods have its volume.
pub(super) fn metrics(volumes: &[VolumeOfClaim]) -> String {
    type Stat = (&'static str, &'static str, fn(&VolumeOfClaim) -> u64);
    const STATS: [Stat; 6] = [
        ("available_bytes", "Number of available bytes in the volume", VolumeOfClaim::available),
        ("capacity_bytes", "Capacity in bytes of the volume", |volume| volume.capacity),
        ("inodes", "Maximum number of inodes in the volume", VolumeOfClaim::inodes),
        ("inodes_free", "Number of free inodes in the volume", |volume| {
            volume.inodes() - volume.inodes_used()
        }),
        ("inodes_used", "Number of used inodes in the volume", VolumeOfClaim::inodes_used),
        ("used_bytes", "Number of used bytes in the volume", |volume| volume.used),
    ];
    let mut once: Vec<&VolumeOfClaim> = volumes.iter().collect();
    once.sort_by(|a, b| (&a.namespace, &a.claim).cmp(&(&b.namespace, &b.claim)));
    once.dedup_by(|a, b| (&a.namespace, &a.claim) == (&b.namespace, &b.claim));
    let mut out = String::new();
    for (stat, help, value) in STATS.iter().filter(|_| !once.is_empty()) {
        let name = format!("kubelet_volume_stats_{stat}");
        heading(&mut out, &name, "gauge", &format!("[ALPHA] {help}"));
        for volume in &once {
            let labels = format!("namespace={:?},persistentvolumeclaim={:?}", volume.namespace, volume.claim);
            // Writing into a text cannot fail.
            let _ = writeln!(out, "{name}{{{labels}}} {}", value(volume));
        }
    }
    out
}
