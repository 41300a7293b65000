//! What the sample apiserver keeps, in place of the etcd beside it.

use std::collections::{BTreeMap, VecDeque};

use serde_json::Value;

/// So many objects are kept; one more is refused.
pub(super) const MAX_OBJECTS: usize = 1000;
/// So many events are remembered for watches; one that begins before them is told that it is too old.
const MAX_EVENTS: usize = 1000;

/// Plural, namespace and name.
pub(super) type WardleKey = (&'static str, String, String);

/// An object, and the revision that it was written with.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct KeptSample {
    pub(super) revision: u64,
    pub(super) object: Value,
}

/// What has become of an object.
#[derive(Debug)]
pub(super) struct WardleEvent {
    pub(super) what: &'static str,
    pub(super) key: WardleKey,
    pub(super) kept: KeptSample,
}

/// All of it. Bounds: [`MAX_OBJECTS`], [`MAX_EVENTS`].
#[derive(Debug, Default)]
pub(crate) struct WardleStore {
    revision: u64,
    objects: BTreeMap<WardleKey, KeptSample>,
    events: VecDeque<WardleEvent>,
}

impl WardleStore {
    /// That of the last write; a store of which nothing was written has one, too.
    pub(super) fn revision(&self) -> u64 {
        self.revision.max(1)
    }

    pub(super) fn get(&self, key: &WardleKey) -> Option<&KeptSample> {
        self.objects.get(key)
    }

    /// Of one namespace, or of all.
    pub(super) fn all<'s, 'k>(
        &'s self,
        plural: &'k str,
        namespace: &'k str,
    ) -> impl Iterator<Item = &'s KeptSample> {
        let is_meant = move |key: &WardleKey| key.0 == plural && (namespace.is_empty() || key.1 == namespace);
        self.objects.iter().filter(move |(key, _)| is_meant(key)).map(|(_, kept)| kept)
    }

    /// What was written; nothing where there is no room.
    pub(super) fn put(&mut self, key: WardleKey, object: Value) -> Option<KeptSample> {
        let is_new = !self.objects.contains_key(&key);
        if is_new && self.objects.len() >= MAX_OBJECTS {
            return None;
        }
        self.revision = self.revision() + 1;
        let kept = KeptSample { revision: self.revision, object };
        self.objects.insert(key.clone(), kept.clone());
        self.note(if is_new { "ADDED" } else { "MODIFIED" }, key, kept.clone());
        Some(kept)
    }

    pub(super) fn remove(&mut self, key: &WardleKey) -> Option<KeptSample> {
        let mut kept = self.objects.remove(key)?;
        self.revision = self.revision() + 1;
        kept.revision = self.revision;
        self.note("DELETED", key.clone(), kept.clone());
        Some(kept)
    }

    fn note(&mut self, what: &'static str, key: WardleKey, kept: KeptSample) {
        self.events.push_back(WardleEvent { what, key, kept });
        while self.events.len() > MAX_EVENTS {
            self.events.pop_front();
        }
    }

    /// What has happened since a revision; nothing where that is forgotten.
    pub(super) fn since(&self, revision: u64) -> Option<impl Iterator<Item = &WardleEvent>> {
        // Each write has the next number.
        let first = self.revision().saturating_sub(self.events.len() as u64);
        (revision >= first).then(|| self.events.iter().filter(move |event| event.kept.revision > revision))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn at_its_bounds_it_refuses_and_forgets() {
        let mut store = WardleStore::default();
        let key = |name: usize| ("flunders", "a".to_owned(), name.to_string());
        assert!((0..MAX_OBJECTS).all(|name| store.put(key(name), json!({})).is_some()));
        assert!(store.put(key(MAX_OBJECTS), json!({})).is_none());
        let begun = 1;
        assert_eq!(store.since(begun).unwrap().count(), MAX_OBJECTS);
        store.put(key(0), json!({})).unwrap();
        assert!(store.since(begun).is_none() && store.since(begun + 1).is_some());
        assert_eq!(store.since(store.revision()).unwrap().count(), 0);
        assert_eq!(store.remove(&key(1)).unwrap().revision, store.revision());
        assert_eq!(store.since(store.revision() - 1).unwrap().next().unwrap().what, "DELETED");
    }
}
