//! Who watches what (`watch_tracker.go`): how many a write will wake.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use sync::{Mutex, MutexGuard};

use crate::request::RequestInfo;

/// Counts watches by group, resource, namespace and name. Other selectors do not matter: each event has to
/// be looked at for each of them.
#[derive(Default)]
pub(super) struct WatchTracker {
    /// By the hash of what is watched. Bound: the watches there are.
    counts: Mutex<HashMap<u64, usize>>,
    hasher: RandomState,
}

/// A watch that is counted until this is dropped.
pub struct Watching {
    watches: Arc<WatchTracker>,
    key: u64,
}

impl WatchTracker {
    /// Nothing for a watch that an index keeps from most events: of one node's pods.
    pub(super) fn register(self: &Arc<Self>, info: &RequestInfo) -> Option<Watching> {
        let mut terms = info.field_selector.split(',');
        let node = terms.find_map(|term| term.strip_prefix("spec.nodeName="));
        if info.resource == "pods" && node.is_some_and(|node| !node.trim_start_matches('=').is_empty()) {
            return None;
        }
        let key = self.key(info, &info.namespace, &info.name);
        *self.lock().entry(key).or_default() += 1;
        Some(Watching { watches: self.clone(), key })
    }

    /// How many watches a write of that may wake.
    pub(super) fn interested_in(&self, info: &RequestInfo) -> usize {
        let counts = self.lock();
        if counts.is_empty() {
            return 0;
        }
        let of = |namespace: &str, name: &str| {
            counts.get(&self.key(info, namespace, name)).copied().unwrap_or_default()
        };
        let RequestInfo { namespace, name, .. } = info;
        let of_namespace = if namespace.is_empty() { 0 } else { of(namespace, "") };
        let of_name = if name.is_empty() { 0 } else { of(namespace, name) };
        of("", "") + of_namespace + of_name
    }

    fn key(&self, info: &RequestInfo, namespace: &str, name: &str) -> u64 {
        self.hasher.hash_one((&info.group, &info.resource, namespace, name))
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, usize>> {
        self.counts.lock()
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        let mut counts = self.watches.lock();
        if let Some(count) = counts.get_mut(&self.key) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(method: &str, path: &str) -> RequestInfo {
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        RequestInfo::new(&method.parse().unwrap(), path, query).unwrap()
    }

    #[test]
    fn writes_wake_those_who_watch_the_kind_the_namespace_or_the_object() {
        let watches = Arc::new(WatchTracker::default());
        let watching: Vec<_> = [
            "/api/v1/pods?watch=1",
            "/api/v1/pods?watch=1&labelSelector=a",
            "/api/v1/namespaces/a/pods?watch=1",
            "/api/v1/namespaces/a/pods?watch=1&fieldSelector=metadata.name%3Dp",
            "/api/v1/namespaces/a/services?watch=1",
            "/api/v1/pods?watch=1&fieldSelector=spec.nodeName%3Dn",
            "/api/v1/pods?watch=1&fieldSelector=spec.nodeName%3D",
        ]
        .map(|path| watches.register(&info("GET", path)))
        .into();
        for (method, path, expected) in [
            ("POST", "/api/v1/namespaces/a/pods", 4),
            ("POST", "/api/v1/namespaces/b/pods", 3),
            ("PUT", "/api/v1/namespaces/a/pods/p", 5),
            ("PUT", "/api/v1/namespaces/a/pods/q", 4),
            ("PUT", "/api/v1/namespaces/a/services/p", 1),
            ("PUT", "/apis/apps/v1/namespaces/a/deployments/p", 0),
        ] {
            assert_eq!(watches.interested_in(&info(method, path)), expected, "{path}");
        }
        drop(watching);
        assert!(watches.lock().is_empty());
    }
}
