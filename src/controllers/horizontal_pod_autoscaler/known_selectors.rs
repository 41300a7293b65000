//! `KnownSelectors`: what each autoscaler chooses, and who chooses a pod (`hpaSelectors`, a `BiMultimap`).
//!
//! Nearly every selector wants one value of a label. By that they are found, so that a pod need not be held
//! against the selectors of all autoscalers of its namespace, each time that any of them is looked at.

use std::collections::{BTreeMap, BTreeSet};

use crate::controller::Key;
use apimachinery::labels::Selector;
use apimachinery::object::{Object, split_key};

/// A namespace, and a label with its value.
type SelectorPlace = (String, Option<(String, String)>);

/// The selectors. Bound: one for each autoscaler.
#[derive(Default)]
pub(super) struct KnownSelectors {
    by_key: BTreeMap<Key, Selector>,
    /// Their autoscalers, by namespace and the label and value that each wants; nothing where it wants none.
    by_label: BTreeMap<SelectorPlace, BTreeSet<Key>>,
}

impl KnownSelectors {
    /// An autoscaler chooses so.
    pub(super) fn put(&mut self, key: &Key, selector: &Selector) {
        if self.by_key.get(key) == Some(selector) {
            return;
        }
        self.remove(key);
        self.by_key.insert(key.clone(), selector.clone());
        self.by_label.entry(place(key, selector)).or_default().insert(key.clone());
    }

    /// An autoscaler is gone.
    pub(super) fn remove(&mut self, key: &Key) {
        let Some(selector) = self.by_key.remove(key) else { return };
        let place = place(key, &selector);
        let Some(keys) = self.by_label.get_mut(&place) else { return };
        keys.remove(key);
        if keys.is_empty() {
            self.by_label.remove(&place);
        }
    }

    /// The autoscalers that choose a pod, and add to these.
    pub(super) fn add_choosing(&self, pod: &Object, choosing: &mut BTreeSet<Key>) {
        let (namespace, labels) = (&pod.metadata.namespace, &pod.metadata.labels);
        let wanted = labels.iter().map(|(label, value)| Some((label.clone(), value.clone())));
        for place in wanted.chain([None]) {
            let here = self.by_label.get(&(namespace.clone(), place));
            let chooses = |key: &&Key| self.by_key.get(*key).is_some_and(|selector| selector.matches(labels));
            choosing.extend(here.into_iter().flatten().filter(chooses).cloned());
        }
    }
}

/// Where a selector is found.
fn place(key: &Key, selector: &Selector) -> SelectorPlace {
    let wanted = selector.one_value().map(|(label, value)| (label.to_owned(), value.to_owned()));
    (split_key(key).0.to_owned(), wanted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn whoever_chooses_a_pod_is_found_however_it_is_said() {
        let mut known = KnownSelectors::default();
        let texts = [
            ("a/equal", "app=web"),
            ("a/other", "app=db"),
            ("a/set", "app in (web,db)"),
            ("b/equal", "app=web"),
        ];
        for (key, text) in texts {
            known.put(&key.into(), &Selector::parse(text).unwrap());
        }
        known.put(&"a/more".into(), &Selector::parse("app=web,tier=front").unwrap());
        known.put(&"a/all".into(), &Selector::parse("tier").unwrap());
        let choosing = |known: &KnownSelectors, labels: serde_json::Value| {
            let pod = json!({"metadata": {"name": "p", "namespace": "a", "labels": labels}});
            let mut choosing = BTreeSet::new();
            known.add_choosing(&Object::from_value(&pod, vec![]).unwrap(), &mut choosing);
            choosing.iter().map(|key| key.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(choosing(&known, json!({"app": "web"})), ["a/equal", "a/set"]);
        assert_eq!(
            choosing(&known, json!({"app": "web", "tier": "front"})),
            ["a/all", "a/equal", "a/more", "a/set"]
        );
        assert_eq!(choosing(&known, json!({})), [""; 0]);
        known.put(&"a/equal".into(), &Selector::parse("app=db").unwrap());
        known.remove(&"a/set".into());
        assert_eq!(choosing(&known, json!({"app": "web"})), [""; 0]);
        assert_eq!(choosing(&known, json!({"app": "db"})), ["a/equal", "a/other"]);
    }
}
