//! `Lister`: reads an informer's cache (client-go's generated listers).

use std::sync::Arc;

use super::indexer::Indexer;
use apimachinery::labels::Selector;
use apimachinery::object::{Object, object_key};

/// A view on an indexer. Cloning shares it. What is returned is shared with everybody and never changes; it
/// may be older than what the apiserver has.
#[derive(Clone)]
pub struct Lister {
    indexer: Arc<Indexer>,
}

impl Lister {
    /// Reads `indexer`.
    pub fn new(indexer: Arc<Indexer>) -> Lister {
        Lister { indexer }
    }

    /// One object; `namespace` is empty for cluster-scoped kinds.
    pub fn get(&self, namespace: &str, name: &str) -> Option<Arc<Object>> {
        self.indexer.get_by_key(&object_key(namespace, name))
    }

    /// The object at a key, as a work queue holds it.
    pub fn get_by_key(&self, key: &str) -> Option<Arc<Object>> {
        self.indexer.get_by_key(key)
    }

    /// The objects whose labels match, in a namespace or (empty) in all; in key order.
    pub fn list(&self, namespace: &str, selector: &Selector) -> Vec<Arc<Object>> {
        let matches = |object: &Object| selector.matches(&object.metadata.labels);
        if !namespace.is_empty() {
            return self.indexer.in_namespace_where(namespace, matches);
        }
        let mut objects = self.indexer.list();
        objects.retain(|object| matches(object));
        objects
    }

    /// The objects that have `value` in an index that was added by name; in key order.
    pub fn by_index(&self, index: &str, value: &str) -> Vec<Arc<Object>> {
        self.indexer.by_index(index, value)
    }

    /// Waits until something is so that depends on what the watch has shown.
    pub async fn until(&self, is_so: impl Fn() -> bool) {
        self.indexer.until(is_so).await;
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.indexer.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.indexer.is_empty()
    }

    /// Every object, in key order.
    pub fn all(&self) -> Vec<Arc<Object>> {
        self.indexer.list()
    }
}
