//! `KeptMemory`: what is kept in memory, as far as whoever keeps it can say.
//!
//! Go's profile of its heap knows each allocation. Nothing here does: who holds the objects of a cluster is
//! asked instead, and the rest is told as one.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use clock::FrameName;
use foldhash::fast::RandomState;

/// Counts what somebody keeps. Asked for each profile of the heap; costs a look at each object.
#[derive(Clone)]
pub struct KeptMemory(pub Arc<dyn Fn(&mut HeapCount) + Send + Sync>);

/// What is kept, by stack. Caches and the store share the bytes of objects: they count once, with whom is
/// asked first. Bound: the pieces that there are.
#[derive(Default)]
pub struct HeapCount {
    /// Where the bytes end that were counted. Caches may leave out what a record begins with, never its end.
    seen: HashSet<usize, RandomState>,
    kept: BTreeMap<Vec<FrameName>, KeptShare>,
}

/// What is kept of one sort.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeptShare {
    /// How many.
    pub objects: usize,
    /// How much of the memory they take.
    pub bytes: usize,
}

impl HeapCount {
    /// So much more is kept by somebody: `stack` says by whom and what, the outermost first.
    pub fn add(&mut self, stack: &[&str], share: KeptShare) {
        if share == KeptShare::default() {
            return;
        }
        let stack = stack.iter().map(|name| FrameName::Shared((*name).into())).collect();
        *self.kept.entry(stack).or_default() += share;
    }

    /// The share of a piece of memory: nothing, where somebody has counted it before.
    pub fn share_of(&mut self, piece: &[u8]) -> KeptShare {
        if piece.is_empty() || !self.seen.insert(piece.as_ptr_range().end as usize) {
            return KeptShare::default();
        }
        KeptShare { objects: 1, bytes: piece.len() }
    }

    /// All shares, in the order of their stacks.
    pub(super) fn shares(self) -> impl Iterator<Item = (Vec<FrameName>, KeptShare)> {
        self.kept.into_iter()
    }
}

impl std::iter::Sum for KeptShare {
    fn sum<I: Iterator<Item = KeptShare>>(shares: I) -> KeptShare {
        shares.fold(KeptShare::default(), |mut sum, one| {
            sum += one;
            sum
        })
    }
}

impl std::ops::AddAssign for KeptShare {
    fn add_assign(&mut self, more: KeptShare) {
        self.objects += more.objects;
        self.bytes += more.bytes;
    }
}

impl std::fmt::Debug for KeptMemory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("KeptMemory")
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    #[test]
    fn what_several_share_counts_once() {
        let record = Bytes::from_static(b"key{\"metadata\":{}}");
        let (value, other) = (record.slice(3..), Bytes::from_static(b"other"));
        let mut count = HeapCount::default();
        let cached = [&value, &other].into_iter().map(|piece| count.share_of(piece)).sum();
        count.add(&["watch cache", "pods"], cached);
        for piece in [&record, &value, &Bytes::new()] {
            let share = count.share_of(piece);
            count.add(&["etcd"], share);
        }
        count.add(&["flow"], KeptShare { objects: 2, bytes: 64 });
        let told: Vec<(String, KeptShare)> =
            count.shares().map(|(stack, share)| (stack[0].as_str().to_owned(), share)).collect();
        assert_eq!(
            told,
            [
                ("flow".to_owned(), KeptShare { objects: 2, bytes: 64 }),
                ("watch cache".to_owned(), KeptShare { objects: 2, bytes: value.len() + 5 }),
            ]
        );
    }
}
