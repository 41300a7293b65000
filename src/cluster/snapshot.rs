//! Snapshots: a whole cluster in a file (`etcdctl snapshot save` for everything).
//!
//! The file begins with [`MAGIC`], the number of its version and a header as JSON, then comes the image of
//! the store, and last a SHA-256 of all before it. Nothing of a file that is not whole is loaded.

use std::io::ErrorKind;
use std::path::Path;

use bytes::{Buf, BufMut, Bytes};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::data_dir;
use apimachinery::time::{Time, rfc3339_micro};
use clock::Clock;
use etcd::StoreImage;
use etcd_server::restored::{self, EtcdSnapshotError, LeasesOf};
use files::write_named;
use pki::AuthorityKeys;

/// What every snapshot begins with.
pub(super) const MAGIC: &[u8] = b"kubarium snapshot\n";
/// Of the form of the file. Others are refused.
const VERSION: u32 = 1;
const CHECKSUM_BYTES: usize = 32;
/// Before the header: magic, version, the lengths of header and image.
const FIXED_BYTES: usize = MAGIC.len() + 4 + 8 + 8;

/// Why a snapshot was not taken, read or written. The text says of which file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SnapshotError {
    /// Something else.
    #[error("{0} is no snapshot of kubarium")]
    NoSnapshot(String),
    /// Of another kubarium.
    #[error(
        "{0} is a snapshot of version {1}, and this kubarium reads version {VERSION}: use the one that wrote it"
    )]
    OtherVersion(String, u32),
    /// A part of it.
    #[error("{0} is cut short: it has {1} bytes of {2}")]
    CutShort(String, usize, u64),
    /// Something in it is not what was written.
    #[error("{0} is damaged: its checksum is not that of what is in it")]
    Damaged(String),
    /// A snapshot of an etcd.
    #[error("{0}: {1}")]
    Etcd(String, EtcdSnapshotError),
    /// The file system.
    #[error("{0}: {1}")]
    Io(String, std::io::Error),
    /// The data dir to restore to has a cluster in it.
    #[error("{0} is not empty: choose a --data-dir that is not there yet")]
    InUse(String),
    /// The store.
    #[error("the store: {0}")]
    Store(#[from] etcd::StoreError),
    /// The keys.
    #[error(transparent)]
    Keys(#[from] pki::PkiError),
}

/// A whole cluster at one resourceVersion: every object with its history since the last compaction, leases,
/// and the keys that it signs with. Cloning shares it.
///
/// It holds Secrets and, unless they were left out, private keys: a file of it is for its owner alone.
#[derive(Clone, Debug)]
pub struct Snapshot {
    header: SnapshotHeader,
    image: StoreImage,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct SnapshotHeader {
    kubarium: String,
    taken: Time,
    nodes: u32,
    pods_per_node: u32,
    keys: Option<HeaderKeys>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct HeaderKeys {
    certificate: String,
    key: String,
    signing: String,
}

impl SnapshotHeader {
    fn without_keys(taken: Time, (nodes, pods_per_node): (u32, u32)) -> SnapshotHeader {
        let kubarium = env!("CARGO_PKG_VERSION").into();
        SnapshotHeader { kubarium, taken, nodes, pods_per_node, keys: None }
    }
}

impl Snapshot {
    pub(super) fn new(
        image: StoreImage,
        keys: AuthorityKeys,
        taken: Time,
        (nodes, pods_per_node): (u32, u32),
    ) -> Snapshot {
        let AuthorityKeys { certificate_pem, key_pem, signing_key_pem } = keys;
        let keys = HeaderKeys { certificate: certificate_pem, key: key_pem, signing: signing_key_pem };
        let kubarium = env!("CARGO_PKG_VERSION").into();
        let header = SnapshotHeader { kubarium, taken, nodes, pods_per_node, keys: Some(keys) };
        Snapshot { header, image }
    }

    /// Of a real etcd: a file that `etcdctl snapshot save` wrote, or `member/snap/db` of a member that
    /// stands still, with keys below `prefix`, as `/registry`. It has no keys to sign with; a cluster that
    /// begins with it has so many simulated nodes, beside those of the other one, of which nobody takes care.
    ///
    /// # Errors
    /// [`SnapshotError::Etcd`].
    pub fn of_etcd(
        path: &Path,
        prefix: &str,
        leases: LeasesOf,
        (nodes, pods_per_node): (u32, u32),
    ) -> Result<Snapshot, SnapshotError> {
        let failed = |why| SnapshotError::Etcd(path.display().to_string(), why);
        let image = restored::read(path, prefix, leases).map_err(failed)?;
        let written = std::fs::metadata(path).and_then(|metadata| metadata.modified());
        let taken = written.map_err(|error| failed(error.into()))?.into();
        Ok(Snapshot { header: SnapshotHeader::without_keys(taken, (nodes, pods_per_node)), image })
    }

    /// Of a store alone: whoever begins with it has keys of his own.
    pub(super) fn of_store(image: StoreImage, taken: Time) -> Snapshot {
        Snapshot { header: SnapshotHeader::without_keys(taken, (0, 0)), image }
    }

    /// The resourceVersion that it was taken at.
    pub fn resource_version(&self) -> u64 {
        self.image.revision()
    }

    /// When it was taken, by the cluster's clock.
    pub fn taken(&self) -> Time {
        self.header.taken
    }

    /// The simulated nodes of the cluster.
    pub fn nodes(&self) -> u32 {
        self.header.nodes
    }

    /// Without the keys: a cluster made of it trusts other certificates and tokens than this one.
    #[must_use]
    pub fn without_keys(self) -> Snapshot {
        let header = SnapshotHeader { keys: None, ..self.header };
        Snapshot { header, ..self }
    }

    pub(super) fn pods_per_node(&self) -> u32 {
        self.header.pods_per_node
    }

    pub(super) fn image(&self) -> &StoreImage {
        &self.image
    }

    pub(super) fn keys(&self) -> Option<AuthorityKeys> {
        let HeaderKeys { certificate, key, signing } = self.header.keys.clone()?;
        Some(AuthorityKeys { certificate_pem: certificate, key_pem: key, signing_key_pem: signing })
    }

    /// As a file has it.
    pub fn encode(&self) -> Vec<u8> {
        let header = serde_json::to_vec(&self.header).expect("the header is plain data");
        let mut image = Vec::new();
        self.image.encode(&mut image);
        let mut bytes = Vec::with_capacity(FIXED_BYTES + header.len() + image.len() + CHECKSUM_BYTES);
        bytes.put_slice(MAGIC);
        bytes.put_u32(VERSION);
        bytes.put_u64(header.len() as u64);
        bytes.put_u64(image.len() as u64);
        bytes.put_slice(&header);
        bytes.put_slice(&image);
        let checksum = Sha256::digest(&bytes);
        bytes.put_slice(&checksum);
        bytes
    }

    /// Of the bytes of a file; `origin` is what errors call it.
    ///
    /// # Errors
    /// What is no snapshot, or not a whole one.
    pub fn decode(bytes: Bytes, origin: &str) -> Result<Snapshot, SnapshotError> {
        let origin = || origin.to_owned();
        let mut rest = bytes.clone();
        let is_ours = rest.len() >= FIXED_BYTES && rest.starts_with(MAGIC);
        if !is_ours {
            let is_begun = !bytes.is_empty() && bytes.len() < FIXED_BYTES && is_beginning(&bytes);
            let cut =
                || SnapshotError::CutShort(origin(), bytes.len(), (FIXED_BYTES + CHECKSUM_BYTES) as u64);
            return Err(if is_begun { cut() } else { SnapshotError::NoSnapshot(origin()) });
        }
        rest.advance(MAGIC.len());
        let version = rest.get_u32();
        if version != VERSION {
            return Err(SnapshotError::OtherVersion(origin(), version));
        }
        let (header, image) = (rest.get_u64(), rest.get_u64());
        let whole = header.saturating_add(image).saturating_add((FIXED_BYTES + CHECKSUM_BYTES) as u64);
        if (bytes.len() as u64) < whole {
            return Err(SnapshotError::CutShort(origin(), bytes.len(), whole));
        }
        let damaged = || SnapshotError::Damaged(origin());
        let (content, checksum) = bytes.split_at(bytes.len() - CHECKSUM_BYTES);
        if (bytes.len() as u64) > whole || Sha256::digest(content).as_slice() != checksum {
            return Err(damaged());
        }
        let header = rest.split_to(usize::try_from(header).map_err(|_| damaged())?);
        rest.truncate(rest.len() - CHECKSUM_BYTES);
        let header = serde_json::from_slice(&header).map_err(|_| damaged())?;
        let image = StoreImage::decode(rest).map_err(|_| damaged())?;
        Ok(Snapshot { header, image })
    }

    /// Reads a file.
    ///
    /// # Errors
    /// As [`Snapshot::decode`], and what the file system says.
    pub fn read(path: &Path) -> Result<Snapshot, SnapshotError> {
        let shown = path.display().to_string();
        let bytes = std::fs::read(path).map_err(|error| SnapshotError::Io(shown.clone(), error))?;
        Snapshot::decode(bytes.into(), &shown)
    }

    /// Writes a file with mode 0600, whole or not at all; a pipe or a device as it is.
    ///
    /// # Errors
    /// What the file system says.
    pub fn write(&self, path: &Path) -> Result<(), SnapshotError> {
        let failed = |error| SnapshotError::Io(path.display().to_string(), error);
        write_named(path, &self.encode()).map_err(failed)
    }

    /// Makes a data dir of it, which is not there yet or empty.
    ///
    /// # Errors
    /// [`SnapshotError::InUse`], and what the file system says; a data dir that was not there is then not
    /// there either.
    pub fn restore(&self, data_dir: &Path, clock: &Clock) -> Result<(), SnapshotError> {
        let shown = || data_dir.display().to_string();
        let was_there = match std::fs::read_dir(data_dir) {
            Ok(mut entries) => match entries.next() {
                Some(_) => return Err(SnapshotError::InUse(shown())),
                None => true,
            },
            Err(error) if error.kind() == ErrorKind::NotFound => false,
            Err(error) => return Err(SnapshotError::Io(shown(), error)),
        };
        let restored = self.restore_into(data_dir, clock);
        if restored.is_err() && !was_there {
            let _ = std::fs::remove_dir_all(data_dir);
        }
        restored
    }

    fn restore_into(&self, folder: &Path, clock: &Clock) -> Result<(), SnapshotError> {
        self.image.restore(&data_dir::store(folder), clock)?;
        if let Some(keys) = self.keys() {
            keys.write(&data_dir::pki(folder))?;
        }
        Ok(())
    }
}

fn is_beginning(bytes: &[u8]) -> bool {
    bytes.iter().zip(MAGIC).all(|(found, expected)| found == expected)
}

/// As in the header.
impl std::fmt::Display for Snapshot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "resourceVersion {}, taken {}", self.resource_version(), rfc3339_micro(self.taken()))
    }
}
