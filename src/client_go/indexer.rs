//! `Indexer`: a component's copy of the objects it watches, by key and by as many indices as it needs
//! (client-go's `cache.Indexer` and the `ThreadSafeStore` under it).
//!
//! Guarantees: a reader sees each object and all indices of it change at once; what is read is shared and is never
//! changed; lists are in key order. It holds what was last delivered, which may be older than what the apiserver
//! has: a controller that must not act on the past compares on write.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::apimachinery::object::Object;

/// The index by `metadata.namespace`, which every indexer has (`cache.NamespaceIndex`).
pub const NAMESPACE_INDEX: &str = "namespace";

/// The values under which an object is found in an index (`cache.IndexFunc`).
pub type IndexFunc = fn(&Object) -> Vec<String>;

/// Objects by key and by index. As large as the cluster's objects of the kind: it is bounded by the apiserver.
pub struct Indexer {
    /// One lock for items and indices, so that no reader sees the one without the other. Read far more than written,
    /// and held for a lookup or a copy of pointers only.
    state: RwLock<State>,
}

/// Invariant: a key is in an index under a value if and only if the index's function gives that value for the object
/// in `items`.
#[derive(Default)]
struct State {
    items: BTreeMap<Arc<str>, Arc<Object>>,
    indices: BTreeMap<String, Index>,
}

struct Index {
    values_of: IndexFunc,
    keys: BTreeMap<String, BTreeSet<Arc<str>>>,
}

impl Default for Indexer {
    fn default() -> Indexer {
        let indexer = Indexer { state: RwLock::default() };
        indexer.add_index(NAMESPACE_INDEX, |object| vec![object.metadata.namespace.clone()]);
        indexer
    }
}

impl Indexer {
    /// Empty, with the index by namespace.
    pub fn new() -> Indexer {
        Indexer::default()
    }

    /// Adds an index; what is held already is indexed at once. An index of the same name is replaced.
    pub fn add_index(&self, name: &str, values_of: IndexFunc) {
        let mut state = self.write();
        let mut index = Index { values_of, keys: BTreeMap::new() };
        for (key, object) in &state.items {
            index.insert(key, (values_of)(object));
        }
        state.indices.insert(name.to_owned(), index);
    }

    /// Adds or replaces the object at `key`; returns what was there.
    pub fn update(&self, key: Arc<str>, object: Arc<Object>) -> Option<Arc<Object>> {
        self.write().put(key, object)
    }

    /// Removes and returns the object at `key`.
    pub fn delete(&self, key: &str) -> Option<Arc<Object>> {
        self.write().remove(key)
    }

    /// Holds exactly `items` from now on.
    pub fn replace(&self, items: impl IntoIterator<Item = (Arc<str>, Arc<Object>)>) {
        let mut state = self.write();
        state.items.clear();
        state.indices.values_mut().for_each(|index| index.keys.clear());
        for (key, object) in items {
            state.put(key, object);
        }
    }

    /// The object at `key`.
    pub fn get_by_key(&self, key: &str) -> Option<Arc<Object>> {
        self.read().items.get(key).cloned()
    }

    /// Every object, in key order.
    pub fn list(&self) -> Vec<Arc<Object>> {
        self.read().items.values().cloned().collect()
    }

    /// Every key, in order.
    pub fn list_keys(&self) -> Vec<Arc<str>> {
        self.read().items.keys().cloned().collect()
    }

    /// How many objects there are.
    pub fn len(&self) -> usize {
        self.read().items.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The objects that have `value` in an index, in key order. An index that was never added has none.
    pub fn by_index(&self, index: &str, value: &str) -> Vec<Arc<Object>> {
        let state = self.read();
        let keys = state.indices.get(index).and_then(|index| index.keys.get(value));
        let object = |key: &Arc<str>| state.items.get(key).cloned();
        keys.into_iter().flatten().filter_map(object).collect()
    }

    /// The keys of the objects that have `value` in an index, in order (`IndexKeys`).
    pub fn index_keys(&self, index: &str, value: &str) -> Vec<Arc<str>> {
        let state = self.read();
        let keys = state.indices.get(index).and_then(|index| index.keys.get(value));
        keys.into_iter().flatten().cloned().collect()
    }

    /// Every value that some object has in an index, in order (`ListIndexFuncValues`).
    pub fn index_values(&self, index: &str) -> Vec<String> {
        self.read().indices.get(index).into_iter().flat_map(|index| index.keys.keys().cloned()).collect()
    }

    fn read(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn write(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl State {
    fn put(&mut self, key: Arc<str>, object: Arc<Object>) -> Option<Arc<Object>> {
        let old = self.items.insert(key.clone(), object.clone());
        for index in self.indices.values_mut() {
            let new_values = (index.values_of)(&object);
            let old_values = old.as_ref().map(|old| (index.values_of)(old)).unwrap_or_default();
            if new_values != old_values {
                index.remove(&key, &old_values);
                index.insert(&key, new_values);
            }
        }
        old
    }

    fn remove(&mut self, key: &str) -> Option<Arc<Object>> {
        let old = self.items.remove(key)?;
        for index in self.indices.values_mut() {
            let values = (index.values_of)(&old);
            index.remove(key, &values);
        }
        Some(old)
    }
}

impl Index {
    fn insert(&mut self, key: &Arc<str>, values: Vec<String>) {
        for value in values {
            self.keys.entry(value).or_default().insert(key.clone());
        }
    }

    /// A value that nobody has any more is dropped: an index by owner would otherwise grow for ever.
    fn remove(&mut self, key: &str, values: &[String]) {
        for value in values {
            let Some(keys) = self.keys.get_mut(value) else { continue };
            keys.remove(key);
            if keys.is_empty() {
                self.keys.remove(value);
            }
        }
    }
}
