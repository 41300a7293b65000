//! What readers see of the store: index, recent changes, leases, watchers, all as of one revision.
//!
//! The writer changes it in one step per batch, after the batch is durable; so readers wait at most for that
//! step, never for a disk.

use std::sync::{Arc, Weak};

use sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};
use tokio::sync::Notify;

use super::disk_times::DiskTimes;
use super::index::Index;
use super::lease::Leases;
use super::log::Log;
use super::past::SharedPast;
use super::promise::Promise;
use super::recent::Recent;
use super::record::{self, LogRecord};
use super::watchers::Watchers;
use super::{EventKind, KeyEvent, KeySpan, KeyValue, Range, Revision, StoreError};

/// Of how many changes one reading of old parts of the log consists at most; of the recent ones likewise.
/// Those of one revision stay together, however many they are.
const BATCH_EVENTS: usize = 1024;
/// How many bytes one reading of old parts of the log is about at most: memory that nobody else holds.
const BATCH_BYTES: usize = 4 << 20;

/// The state and its lock. The lock is held for lookups and for publishing, never while the log is read or
/// written.
#[derive(Debug)]
pub(super) struct Shared {
    state: RwLock<State>,
    /// The next expiry may have moved.
    pub leases_changed: Notify,
    /// A write has failed.
    pub write_failed: Notify,
    pub disk_times: DiskTimes,
}

#[derive(Debug)]
pub(super) struct State {
    pub revision: Revision,
    pub compact_revision: Revision,
    pub index: Index,
    pub recent: Recent,
    pub leases: Leases,
    pub watchers: Watchers,
    /// None once the store is closed.
    pub log: Option<Arc<dyn Log>>,
    /// Why nothing can be written: after a failed write nobody knows what is on disk.
    pub failed: Option<StoreError>,
    /// The log as forks read it; nobody, when there is none. While there is, nothing is taken out of the log.
    pub past: Weak<SharedPast>,
}

/// Where a value is to be had: here, or in the log under this revision.
enum FoundValue {
    Here(KeyValue),
    Logged(Arc<str>, Revision),
}

/// Where an event is to be had: here, or in the log under this revision.
enum FoundEvent {
    Here(KeyEvent),
    Logged(Arc<str>, Revision),
}

impl FoundEvent {
    fn revision(&self) -> Revision {
        match self {
            FoundEvent::Here(event) => event.revision(),
            FoundEvent::Logged(_, revision) => *revision,
        }
    }
}

/// The beginning of what a watch has not delivered yet.
pub(super) struct Unread {
    pub events: Vec<KeyEvent>,
    /// All up to here has been read.
    pub upto: Revision,
    /// Whether there is nothing more to read for now.
    pub all: bool,
}

impl Shared {
    pub(super) fn new(state: State) -> Shared {
        Shared {
            state: RwLock::new(state),
            leases_changed: Notify::new(),
            write_failed: Notify::new(),
            disk_times: DiskTimes::default(),
        }
    }

    pub(super) fn into_state(self) -> State {
        self.state.into_inner()
    }

