//! A batch of writes on its way: checked against the state that those before them leave, and logged.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;

use super::log::Log;
use super::record;
use super::state::Shared;
use super::{EventKind, Expect, KeyEvent, KeyValue, LeaseId, Op, Revision, StoreError};

/// So many are looked through; of more there is a map.
const FEW_EVENTS: usize = 8;

/// Writes that are in the log, but that nobody has been shown yet.
pub(super) struct Staged {
    /// None in memory, where only what memory has no room for is logged.
    pub log: Option<Arc<dyn Log>>,
    next: Revision,
    pub events: Vec<KeyEvent>,
    /// Of the record of each event; 0 in memory.
    pub checksums: Vec<u32>,
    /// The newest of them for each key; empty while they are few.
    newest: HashMap<Arc<str>, usize>,
}

/// One compare-and-write.
#[derive(Debug)]
pub(super) struct Write {
    pub key: Arc<str>,
    pub expect: Expect,
    pub op: Op,
}

pub(super) enum WriteVerdict {
    Write(KeyEvent),
    /// The compare failed: this is there.
    Refuse(Option<KeyValue>),
}

impl Staged {
    pub(super) fn new(log: Option<Arc<dyn Log>>, next: Revision) -> Staged {
        Staged { log, next, events: Vec::new(), checksums: Vec::new(), newest: HashMap::new() }
    }

    /// The revision of the next write.
    pub(super) fn next_revision(&self) -> Revision {
        self.next
    }

    /// Compares, and says what is to be written.
    pub(super) fn check(&self, shared: &Shared, write: Write) -> Result<WriteVerdict, StoreError> {
        let current = self.current(shared, &write.key)?;
        let found = current.as_ref().map_or(0, |kv| kv.mod_revision);
        let matches = match write.expect {
            Expect::ModRevision(expected) => expected == found,
            Expect::Any => true,
        };
        if !matches || (current.is_none() && write.op == Op::Delete) {
            return Ok(WriteVerdict::Refuse(current));
        }
        if let Op::Put { lease: Some(lease), .. } = write.op
            && !shared.read().leases.contains(lease)
        {
            return Err(StoreError::LeaseNotFound(lease));
        }
        let put = match write.op {
            Op::Put { value, lease } => Some((value, lease)),
            Op::Delete => None,
        };
        Ok(WriteVerdict::Write(self.event(write.key, put, current)))
    }

    fn current(&self, shared: &Shared, key: &str) -> Result<Option<KeyValue>, StoreError> {
        match self.newest(key) {
            Some(event) => Ok((event.kind == EventKind::Put).then(|| event.kv.clone())),
            None => Ok(shared.get(key, None)?.0),
        }
    }

    pub(super) fn newest(&self, key: &str) -> Option<&KeyEvent> {
        if self.events.len() > FEW_EVENTS {
            self.newest.get(key).map(|at| &self.events[*at])
        } else {
            self.events.iter().rev().find(|event| *event.kv.key == *key)
        }
    }

    /// What the next write does to a key: puts a value, or deletes it.
    pub(super) fn event(
        &self,
        key: Arc<str>,
        put: Option<(Bytes, Option<LeaseId>)>,
        previous: Option<KeyValue>,
    ) -> KeyEvent {
        // The key that is there already, so that it is in memory once.
        let key = previous.as_ref().map_or(key, |kv| kv.key.clone());
        let mod_revision = self.next;
        let (kind, kv) = match put {
            Some((value, lease)) => {
                let create_revision = previous.as_ref().map_or(mod_revision, |kv| kv.create_revision);
                let version = previous.as_ref().map_or(1, |kv| kv.version + 1);
                (EventKind::Put, KeyValue { key, value, create_revision, mod_revision, version, lease })
            }
            None => {
                let value = Bytes::new();
                let create_revision = 0;
                let version = 0;
                let lease = None;
                (EventKind::Delete, KeyValue { key, value, create_revision, mod_revision, version, lease })
            }
        };
        KeyEvent { kind, kv, previous }
    }

    /// Writes to the log. A failure leaves it torn.
    pub(super) fn append(&mut self, mut event: KeyEvent) -> Result<Revision, StoreError> {
        let revision = event.revision();
        if let Some(log) = &self.log {
            let record = log.append(revision, record::encode(&event))?;
            self.checksums.push(record::checksum(&record));
            event.kv.value = record::value_of(&record, event.kv.key.len());
        }
        if self.log.is_none() {
            self.checksums.push(0);
        }
        self.events.push(event);
        self.finish(1);
        Ok(revision)
    }

    /// Writes several changes of one revision to the log, as one record.
    pub(super) fn append_group(&mut self, mut events: Vec<KeyEvent>) -> Result<(), StoreError> {
        let count = events.len();
        if let Some(log) = &self.log {
            let record = log.append(self.next, record::encode_all(events.iter()))?;
            for (event, member) in events.iter_mut().zip(record::members(self.next, &record)?) {
                self.checksums.push(record::checksum(&member));
                event.kv.value = record::value_of(&member, event.kv.key.len());
            }
        } else {
            self.checksums.extend(events.iter().map(|_| 0));
        }
        self.events.append(&mut events);
        self.finish(count);
        Ok(())
    }

    /// The last `count` events are those of the newest revision.
    fn finish(&mut self, count: usize) {
        self.next += 1;
        if self.events.len() > FEW_EVENTS {
            let known = if self.newest.is_empty() { 0 } else { self.events.len() - count };
            let events = self.events.iter().enumerate().skip(known);
            self.newest.extend(events.map(|(at, event)| (event.kv.key.clone(), at)));
        }
    }
}
