//! The past that a fork has in common with its parent.
//!
//! What is only in the parent's log is read there: so the parent takes nothing out of its log as long as it
//! has forks, and hands it over when it ends first.

use std::sync::Arc;

use bytes::Bytes;
use sync::RwLock;

use super::log::{FailedLog, Log};
use super::overflow::Overflow;
use super::recovery;
use super::segments::LogSegments;
use super::{Revision, StoreError};

/// The log of a parent, as its forks read it.
#[derive(Debug)]
pub(super) struct SharedPast(RwLock<Arc<dyn Log>>);

/// The log of a fork: its own, in memory and temporary files, and below it what its parent has of the
/// time before it.
#[derive(Debug)]
struct ForkedLog {
    own: Overflow,
    past: Arc<SharedPast>,
    /// From here on the parent's revisions are others.
    upto: Revision,
}

impl SharedPast {
    pub(super) fn new(log: Arc<dyn Log>) -> SharedPast {
        SharedPast(RwLock::new(log))
    }

    fn log(&self) -> Arc<dyn Log> {
        self.0.read().clone()
    }

    /// The parent has another log from now on.
    pub(super) fn replace(&self, log: Arc<dyn Log>) {
        *self.0.write() = log;
    }

    /// The parent ends: what lies in files that it closes is copied, so that they are free for others.
    pub(super) fn outlive(&self) {
        let log = self.log();
        if !log.is_kept() {
            return;
        }
        match copy(&*log) {
            Ok(copied) => self.replace(copied),
            Err(error) => {
                tracing::error!(%error, "forks of a store that was closed cannot read what is old");
                self.replace(Arc::new(FailedLog(error)));
            }
        }
    }
}

/// Into temporary files.
fn copy(log: &dyn Log) -> Result<Arc<dyn Log>, StoreError> {
    let copied = LogSegments::new(recovery::temporary_dir()?)?;
    log.replay(&mut |revision, record| copied.append(revision, record.to_vec()).map(drop))?;
    Ok(Arc::new(copied))
}

/// A log with a past that nobody changes, and of which everything is older than what is written from now on.
pub(super) fn on_top_of(past: Arc<dyn Log>, upto: Revision) -> Arc<dyn Log> {
    forked(Arc::new(SharedPast::new(past)), upto)
}

/// The log of a fork.
pub(super) fn forked(past: Arc<SharedPast>, upto: Revision) -> Arc<dyn Log> {
    let own = Overflow::new(|| Ok(Arc::new(LogSegments::new(recovery::temporary_dir()?)?)));
    Arc::new(ForkedLog { own, past, upto })
}

impl Log for ForkedLog {
    fn append(&self, revision: Revision, record: Vec<u8>) -> Result<Bytes, StoreError> {
        self.own.append(revision, record)
    }

    fn read(&self, revision: Revision) -> Result<Option<Bytes>, StoreError> {
        match self.own.read(revision)? {
            None if revision <= self.upto => self.past.log().read(revision),
            own => Ok(own),
        }
    }

    /// The past is not ours to change.
    fn remove(&self, revision: Revision) -> Result<(), StoreError> {
        self.own.remove(revision)
    }

    fn facts(&self, prefix: &str) -> Result<Vec<(String, u64)>, StoreError> {
        self.past.log().facts(prefix)
    }

    fn replay(
        &self,
        visit: &mut dyn FnMut(Revision, Bytes) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        self.past.log().replay(visit)
    }
}
