//! The scheduler's cache: nodes with the pods on them, those included whose binding is still on its way
//! (`backend/cache`).
//!
//! A pod is assumed on its node as soon as it is chosen, so that the next pod sees the room that is left. It
//! stays assumed until the watch shows it bound, or until its binding fails and it is forgotten.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::framework::images::Images;
use super::framework::node_info::NodeInfo;
use super::framework::plugin::NodeSnapshot;
use super::framework::pod_info::PodInfo;
use apimachinery::object::Object;
use apis::views::node::Node;
use sync::{Mutex, MutexGuard};

/// The cache. Bound: the nodes and pods of the cluster.
#[derive(Default)]
pub struct Cache {
    inner: Mutex<CacheInner>,
}

#[derive(Default)]
struct CacheInner {
    /// Shared with snapshots: what changes is copied, and only that.
    nodes: BTreeMap<Arc<str>, Arc<NodeInfo>>,
    /// By uid.
    pods: HashMap<String, CachedPod>,
    /// Of the nodes as they are now; none when that has to be made anew.
    snapshot: Option<NodeSnapshot>,
    /// Stands in the snapshot where a node is about to change.
    vacancy: Arc<NodeInfo>,
    images: Images,
    /// That of the node which has changed last.
    generation: u64,
}

struct CachedPod {
    node: Arc<str>,
    is_assumed: bool,
}

impl Cache {
    /// A node has come or changed.
    pub fn set_node(&self, node: &Arc<Object>) {
        let mut inner = self.lock();
        let old = inner.nodes.get(&*node.metadata.name).map(|info| info.images.clone()).unwrap_or_default();
        let images = inner.images.of_node(&node.view::<Node>(), &old);
        inner.change_node(&node.metadata.name, |info| {
            info.set_node(node.clone());
            info.images = images;
        });
    }

    /// A node has gone. The pods on it are remembered until they go too.
    pub fn remove_node(&self, name: &str) {
        let mut inner = self.lock();
        if let Some(images) = inner.nodes.get(name).map(|info| info.images.clone()) {
            inner.images.forget(&images);
        }
        inner.change_node(name, NodeInfo::remove_node);
    }

    /// A pod is on a node, by the watch: what was assumed of it is so now.
    pub fn add_pod(&self, pod: Arc<PodInfo>) {
        let mut inner = self.lock();
        let node = pod.node_name().into_owned();
        let cached = inner.pods.get_mut(pod.uid());
        // The usual case: what was assumed came true, and nothing has to be counted anew.
        if let Some(cached) = cached.filter(|cached| cached.is_assumed && *cached.node == *node) {
            cached.is_assumed = false;
            return;
        }
        inner.remove(pod.uid());
        inner.add(pod, &node, false);
    }

    /// A pod on a node has changed.
    pub fn update_pod(&self, pod: Arc<PodInfo>) {
        let mut inner = self.lock();
        let node = pod.node_name().into_owned();
        inner.remove(pod.uid());
        inner.add(pod, &node, false);
    }

    /// A pod has gone, or has ended.
    pub fn remove_pod(&self, uid: &str) {
        self.lock().remove(uid);
    }

    /// Counts a pod on a node before it is bound. False when it is there already.
    pub fn assume(&self, pod: Arc<PodInfo>, node: &str) -> bool {
        let mut inner = self.lock();
        if inner.pods.contains_key(pod.uid()) {
            return false;
        }
        inner.add(pod, node, true);
        true
    }

    /// Its binding failed: it is not there after all.
    pub fn forget(&self, uid: &str) {
        let mut inner = self.lock();
        if inner.pods.get(uid).is_some_and(|cached| cached.is_assumed) {
            inner.remove(uid);
        }
    }

    /// Whether a pod is on a node, or assumed to be.
    pub fn has_pod(&self, uid: &str) -> bool {
        self.lock().pods.contains_key(uid)
    }

    /// The nodes as they are now, by name. Unchanged nodes are shared with the last snapshot.
    pub fn snapshot(&self) -> NodeSnapshot {
        let mut inner = self.lock();
        if let Some(snapshot) = &inner.snapshot {
            return snapshot.clone();
        }
        let known = inner.nodes.values().filter(|node| node.object.is_some());
        let snapshot: NodeSnapshot = known.cloned().collect();
        inner.snapshot = Some(snapshot.clone());
        snapshot
    }

    /// How many it knows of each.
    pub(super) fn sizes(&self) -> [(&'static str, usize); 3] {
        let inner = self.lock();
        let assumed = inner.pods.values().filter(|pod| pod.is_assumed).count();
        [("assumed_pods", assumed), ("nodes", inner.nodes.len()), ("pods", inner.pods.len())]
    }

    fn lock(&self) -> MutexGuard<'_, CacheInner> {
        self.inner.lock()
    }
}