    pub(super) fn read(&self) -> RwLockReadGuard<'_, State> {
        self.state.read()
    }

    pub(super) fn write(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write()
    }

    /// No more reads, writes and leases; every watch learns of it.
    pub(super) fn close(&self) {
        let mut state = self.write();
        state.leases = Leases::default();
        let log = state.log.take();
        if let Some(past) = state.past.upgrade() {
            past.outlive();
        }
        let watchers = state.watchers.all();
        drop(state);
        watchers.iter().for_each(|watcher| watcher.wake());
        drop(log);
    }

    pub(super) fn get(
        &self,
        key: &str,
        at: Option<Revision>,
    ) -> Result<(Option<KeyValue>, Revision), StoreError> {
        let (mut found, revision) = self.consistently(at, |state, revision| {
            let found = state.index.find(key, revision);
            found.map(|(key, found)| state.locate(key, found)).into_iter().collect()
        })?;
        Ok((found.pop(), revision))
    }

    pub(super) fn range(
        &self,
        span: &KeySpan<'_>,
        from: Option<&str>,
        limit: usize,
        at: Option<Revision>,
    ) -> Result<Range, StoreError> {
        let mut count = 0;
        let (kvs, revision) = self.consistently(at, |state, revision| {
            let mut keys = state.index.range(span, from, revision);
            let found = keys.by_ref().take(limit).map(|(key, found)| state.locate(key, found));
            let found: Vec<FoundValue> = found.collect();
            count = found.len() + keys.count();
            found
        })?;
        Ok(Range { more: count > kvs.len(), kvs, count, revision })
    }

    /// Looks keys up at one revision, and reads their values. When compaction takes values away between the
    /// two, then either `at` is compacted, or all is looked up again at a newer revision.
    fn consistently(
        &self,
        at: Option<Revision>,
        mut look_up: impl FnMut(&State, Revision) -> Vec<FoundValue>,
    ) -> Result<(Vec<KeyValue>, Revision), StoreError> {
        loop {
            let state = self.read();
            let (log, compact_revision) = (state.log()?, state.compact_revision);
            let revision = state.readable(at)?;
            let found = look_up(&state, revision);
            drop(state);
            if let Some(kvs) = read_all(&*log, found)? {
                return Ok((kvs, revision));
            }
            self.read().expect_compaction_since(compact_revision)?;
        }
    }

    /// Reads what happened to the keys of a span from a revision on; `oldest` is that with which one may
    /// begin, by the compacted one.
    pub(super) fn unread(
        &self,
        span: &KeySpan<'_>,
        from: Revision,
        oldest: impl Fn(Revision) -> Revision,
    ) -> Result<Unread, StoreError> {
        loop {
            let state = self.read();
            let compact_revision = state.compact_revision;
            if from < oldest(compact_revision) {
                return Err(state.compacted());
            }
            if let Some(unread) = self.try_unread(state, span, from)? {
                return Ok(unread.without_compacted(compact_revision));
            }
            self.read().expect_compaction_since(compact_revision)?;
        }
    }

    /// None: something of it was compacted meanwhile.
    fn try_unread(
        &self,
        state: RwLockReadGuard<'_, State>,
        span: &KeySpan<'_>,
        from: Revision,
    ) -> Result<Option<Unread>, StoreError> {
        let log = state.log()?;
        if let Some(events) = state.recent.since(from) {
            let mut of_span = events.filter(|event| span.contains(&event.kv.key)).peekable();
            let mut events: Vec<KeyEvent> = of_span.by_ref().take(BATCH_EVENTS).cloned().collect();
            let all = events.len() < BATCH_EVENTS;
            let last = events.last().map(KeyEvent::revision);
            while let Some(event) = of_span.next_if(|event| Some(event.revision()) == last) {
                events.push(event.clone());
            }
            return Ok(Some(Unread::new(events, all, state.revision)));
        }
        let changes = state.index.changes(span, from, BATCH_EVENTS);
        let changes = changes.into_iter().map(|(revision, key)| state.locate_event(key, revision)).collect();
        let known = (state.revision, state.compact_revision);
        drop(state);
        read_events(&*log, changes, known)
    }
}

impl State {
    /// The log, as long as the store is open.
    pub(super) fn log(&self) -> Result<Arc<dyn Log>, StoreError> {
        self.log.clone().ok_or(StoreError::Closed)
    }

    /// What is to be found after whatever happens, the number of the newest lease aside.
    pub(super) fn promise(&self, newest_lease: u64) -> Promise {
        Promise {
            revision: self.revision,
            compact_revision: self.compact_revision,
            changes: self.index.tally(),
            newest_lease,
            leases: [self.leases.tally(); 2],
        }
    }

    /// The next change comes after `revision`.
    pub(super) fn begin_after(&mut self, revision: Revision) {
        self.revision = self.revision.max(revision);
        self.recent.begin_after(self.revision);
    }

    /// The revision to read at, if one can read at it.
    pub(super) fn readable(&self, at: Option<Revision>) -> Result<Revision, StoreError> {
        match at {
            None => Ok(self.revision),
            Some(requested) if requested > self.revision => {
                Err(StoreError::FutureRevision { requested, current: self.revision })
            }
            Some(at) if at < self.compact_revision => Err(self.compacted()),
            Some(at) => Ok(at),
        }
    }

    pub(super) fn compacted(&self) -> StoreError {
        StoreError::Compacted { compact_revision: self.compact_revision, current: self.revision }
    }

    fn locate(&self, key: &Arc<str>, revision: Revision) -> FoundValue {
        match self.recent.get(key, revision) {
            Some(kv) => FoundValue::Here(kv.clone()),
            None => FoundValue::Logged(key.clone(), revision),
        }
    }

    fn locate_event(&self, key: Arc<str>, revision: Revision) -> FoundEvent {
        match self.recent.event(&key, revision) {
            Some(event) => FoundEvent::Here(event.clone()),
            None => FoundEvent::Logged(key, revision),
        }
    }

    /// A record that the index knows can be gone for one reason only.
    fn expect_compaction_since(&self, compact_revision: Revision) -> Result<(), StoreError> {
        if self.compact_revision == compact_revision {
            return Err(StoreError::Corrupt("a record is missing from the log".into()));
        }
        Ok(())
    }
}

