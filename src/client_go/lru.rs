//! A map that forgets what was used longest ago (`groupcache/lru`).

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;

/// At most `capacity` entries.
/// Invariant: a key is in `entries` with a number if and only if it is in `by_use` under that number.
pub(super) struct Lru<K, V> {
    capacity: usize,
    entries: HashMap<K, (u64, V)>,
    by_use: BTreeMap<u64, K>,
    uses: u64,
}

impl<K: Clone + Eq + Hash, V> Lru<K, V> {
    pub(super) fn new(capacity: usize) -> Lru<K, V> {
        Lru { capacity, entries: HashMap::new(), by_use: BTreeMap::new(), uses: 0 }
    }

    /// The value of a key, which counts as used.
    pub(super) fn get(&mut self, key: &K) -> Option<&mut V> {
        let (used, value) = self.entries.get_mut(key)?;
        self.uses += 1;
        let key = self.by_use.remove(used)?;
        *used = self.uses;
        self.by_use.insert(self.uses, key);
        Some(value)
    }

    /// Adds or replaces the value of a key.
    pub(super) fn put(&mut self, key: K, value: V) {
        if let Some(known) = self.get(&key) {
            *known = value;
            return;
        }
        if self.entries.len() >= self.capacity
            && let Some((_, oldest)) = self.by_use.pop_first()
        {
            self.entries.remove(&oldest);
        }
        self.uses += 1;
        self.by_use.insert(self.uses, key.clone());
        self.entries.insert(key, (self.uses, value));
    }

    /// The value of a key, made if there is none.
    pub(super) fn get_or_put(&mut self, key: K, make: impl FnOnce() -> V) -> &mut V {
        if !self.entries.contains_key(&key) {
            self.put(key.clone(), make());
        }
        self.get(&key).expect("it was there or was put there")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_used_longest_ago_is_forgotten() {
        let mut lru = Lru::new(2);
        lru.put("a", 1);
        lru.put("b", 2);
        assert_eq!(lru.get(&"a"), Some(&mut 1));
        lru.put("c", 3);
        let mut copy = |key| lru.get(&key).copied();
        assert_eq!((copy("b"), copy("a"), copy("c")), (None, Some(1), Some(3)));
        assert_eq!((lru.entries.len(), lru.by_use.len()), (2, 2));
    }
}
