//! Images: all that is in a store at one revision, as bytes (`etcdctl snapshot save`).
//!
//! An image knows the history since the last compaction too: a store made of it can be watched, read and
//! rewound as the one that it was taken of. Whoever keeps it in a file sees to it that it comes back whole.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf, BufMut, Bytes};

use super::facts::{COMPACT_REVISION, NEWEST_LEASE, lease_fact, lease_name_fact};
use super::log::Log;
use super::opening::{self, Opened};
use super::record::{self, LogRecord};
use super::state::Shared;
use super::{
    EventKind, KeyEvent, KeySpan, KeyValue, LeaseId, LoggedChange, Options, Revision, StoreError, found, past,
};
use clock::Clock;

/// Bytes that are no image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the image of a store cannot be read")]
pub struct DamagedImage;

/// A lease in an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ImageLease {
    /// What it is called.
    pub name: u64,
    /// What it was granted for.
    pub ttl: Duration,
    /// How long it has left.
    pub remaining: Duration,
}

/// What is in a store. Cloning shares it.
#[derive(Debug, Clone)]
pub struct StoreImage {
    revision: Revision,
    facts: Arc<BTreeMap<String, u64>>,
    /// How long each lease has left.
    remaining: Arc<Vec<(LeaseId, Duration)>>,
    records: Arc<BTreeMap<Revision, Bytes>>,
}

impl StoreImage {
    /// Of a state that nobody changes.
    pub(super) fn of(shared: &Shared, now: Duration) -> Result<StoreImage, StoreError> {
        let mut facts = BTreeMap::new();
        let (revision, changes, remaining) = {
            let state = shared.read();
            facts.insert(COMPACT_REVISION.to_owned(), state.compact_revision);
            facts.insert(NEWEST_LEASE.to_owned(), state.leases.newest());
            let granted = state.leases.all();
            facts.extend(granted.map(|(lease, ttl)| (lease_fact(lease), milliseconds(ttl))));
            facts.extend(state.leases.names().map(|(lease, name)| (lease_name_fact(lease), name)));
            let remaining = state.leases.remaining(now).collect();
            (state.revision, state.index.changes(&KeySpan::ALL, 0, usize::MAX), remaining)
        };
        let mut records = BTreeMap::new();
        for changes in changes.chunk_by(|one, other| one.0 == other.0) {
            let revision = changes[0].0;
            records.insert(revision, shared.record(revision, changes)?);
        }
        Ok(StoreImage {
            revision,
            facts: facts.into(),
            remaining: Arc::new(remaining),
            records: records.into(),
        })
    }

    /// Of the changes of another store, oldest first: all since a compaction, and before it those that it
    /// kept. The first of `leases` is lease 1, the next is lease 2, and so on.
    pub fn of_history(
        (revision, compact_revision): (Revision, Revision),
        changes: impl IntoIterator<Item = LoggedChange>,
        leases: &[ImageLease],
    ) -> StoreImage {
        let mut facts = BTreeMap::new();
        facts.insert(COMPACT_REVISION.to_owned(), compact_revision);
        facts.insert(NEWEST_LEASE.to_owned(), leases.len() as u64);
        let mut remaining = Vec::with_capacity(leases.len());
        for (lease, about) in (1..).map(LeaseId).zip(leases) {
            facts.insert(lease_fact(lease), milliseconds(about.ttl));
            facts.insert(lease_name_fact(lease), about.name);
            remaining.push((lease, about.remaining));
        }
        let records = past_of(changes);
        StoreImage { revision, facts: facts.into(), remaining: remaining.into(), records: records.into() }
    }

    /// The revision that it was taken at.
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// The revision that it is compacted at; 0 if it is not.
    pub fn compact_revision(&self) -> Revision {
        self.facts.get(COMPACT_REVISION).copied().unwrap_or(0)
    }

    /// All changes that no compaction has taken away, oldest first.
    pub fn changes(&self) -> impl Iterator<Item = Result<LoggedChange, StoreError>> + '_ {
        self.records.iter().flat_map(|(revision, bytes)| match record::members(*revision, bytes) {
            Ok(members) => members.into_iter().map(|member| change(*revision, member)).collect(),
            Err(error) => vec![Err(error)],
        })
    }

    /// As bytes.
    pub fn encode(&self, bytes: &mut Vec<u8>) {
        bytes.put_u64(self.revision);
        bytes.put_u64(self.facts.len() as u64);
        for (name, value) in self.facts.iter() {
            put_piece(bytes, name.as_bytes());
            bytes.put_u64(*value);
        }
        bytes.put_u64(self.remaining.len() as u64);
        for (lease, left) in self.remaining.iter() {
            bytes.put_u64(lease.0);
            bytes.put_u64(milliseconds(*left));
        }
        bytes.put_u64(self.records.len() as u64);
        for (revision, record) in self.records.iter() {
            bytes.put_u64(*revision);
            put_piece(bytes, record);
        }
    }

    /// Of bytes, to their end. Records stay slices of them.
    ///
    /// # Errors
    /// What is no image.
    pub fn decode(mut bytes: Bytes) -> Result<StoreImage, DamagedImage> {
        let revision = take_number(&mut bytes)?;
        let mut facts = BTreeMap::new();
        let mut remaining = Vec::new();
        let mut records = BTreeMap::new();
        for _ in 0..take_number(&mut bytes)? {
            let name = String::from_utf8(take_piece(&mut bytes)?.to_vec()).map_err(|_| DamagedImage)?;
            facts.insert(name, take_number(&mut bytes)?);
        }
        for _ in 0..take_number(&mut bytes)? {
            let lease = LeaseId(take_number(&mut bytes)?);
            remaining.push((lease, Duration::from_millis(take_number(&mut bytes)?)));
        }
        for _ in 0..take_number(&mut bytes)? {
            let revision = take_number(&mut bytes)?;
            records.insert(revision, take_piece(&mut bytes)?);
        }
        let newest = records.last_key_value().map_or(0, |(revision, _)| *revision);
        if bytes.has_remaining() || newest > revision {
            return Err(DamagedImage);
        }
        Ok(StoreImage { revision, facts: facts.into(), remaining: remaining.into(), records: records.into() })
    }

    /// Writes it into an empty data dir, on the device when this returns. What was in one is not overwritten:
    /// such a folder is refused.
    ///
    /// # Errors
    /// [`StoreError::Io`], [`StoreError::Locked`], [`StoreError::Corrupt`].
    pub fn restore(&self, data_dir: &Path, clock: &Clock) -> Result<(), StoreError> {
        opening::fill(data_dir, clock, |log| {
            for (revision, record) in self.records.iter() {
                log.append(*revision, record.to_vec())?;
            }
            for (name, value) in self.facts.iter().filter(|(_, value)| **value > 0) {
                log.set_fact(name, Some(*value))?;
            }
            Ok(())
        })
    }

    /// A state in memory that begins with it.
    pub(super) fn open(&self, options: &Options, now: Duration) -> Result<Opened, StoreError> {
        let log = past::on_top_of(Arc::new(self.clone()), self.revision);
        let (mut state, newest_lease) = found::read_state(log, options.recent_bytes, now)?;
        // The newest changes of all may have been deletions that a compaction took away.
        state.begin_after(self.revision);
        for (lease, left) in self.remaining.iter() {
            state.leases.set_remaining(*lease, *left, now);
        }
        Ok(Opened { state, sled: None, newest_lease, home: None, recovery: None })
    }
}