impl Unread {
    fn new(events: Vec<KeyEvent>, all: bool, revision: Revision) -> Unread {
        let upto = if all { revision } else { events.last().map_or(0, KeyEvent::revision) };
        Unread { events, upto, all }
    }

    /// What was there before a change at the compacted revision is not told, though memory may have it.
    fn without_compacted(mut self, compact_revision: Revision) -> Unread {
        let compacted = self.events.iter_mut().take_while(|event| event.revision() <= compact_revision);
        compacted.for_each(|event| event.previous = None);
        self
    }
}

/// The values in key order; None if one is gone. Read in revision order, in which the log has them side by
/// side.
fn read_all(log: &dyn Log, found: Vec<FoundValue>) -> Result<Option<Vec<KeyValue>>, StoreError> {
    let mut kvs: Vec<Option<KeyValue>> = Vec::with_capacity(found.len());
    let mut logged = Vec::new();
    for (at, found) in found.into_iter().enumerate() {
        match found {
            FoundValue::Here(kv) => kvs.push(Some(kv)),
            FoundValue::Logged(key, revision) => {
                kvs.push(None);
                logged.push((revision, at, key));
            }
        }
    }
    logged.sort_unstable_by_key(|(revision, ..)| *revision);
    for (revision, at, key) in logged {
        let Some(record) = read_record(log, revision, &key)? else { return Ok(None) };
        kvs[at] = Some(record.into_kv(key, revision));
    }
    Ok(kvs.into_iter().collect())
}

/// The events of changes; None if one is gone.
fn read_events(
    log: &dyn Log,
    changes: Vec<FoundEvent>,
    (current, compact_revision): (Revision, Revision),
) -> Result<Option<Unread>, StoreError> {
    let mut all = changes.len() < BATCH_EVENTS;
    let (mut events, mut bytes) = (Vec::with_capacity(changes.len()), 0);
    for change in changes {
        let last = events.last().map(KeyEvent::revision);
        if bytes > BATCH_BYTES && last != Some(change.revision()) {
            all = false;
            break;
        }
        let event = match change {
            FoundEvent::Here(event) => Some(event),
            FoundEvent::Logged(key, revision) => read_event(log, key, revision, compact_revision)?,
        };
        let Some(event) = event else { return Ok(None) };
        bytes += event.kv.value.len() + event.previous.as_ref().map_or(0, |previous| previous.value.len());
        events.push(event);
    }
    Ok(Some(Unread::new(events, all, current)))
}

fn read_event(
    log: &dyn Log,
    key: Arc<str>,
    revision: Revision,
    compact_revision: Revision,
) -> Result<Option<KeyEvent>, StoreError> {
    let Some(record) = read_record(log, revision, &key)? else { return Ok(None) };
    let kind = record.kind;
    let before = if revision > compact_revision { record.previous } else { 0 };
    let previous = if before == 0 { None } else { read_record(log, before, &key)? };
    if previous.is_none() && before != 0 {
        return Ok(None);
    }
    let previous = previous.map(|record| record.into_kv(key.clone(), before));
    Ok(Some(KeyEvent { kind, kv: record.into_kv(key, revision), previous }))
}

fn read_record(log: &dyn Log, revision: Revision, key: &str) -> Result<Option<LogRecord>, StoreError> {
    match log.read(revision)? {
        Some(bytes) => LogRecord::of_key(revision, bytes, key),
        None => Ok(None),
    }
}

/// What the records of a log, replayed oldest first, amount to. `visit` sees each with its checksum.
pub(super) fn replay(
    log: &dyn Log,
    state: &mut State,
    visit: &mut dyn FnMut(Revision, u32),
) -> Result<(), StoreError> {
    log.replay(&mut |revision, bytes| {
        let members = record::members(revision, &bytes)?;
        state.index.record_group(revision, members.len());
        for member in members {
            let checksum = record::checksum(&member);
            replay_change(state, revision, checksum, &LogRecord::decode(revision, member)?)?;
            visit(revision, checksum);
        }
        // The newest of all may have been deletions that a compaction has taken away.
        state.revision = state.revision.max(revision);
        Ok(())
    })
}

fn replay_change(
    state: &mut State,
    revision: Revision,
    checksum: u32,
    record: &LogRecord,
) -> Result<(), StoreError> {
    let Some(key) = record.key() else {
        return Err(StoreError::Corrupt(format!("the key of revision {revision} cannot be read")));
    };
    let key: Arc<str> = key.into();
    state.leases.attach(&key, record.lease);
    state.index.record(&key, revision, checksum, record.kind == EventKind::Delete);
    Ok(())
}
