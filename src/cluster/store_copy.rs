//! A cluster's objects from one store to another: data dirs, files and etcds (`kubarium store copy`).
//!
//! Whatever it is read from, it is an image of a store first. A data dir and a file have exactly what is in
//! it. To an etcd it is written change by change, each at the revision that it has, to which the etcd is led.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::data_dir;
use super::earlier_keys;
use super::etcd_api::ShownValues;
use super::etcd_store::config_of;
use super::etcd_store_error::EtcdStoreError;
use super::snapshot::{MAGIC, Snapshot, SnapshotError};
use apiserver::storage::options::EtcdOptions;
use clock::Clock;
use etcd::{EventKind, Kv, LeaseId, LoggedChange, Options, Revision, StoreError, StoreImage};
use etcd_client::{CopiedChange, EtcdClient};
use etcd_server::restored::{self, LeasesOf, MAX_SNAPSHOT_BYTES};
use etcd_server::status::EtcdStatus;
use etcd_server::values::Values;
use etcd_server::{EtcdServer, ServerOptions};
use files::write_private;

/// The farthest that an etcd is led, a write for each revision; what is farther goes by a file.
const MOST_REVISIONS: Revision = 1_000_000;
/// What an etcd writes at one revision, unless it is told otherwise (`--max-txn-ops`), but for one write that
/// leads it there.
const MOST_OPERATIONS: usize = 127;
/// What every key of a cluster begins with.
const ROOT: &str = "/registry/";

/// Where a cluster's objects are.
#[derive(Clone, Debug)]
pub(crate) enum StorePlace {
    /// The data dir of a cluster that does not run.
    DataDir(PathBuf),
    /// A snapshot: of kubarium's, which is read alone, or of an etcd.
    File {
        /// Which file.
        path: PathBuf,
        /// Of one that is read: what keys begin with in an etcd's.
        prefix: String,
    },
    /// An etcd.
    Etcd(Box<EtcdOptions>),
}

/// What was copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CopiedStore {
    /// How many keys there are.
    pub(crate) keys: usize,
    /// The revision that the store stands at, after which the next write goes on.
    pub(crate) revision: Revision,
}

