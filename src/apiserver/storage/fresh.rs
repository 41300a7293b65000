//! Objects that were just written: a write is read into an [`Object`] once, by its writer or by the watch
//! cache, whoever comes first, and the other takes what the first has made.

use std::sync::Arc;

use apimachinery::object::Object;
use apimachinery::status::Status;
use etcd::Revision;
use sync::{Mutex, MutexGuard};

/// Writes that may lie between the first of the two and the second. At the bound the second reads for itself.
const SLOTS: usize = 256;

/// The objects of the last writes that one of the two has not asked for yet.
#[derive(Debug)]
pub(super) struct Fresh(Mutex<FreshSlots>);

/// By revision, modulo their number.
type FreshSlots = Box<[Option<(Revision, Arc<Object>)>]>;

impl Default for Fresh {
    fn default() -> Fresh {
        Fresh(Mutex::new(vec![None; SLOTS].into()))
    }
}

impl Fresh {
    /// The object of a write: what the other has left here, or what `read` makes, which is left for the
    /// other.
    ///
    /// # Errors
    /// That of `read`.
    pub(super) fn object(
        &self,
        revision: Revision,
        read: impl FnOnce() -> Result<Arc<Object>, Status>,
    ) -> Result<Arc<Object>, Status> {
        if let Some(object) = self.take(revision) {
            return Ok(object);
        }
        let object = read()?;
        self.lock()[slot(revision)] = Some((revision, object.clone()));
        Ok(object)
    }

    fn take(&self, revision: Revision) -> Option<Arc<Object>> {
        let taken = self.lock()[slot(revision)].take_if(|(at, _)| *at == revision);
        taken.map(|(_, object)| object)
    }

    fn lock(&self) -> MutexGuard<'_, FreshSlots> {
        self.0.lock()
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
        let object = |revision| {
            let read = || {
                made.set(made.get() + 1);
                Ok(Arc::new(Object::from_value(&json!({"metadata": {"name": "a"}}), vec![]).unwrap()))
            };
            fresh.object(revision, read).unwrap()
        };
        assert!(Arc::ptr_eq(&object(7), &object(7)));
        assert_eq!(made.get(), 1);
        let first = object(8);
        object(8 + SLOTS as u64);
        assert!(!Arc::ptr_eq(&first, &object(8)));
        assert_eq!(made.get(), 4);
        assert!(fresh.object(1, || Err(Status::internal("none"))).is_err());
    }
}
