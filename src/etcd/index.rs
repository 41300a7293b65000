//! Which revisions each key has (etcd's `treeIndex`): in memory, rebuilt from the log when it is opened.
//!
//! It is what makes a range a snapshot: the newest revision of each key that is not after the revision asked
//! for.

use std::ops::Bound;
use std::sync::Arc;

use imbl::OrdMap;

use super::promise::Tally;
use super::sweep::Superfluous;
use super::{HeldKeys, KeySpan, Revision};

/// Keys in order, each with its changes since the last compaction, oldest first. No key is without a change.
/// Cloning shares it: a fork costs nothing until one of the two changes.
#[derive(Debug, Clone, Default)]
pub(super) struct Index {
    keys: OrdMap<Arc<str>, Vec<IndexChange>>,
    /// Of all changes in `keys`.
    tally: Tally,
    /// Of each revision with several changes, how many of them are in `keys`: they share a record.
    groups: OrdMap<Revision, usize>,
}

#[derive(Debug, Clone, Copy)]
struct IndexChange {
    revision: Revision,
    /// The checksum of its record; 0 in memory, where nobody asks for it.
    checksum: u32,
    deleted: bool,
}

impl Index {
    /// Notes a change. Revisions only go up.
    pub(super) fn record(&mut self, key: &Arc<str>, revision: Revision, checksum: u32, deleted: bool) {
        let change = IndexChange { revision, checksum, deleted };
        if let Some(changes) = self.keys.get_mut(&**key) {
            debug_assert!(changes.last().is_none_or(|last| last.revision < revision));
            changes.push(change);
        } else {
            // Most keys are written once or twice, and there are many: room for one.
            self.keys.insert(key.clone(), vec![change]);
        }
        self.tally.add(revision, checksum);
    }

    /// Notes that so many changes have one revision.
    pub(super) fn record_group(&mut self, revision: Revision, count: usize) {
        if count > 1 {
            self.groups.insert(revision, count);
        }
    }

    /// What all changes amount to.
    pub(super) fn tally(&self) -> Tally {
        self.tally
    }

    /// What it holds. Costs a look at each key.
    pub(super) fn held(&self) -> HeldKeys {
        let size = |(key, changes): (&Arc<str>, &Vec<IndexChange>)| {
            key.len() + changes.capacity() * size_of::<IndexChange>()
        };
        HeldKeys { keys: self.keys.len(), bytes: self.keys.iter().map(size).sum() }
    }

    /// The revision of the key's newest put at a revision; None if the key did not exist then.
    pub(super) fn find(&self, key: &str, at: Revision) -> Option<(&Arc<str>, Revision)> {
        let (key, changes) = self.keys.get_key_value(key)?;
        Some((key, live_at(changes, at)?))
    }

    /// Whether the key's change at a revision is still known: not forgotten by a compaction.
    pub(super) fn knows(&self, key: &str, revision: Revision) -> bool {
        let changes = self.keys.get(key).map(Vec::as_slice).unwrap_or_default();
        changes.binary_search_by_key(&revision, |change| change.revision).is_ok()
    }

