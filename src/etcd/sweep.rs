//! What compaction made superfluous, on its way out of the log.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::log::Log;
use super::{Revision, StoreError, record};

/// Revisions of records that nobody can see any more. As many as compactions have made.
///
/// Invariant: as long as a superseded put is in the log, so is the deletion after it, or a restart would
/// bring the key back. A disk that fails keeps later changes and loses earlier ones, so the order of removal
/// alone does not see to that: between the two there is a flush. A group may be both, so each is a step of
/// its own, the oldest first: whatever it had superseded is gone by then.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Superfluous {
    pub puts: Vec<Revision>,
    pub deletions: Vec<Revision>,
    /// Of records with several changes the keys whose change is superfluous.
    pub groups: BTreeMap<Revision, Vec<Arc<str>>>,
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
        for (revision, keys) in more.groups {
            self.groups.entry(revision).or_default().extend(keys);
        }
    }

    fn is_empty(&self) -> bool {
        self.puts.is_empty() && self.groups.is_empty() && self.deletions.is_empty()
    }

    /// Removes up to `count` from the log; returns whether there are more.
    pub(super) fn remove(&mut self, count: usize, log: &dyn Log) -> Result<bool, StoreError> {
        let are_puts = !self.puts.is_empty();
        let are_groups = !are_puts && !self.groups.is_empty();
        if !are_puts && std::mem::take(&mut self.unflushed) {
            log.flush()?;
        }
        self.unflushed |= are_puts || are_groups;
        if are_groups {
            self.trim_oldest(log)?;
            return Ok(!self.is_empty());
        }
        let revisions = if are_puts { &mut self.puts } else { &mut self.deletions };
        let keep = revisions.len().saturating_sub(count);
        for revision in revisions.drain(keep..).rev() {
            log.remove(revision)?;
        }
        Ok(!self.is_empty())
    }

    /// Takes out of the oldest group what nobody can see.
    fn trim_oldest(&mut self, log: &dyn Log) -> Result<(), StoreError> {
        let Some((revision, gone)) = self.groups.pop_first() else { return Ok(()) };
        let Some(bytes) = log.read(revision)? else { return Ok(()) };
        let is_kept = |key: &str| !gone.iter().any(|gone| **gone == *key);
        match record::retain(revision, &bytes, is_kept)? {
            None => log.remove(revision),
            // What nobody reads anew may stay as it is.
            Some(left) if log.is_kept() && left != bytes => log.replace(revision, left.to_vec()),
            Some(_) => Ok(()),
        }
    }
}
