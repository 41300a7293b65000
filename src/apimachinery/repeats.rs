//! Which items of a list stand twice: looked up, not held against all before them, because a request may
//! bring tens of thousands.

use std::collections::HashSet;
use std::hash::Hash;

/// For each item, in order, whether one that is equal stands before it.
pub fn repeats<T: Eq + Hash>(items: impl IntoIterator<Item = T>) -> Vec<bool> {
    let items = items.into_iter();
    let mut known = HashSet::with_capacity(items.size_hint().0);
    items.map(|item| !known.insert(item)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::hash::Hasher;

    /// An item that counts what it is compared with.
    struct Compared<'c>(usize, &'c Cell<usize>);

    impl PartialEq for Compared<'_> {
        fn eq(&self, other: &Self) -> bool {
            self.1.set(self.1.get() + 1);
            self.0 == other.0
        }
    }

    impl Eq for Compared<'_> {}

    impl Hash for Compared<'_> {
        fn hash<H: Hasher>(&self, state: &mut H) {
            self.0.hash(state);
        }
    }

    #[test]
    fn thirty_thousand_items_are_not_compared_with_each_other() {
        let compared = Cell::new(0);
        let again = repeats((0..30_000).map(|at| Compared(at % 29_000, &compared)));
        assert_eq!(again.iter().position(|again| *again), Some(29_000));
        assert!(compared.get() < 30_000, "{} comparisons", compared.get());
    }
}
