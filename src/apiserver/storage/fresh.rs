//! Objects that were just written: a write is read into an [`Object`] once, by its writer or by the watch
//! cache, whoever comes first, and the other takes what the first has made.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use apimachinery::object::Object;
use apimachinery::status::Status;
use etcd::Revision;
use sync::{Mutex, MutexGuard};

/// Writes that may lie between the first of the two and the second. At the bound the second reads for itself.
const SLOTS: usize = 256;

/// The objects of the last writes that one of the two has not asked for yet.
#[derive(Debug)]
pub(super) struct Fresh {
    slots: Mutex<FreshSlots>,
    hasher: RandomState,
}

/// By revision, modulo their number; of those of one revision the last, each with the hash of its key.
type FreshSlots = Box<[Option<(Revision, u64, Arc<Object>)>]>;

impl Default for Fresh {
    fn default() -> Fresh {
        Fresh { slots: Mutex::new(vec![None; SLOTS].into()), hasher: RandomState::new() }
    }
}

impl Fresh {
    /// The object of a write to a whole key: what the other has left here, or what `read` makes, which is
    /// left for the other.
    ///
    /// # Errors
    /// That of `read`.
    pub(super) fn object(
        &self,
        revision: Revision,
        key: &str,
        read: impl FnOnce() -> Result<Arc<Object>, Status>,
    ) -> Result<Arc<Object>, Status> {
        let key = self.hasher.hash_one(key);
        if let Some(object) = self.take(revision, key) {
            return Ok(object);
        }
        let object = read()?;
        self.lock()[slot(revision)] = Some((revision, key, object.clone()));
        Ok(object)
    }

    fn take(&self, revision: Revision, key: u64) -> Option<Arc<Object>> {
        let taken = self.lock()[slot(revision)].take_if(|(at, of, _)| (*at, *of) == (revision, key));
        taken.map(|(.., object)| object)
    }

    fn lock(&self) -> MutexGuard<'_, FreshSlots> {
        self.slots.lock()
    }
}

fn slot(revision: Revision) -> usize {
    (revision % SLOTS as Revision) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_second_takes_what_the_first_has_made() {
        let (fresh, made) = (Fresh::default(), std::cell::Cell::new(0));
        let object_of = |revision, key| {
            let read = || {
                made.set(made.get() + 1);
                Ok(Arc::new(Object::from_value(&json!({"metadata": {"name": "a"}}), vec![]).unwrap()))
            };
            fresh.object(revision, key, read).unwrap()
        };
        let object = |revision| object_of(revision, "/a");
        assert!(Arc::ptr_eq(&object(7), &object(7)));
        assert_eq!(made.get(), 1);
        let first = object(8);
        object(8 + SLOTS as u64);
        assert!(!Arc::ptr_eq(&first, &object(8)));
        assert_eq!(made.get(), 4);
        // Two keys that were written in one step.
        assert!(!Arc::ptr_eq(&object_of(9, "/a"), &object_of(9, "/b")));
        assert_eq!(made.get(), 6);
        assert!(fresh.object(1, "/a", || Err(Status::internal("none"))).is_err());
    }
}
