//! What compaction made superfluous, on its way out of the log.

use std::cmp::Reverse;

use super::log::Log;
use super::{Error, Revision};

/// Revisions of records that nobody can see any more. As many as compactions have made.
///
/// Invariant: as long as a superseded put is in the log, so is the deletion after it, or a restart would
/// bring the key back. A disk that fails keeps later changes and loses earlier ones, so the order of removal
/// alone does not see to that: between the two there is a flush.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Superfluous {
    pub puts: Vec<Revision>,
    pub deletions: Vec<Revision>,
    /// Puts were removed since the last flush.
    pub unflushed: bool,
}

impl Superfluous {
    /// Those of one more compaction.
    pub(super) fn extend(&mut self, more: Superfluous) {
        for (revisions, more) in [(&mut self.puts, more.puts), (&mut self.deletions, more.deletions)] {
            revisions.extend(more);
            // Taken from the end, so oldest first: in the order in which the log has them side by side.
            revisions.sort_unstable_by_key(|revision| Reverse(*revision));
        }
    }

    /// Removes up to `count` from the log; returns whether there are more.
    pub(super) fn remove(&mut self, count: usize, log: &dyn Log) -> Result<bool, Error> {
        let are_puts = !self.puts.is_empty();
        if !are_puts && std::mem::take(&mut self.unflushed) {
            log.flush()?;
        }
        self.unflushed |= are_puts;
        let revisions = if are_puts { &mut self.puts } else { &mut self.deletions };
        let keep = revisions.len().saturating_sub(count);
        for revision in revisions.drain(keep..).rev() {
            log.remove(revision)?;
        }
        Ok(!self.puts.is_empty() || !self.deletions.is_empty())
    }
}
