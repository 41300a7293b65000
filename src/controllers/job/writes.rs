//! Which state of each Job was written last: in a cache that has an older one, pods that were counted and let
//! go would be missing, and others would be made for them.

use std::collections::HashMap;

use apimachinery::object::Object;
use sync::{Mutex, MutexGuard};

/// Revisions by uid. Bound: an entry goes when its Job is finished or deleted.
#[derive(Default)]
pub(super) struct Writes(Mutex<HashMap<String, u64>>);

impl Writes {
    /// A status was written.
    pub(super) fn note(&self, job: &Object) {
        self.lock().insert(job.metadata.uid.clone(), job.metadata.resource_version);
    }

    /// Whether this state is from before our last write: the one that follows it will be heard of.
    pub(super) fn are_ahead_of(&self, job: &Object) -> bool {
        let written = self.lock().get(&job.metadata.uid).copied();
        written.is_some_and(|written| job.metadata.resource_version < written)
    }

    /// The Job does not matter any more.
    pub(super) fn forget(&self, uid: &str) {
        self.lock().remove(uid);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, u64>> {
        self.0.lock()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn job(revision: u64) -> Object {
        let tree = json!({"metadata": {"name": "a", "uid": "u", "resourceVersion": revision.to_string()}});
        Object::from_value(&tree, vec![]).unwrap()
    }

    #[test]
    fn an_older_state_is_behind_until_the_job_is_forgotten() {
        let writes = Writes::default();
        assert!(!writes.are_ahead_of(&job(3)));
        writes.note(&job(5));
        assert!(
            writes.are_ahead_of(&job(3)) && !writes.are_ahead_of(&job(5)) && !writes.are_ahead_of(&job(6))
        );
        writes.forget("u");
        assert!(!writes.are_ahead_of(&job(3)));
    }
}
