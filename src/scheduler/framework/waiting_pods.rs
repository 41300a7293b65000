//! Pods that wait to be permitted (`framework/runtime.waitingPodsMap`): reserved, and not bound before all
//! plugins that let them wait allow it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use sync::{Mutex, MutexGuard};
use tokio::sync::Notify;

use super::status::Status;
use clock::Clock;

/// Nobody waits longer to be permitted (`maxTimeout`).
pub const MAX_PERMIT_TIMEOUT: Duration = Duration::from_secs(15 * 60);

/// The pods that wait, by uid. Cloning shares it. Bound: the pods between Permit and Bind.
#[derive(Clone, Default)]
pub struct WaitingPods {
    inner: Arc<Mutex<BTreeMap<String, PendingPermit>>>,
}

struct PendingPermit {
    /// The plugins that have not allowed it yet, and until when each lets it wait.
    pending: BTreeMap<&'static str, Duration>,
    rejected: Option<Status>,
    changed: Arc<Notify>,
}

impl WaitingPods {
    /// The uids of those that wait.
    pub fn uids(&self) -> BTreeSet<String> {
        self.lock().keys().cloned().collect()
    }

    /// Whether a pod waits.
    pub fn has(&self, uid: &str) -> bool {
        self.lock().contains_key(uid)
    }

    /// A plugin lets a pod go on. Nothing happens if it does not wait for that plugin.
    pub fn allow(&self, uid: &str, plugin: &str) {
        if let Some(pod) = self.lock().get_mut(uid) {
            pod.pending.remove(plugin);
            pod.changed.notify_one();
        }
    }

    /// A plugin will not have a pod bound.
    pub fn reject(&self, uid: &str, plugin: &'static str, reason: &str) {
        if let Some(pod) = self.lock().get_mut(uid) {
            pod.rejected.get_or_insert(Status::unschedulable(reason.to_owned()).by(plugin));
            pod.changed.notify_one();
        }
    }

    /// A pod waits for these plugins, for each so long; with none it does not wait.
    pub(crate) fn add(&self, uid: &str, plugins: &[(&'static str, Duration)], clock: &Clock) {
        if plugins.is_empty() {
            return;
        }
        let now = clock.elapsed();
        let until = |timeout: &Duration| now + (*timeout).min(MAX_PERMIT_TIMEOUT);
        let pending = plugins.iter().map(|(name, timeout)| (*name, until(timeout))).collect();
        let pod = PendingPermit { pending, rejected: None, changed: Arc::default() };
        self.lock().insert(uid.to_owned(), pod);
    }

    /// `WaitOnPermit`: success once all have allowed it.
    pub(crate) async fn wait(&self, uid: &str, clock: &Clock) -> Status {
        let status = loop {
            let (changed, until) = match self.look(uid, clock) {
                Ok(waits) => waits,
                Err(status) => break status,
            };
            let left = until.saturating_sub(clock.elapsed());
            let _ = clock.timeout(left, changed.notified()).await;
        };
        self.forget(uid);
        status
    }

    /// It will not be bound.
    pub(crate) fn forget(&self, uid: &str) {
        self.lock().remove(uid);
    }

    /// What is to be waited for and until when; or what came of it.
    fn look(&self, uid: &str, clock: &Clock) -> Result<(Arc<Notify>, Duration), Status> {
        let inner = self.lock();
        let Some(pod) = inner.get(uid) else { return Err(Status::success()) };
        if let Some(rejected) = &pod.rejected {
            return Err(rejected.clone());
        }
        let Some((plugin, until)) = pod.pending.iter().min_by_key(|(_, until)| **until) else {
            return Err(Status::success());
        };
        if *until <= clock.elapsed() {
            let text = format!("rejected due to timeout after waiting at plugin {plugin}");
            return Err(Status::unschedulable(text).by(plugin));
        }
        Ok((pod.changed.clone(), *until))
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, PendingPermit>> {
        self.inner.lock()
    }
}
