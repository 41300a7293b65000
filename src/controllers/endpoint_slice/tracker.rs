//! What was written of slices and is not in the cache yet (`EndpointSliceTracker`): a cache that lacks our
//! last writes would make us write them again, under other names.

use std::collections::HashMap;
use std::sync::Arc;

use super::super::controller::Key;
use apimachinery::object::Object;
use client_go::lister::Lister;
use sync::{Mutex, MutexGuard};

/// The slices that were written, by the key of whose they are, until the cache has them. Bound: one entry for
/// each key, forgotten with it. Cloning shares it.
#[derive(Clone, Default)]
pub(crate) struct SliceTracker(Arc<Mutex<HashMap<Key, Vec<Arc<Object>>>>>);

impl SliceTracker {
    /// Whether the cache lacks a write.
    pub(crate) fn is_stale(&self, slices: &Lister, key: &Key) -> bool {
        let mut all = self.lock();
        let Some(written) = all.get_mut(key) else { return false };
        written.retain(|slice| {
            let cached = slices.get(&slice.metadata.namespace, &slice.metadata.name);
            cached.is_none_or(|cached| cached.metadata.resource_version < slice.metadata.resource_version)
        });
        let is_stale = !written.is_empty();
        if !is_stale {
            all.remove(key);
        }
        is_stale
    }

    /// A slice was created or replaced.
    pub(crate) fn note_written(&self, key: &Key, slice: Arc<Object>) {
        let mut all = self.lock();
        let written = all.entry(key.clone()).or_default();
        written.retain(|other| other.metadata.uid != slice.metadata.uid);
        written.push(slice);
    }

    /// A slice that is gone is not waited for (`HandleDeletion`).
    pub(crate) fn note_deleted(&self, key: &Key, name: &str) {
        if let Some(written) = self.lock().get_mut(key) {
            written.retain(|slice| slice.metadata.name != name);
        }
    }

    /// Whose they are is gone.
    pub(crate) fn forget(&self, key: &Key) {
        self.lock().remove(key);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, Vec<Arc<Object>>>> {
        self.0.lock()
    }
}
