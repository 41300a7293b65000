//! The pods of a node by their labels: who counts pods by a selector looks at each kind of them once, however
//! many there are.

use std::sync::Arc;

use super::pod_info::PodInfo;
use apimachinery::labels::Selector;

/// Pods that differ in neither namespace nor labels, nor in what they want of other pods.
#[derive(Clone, Debug, Default)]
pub struct LabelGroups(Vec<LabelGroup>);

#[derive(Clone, Debug)]
struct LabelGroup {
    /// One of them.
    sample: Arc<PodInfo>,
    /// Those that stay.
    count: i64,
    /// Those that are on their way out.
    leaving: i64,
}

impl LabelGroup {
    fn change(&mut self, pod: &PodInfo, by: i64) {
        *(if pod.object.is_deleting() { &mut self.leaving } else { &mut self.count }) += by;
    }
}

fn is_alike(one: &PodInfo, other: &PodInfo) -> bool {
    let (own, others) = (&one.object.metadata, &other.object.metadata);
    one.label_hash == other.label_hash
        && own.namespace == others.namespace
        && own.labels == others.labels
        && one.pod_affinity == other.pod_affinity
}

impl LabelGroups {
    /// A pod comes.
    pub(super) fn add(&mut self, pod: &Arc<PodInfo>) {
        match self.0.iter_mut().find(|group| is_alike(&group.sample, pod)) {
            Some(group) => group.change(pod, 1),
            None => {
                let mut group = LabelGroup { sample: pod.clone(), count: 0, leaving: 0 };
                group.change(pod, 1);
                self.0.push(group);
            }
        }
    }

    /// A pod leaves; `left` are those that stay, one of which takes its place as a sample: what is gone is
    /// not remembered.
    pub(super) fn remove(&mut self, pod: &Arc<PodInfo>, left: &[Arc<PodInfo>]) {
        let Some(at) = self.0.iter().position(|group| is_alike(&group.sample, pod)) else { return };
        self.0[at].change(pod, -1);
        if self.0[at].count + self.0[at].leaving == 0 {
            self.0.swap_remove(at);
            return;
        }
        if Arc::ptr_eq(&self.0[at].sample, pod)
            && let Some(other) = left.iter().find(|other| is_alike(other, pod))
        {
            self.0[at].sample = other.clone();
        }
    }

    /// One of each kind of pods, and how many of it there are, those on their way out included.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&PodInfo, i64)> {
        self.0.iter().map(|group| (&*group.sample, group.count + group.leaving))
    }

    /// How many pods of a namespace a selector means that stay (`countPodsMatchSelector`).
    pub(crate) fn count(&self, namespace: &str, selector: &Selector) -> i64 {
        let counts = |group: &&LabelGroup| {
            let metadata = &group.sample.object.metadata;
            metadata.namespace == namespace && selector.matches(&metadata.labels)
        };
        self.0.iter().filter(counts).map(|group| group.count).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::object;
    use crate::framework::node_info::NodeInfo;
    use serde_json::json;

    #[test]
    fn pods_that_are_alike_are_counted_together() {
        let pod = |name: &str, app: &str, is_deleting: bool| {
            let mut metadata = json!({"name": name, "uid": name, "namespace": "ns", "labels": {"app": app}});
            if is_deleting {
                metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
            }
            Arc::new(PodInfo::new(object(json!({ "metadata": metadata }))))
        };
        let count = |node: &NodeInfo, selector: &str| {
            node.label_groups.count("ns", &Selector::parse(selector).unwrap())
        };
        let mut node = NodeInfo::new("n".into());
        for (name, app) in [("a", "web"), ("b", "web"), ("c", "db")] {
            node.add_pod(pod(name, app, false));
        }
        node.add_pod(pod("d", "web", true));
        assert_eq!((count(&node, "app=web"), count(&node, "app"), count(&node, "!app")), (2, 3, 0));
        assert_eq!(node.label_groups.count("other", &Selector::everything()), 0);
        node.remove_pod("a");
        node.remove_pod("d");
        assert_eq!((count(&node, "app=web"), node.label_groups.0.len()), (1, 2));
        let all: i64 = node.label_groups.all().map(|(_, count)| count).sum();
        assert_eq!(all, 2);
        let is_kept =
            node.label_groups.0.iter().all(|group| node.pods.iter().any(|it| Arc::ptr_eq(it, &group.sample)));
        assert!(is_kept, "a pod that is gone is not remembered");
        node.remove_pod("b");
        node.remove_pod("c");
        assert!(node.label_groups.0.is_empty());
    }
}
