//! Profiles: one framework for each scheduler name that pods may have (`profile.Map`).

use std::collections::BTreeMap;
use std::sync::Arc;

use super::pod_info::PodInfo;
use super::runtime::Framework;

/// The profiles of a scheduler. Bound: what its configuration names.
pub struct Profiles {
    by_name: BTreeMap<Arc<str>, Arc<Framework>>,
    first: Arc<Framework>,
}

impl Profiles {
    /// There is always one; all of them sort the queue alike.
    pub fn new(first: Framework, others: Vec<Framework>) -> Profiles {
        let first = Arc::new(first);
        let all = std::iter::once(first.clone()).chain(others.into_iter().map(Arc::new));
        Profiles { by_name: all.map(|framework| (framework.name.clone(), framework)).collect(), first }
    }

    /// The profile of a pod; one that names none has the first.
    pub fn of(&self, pod: &PodInfo) -> &Arc<Framework> {
        self.by_name.get(&*pod.scheduler_name()).unwrap_or(&self.first)
    }

    /// Whether pods of that scheduler name are for this scheduler.
    pub fn has(&self, scheduler_name: &str) -> bool {
        self.by_name.contains_key(scheduler_name)
    }

    /// The first, whose way to sort the queue is everybody's.
    pub fn first(&self) -> &Arc<Framework> {
        &self.first
    }

    /// All of them, by name.
    pub fn all(&self) -> impl Iterator<Item = &Arc<Framework>> {
        self.by_name.values()
    }
}