    /// The keys of a span that existed at a revision, in order, from the key `from` on (inclusive).
    pub(super) fn range<'a>(
        &'a self,
        span: &'a KeySpan<'_>,
        from: Option<&str>,
        at: Revision,
    ) -> impl Iterator<Item = (&'a Arc<str>, Revision)> + use<'a> {
        let start = from.map_or(span.start(), |from| from.max(span.start()));
        self.within(span, start).filter_map(move |(key, changes)| Some((key, live_at(changes, at)?)))
    }

    /// The first changes, deletions included, of the keys of a span from a revision on (inclusive), in
    /// revision order: `limit` of them, and all others of the last one's revision.
    pub(super) fn changes(
        &self,
        span: &KeySpan<'_>,
        from: Revision,
        limit: usize,
    ) -> Vec<(Revision, Arc<str>)> {
        let mut found = Vec::new();
        for (key, changes) in self.within(span, span.start()) {
            let first = changes.partition_point(|change| change.revision < from);
            found.extend(changes[first..].iter().map(|change| (change.revision, key.clone())));
        }
        if found.len() > limit && limit > 0 {
            let (_, (last, _), _) = found.select_nth_unstable_by_key(limit - 1, |(revision, _)| *revision);
            let last = *last;
            found.retain(|(revision, _)| *revision <= last);
        }
        // Those of one revision in the order of their keys.
        found.sort_unstable();
        found
    }

    /// Forgets what nobody can see who reads at `before` or later, and returns what is forgotten: of each
    /// key all but the newest change up to `before`, and that one too if it is a deletion before that.
    pub(super) fn compact(&mut self, before: Revision) -> Superfluous {
        let mut forgotten = Superfluous::default();
        let concerns = |changes: &[IndexChange]| superfluous(changes, before) > 0;
        for key in self.keys_where(concerns) {
            let gone = self.change_key(&key, |changes| {
                let count = superfluous(changes, before);
                changes.drain(..count).collect()
            });
            for change in gone {
                if self.groups.contains_key(&change.revision) {
                    forgotten.groups.entry(change.revision).or_default().push(key.clone());
                    continue;
                }
                let kind = if change.deleted { &mut forgotten.deletions } else { &mut forgotten.puts };
                kind.push(change.revision);
            }
        }
        self.leave_groups(&forgotten);
        forgotten
    }

    fn leave_groups(&mut self, forgotten: &Superfluous) {
        for (revision, keys) in &forgotten.groups {
            match self.groups.get_mut(revision) {
                Some(count) if *count > keys.len() => *count -= keys.len(),
                _ => drop(self.groups.remove(revision)),
            }
        }
    }

    /// Forgets what happened after `to`, and returns the keys that it happened to.
    pub(super) fn rewind(&mut self, to: Revision) -> Vec<Arc<str>> {
        let concerns = |changes: &[IndexChange]| changes.last().is_some_and(|last| last.revision > to);
        let rewound = self.keys_where(concerns);
        for key in &rewound {
            self.change_key(key, |changes| {
                changes.split_off(changes.partition_point(|change| change.revision <= to))
            });
        }
        rewound
    }

    /// Looked for first: what is not to change stays shared with forks.
    fn keys_where(&self, concerns: impl Fn(&[IndexChange]) -> bool) -> Vec<Arc<str>> {
        let found = self.keys.iter().filter(|(_, changes)| concerns(changes));
        found.map(|(key, _)| key.clone()).collect()
    }

    /// Takes changes away from a key, and the key when none is left.
    fn change_key(
        &mut self,
        key: &Arc<str>,
        take: impl FnOnce(&mut Vec<IndexChange>) -> Vec<IndexChange>,
    ) -> Vec<IndexChange> {
        let Some(changes) = self.keys.get_mut(&**key) else { return Vec::new() };
        let taken = take(changes);
        if changes.is_empty() {
            self.keys.remove(&**key);
        }
        taken.iter().for_each(|change| self.tally.remove(change.revision, change.checksum));
        taken
    }

    fn within<'a>(
        &'a self,
        span: &'a KeySpan<'_>,
        start: &str,
    ) -> impl Iterator<Item = (&'a Arc<str>, &'a Vec<IndexChange>)> + use<'a> {
        let from = (Bound::Included(start), Bound::Unbounded);
        self.keys.range::<_, str>(from).take_while(move |(key, _)| span.reaches(key))
    }
}

/// How many of the oldest changes nobody can see who reads at `before` or later, or watches from there on.
fn superfluous(changes: &[IndexChange], before: Revision) -> usize {
    let upto = changes.partition_point(|change| change.revision <= before);
    let newest = changes[..upto].last();
    upto - usize::from(newest.is_some_and(|newest| !newest.deleted || newest.revision == before))
}