impl CacheInner {
    fn change_node(&mut self, name: &str, change: impl FnOnce(&mut NodeInfo)) {
        let place = self.vacate(name);
        self.generation += 1;
        let generation = self.generation;
        let name: Arc<str> = name.into();
        let info = self.nodes.entry(name.clone()).or_insert_with(|| Arc::new(NodeInfo::new(name.clone())));
        let changed = Arc::make_mut(info);
        change(changed);
        changed.generation = generation;
        let shown = info.object.is_some().then(|| info.clone());
        if info.is_empty() {
            self.nodes.remove(&name);
        }
        self.show(place, shown);
    }

    /// Takes a node that is to change out of the snapshot, so that it need not be copied. Returns its place;
    /// none when it has none, or when somebody holds the snapshot, which does not change then.
    fn vacate(&mut self, name: &str) -> Option<usize> {
        let slots = Arc::get_mut(self.snapshot.as_mut()?)?;
        let at = slots.binary_search_by(|node| (*node.name).cmp(name)).ok()?;
        slots[at] = self.vacancy.clone();
        Some(at)
    }

    /// Puts a node that has changed back to its place in the snapshot, which is as good as new then.
    fn show(&mut self, place: Option<usize>, node: Option<Arc<NodeInfo>>) {
        let slots = self.snapshot.as_mut().and_then(Arc::get_mut);
        match (slots, place, node) {
            (Some(slots), Some(at), Some(node)) => slots[at] = node,
            _ => self.snapshot = None,
        }
    }

    fn add(&mut self, pod: Arc<PodInfo>, node: &str, is_assumed: bool) {
        self.pods.insert(pod.uid().to_owned(), CachedPod { node: node.into(), is_assumed });
        self.change_node(node, |info| info.add_pod(pod));
    }

    fn remove(&mut self, uid: &str) {
        if let Some(cached) = self.pods.remove(uid) {
            self.change_node(&cached.node, |info| info.remove_pod(uid));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{node, pod};
    use serde_json::json;

    #[test]
    fn what_is_assumed_counts_until_it_is_forgotten() {
        let cache = Cache::default();
        cache.set_node(&node("node-1", json!({})));
        let web = pod("web", json!({"containers": [{"resources": {"requests": {"cpu": "2"}}}]}));
        let before = cache.snapshot();
        assert!(cache.assume(web.clone(), "node-1"));
        assert!(!cache.assume(web.clone(), "node-1"), "assumed twice");
        assert_eq!(cache.snapshot()[0].requested.milli_cpu, 2000);
        assert_eq!(before[0].requested.milli_cpu, 0, "a snapshot does not change");
        cache.forget(web.uid());
        assert_eq!(cache.snapshot()[0].requested.milli_cpu, 0);
    }

    #[test]
    fn a_snapshot_that_nobody_holds_is_kept_up_to_date() {
        let cache = Cache::default();
        ["b", "a", "d"].iter().for_each(|name| cache.set_node(&node(name, json!({}))));
        let pod_on = |name: &str, on: &str| pod(name, json!({"nodeName": on, "containers": [{}]}));
        let shown = || {
            let of = |node: &Arc<NodeInfo>| format!("{} {} {}", node.name, node.pods.len(), node.generation);
            cache.snapshot().iter().map(of).collect::<Vec<_>>()
        };
        let address = || cache.snapshot().as_ptr();
        assert_eq!(shown(), ["a 0 2", "b 0 1", "d 0 3"]);
        let first = address();
        cache.add_pod(pod_on("web", "b"));
        assert_eq!((shown(), address()), (vec!["a 0 2".into(), "b 1 4".into(), "d 0 3".into()], first));
        // Whoever holds one sees no change; a node that comes or goes changes who there is.
        let held = cache.snapshot();
        cache.add_pod(pod_on("db", "d"));
        assert_eq!((held[2].pods.len(), shown()[2].as_str()), (0, "d 1 5"));
        drop(held);
        cache.set_node(&node("c", json!({})));
        cache.remove_node("b");
        assert_eq!(shown(), ["a 0 2", "c 0 6", "d 1 5"]);
        cache.add_pod(pod_on("new", "nowhere"));
        assert_eq!(shown().len(), 3);
    }

    #[test]
    fn pods_outlive_their_node_until_they_go() {
        let cache = Cache::default();
        let bound = pod("web", json!({"nodeName": "node-1", "containers": [{}]}));
        cache.add_pod(bound.clone());
        assert_eq!(cache.snapshot().len(), 0, "only a pod is known of the node");
        cache.set_node(&node("node-1", json!({})));
        assert_eq!(cache.snapshot()[0].pods.len(), 1);
        cache.remove_node("node-1");
        cache.forget(bound.uid());
        assert!(cache.has_pod(bound.uid()), "what is bound cannot be forgotten");
        cache.remove_pod(bound.uid());
        cache.set_node(&node("node-1", json!({})));
        assert_eq!(cache.snapshot()[0].pods.len(), 0);
    }
}
