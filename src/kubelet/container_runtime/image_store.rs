//! The images of a node: which are present.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};

use machine::images::{reference, size_bytes};

/// At most so many images are remembered of a node; the one that was first in the alphabet is forgotten.
const MAX_IMAGES: usize = 2000;

/// The images that a node has: by the names that pods used, with their sizes in bytes.
#[derive(Debug, Default)]
pub struct ImageStore {
    present: Mutex<BTreeMap<String, u64>>,
}

impl ImageStore {
    /// Whether it is there.
    pub fn has(&self, image: &str) -> bool {
        self.lock().contains_key(image)
    }

    /// It was pulled.
    pub fn add(&self, image: &str) {
        let mut present = self.lock();
        present.insert(image.to_owned(), size_bytes(image));
        while present.len() > MAX_IMAGES {
            present.pop_first();
        }
    }

    /// Full names and sizes, the biggest first, as nodes report them; at most `limit` of them.
    pub fn biggest(&self, limit: usize) -> Vec<(String, u64)> {
        let named = |(name, size): (&String, &u64)| (reference(name), *size);
        let mut images: Vec<(String, u64)> = self.lock().iter().map(named).collect();
        images.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        images.dedup();
        images.truncate(limit);
        images
    }

    /// How many there are: what tells that a node's report is out of date.
    pub fn count(&self) -> usize {
        self.lock().len()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, u64>> {
        self.present.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}
