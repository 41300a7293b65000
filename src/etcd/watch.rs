//! The watch: reads the log from a revision on (etcd's `WatchableKV`).

use super::{Error, Event, Revision};

/// A watch of the keys with one prefix. It holds a position in the log, not a queue: however slow its reader, it
/// costs no memory, and misses nothing unless compaction overtakes it.
#[derive(Debug)]
pub struct Watch {}

/// Changes in revision order, none twice, none left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WatchBatch {
    /// The changes; empty if the batch only tells of progress.
    pub events: Vec<Event>,
    /// Everything up to and including this revision has been delivered.
    pub revision: Revision,
}

impl Watch {
    /// Waits for changes, or for progress that was asked for with [`super::Kv::request_progress`]. Can be dropped
    /// and called again without losing anything.
    ///
    /// # Errors
    /// [`Error::Compacted`] when compaction has overtaken the watch; [`Error::Closed`] when the store was closed.
    pub async fn next(&mut self) -> Result<WatchBatch, Error> {
        Err(Error::Closed)
    }
}
