//! The finalizer that keeps a Job's pods until they are counted: who has lost it although the cache does not
//! show it yet, and the patch that removes it.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use serde_json::json;
use sync::{Mutex, MutexGuard};

use super::pods::{TRACKING_FINALIZER, has_finalizer};
use crate::controller::{Change, Reconcile};
use apimachinery::object::Object;
use apimachinery::options::PatchType;
use apimachinery::status::Status;
use apis::core::pod::PODS;

/// The uids of the pods whose finalizers were removed and whose change is still to be seen, by the uid of
/// their Job (upstream's `uidTrackingExpectations`). Bound: a pod goes when its change is seen, a Job when it
/// is deleted.
#[derive(Clone, Default)]
pub(super) struct FinalizerExpectations(Arc<Mutex<HashMap<String, BTreeSet<String>>>>);

impl FinalizerExpectations {
    /// The pods of a Job that have lost it.
    pub(super) fn released(&self, job: &str) -> BTreeSet<String> {
        self.lock().get(job).cloned().unwrap_or_default()
    }

    /// Pods are about to lose it.
    pub(super) fn expect<'a>(&self, job: &str, pods: impl Iterator<Item = &'a str>) {
        self.lock().entry(job.to_owned()).or_default().extend(pods.map(str::to_owned));
    }

    /// A pod was seen without it, or could not be patched.
    pub(super) fn observed(&self, job: &str, pod: &str) {
        let mut jobs = self.lock();
        let Some(pods) = jobs.get_mut(job) else { return };
        pods.remove(pod);
        if pods.is_empty() {
            jobs.remove(job);
        }
    }

    /// The Job is gone.
    pub(super) fn forget(&self, job: &str) {
        self.lock().remove(job);
    }

    /// What a change of a pod shows.
    pub(super) fn observe(&self, change: &Change<'_>) {
        let pod = change.object();
        if has_finalizer(pod) && !matches!(change, Change::Deleted(_)) {
            return;
        }
        let owners = [Some(pod), change.old()].into_iter().flatten().filter_map(|state| state.controller());
        for owner in owners.filter(|owner| owner.kind == "Job") {
            self.observed(&owner.uid, &pod.metadata.uid);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, BTreeSet<String>>> {
        self.0.lock()
    }
}

/// Removes the finalizer; a pod that is gone already has none.
pub(super) async fn remove_finalizer(ctx: &Reconcile, pod: &Object) -> Result<(), Status> {
    let (namespace, name) = (&pod.metadata.namespace, &pod.metadata.name);
    let patch = json!({"metadata": {"$deleteFromPrimitiveList/finalizers": [TRACKING_FINALIZER]}});
    match ctx.client.patch(&PODS, namespace, name, PatchType::StrategicMerge, &patch).await {
        Err(error) if error.is_not_found() => Ok(()),
        other => other.map(drop),
    }
}
