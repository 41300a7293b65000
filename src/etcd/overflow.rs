//! The log of a store in memory: what memory has no room for.
//!
//! Such a store writes nothing down as long as its recent changes fit into memory. What leaves them goes to
//! a log of temporary files, which is made when it is first needed: most clusters of a test never need it.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use sync::{Mutex, MutexGuard};

use super::log::Log;
use super::{Revision, StoreError};

/// Makes the log that things overflow into.
type Open = Box<dyn Fn() -> Result<Arc<dyn Log>, StoreError> + Send + Sync>;

/// An overflow. Facts are for those who open a store again, which nobody can: they are not kept.
pub(super) struct Overflow {
    open: Open,
    /// None until something overflows.
    log: Mutex<Option<Arc<dyn Log>>>,
}

impl Overflow {
    pub(super) fn new(
        open: impl Fn() -> Result<Arc<dyn Log>, StoreError> + Send + Sync + 'static,
    ) -> Overflow {
        Overflow { open: Box::new(open), log: Mutex::default() }
    }

    fn opened(&self) -> Result<Arc<dyn Log>, StoreError> {
        let mut log = self.lock();
        if let Some(log) = &*log {
            return Ok(log.clone());
        }
        Ok(log.insert((self.open)()?).clone())
    }

    fn log(&self) -> Option<Arc<dyn Log>> {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Option<Arc<dyn Log>>> {
        self.log.lock()
    }
}

impl Log for Overflow {
    fn append(&self, revision: Revision, record: Vec<u8>) -> Result<Bytes, StoreError> {
        self.opened()?.append(revision, record)
    }

    fn read(&self, revision: Revision) -> Result<Option<Bytes>, StoreError> {
        self.log().map_or(Ok(None), |log| log.read(revision))
    }

    fn remove(&self, revision: Revision) -> Result<(), StoreError> {
        self.log().map_or(Ok(()), |log| log.remove(revision))
    }
}

impl fmt::Debug for Overflow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Overflow").field("log", &self.log()).finish_non_exhaustive()
    }
}
