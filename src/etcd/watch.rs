//! The watch: reads the log from a revision on (etcd's `WatchableKV`).
//! Next: src/apiserver/storage/cacher.rs

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio::sync::Notify;

use super::state::{Shared, Unread};
use super::watchers::Watcher;
use super::{KeyEvent, KeySpan, Revision, StoreError};

/// A watch of keys that lie side by side. It holds a position in the log, not a queue: however slow its
/// reader, it costs no memory, and misses nothing unless compaction overtakes it.
#[derive(Debug)]
pub struct Watch {
    shared: Arc<Shared>,
    watcher: Arc<Watcher>,
    /// All up to here has been delivered.
    upto: Revision,
    /// Changes at the compacted revision are told, though what was there before is gone.
    reads_compacted: bool,
}

/// Changes in revision order, none twice, none left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WatchBatch {
    /// The changes; empty if the batch only tells of progress.
    pub events: Vec<KeyEvent>,
    /// Everything up to and including this revision has been delivered.
    pub revision: Revision,
}

impl Shared {
    /// A watch for which all up to `after` counts as delivered.
    pub(super) fn watch(
        self: &Arc<Shared>,
        span: KeySpan<'_>,
        after: Revision,
        notify: Arc<Notify>,
        reads_compacted: bool,
    ) -> Result<Watch, StoreError> {
        let mut state = self.write();
        state.log()?;
        if !reads_compacted || after + 1 != state.compact_revision {
            state.readable(Some(after))?;
        }
        let watcher = state.watchers.add(span, after, notify);
        Ok(Watch { shared: self.clone(), watcher, upto: after, reads_compacted })
    }
}

impl Watch {
    /// Whether there may be something that [`Watch::try_next`] has not answered yet. Costs next to nothing; a
    /// store that was closed is not found out.
    pub fn may_have_more(&self) -> bool {
        self.watcher.first_unread.load(Ordering::Acquire) != 0
    }

    /// All changes up to this revision have been delivered; what [`Watch::try_next`] has found nothing
    /// after is the newest there was.
    pub fn delivered(&self) -> Revision {
        self.upto
    }

    /// Waits for changes, or for progress that was asked for with [`super::Kv::request_progress`]. Can be
    /// dropped and called again without losing anything.
    ///
    /// # Errors
    /// [`StoreError::Compacted`] when compaction has overtaken the watch; [`StoreError::Closed`] when the
    /// store was closed.
    pub async fn next(&mut self) -> Result<WatchBatch, StoreError> {
        loop {
            if let Some(batch) = self.try_next()? {
                return Ok(batch);
            }
            self.watcher.notify.notified().await;
        }
    }

    /// What [`Watch::next`] would answer without waiting.
    ///
    /// # Errors
    /// As [`Watch::next`].
    pub fn try_next(&mut self) -> Result<Option<WatchBatch>, StoreError> {
        loop {
            let first_unread = self.watcher.first_unread.load(Ordering::Acquire);
            if first_unread == 0 {
                if let Some(caught_up) = self.caught_up() {
                    return caught_up;
                }
                continue;
            }
            let from = first_unread.max(self.upto + 1);
            let Unread { events, upto, all } = self.unread(from)?;
            self.upto = upto;
            self.has_read(upto, all);
            if !events.is_empty() {
                return Ok(Some(WatchBatch { events, revision: upto }));
            }
        }
    }

    fn unread(&self, from: Revision) -> Result<Unread, StoreError> {
        let oldest = |compacted: Revision| if self.reads_compacted { compacted } else { compacted + 1 };
        self.shared.unread(&self.watcher.span, from, oldest)
    }

    /// All up to `upto` is read. If that is all there is, then the writer may mark this watch again.
    fn has_read(&self, upto: Revision, all: bool) {
        let state = self.shared.read();
        let first_unread = if all && state.revision == upto { 0 } else { upto + 1 };
        self.watcher.first_unread.store(first_unread, Ordering::Release);
    }

    /// Nothing of these keys is unread, and the lock says up to where; None: something is after all.
    fn caught_up(&mut self) -> Option<Result<Option<WatchBatch>, StoreError>> {
        let state = self.shared.read();
        if let Err(closed) = state.log() {
            return Some(Err(closed));
        }
        if self.watcher.first_unread.load(Ordering::Acquire) != 0 {
            return None;
        }
        self.upto = state.revision;
        let progress_wanted = self.watcher.progress_wanted.swap(false, Ordering::AcqRel);
        let progress = WatchBatch { events: Vec::new(), revision: self.upto };
        Some(Ok(progress_wanted.then_some(progress)))
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.shared.write().watchers.remove(&self.watcher);
    }
}
