//! A map that forgets what was used longest ago (`groupcache/lru`).

use std::collections::HashMap;
use std::hash::Hash;

/// At most `capacity` entries: one that is full forgets an eighth of them for a new one. In which order they
/// were used stands beside each alone, since most of these are never full.
pub(super) struct Lru<K, V> {
    capacity: usize,
    entries: HashMap<K, UsedValue<V>>,
    uses: u64,
}

struct UsedValue<V> {
    /// The number of its last use.
    used: u64,
    value: V,
}

impl<K: Clone + Eq + Hash, V> Lru<K, V> {
    pub(super) fn new(capacity: usize) -> Lru<K, V> {
        Lru { capacity, entries: HashMap::new(), uses: 0 }
    }

    /// The value of a key, which counts as used.
    pub(super) fn get(&mut self, key: &K) -> Option<&mut V> {
        let entry = self.entries.get_mut(key)?;
        self.uses += 1;
        entry.used = self.uses;
        Some(&mut entry.value)
    }

    /// Adds or replaces the value of a key.
    pub(super) fn put(&mut self, key: K, value: V) {
        if self.entries.len() >= self.capacity && !self.entries.contains_key(&key) {
            self.forget_oldest();
        }
        self.uses += 1;
        self.entries.insert(key, UsedValue { used: self.uses, value });
    }

    fn forget_oldest(&mut self) {
        let mut uses: Vec<u64> = self.entries.values().map(|entry| entry.used).collect();
        let (_, &mut last, _) = uses.select_nth_unstable(self.capacity / 8);
        self.entries.retain(|_, entry| entry.used > last);
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
        assert_eq!(lru.entries.len(), 2, "no more than it may");
        lru.put("c", 4);
        assert_eq!((lru.get(&"a").copied(), lru.get(&"c").copied()), (Some(1), Some(4)), "replaced");
        let mut many = Lru::new(16);
        (0..17).for_each(|number| many.put(number, ()));
        assert_eq!(many.entries.len(), 14, "three at once");
        assert!(many.get(&2).is_none() && many.get(&3).is_some());
    }
}
