//! Snapshots of other etcds: a file that `etcdctl snapshot save` wrote, or `member/snap/db` of a member that
//! stands still, as the image of a store of ours. Keys, revisions, leases and history are the same.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::time::Duration;

use bytes::{Buf, Bytes};
use etcd::{EventKind, ImageLease, KeyValue, LeaseId, LoggedChange, Revision, StoreImage};
use sha2::{Digest, Sha256};

use crate::bolt_reader::{BoltFile, DamagedBolt};
use crate::keys;
use crate::messages::{self, KeptLease};
use crate::wire::ProtoMessage;

/// The largest file that is read, since it is read whole: twice what etcd's members keep unless they are told
/// otherwise (`--quota-backend-bytes`).
pub const MAX_SNAPSHOT_BYTES: u64 = 4 << 30;
/// Of the SHA-256 that `etcdctl snapshot save` puts behind the pages.
const CHECKSUM_BYTES: usize = 32;
/// Pages are a multiple of this, so that what is beyond is a checksum.
const SECTOR_BYTES: usize = 512;

/// Why a file is not taken for a snapshot. The text does not say which file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EtcdSnapshotError {
    /// The file system.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// It is too long.
    #[error("it has {0} bytes, and files of at most {MAX_SNAPSHOT_BYTES} are read")]
    TooLarge(u64),
    /// The checksum that is behind it is that of something else.
    #[error("it is damaged: its checksum is not that of what is in it")]
    Damaged,
    /// What is wrong with its pages.
    #[error(
        "{0}: give the file that `etcdctl snapshot save` wrote, or member/snap/db of a member that stands still"
    )]
    Pages(String),
    /// What is wrong with what stands in the pages.
    #[error("its bucket {0} has a row that cannot be read")]
    Row(&'static str),
    /// It may be somebody else's.
    #[error("it has no key below {0}/: say with --etcd-prefix what its keys begin with")]
    NoKeys(String),
}

/// What becomes of the leases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeasesOf {
    /// They go on, with the time that they had left.
    Snapshot,
    /// There are none: nothing ever expires.
    Nobody,
}

/// Reads a file. Its keys below `prefix`, as `/registry`, become those below `/registry`; others are left
/// out.
///
/// # Errors
/// [`EtcdSnapshotError`].
pub fn read(path: &Path, prefix: &str, leases: LeasesOf) -> Result<StoreImage, EtcdSnapshotError> {
    let file = File::open(path)?;
    let mut bytes = Vec::new();
    file.take(MAX_SNAPSHOT_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_SNAPSHOT_BYTES {
        return Err(EtcdSnapshotError::TooLarge(std::fs::metadata(path)?.len()));
    }
    decode(bytes.into(), prefix, leases)
}

/// Of the bytes of such a file.
///
/// # Errors
/// [`EtcdSnapshotError`].
pub fn decode(mut file: Bytes, prefix: &str, kept: LeasesOf) -> Result<StoreImage, EtcdSnapshotError> {
    if file.len() % SECTOR_BYTES == CHECKSUM_BYTES {
        let checksum = file.split_off(file.len() - CHECKSUM_BYTES);
        if Sha256::digest(&file).as_slice() != checksum {
            return Err(EtcdSnapshotError::Damaged);
        }
    }
    let pages = |damage: DamagedBolt| EtcdSnapshotError::Pages(damage.to_string());
    let mut buckets = BoltFile::open(file).map_err(pages)?.buckets().map_err(pages)?;
    let mut bucket = |name: &str| buckets.remove(name.as_bytes()).unwrap_or_default();
    let (rows, leases, meta) = (bucket("key"), bucket("lease"), bucket("meta"));
    let leases = match kept {
        LeasesOf::Snapshot => read_leases(leases)?,
        LeasesOf::Nobody => KnownLeases::new(),
    };
    let compacted = compact_revision(&meta);
    let mut changes = Vec::with_capacity(rows.len());
    let mut newest = compacted.max(1);
    for (key, value) in rows {
        let (revision, change) = read_row(&key, value, &leases)?;
        newest = newest.max(revision);
        changes.extend(below_registry(change, prefix));
    }
    if changes.is_empty() {
        return Err(EtcdSnapshotError::NoKeys(prefix.to_owned()));
    }
    let leases: Vec<ImageLease> = leases.into_values().map(|(_, lease)| lease).collect();
    Ok(StoreImage::of_history((newest, compacted), changes, &leases))
}

/// What the keys of the objects of this store begin with.
const REGISTRY: &str = "/registry";

/// None of what is not below the prefix: it is another cluster's, whose objects are not to be mixed with
/// these, or nobody's.
fn below_registry(change: LoggedChange, prefix: &str) -> Option<LoggedChange> {
    let rest = change.kv.key.strip_prefix(prefix).filter(|rest| rest.starts_with('/'))?;
    let key = format!("{REGISTRY}{rest}").into();
    Some(LoggedChange { kv: KeyValue { key, ..change.kv }, ..change })
}

/// By what they are called, each with its number in the image.
type KnownLeases = BTreeMap<i64, (LeaseId, ImageLease)>;

fn read_leases(rows: Vec<(Bytes, Bytes)>) -> Result<KnownLeases, EtcdSnapshotError> {
    let mut leases = KnownLeases::new();
    for (_, value) in rows {
        let kept = KeptLease::decode(value).map_err(|_| EtcdSnapshotError::Row("lease"))?;
        let seconds = |number: i64| Duration::from_secs(u64::try_from(number).unwrap_or(0));
        let left = if kept.remaining_ttl > 0 { kept.remaining_ttl } else { kept.ttl };
        let lease =
            ImageLease { name: kept.id.cast_unsigned(), ttl: seconds(kept.ttl), remaining: seconds(left) };
        leases.insert(kept.id, (LeaseId(0), lease));
    }
    for (number, (id, _)) in (1..).zip(leases.values_mut()) {
        *id = LeaseId(number);
    }
    Ok(leases)
}

/// The row that is scheduled counts: what is before it nobody may read any more.
fn compact_revision(meta: &[(Bytes, Bytes)]) -> Revision {
    let of = |name: &[u8]| meta.iter().find(|(key, _)| key == name);
    let revision = of(b"scheduledCompactRev").and_then(|(_, value)| value.clone().try_get_u64().ok());
    revision.unwrap_or(0)
}

/// `main_sub`, and a `t` behind a deletion.
fn read_row(
    mut key: &[u8],
    value: Bytes,
    leases: &KnownLeases,
) -> Result<(Revision, LoggedChange), EtcdSnapshotError> {
    let damaged = || EtcdSnapshotError::Row("key");
    let revision = key.try_get_u64().map_err(|_| damaged())?;
    let kind = match key {
        [b'_', _, _, _, _, _, _, _, _] => EventKind::Put,
        [b'_', _, _, _, _, _, _, _, _, b't'] => EventKind::Delete,
        _ => return Err(damaged()),
    };
    let row = messages::KeyValue::decode(value).map_err(|_| damaged())?;
    let number = |number: i64| u64::try_from(number).map_err(|_| damaged());
    let kv = KeyValue {
        key: keys::text(&row.key).into(),
        value: row.value,
        create_revision: number(row.create_revision)?,
        mod_revision: revision,
        version: number(row.version)?,
        lease: leases.get(&row.lease).map(|(id, _)| *id),
    };
    Ok((revision, LoggedChange { kind, kv }))
}
