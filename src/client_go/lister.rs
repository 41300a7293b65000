//! `Lister`: reads an informer's cache (client-go's generated listers).

use std::sync::Arc;

use super::indexer::Indexer;
use apimachinery::labels::Selector;
use apimachinery::object::{Object, object_key};

/// The index of [`Lister::chosen`].
const LABEL_INDEX: &str = "label";

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

    /// What [`Lister::list`] gives of a namespace, for who asks again and again, as autoscalers do: it is
    /// looked up by a label of which the selector wants one value. That index is made when somebody first
    /// asks.
    pub fn chosen(&self, namespace: &str, selector: &Selector) -> Vec<Arc<Object>> {
        let Some((label, value)) = selector.one_value() else { return self.list(namespace, selector) };
        if namespace.is_empty() {
            return self.list(namespace, selector);
        }
        self.indexer.need_index(LABEL_INDEX, label_places);
        let mut found = self.indexer.by_index(LABEL_INDEX, &label_place(namespace, label, value));
        found.retain(|object| selector.matches(&object.metadata.labels));
        found
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

fn label_places(object: &Object) -> Vec<String> {
    let metadata = &object.metadata;
    let place = |(label, value): (&String, &String)| label_place(&metadata.namespace, label, value);
    metadata.labels.iter().map(place).collect()
}

fn label_place(namespace: &str, label: &str, value: &str) -> String {
    format!("{namespace}/{label}={value}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_chosen_by_a_label_is_what_a_list_has() {
        let lister = Lister::new(Arc::new(Indexer::new()));
        let put = |namespace: &str, name: &str, labels: serde_json::Value| {
            let metadata = json!({"namespace": namespace, "name": name, "labels": labels});
            let object = Object::from_value(&json!({ "metadata": metadata }), vec![]).unwrap();
            lister.indexer.update(Arc::new(object));
        };
        put("a", "2", json!({"app": "web", "tier": "front"}));
        put("a", "1", json!({"app": "web"}));
        put("a", "3", json!({}));
        put("ab", "4", json!({"app": "web"}));
        let names = |namespace: &str, selector: &str| {
            let selector = Selector::parse(selector).unwrap();
            let names = |objects: Vec<Arc<Object>>| {
                objects.iter().map(|object| object.metadata.name.to_string()).collect::<Vec<_>>()
            };
            let chosen = names(lister.chosen(namespace, &selector));
            assert_eq!(chosen, names(lister.list(namespace, &selector)), "{namespace} {selector}");
            chosen
        };
        assert_eq!(names("a", "app=web"), ["1", "2"]);
        assert_eq!(names("a", "tier,app=web"), ["2"]);
        assert_eq!(names("a", "app in (web,db)"), ["1", "2"]);
        assert_eq!(names("a", "!app"), ["3"]);
        assert_eq!(names("", "app=web"), ["1", "2", "4"]);
        // What changes later is found as well.
        put("a", "1", json!({"app": "db"}));
        put("a", "3", json!({"app": "web"}));
        assert_eq!(names("a", "app=web"), ["2", "3"]);
        assert_eq!(names("a", "app=none"), [""; 0]);
    }
}
