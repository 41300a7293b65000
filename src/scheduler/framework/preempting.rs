//! Pods whose victims are on their way out (`framework/preemption.Executor`): nobody tries them again before
//! that is done, since then they would find fewer victims gone than were sent away, and send away more.

use std::collections::HashMap;
use std::sync::Arc;

use sync::{Mutex, MutexGuard};

use apimachinery::object::Object;
use client_go::lister::Lister;

/// Those that make room. Cloning shares it. Bound: the pods for which victims are being evicted at a time.
#[derive(Clone)]
pub struct Preempting {
    /// What the watch knows of victims.
    pods: Lister,
    /// By the uid of whom room is made for, with the last of its victims once only that is left.
    inner: Arc<Mutex<HashMap<String, Option<Arc<Object>>>>>,
}

impl Preempting {
    /// Nobody yet.
    pub fn new(pods: Lister) -> Preempting {
        Preempting { pods, inner: Arc::default() }
    }

    /// Room is made for a pod from now on.
    pub(crate) fn begin(&self, uid: &str) {
        self.lock().insert(uid.to_owned(), None);
    }

    /// Only this victim of it is left.
    pub(crate) fn is_left(&self, uid: &str, victim: &Arc<Object>) {
        if let Some(last) = self.lock().get_mut(uid) {
            *last = Some(victim.clone());
        }
    }

    /// All its victims were sent away.
    pub(crate) fn end(&self, uid: &str) {
        self.lock().remove(uid);
    }

    /// Whether victims of a pod are still to be sent away (`IsPodRunningPreemption`). Of the last one the
    /// watch may know it before its eviction is answered, and nothing else would wake the pod.
    pub(crate) fn is_running(&self, uid: &str) -> bool {
        let last = match self.lock().get(uid) {
            None => return false,
            Some(last) => last.clone(),
        };
        let Some(victim) = last else { return true };
        let known = self.pods.get(&victim.metadata.namespace, &victim.metadata.name);
        known.is_some_and(|known| known.metadata.uid == victim.metadata.uid && !known.is_deleting())
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Option<Arc<Object>>>> {
        self.inner.lock()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::pod;
    use client_go::indexer::Indexer;
    use serde_json::json;

    #[test]
    fn a_pod_waits_until_its_last_victim_goes() {
        let known = Arc::new(Indexer::new());
        let preempting = Preempting::new(Lister::new(known.clone()));
        let victim = pod("victim", json!({})).object.clone();
        known.update(victim.clone());
        assert!(!preempting.is_running("preemptor"));
        preempting.begin("preemptor");
        assert!(preempting.is_running("preemptor"));
        preempting.is_left("preemptor", &victim);
        assert!(preempting.is_running("preemptor"), "the watch has not shown that it goes");
        known.delete(&victim.key());
        assert!(!preempting.is_running("preemptor"));
        preempting.end("preemptor");
        assert!(!preempting.is_running("preemptor"));
    }
}
