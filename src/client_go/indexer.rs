//! `Indexer`: a component's copy of the objects it watches, by key and by as many indices as it needs
//! (client-go's `cache.Indexer` and the `ThreadSafeStore` under it).
//!
//! Guarantees: a reader sees each object and all indices of it change at once; what is read is shared and is
//! never changed; lists are in key order. It holds what was last delivered, which may be older than what the
//! apiserver has: a controller that must not act on the past compares on write.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::{Arc, OnceLock};

use apimachinery::object::Object;
use sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};
use tokio::sync::Notify;

/// The values under which an object is found in an index (`cache.IndexFunc`).
pub type IndexFunc = fn(&Object) -> Vec<String>;

/// The index that every cache has (`cache.NamespaceIndex`): keys begin with it.
pub(crate) const NAMESPACE_INDEX: &str = "namespace";

/// Where keys in an index are at least one of so many, they are found by going through all.
const MANY_OF: usize = 8;

/// Objects by key and by index. As large as the cluster's objects of the kind: it is bounded by the
/// apiserver.
#[derive(Default)]
pub struct Indexer {
    /// One lock for items and indices, so that no reader sees the one without the other. Read far more than
    /// written, and held for a lookup or a copy of pointers only.
    state: RwLock<IndexerState>,
    /// Told of each change; nothing where nobody ever waited for one.
    changed: OnceLock<Notify>,
}

/// Invariant: a key is in an index under a value if and only if the index's function gives that value for the
/// object in `items`.
#[derive(Default)]
struct IndexerState {
    /// A key begins with the namespace, so that what is in one stands together (`cache.NamespaceIndex`).
    items: BTreeSet<KeyedObject>,
    indices: BTreeMap<String, NamedIndex>,
}

/// Found by its key, which it has itself: of a cache of many objects half would be pointers to keys.
struct KeyedObject(Arc<Object>);

struct NamedIndex {
    values_of: IndexFunc,
    keys: BTreeMap<String, BTreeSet<Arc<str>>>,
}

impl Indexer {
    /// Holds nothing yet.
    pub fn new() -> Indexer {
        Indexer::default()
    }

    /// Adds an index; what is held already is indexed at once. An index of the same name is replaced.
    pub fn add_index(&self, name: &str, values_of: IndexFunc) {
        let mut state = self.write();
        let mut index = NamedIndex { values_of, keys: BTreeMap::new() };
        for KeyedObject(object) in &state.items {
            index.insert(object.shared_key(), (values_of)(object));
        }
        state.indices.insert(name.to_owned(), index);
    }

    /// Adds an index, unless there is one of that name: for who needs it only now.
    pub(crate) fn need_index(&self, name: &str, values_of: IndexFunc) {
        let is_there = self.read().indices.contains_key(name);
        if !is_there {
            self.add_index(name, values_of);
        }
    }

    /// The names of its indices, beside that of namespaces, which every key begins with.
    pub fn index_names(&self) -> Vec<String> {
        self.read().indices.keys().cloned().collect()
    }

    /// Each index, and the values under which an object is found in it: that of namespaces first.
    pub fn places_of(&self, object: &Object) -> Vec<(String, String)> {
        let state = self.read();
        let others = state.indices.iter();
        let others = others.map(|(name, index)| (name.clone(), (index.values_of)(object).join(", ")));
        std::iter::once((NAMESPACE_INDEX.to_owned(), object.metadata.namespace.to_string()))
            .chain(others)
            .collect()
    }

    /// Adds or replaces the object at its key; returns what was there.
    pub fn update(&self, object: Arc<Object>) -> Option<Arc<Object>> {
        let old = self.write().put(object);
        self.tell();
        old
    }

    /// Removes and returns the object at `key`.
    pub fn delete(&self, key: &str) -> Option<Arc<Object>> {
        let old = self.write().remove(key);
        self.tell();
        old
    }

    /// Waits until something is so that depends on what is held: it is looked at now, and after each change.
    pub async fn until(&self, is_so: impl Fn() -> bool) {
        let changed = self.changed.get_or_init(Notify::new);
        loop {
            let mut told = std::pin::pin!(changed.notified());
            // A change between the look and the wait is heard.
            told.as_mut().enable();
            if is_so() {
                return;
            }
            told.await;
        }
    }

    fn tell(&self) {
        self.changed.get().into_iter().for_each(Notify::notify_waiters);
    }

