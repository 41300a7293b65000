//! What the store needs of the place where its log is kept (etcd's `backend`).
//!
//! The one in use is sled (in [`super::kv`]); tests have one whose disk does as it is told.

use std::fmt::Debug;

use bytes::Bytes;

use super::{Error, Revision};

/// A log of records by revision, and a few named facts beside it. One writer, any number of readers.
///
/// After a crash it holds a prefix of what was written, in the order of writing, and at least what was
/// flushed.
pub(super) trait Log: Debug + Send + Sync {
    /// Writes a record under a revision that has none. Returns the same bytes, in memory shared with the log.
    fn append(&self, revision: Revision, record: Vec<u8>) -> Result<Bytes, Error>;

    /// The record of a revision, if there is one.
    fn read(&self, revision: Revision) -> Result<Option<Bytes>, Error>;

    /// Removes the record of a revision, if there is one.
    fn remove(&self, revision: Revision) -> Result<(), Error>;

    /// Writes a fact (None: removes it).
    fn set_fact(&self, name: &str, value: Option<u64>) -> Result<(), Error>;

    /// All facts whose name starts with `prefix`.
    fn facts(&self, prefix: &str) -> Result<Vec<(String, u64)>, Error>;

    /// Makes all that was written until now durable; returns once it is.
    fn flush(&self) -> Result<(), Error>;

    /// Hands all records to `visit`, oldest first.
    fn replay(&self, visit: &mut dyn FnMut(Revision, Bytes) -> Result<(), Error>) -> Result<(), Error>;
}
