//! What the store needs of the place where its log is kept (etcd's `backend`).
//!
//! With a data directory it is sled (in [`super::sled_log`]), without one plain files for what memory
//! should not hold (in [`super::segments`]); tests have one whose disk does as it is told.

use std::fmt::Debug;

use bytes::Bytes;

use super::{Revision, StoreError};

/// A log of records by revision, and a few named facts beside it. One writer, any number of readers.
///
/// After a crash it holds a prefix of what was written, in the order of writing, and at least what was
/// flushed. One that ends with its process keeps no facts, and has nothing to flush or to replay.
pub(super) trait Log: Debug + Send + Sync {
    /// Writes a record under a revision that has none. Returns the same bytes, in memory shared with the log.
    fn append(&self, revision: Revision, record: Vec<u8>) -> Result<Bytes, StoreError>;

    /// The record of a revision, if there is one.
    fn read(&self, revision: Revision) -> Result<Option<Bytes>, StoreError>;

    /// Writes the record of a revision anew, if this log is one that is kept.
    fn replace(&self, _revision: Revision, _record: Vec<u8>) -> Result<(), StoreError> {
        Ok(())
    }

    /// Removes the record of a revision, if there is one.
    fn remove(&self, revision: Revision) -> Result<(), StoreError>;

    /// Writes a fact (None: removes it).
    fn set_fact(&self, _name: &str, _value: Option<u64>) -> Result<(), StoreError> {
        Ok(())
    }

    /// All facts whose name starts with `prefix`.
    fn facts(&self, _prefix: &str) -> Result<Vec<(String, u64)>, StoreError> {
        Ok(Vec::new())
    }

    /// Makes all that was written until now durable; returns once it is.
    fn flush(&self) -> Result<(), StoreError> {
        Ok(())
    }

    /// Whether its files are somebody's to keep: closed, they are free for others.
    fn is_kept(&self) -> bool {
        false
    }

    /// How much room its files take.
    fn bytes_on_disk(&self) -> u64 {
        0
    }

    /// Hands all records to `visit`, oldest first.
    fn replay(
        &self,
        _visit: &mut dyn FnMut(Revision, Bytes) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        Ok(())
    }
}

/// What stands for a log that cannot be read or written: everything fails, and it says why.
#[derive(Debug)]
pub(super) struct FailedLog(pub(super) StoreError);

impl Log for FailedLog {
    fn append(&self, _revision: Revision, _record: Vec<u8>) -> Result<Bytes, StoreError> {
        Err(self.0.clone())
    }

    fn read(&self, _revision: Revision) -> Result<Option<Bytes>, StoreError> {
        Err(self.0.clone())
    }

    fn remove(&self, _revision: Revision) -> Result<(), StoreError> {
        Err(self.0.clone())
    }
}