/// Why it was not copied. The text says where, and what to do.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StoreCopyError {
    #[error("{0} has no store: give the --data-dir of a cluster")]
    NoDataDir(String),
    #[error("{0} is there already: choose another file")]
    InUse(String),
    #[error(
        "the etcd has {0} keys below {1}: give one with none, so that nothing of two clusters is mixed up"
    )]
    NotEmpty(usize, String),
    #[error(
        "the etcd stands at revision {0}, and the first change to copy has {1}: give a new etcd, or say \
         --new-revisions"
    )]
    TooFar(Revision, Revision),
    #[error(
        "revision {0} is {1} writes away, and at most {MOST_REVISIONS} are made: copy to a file, as \
         cluster.db, and have `etcdutl snapshot restore` make an etcd of it, or say --new-revisions"
    )]
    TooManyRevisions(Revision, Revision),
    #[error(
        "revision {0} has {1} changes, and an etcd takes {MOST_OPERATIONS} at once: copy to a file, as \
         cluster.db, and have `etcdutl snapshot restore` make an etcd of it, or say --new-revisions"
    )]
    TooMuchAtOnce(Revision, usize),
    #[error("{0}: {1}")]
    Io(String, std::io::Error),
    #[error("the store: {0}")]
    Store(#[from] StoreError),
    #[error("its file: {0}")]
    File(EtcdStatus),
    #[error("its snapshot: {0}")]
    Restored(#[from] restored::EtcdSnapshotError),
    #[error(transparent)]
    Etcd(#[from] EtcdStoreError),
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
}

/// Copies everything; with `new_revisions`, an etcd gives revisions of its own.
///
/// # Errors
/// [`StoreCopyError`]; what was there before is as it was, but for an etcd that a part was copied to.
pub(crate) async fn copy(
    from: &StorePlace,
    to: &StorePlace,
    new_revisions: bool,
) -> Result<CopiedStore, StoreCopyError> {
    let clock = Clock::real();
    let snapshot = read(from, &clock).await?;
    let image = snapshot.image();
    let kv = Kv::load(image, Options::default(), clock.clone())?;
    let keys = kv.range("", None, Some(0), None)?.count;
    let revision = match to {
        StorePlace::DataDir(folder) => {
            snapshot.restore(folder, &clock)?;
            snapshot.resource_version()
        }
        StorePlace::File { path, .. } => write_file(&kv, path)?,
        StorePlace::Etcd(options) => {
            Box::pin(write_etcd((&kv, image), options, new_revisions, &clock)).await?
        }
    };
    kv.close().await;
    Ok(CopiedStore { keys, revision })
}

/// Whether a file that is written is for an etcd.
pub(crate) fn is_for_etcd(file: &Path) -> bool {
    file.extension().is_some_and(|extension| extension == "db")
}

/// Writes a snapshot as etcd's own.
///
/// # Errors
/// The file is there already, or cannot be written.
pub(crate) fn save(snapshot: &Snapshot, file: &Path) -> Result<(), StoreCopyError> {
    let kv = Kv::load(snapshot.image(), Options::default(), Clock::real())?;
    write_file(&kv, file).map(drop)
}

async fn read(from: &StorePlace, clock: &Clock) -> Result<Snapshot, StoreCopyError> {
    let image = match from {
        StorePlace::DataDir(folder) => return read_data_dir(folder, clock).await,
        StorePlace::File { path, .. } if is_ours(path)? => return Ok(Snapshot::read(path)?),
        StorePlace::File { path, prefix } => {
            let options = EtcdOptions { prefix: prefix.clone(), ..EtcdOptions::default() };
            let root = options.root().map_err(EtcdStoreError::from)?;
            return Ok(Snapshot::of_etcd(path, &root, LeasesOf::Snapshot, (0, 0))?);
        }
        StorePlace::Etcd(options) => {
            let client = open(options, clock).await?;
            let file = client.snapshot(MAX_SNAPSHOT_BYTES).await?;
            let root = options.root().map_err(EtcdStoreError::from)?;
            restored::decode(file, &root, LeasesOf::Snapshot)?
        }
    };
    Ok(Snapshot::of_store(image, clock.now()))
}

/// What an earlier version kept elsewhere is moved in memory alone.
async fn read_data_dir(folder: &Path, clock: &Clock) -> Result<Snapshot, StoreCopyError> {
    let store = data_dir::store(folder);
    if !store.is_dir() {
        return Err(StoreCopyError::NoDataDir(folder.display().to_string()));
    }
    let kept = Kv::open(Options { data_dir: Some(store), ..Options::default() }, clock.clone())?;
    let image = kept.image();
    kept.close().await;
    let kv = Kv::load(&image?, Options::default(), clock.clone())?;
    earlier_keys::move_all(&kv, false).await?;
    Ok(Snapshot::of_store(kv.image()?, clock.now()))
}

fn is_ours(file: &Path) -> Result<bool, StoreCopyError> {
    use std::io::Read;
    let failed = |error| StoreCopyError::Io(file.display().to_string(), error);
    let mut head = Vec::new();
    let opened = std::fs::File::open(file).map_err(failed)?;
    opened.take(MAGIC.len() as u64).read_to_end(&mut head).map_err(failed)?;
    Ok(head == MAGIC)
}

async fn open(options: &EtcdOptions, clock: &Clock) -> Result<EtcdClient, EtcdStoreError> {
    Ok(EtcdClient::open(config_of(options)?, clock.clone()).await?)
}

fn write_file(kv: &Kv, file: &Path) -> Result<Revision, StoreCopyError> {
    let shown = || file.display().to_string();
    if file.exists() {
        return Err(StoreCopyError::InUse(shown()));
    }
    let (values, source) = (Arc::new(ShownValues::of_store(kv)?), kv.clone());
    let server = EtcdServer::new(Arc::new(move || Ok(source.clone())), values, ServerOptions::default());
    write_private(file, &server.snapshot_file().map_err(StoreCopyError::File)?)
        .map_err(|error| StoreCopyError::Io(shown(), error))?;
    Ok(kv.revision())
}

async fn write_etcd(
    (kv, image): (&Kv, &StoreImage),
    options: &EtcdOptions,
    new_revisions: bool,
    clock: &Clock,
) -> Result<Revision, StoreCopyError> {
    let client = open(options, clock).await?;
    let there = client.range(ROOT, None, Some(0), None).await?.count;
    if there > 0 {
        return Err(StoreCopyError::NotEmpty(there, options.prefix.clone()));
    }
    let writer =
        EtcdWriter { values: ShownValues::of_store(kv)?, leases: leases(kv, &client).await?, client };
    if new_revisions {
        writer.write_newest(kv).await?;
    } else {
        writer.write_history(image).await?;
    }
    let revision = writer.client.revision().await?;
    writer.client.close();
    Ok(revision)
}

/// By the numbers that they have in a store, those of the etcd that end at the same time.
async fn leases(kv: &Kv, client: &EtcdClient) -> Result<HashMap<LeaseId, LeaseId>, StoreError> {
    let mut leases = HashMap::new();
    for known in kv.leases() {
        leases.insert(known.lease, client.grant_lease(known.remaining).await?);
    }
    Ok(leases)
}

/// Whether an etcd that stands at a revision can be led along these changes.
fn check(image: &StoreImage, changes: &[LoggedChange], now: Revision) -> Result<(), StoreCopyError> {
    let first = changes.first().map_or(image.revision(), |change| change.kv.mod_revision);
    if now >= first {
        return Err(StoreCopyError::TooFar(now, first));
    }
    if image.revision() - now > MOST_REVISIONS {
        return Err(StoreCopyError::TooManyRevisions(image.revision(), image.revision() - now));
    }
    match changes.chunk_by(is_at_once).find(|changes| changes.len() > MOST_OPERATIONS) {
        Some(many) => Err(StoreCopyError::TooMuchAtOnce(many[0].kv.mod_revision, many.len())),
        None => Ok(()),
    }
}

fn is_at_once(one: &LoggedChange, other: &LoggedChange) -> bool {
    one.kv.mod_revision == other.kv.mod_revision
}

struct EtcdWriter {
    client: EtcdClient,
    values: ShownValues,
    leases: HashMap<LeaseId, LeaseId>,
}

impl EtcdWriter {
    /// Each change at its revision, and the etcd stands where the store does, or one further.
    async fn write_history(&self, image: &StoreImage) -> Result<(), StoreCopyError> {
        let changes: Vec<LoggedChange> = image.changes().collect::<Result<_, _>>()?;
        let now = self.client.revision().await?;
        check(image, &changes, now)?;
        let mut position = now;
        for of_revision in changes.chunk_by(is_at_once) {
            let revision = of_revision[0].kv.mod_revision;
            if position + 1 < revision {
                self.client.fill_to(revision - 1).await?;
            }
            let copied: Vec<CopiedChange> = of_revision.iter().map(|change| self.copied(change)).collect();
            self.client.write_at(revision, &copied).await?;
            position = revision;
        }
        self.client.fill_to(image.revision()).await?;
        self.client.end_filling().await?;
        if image.compact_revision() > 0 {
            self.client.compact(image.compact_revision()).await?;
        }
        Ok(())
    }

    /// What there is, in the order in which it was written.
    async fn write_newest(&self, kv: &Kv) -> Result<(), StoreCopyError> {
        let mut kvs = kv.range("", None, None, None)?.kvs;
        kvs.sort_by_key(|kv| kv.mod_revision);
        for kv in kvs {
            let change = self.copied(&LoggedChange { kind: EventKind::Put, kv });
            self.client.write_anywhere(change).await?;
        }
        Ok(())
    }

    fn copied(&self, change: &LoggedChange) -> CopiedChange {
        let kv = &change.kv;
        let lease = kv.lease.and_then(|lease| self.leases.get(&lease).copied());
        let put = (change.kind == EventKind::Put).then(|| (self.values.shown(&kv.key, &kv.value), lease));
        CopiedChange { key: kv.key.clone(), put }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use etcd::KeyValue;

    fn put(key: &str, revision: Revision) -> LoggedChange {
        let kv = KeyValue {
            key: key.into(),
            value: "v".into(),
            create_revision: revision,
            mod_revision: revision,
            version: 1,
            lease: None,
        };
        LoggedChange { kind: EventKind::Put, kv }
    }

    #[test]
    fn an_etcd_is_led_as_far_as_is_said_and_no_farther() {
        let refusal = |changes: Vec<LoggedChange>, newest: Revision, now: Revision| {
            let image = StoreImage::of_history((newest, 0), changes.clone(), &[]);
            check(&image, &changes, now).err().map(|error| error.to_string())
        };
        assert_eq!(refusal(vec![put("a", 2)], 2, 1), None);
        let why = refusal(vec![put("a", 5)], 5, 5).unwrap();
        assert!(
            why.starts_with("the etcd stands at revision 5, and the first change to copy has 5: "),
            "{why}"
        );
        assert_eq!(refusal(vec![put("a", 2)], MOST_REVISIONS + 1, 1), None);
        let why = refusal(vec![put("a", 2)], MOST_REVISIONS + 2, 1).unwrap();
        assert!(why.starts_with("revision 1000002 is 1000001 writes away, and at most 1000000 are"), "{why}");
        let many = |count: usize| (0..count).map(|at| put(&format!("k{at}"), 3)).collect::<Vec<_>>();
        assert_eq!(refusal(many(MOST_OPERATIONS), 3, 1), None);
        let why = refusal(many(MOST_OPERATIONS + 1), 3, 1).unwrap();
        assert!(why.starts_with("revision 3 has 128 changes, and an etcd takes 127 at once: "), "{why}");
    }
}