fn live_at(changes: &[IndexChange], at: Revision) -> Option<Revision> {
    let upto = changes.partition_point(|change| change.revision <= at);
    let newest = changes[..upto].last()?;
    (!newest.deleted).then_some(newest.revision)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// a: put 2, put 5; b: put 3, deleted 6; c: put 4, deleted 7, put 8.
    fn index() -> Index {
        let mut index = Index::default();
        let changes = [("a", 2, false), ("b", 3, false), ("c", 4, false), ("a", 5, false)];
        for (key, revision, deleted) in
            changes.into_iter().chain([("b", 6, true), ("c", 7, true), ("c", 8, false)])
        {
            index.record(&key.into(), revision, 7, deleted);
        }
        index
    }

    fn live(index: &Index, at: Revision) -> Vec<(String, Revision)> {
        index.range(&KeySpan::ALL, None, at).map(|(key, revision)| (key.to_string(), revision)).collect()
    }

    #[test]
    fn a_range_is_a_snapshot_at_its_revision() {
        let table: [(Revision, &[(&str, Revision)]); 6] = [
            (1, &[]),
            (4, &[("a", 2), ("b", 3), ("c", 4)]),
            (5, &[("a", 5), ("b", 3), ("c", 4)]),
            (6, &[("a", 5), ("c", 4)]),
            (7, &[("a", 5)]),
            (8, &[("a", 5), ("c", 8)]),
        ];
        for (at, expected) in table {
            let expected: Vec<_> =
                expected.iter().map(|(key, revision)| (key.to_string(), *revision)).collect();
            assert_eq!(live(&index(), at), expected, "at {at}");
        }
    }

    #[test]
    fn compaction_forgets_only_what_nobody_can_see_any_more() {
        let table: [(Revision, &[Revision], &[Revision]); 5] =
            [(1, &[], &[]), (4, &[], &[]), (5, &[2], &[]), (6, &[2, 3], &[]), (8, &[2, 3, 4], &[6, 7])];
        for (before, puts, deletions) in table {
            let mut index = index();
            let seen: Vec<_> = (before..=8).map(|at| live(&index, at)).collect();
            let forgotten =
                Superfluous { puts: puts.to_vec(), deletions: deletions.to_vec(), ..Superfluous::default() };
            assert_eq!(index.compact(before), forgotten, "before {before}");
            let mut left = Tally::default();
            let is_left = |revision: &Revision| !puts.contains(revision) && !deletions.contains(revision);
            (2..=8).filter(is_left).for_each(|revision| left.add(revision, 7));
            assert_eq!(index.tally(), left, "before {before}");
            assert_eq!(index.knows("a", 2), !puts.contains(&2), "before {before}");
            assert!(index.knows("c", 8) && !index.knows("c", 5) && !index.knows("d", 8));
            assert_eq!((before..=8).map(|at| live(&index, at)).collect::<Vec<_>>(), seen, "before {before}");
        }
    }

    #[test]
    fn what_is_rewound_is_as_it_was_and_a_clone_knows_nothing_of_it() {
        for to in 1..=8 {
            let (whole, mut rewound) = (index(), index().clone());
            rewound.rewind(to);
            let mut left = Tally::default();
            (2..=to).for_each(|revision| left.add(revision, 7));
            assert_eq!(rewound.tally(), left, "to {to}");
            assert_eq!(live(&rewound, 8), live(&whole, to), "to {to}");
            assert_eq!(live(&whole, 8), live(&index(), 8), "to {to}");
        }
        assert_eq!(index().rewind(6), [Arc::from("c")]);
    }

    #[test]
    fn changes_come_in_revision_order_and_bounded() {
        let revisions = |prefix, from, limit| -> Vec<Revision> {
            index()
                .changes(&KeySpan::prefix(prefix), from, limit)
                .into_iter()
                .map(|(revision, _)| revision)
                .collect()
        };
        assert_eq!(revisions("", 1, 9), [2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(revisions("", 4, 3), [4, 5, 6]);
        assert_eq!(revisions("c", 5, 9), [7, 8]);
    }
}