    /// Holds exactly `items` from now on.
    pub fn replace(&self, items: impl IntoIterator<Item = Arc<Object>>) {
        let mut state = self.write();
        state.items.clear();
        state.indices.values_mut().for_each(|index| index.keys.clear());
        for object in items {
            state.put(object);
        }
        drop(state);
        self.tell();
    }

    /// Gives back the room between objects that came one after the other, as those of a list.
    pub fn pack(&self) {
        let mut state = self.write();
        state.items = std::mem::take(&mut state.items).into_iter().collect();
    }

    /// The object at `key`.
    pub fn get_by_key(&self, key: &str) -> Option<Arc<Object>> {
        self.read().items.get(key).map(KeyedObject::object)
    }

    /// Every object, in key order.
    pub fn list(&self) -> Vec<Arc<Object>> {
        self.read().items.iter().map(KeyedObject::object).collect()
    }

    /// Every object in a namespace, in key order.
    pub fn in_namespace(&self, namespace: &str) -> Vec<Arc<Object>> {
        self.in_namespace_where(namespace, |_| true)
    }

    /// Those objects of a namespace of which that is true, in key order; the others are not touched.
    pub fn in_namespace_where(
        &self,
        namespace: &str,
        is_wanted: impl Fn(&Object) -> bool,
    ) -> Vec<Arc<Object>> {
        // A zero comes right behind a slash, so that no key need be looked at to know where they end.
        let (first, end) = (format!("{namespace}/"), format!("{namespace}0"));
        let state = self.read();
        let here = state.items.range::<str, _>((Bound::Included(&*first), Bound::Excluded(&*end)));
        here.filter(|item| is_wanted(&item.0)).map(KeyedObject::object).collect()
    }

    /// Every key, in order.
    pub fn list_keys(&self) -> Vec<Arc<str>> {
        self.read().items.iter().map(|item| item.key().clone()).collect()
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
        let Some(keys) = keys else { return vec![] };
        if keys.len() >= state.items.len() / MANY_OF {
            return state.side_by_side(keys);
        }
        let object = |key: &Arc<str>| state.items.get(&**key).map(KeyedObject::object);
        keys.iter().filter_map(object).collect()
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

    fn read(&self) -> RwLockReadGuard<'_, IndexerState> {
        self.state.read()
    }

    fn write(&self) -> RwLockWriteGuard<'_, IndexerState> {
        self.state.write()
    }
}

impl IndexerState {
    /// The objects of keys that are many of all: both are gone through in their order, which takes one look
    /// at each object and not a search for each key.
    fn side_by_side(&self, keys: &BTreeSet<Arc<str>>) -> Vec<Arc<Object>> {
        let mut found = Vec::with_capacity(keys.len());
        let mut keys = keys.iter();
        let Some(mut wanted) = keys.next() else { return found };
        for item in self.items.range::<str, _>((Bound::Included(&**wanted), Bound::Unbounded)) {
            if !Arc::ptr_eq(item.key(), wanted) && item.key() != wanted {
                continue;
            }
            found.push(item.object());
            match keys.next() {
                Some(next) => wanted = next,
                None => break,
            }
        }
        found
    }

    fn put(&mut self, object: Arc<Object>) -> Option<Arc<Object>> {
        let key = object.shared_key();
        let old = self.items.replace(KeyedObject(object.clone())).map(|KeyedObject(old)| old);
        for index in self.indices.values_mut() {
            let new_values = (index.values_of)(&object);
            let old_values = old.as_ref().map(|old| (index.values_of)(old)).unwrap_or_default();
            if new_values != old_values {
                index.remove(key, &old_values);
                index.insert(key, new_values);
            }
        }
        old
    }

    fn remove(&mut self, key: &str) -> Option<Arc<Object>> {
        let KeyedObject(old) = self.items.take(key)?;
        for index in self.indices.values_mut() {
            let values = (index.values_of)(&old);
            index.remove(key, &values);
        }
        Some(old)
    }
}

impl KeyedObject {
    fn key(&self) -> &Arc<str> {
        self.0.shared_key()
    }

    fn object(&self) -> Arc<Object> {
        self.0.clone()
    }
}

impl Borrow<str> for KeyedObject {
    fn borrow(&self) -> &str {
        self.key()
    }
}

impl Ord for KeyedObject {
    fn cmp(&self, other: &KeyedObject) -> Ordering {
        self.key().cmp(other.key())
    }
}