/// An image is a log that is as it is.
impl Log for StoreImage {
    fn append(&self, revision: Revision, _record: Vec<u8>) -> Result<Bytes, StoreError> {
        Err(StoreError::Io(format!("revision {revision} cannot be written into an image")))
    }

    fn read(&self, revision: Revision) -> Result<Option<Bytes>, StoreError> {
        Ok(self.records.get(&revision).cloned())
    }

    fn remove(&self, _revision: Revision) -> Result<(), StoreError> {
        Ok(())
    }

    fn facts(&self, prefix: &str) -> Result<Vec<(String, u64)>, StoreError> {
        let found = self.facts.iter().filter(|(name, _)| name.starts_with(prefix));
        Ok(found.map(|(name, value)| (name.clone(), *value)).collect())
    }

    fn replay(
        &self,
        visit: &mut dyn FnMut(Revision, Bytes) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        self.records.iter().try_for_each(|(revision, record)| visit(*revision, record.clone()))
    }
}

impl Shared {
    /// Changes that the index knows, in the order of their keys, as they stand in a log.
    fn record(&self, revision: Revision, changes: &[(Revision, Arc<str>)]) -> Result<Bytes, StoreError> {
        let is_known = |key: &str| changes.binary_search_by(|(_, known)| (**known).cmp(key)).is_ok();
        let state = self.read();
        if let Some(events) = state.recent.events(revision) {
            let known: Vec<&KeyEvent> = events.iter().filter(|event| is_known(&event.kv.key)).collect();
            return Ok(record::encode_all(known.into_iter()).into());
        }
        let log = state.log()?;
        drop(state);
        let missing =
            || StoreError::Corrupt(format!("the record of revision {revision} is missing from the log"));
        let bytes = log.read(revision)?.ok_or_else(missing)?;
        record::retain(revision, &bytes, is_known)?.ok_or_else(missing)
    }
}

/// The records of changes, each with what it came after.
fn past_of(changes: impl IntoIterator<Item = LoggedChange>) -> BTreeMap<Revision, Bytes> {
    let mut living: BTreeMap<Arc<str>, KeyValue> = BTreeMap::new();
    let mut events: BTreeMap<Revision, Vec<KeyEvent>> = BTreeMap::new();
    for LoggedChange { kind, kv } in changes {
        let previous = match kind {
            // Records have the revision alone of what was there before.
            EventKind::Put => living.insert(kv.key.clone(), KeyValue { value: Bytes::new(), ..kv.clone() }),
            EventKind::Delete => living.remove(&kv.key),
        };
        let of_revision = events.entry(kv.mod_revision).or_default();
        of_revision.retain(|event| event.kv.key != kv.key);
        of_revision.push(KeyEvent { kind, kv, previous });
    }
    let records = events.into_iter().map(|(revision, mut events)| {
        events.sort_by(|one, other| one.kv.key.cmp(&other.kv.key));
        (revision, record::encode_all(events.iter()).into())
    });
    records.collect()
}

fn change(revision: Revision, bytes: Bytes) -> Result<LoggedChange, StoreError> {
    let record = LogRecord::decode(revision, bytes)?;
    let unreadable = || StoreError::Corrupt(format!("the key of revision {revision} cannot be read"));
    let key: Arc<str> = record.key().ok_or_else(unreadable)?.into();
    Ok(LoggedChange { kind: record.kind, kv: record.into_kv(key, revision) })
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

fn put_piece(bytes: &mut Vec<u8>, piece: &[u8]) {
    bytes.put_u64(piece.len() as u64);
    bytes.put_slice(piece);
}

fn take_number(bytes: &mut Bytes) -> Result<u64, DamagedImage> {
    bytes.try_get_u64().map_err(|_| DamagedImage)
}

fn take_piece(bytes: &mut Bytes) -> Result<Bytes, DamagedImage> {
    let length = usize::try_from(take_number(bytes)?).map_err(|_| DamagedImage)?;
    if length > bytes.len() {
        return Err(DamagedImage);
    }
    Ok(bytes.split_to(length))
}
