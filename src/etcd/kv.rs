//! The store's handle, and the log it keeps in sled. The only file that knows sled.

use std::time::Duration;

use super::{Error, Expect, KeyValue, LeaseId, Op, Options, Range, Revision, Txn, Watch};
use crate::clock::Clock;

/// A handle on one store. Cloning shares it; when the last handle is gone, the writer ends and the files are
/// closed (and, without a data dir, removed).
#[derive(Debug, Clone)]
pub struct Kv {}

impl Kv {
    /// Opens the store, or makes it. Blocks while it reads what is there; must be called within a tokio runtime,
    /// which then runs the expiry of leases.
    ///
    /// # Errors
    /// [`Error::Locked`], [`Error::Corrupt`], [`Error::Io`].
    pub fn open(_options: Options, _clock: Clock) -> Result<Kv, Error> {
        Err(Error::Closed)
    }

    /// The newest committed revision.
    pub fn revision(&self) -> Revision {
        1
    }

    /// The oldest revision that can still be read.
    pub fn compact_revision(&self) -> Revision {
        0
    }

    /// The key as it was at a revision (None: now), and the revision it was read at.
    ///
    /// # Errors
    /// [`Error::Compacted`], [`Error::FutureRevision`], [`Error::Io`].
    pub fn get(&self, _key: &str, _at: Option<Revision>) -> Result<(Option<KeyValue>, Revision), Error> {
        Err(Error::Closed)
    }

    /// The keys that start with `prefix`, as they all were at one revision (None: now), in order, from the key
    /// `from` on (inclusive; None: from the first). `limit` bounds how many are returned, not how many are counted;
    /// with 0 they are only counted.
    ///
    /// # Errors
    /// [`Error::Compacted`], [`Error::FutureRevision`], [`Error::Io`].
    pub fn range(
        &self,
        _prefix: &str,
        _from: Option<&str>,
        _limit: Option<usize>,
        _at: Option<Revision>,
    ) -> Result<Range, Error> {
        Err(Error::Closed)
    }

    /// Compares the key's newest revision with `expect` and, if it matches, puts or deletes it: in one step, in one
    /// order for the whole store. Answers once the write is as durable as the store promises. Dropping the future
    /// does not take the write back.
    ///
    /// # Errors
    /// [`Error::LeaseNotFound`]; [`Error::Io`], after which no write succeeds any more; [`Error::Closed`].
    pub async fn txn(&self, _key: &str, _expect: Expect, _op: Op) -> Result<Txn, Error> {
        Err(Error::Closed)
    }

    /// Watches the keys that start with `prefix` for changes after a revision.
    ///
    /// # Errors
    /// [`Error::Compacted`] if changes after `after` are gone; [`Error::FutureRevision`] if it has not been reached.
    pub fn watch(&self, _prefix: &str, _after: Revision) -> Result<Watch, Error> {
        Err(Error::Closed)
    }

    /// Makes every watch of exactly this prefix deliver a batch that says how far it is, though nothing changed
    /// (etcd's `RequestProgress`). That batch's revision is at least what [`Kv::revision`] returned before.
    pub fn request_progress(&self, _prefix: &str) {}

    /// Forgets the history before a revision: what was then superseded or deleted. What is live stays, whatever
    /// its age. A revision that is already compacted is no error; one not yet reached is.
    ///
    /// # Errors
    /// [`Error::FutureRevision`], [`Error::Io`], [`Error::Closed`].
    pub async fn compact(&self, _before: Revision) -> Result<(), Error> {
        Err(Error::Closed)
    }

    /// Makes a lease that expires after `ttl` unless it is kept alive.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::Closed`].
    pub async fn grant_lease(&self, _ttl: Duration) -> Result<LeaseId, Error> {
        Err(Error::Closed)
    }

    /// Starts the lease's time anew.
    ///
    /// # Errors
    /// [`Error::LeaseNotFound`].
    pub fn keep_alive(&self, lease: LeaseId) -> Result<(), Error> {
        Err(Error::LeaseNotFound(lease))
    }

    /// Ends the lease and deletes the keys that hang on it.
    ///
    /// # Errors
    /// [`Error::LeaseNotFound`], [`Error::Io`], [`Error::Closed`].
    pub async fn revoke_lease(&self, _lease: LeaseId) -> Result<(), Error> {
        Err(Error::Closed)
    }

    /// Writes out what is to be written and ends the writer. Every handle and watch answers [`Error::Closed`] to
    /// whatever comes later. Returns once the files are closed.
    pub async fn close(&self) {}
}
