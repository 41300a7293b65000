//! Several reads and writes as one step (etcd's `mvcc.TxnWrite`): whoever asks hands in what is to be done,
//! the writer does it between two other writes. All that is written has one revision, or none of it is.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use bytes::Bytes;

use super::staged::Staged;
use super::state::Shared;
use super::{EventKind, KeyEvent, KeySpan, KeyValue, LeaseId, Range, Revision, StoreError};

/// The store as a transaction sees it: all that was written before it, and what itself has written.
pub struct Transaction<'a> {
    shared: &'a Shared,
    staged: &'a Staged,
    events: Vec<KeyEvent>,
    /// Where in `events` a key is.
    written: HashMap<Arc<str>, usize>,
}

impl<'a> Transaction<'a> {
    pub(super) fn new(shared: &'a Shared, staged: &'a Staged) -> Transaction<'a> {
        Transaction { shared, staged, events: Vec::new(), written: HashMap::new() }
    }

    /// What it has written.
    pub(super) fn into_events(self) -> Vec<KeyEvent> {
        self.events
    }

    /// The revision that all is at now: the one of its writes, once there is one.
    pub fn revision(&self) -> Revision {
        let before = self.staged.next_revision() - 1;
        if self.events.is_empty() { before } else { before + 1 }
    }

    /// The oldest revision that can be read; 0 before the first compaction.
    pub fn compact_revision(&self) -> Revision {
        self.shared.read().compact_revision
    }

    /// The lease that is called so.
    pub fn lease_named(&self, name: u64) -> Option<LeaseId> {
        self.shared.read().leases.named(name)
    }

    /// What a lease is called: a number that follows from its own, unless it was given a name.
    pub fn lease_name(&self, lease: LeaseId) -> u64 {
        self.shared.read().leases.name(lease)
    }

    /// Whether there is such a lease.
    pub fn has_lease(&self, lease: LeaseId) -> bool {
        self.shared.read().leases.contains(lease)
    }

    /// A key as it is.
    ///
    /// # Errors
    /// [`StoreError::Io`], [`StoreError::Closed`].
    pub fn get(&self, key: &str) -> Result<Option<KeyValue>, StoreError> {
        match self.written(key) {
            Some(event) => Ok((event.kind == EventKind::Put).then(|| event.kv.clone())),
            None => Ok(self.shared.get(key, None)?.0),
        }
    }

    fn written(&self, key: &str) -> Option<&KeyEvent> {
        let own = self.written.get(key).map(|at| &self.events[*at]);
        own.or_else(|| self.staged.newest(key))
    }

    /// Keys at a revision (None: as they are).
    ///
    /// # Errors
    /// [`StoreError::Compacted`], [`StoreError::FutureRevision`], [`StoreError::Io`], [`StoreError::Closed`].
    pub fn range(&self, span: &KeySpan<'_>, limit: usize, at: Option<Revision>) -> Result<Range, StoreError> {
        let revision = self.revision();
        if let Some(requested) = at.filter(|at| *at > revision) {
            return Err(StoreError::FutureRevision { requested, current: revision });
        }
        let unpublished = self.unpublished(span, at.unwrap_or(revision));
        if unpublished.is_empty() {
            // What is not published yet is not about these keys.
            let published = self.shared.read().revision;
            let found = self.shared.range(span, None, limit, at.filter(|at| *at <= published))?;
            return Ok(Range { revision, ..found });
        }
        let published = self.shared.range(span, None, usize::MAX, None)?;
        let mut keys: BTreeMap<Arc<str>, KeyValue> =
            published.kvs.into_iter().map(|kv| (kv.key.clone(), kv)).collect();
        for event in unpublished {
            match event.kind {
                EventKind::Put => keys.insert(event.kv.key.clone(), event.kv.clone()),
                EventKind::Delete => keys.remove(&event.kv.key),
            };
        }
        let count = keys.len();
        let kvs: Vec<KeyValue> = keys.into_values().take(limit).collect();
        Ok(Range { more: count > kvs.len(), kvs, count, revision })
    }

    /// The changes of keys up to a revision that no reader has been shown, oldest first; none if the revision
    /// is one that readers know.
    fn unpublished(&self, span: &KeySpan<'_>, upto: Revision) -> Vec<&KeyEvent> {
        let all = self.staged.events.iter().chain(&self.events);
        let published = self.shared.read().revision;
        if upto <= published {
            return Vec::new();
        }
        all.filter(|event| event.revision() <= upto && span.contains(&event.kv.key)).collect()
    }

    /// Sets a key; what it replaces comes back.
    ///
    /// # Errors
    /// [`StoreError::LeaseNotFound`], [`StoreError::KeyWrittenTwice`], [`StoreError::Io`],
    /// [`StoreError::Closed`].
    pub fn put(
        &mut self,
        key: &str,
        value: Bytes,
        lease: Option<LeaseId>,
    ) -> Result<Option<KeyValue>, StoreError> {
        if let Some(lease) = lease.filter(|lease| !self.has_lease(*lease)) {
            return Err(StoreError::LeaseNotFound(lease));
        }
        let previous = self.get(key)?;
        self.write(key, Some((value, lease)), previous.clone())?;
        Ok(previous)
    }

    /// Deletes a key; what was there comes back. A key that does not exist stays so.
    ///
    /// # Errors
    /// [`StoreError::KeyWrittenTwice`], [`StoreError::Io`], [`StoreError::Closed`].
    pub fn delete(&mut self, key: &str) -> Result<Option<KeyValue>, StoreError> {
        let previous = self.get(key)?;
        if previous.is_some() {
            self.write(key, None, previous.clone())?;
        }
        Ok(previous)
    }

    fn write(
        &mut self,
        key: &str,
        put: Option<(Bytes, Option<LeaseId>)>,
        previous: Option<KeyValue>,
    ) -> Result<(), StoreError> {
        let event = self.staged.event(key.into(), put, previous);
        if self.written.insert(event.kv.key.clone(), self.events.len()).is_some() {
            return Err(StoreError::KeyWrittenTwice(key.to_owned()));
        }
        self.events.push(event);
        Ok(())
    }
}