impl PartialOrd for KeyedObject {
    fn partial_cmp(&self, other: &KeyedObject) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for KeyedObject {
    fn eq(&self, other: &KeyedObject) -> bool {
        self.key() == other.key()
    }
}

impl Eq for KeyedObject {}

impl NamedIndex {
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn object(key: usize, color: usize, revision: usize) -> Arc<Object> {
        let (namespace, name) = (format!("ns{}", key % 3), format!("o{key}"));
        let labels = json!({ "color": color.to_string() });
        let metadata = json!({ "namespace": namespace, "name": name, "labels": labels,
            "resourceVersion": revision.to_string() });
        Arc::new(Object::from_value(&json!({ "metadata": metadata }), vec![]).unwrap())
    }

    fn color(object: &Object) -> Vec<String> {
        object.metadata.labels.get("color").cloned().into_iter().collect()
    }

    /// Random writes from several threads, each of which owns its keys, then a comparison with what each
    /// remembers.
    #[test]
    fn hammered_it_holds_what_was_written_last_and_its_indices_agree() {
        let indexer = Arc::new(Indexer::new());
        indexer.add_index("color", color);
        let hammer = |thread: usize| {
            let indexer = indexer.clone();
            std::thread::spawn(move || {
                let mut random = fastrand::Rng::with_seed(thread as u64);
                let mut model: BTreeMap<String, Arc<Object>> = BTreeMap::new();
                for round in 0..2_000 {
                    // One color is of many objects, the others are of few.
                    let color = random.usize(..5) * random.usize(..5);
                    let object = object(thread * 100 + random.usize(..100), color, round);
                    let key = object.key();
                    if random.usize(..4) == 0 {
                        assert_eq!(indexer.delete(&key).is_some(), model.remove(&key).is_some());
                    } else {
                        indexer.update(object.clone());
                        model.insert(key, object);
                    }
                    // A reader never sees an object under a value that it does not have.
                    let red = indexer.by_index("color", "0");
                    assert!(red.iter().all(|object| object.metadata.labels["color"] == "0"));
                }
                model
            })
        };
        let threads: Vec<_> = (0..4).map(hammer).collect();
        let model: BTreeMap<String, Arc<Object>> =
            threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect();
        let held: Vec<String> = indexer.list().iter().map(|object| format!("{object:?}")).collect();
        let expected: Vec<String> = model.values().map(|object| format!("{object:?}")).collect();
        assert_eq!(held, expected);
        indexer.add_index("late", color);
        for index in ["color", "late"] {
            let mut seen = 0;
            for value in indexer.index_values(index) {
                let found = indexer.by_index(index, &value);
                assert!(!found.is_empty() && found.iter().all(|object| color(object) == [value.clone()]));
                seen += found.len();
            }
            assert_eq!(seen, model.len(), "{index}");
        }
        // "ns1" is no part of "ns10".
        let metadata = json!({ "namespace": "ns10", "name": "o" });
        indexer.update(Arc::new(Object::from_value(&json!({ "metadata": metadata }), vec![]).unwrap()));
        for number in 0..3 {
            let (namespace, prefix) = (format!("ns{number}"), format!("ns{number}/"));
            let found: Vec<String> = indexer.in_namespace(&namespace).iter().map(|it| it.key()).collect();
            let expected: Vec<String> =
                model.keys().filter(|key| key.starts_with(&prefix)).cloned().collect();
            assert_eq!(found, expected);
        }
        assert_eq!((indexer.in_namespace("ns10").len(), indexer.in_namespace("ns").len()), (1, 0));
    }

    #[test]
    fn a_replacement_leaves_nothing_of_what_was() {
        let indexer = Indexer::new();
        indexer.add_index("color", color);
        indexer.update(object(0, 1, 1));
        indexer.replace([object(1, 2, 2)]);
        indexer.pack();
        assert_eq!(indexer.list_keys(), [Arc::from("ns1/o1")]);
        assert_eq!((indexer.in_namespace("ns0").len(), indexer.in_namespace("ns1").len()), (0, 1));
        assert_eq!(indexer.index_values("color"), ["2"]);
        assert_eq!(indexer.index_keys("color", "2"), [Arc::from("ns1/o1")]);
        assert!(indexer.by_index("nothing of the sort", "x").is_empty());
    }
}
