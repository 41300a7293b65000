//! The status manager: which pod statuses are to be written, and writing them (`pkg/kubelet/status`).
//!
//! A status is written whole, and only the newest of a pod: what changes while a write is on its way waits
//! for its end and goes as one. When nothing of a deleted pod runs any more its final status is written, and
//! then the delete with no grace that makes it go.

use std::collections::{BTreeMap, HashSet};
use std::hash::{DefaultHasher, Hasher};
use std::io;
use std::sync::Arc;

use serde_json::Value;

use apimachinery::options::{DeleteOptions, PatchType, Preconditions};
use apimachinery::status::Status;
use apis::core::pod::PODS;
use client_go::client::Client;

/// Writes of one node that are under way at once; further ones wait, at most one for each pod.
const MAX_IN_FLIGHT: usize = 16;

/// What is to be written of one pod.
pub struct StatusWrite {
    /// Asks in the node's name.
    pub client: Client,
    /// The pod's namespace and name.
    pub namespace: String,
    /// See [`StatusWrite::namespace`].
    pub name: String,
    /// The pod's uid: another pod of that name is none of ours.
    pub uid: Arc<str>,
    /// The patch that brings its status up to date.
    pub patch: Option<Value>,
    /// Whether it is to go.
    pub delete: bool,
}

/// The writes that wait and those under way.
#[derive(Default)]
pub struct StatusManager {
    waiting: BTreeMap<Arc<str>, StatusWrite>,
    in_flight: HashSet<Arc<str>>,
}

impl StatusManager {
    /// Has a write wait for its turn; it takes the place of an older one of the same pod.
    pub fn add(&mut self, mut write: StatusWrite) {
        if let Some(older) = self.waiting.remove(&write.uid) {
            write.patch = write.patch.or(older.patch);
            write.delete |= older.delete;
        }
        self.waiting.insert(write.uid.clone(), write);
    }

    /// The next write that may go now. [`StatusManager::finish`] follows.
    pub fn take(&mut self) -> Option<StatusWrite> {
        if self.in_flight.len() >= MAX_IN_FLIGHT {
            return None;
        }
        let uid = self.waiting.keys().find(|uid| !self.in_flight.contains(*uid))?.clone();
        self.in_flight.insert(uid.clone());
        self.waiting.remove(&uid)
    }

    /// A write of the pod has ended, well or badly.
    pub fn finish(&mut self, uid: &str) {
        self.in_flight.remove(uid);
    }

    /// Whether nothing of a pod waits to be written, or is under way.
    pub(crate) fn has_written(&self, uid: &Arc<str>) -> bool {
        !self.waiting.contains_key(uid) && !self.in_flight.contains(uid)
    }

    #[cfg(test)]
    pub(crate) fn begin(&mut self, uid: &Arc<str>) {
        self.in_flight.insert(uid.clone());
    }

    /// Nothing is under way: whoever wrote has been restarted.
    pub fn reset(&mut self) {
        self.in_flight.clear();
    }

    /// The pod is gone: nothing is to be written of it.
    pub fn forget(&mut self, uid: &str) {
        self.waiting.remove(uid);
    }
}

/// After all revisions: of a pod that is gone nothing is put back any more, also before the watch tells
/// of it. To write once more would be answered at once, and again, and nobody else would get to work.
pub(crate) const GONE: u64 = u64::MAX;

impl StatusWrite {
    /// Writes, and says which revision the pod has then. That it is gone is no error ([`GONE`]). A
    /// conflict is one: it
    /// may be another's write that came between, and of a pod that is another one by now the watch tells.
    pub async fn perform(&self) -> Result<u64, Status> {
        let mut revision = 0;
        let (namespace, name) = (self.namespace.as_str(), self.name.as_str());
        if let Some(patch) = &self.patch {
            let patched =
                self.client.patch_status(&PODS, namespace, name, PatchType::StrategicMerge, patch).await;
            revision = match patched {
                Ok(pod) => pod.metadata.resource_version,
                Err(status) if status.is_not_found() => GONE,
                Err(status) => return Err(status),
            };
        }
        if self.delete {
            let preconditions = Preconditions { uid: Some(self.uid.to_string()), resource_version: None };
            let (grace_period_seconds, preconditions) = (Some(0), Some(preconditions));
            let options = DeleteOptions { grace_period_seconds, preconditions, ..DeleteOptions::default() };
            let deleted = self.client.delete(&PODS, namespace, name, &options).await;
            deleted.or_else(|status| if status.is_not_found() { Ok(()) } else { Err(status) })?;
            revision = GONE;
        }
        Ok(revision)
    }
}

/// A fingerprint: statuses with the same one are the same.
pub fn fingerprint(status: &Value) -> u64 {
    struct Sink(DefaultHasher);
    impl io::Write for Sink {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.write(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut sink = Sink(DefaultHasher::new());
    serde_json::to_writer(&mut sink, status).expect("a hash takes everything");
    sink.0.finish()
}
