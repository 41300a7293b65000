//! Critical pods for which there is no room left take the place of others (`pkg/kubelet/preemption`).

use std::collections::BTreeMap;
use std::sync::Arc;

use super::admission::{self, Rejection};
use super::kubelet::Kubelet;
use super::pod_ending::{PREEMPTING, PodEnding};
use super::pod_manager::pods::{Entry, PodManagerState};
use super::qos::is_critical;
use apis::core::pod::qos::QosClass;
use apis::views::pod::Pod;

impl Kubelet {
    /// Makes room for a critical pod that does not fit. Whether there is some then.
    pub(crate) fn make_room(
        &self,
        state: &mut PodManagerState,
        pod: &Pod,
        lacking: Option<&Rejection>,
    ) -> bool {
        if !is_critical(pod) {
            return false;
        }
        let is_there = |entry: &&Entry| !entry.is_terminated;
        let mut all: Vec<&Entry> = state.workers.values().filter(is_there).collect();
        // In the same order each time.
        all.sort_by_key(|entry| (entry.namespace(), entry.name()));
        let pods: Vec<Arc<Pod>> = all.iter().map(|entry| entry.pod()).collect();
        let pods: Vec<&Pod> = pods.iter().map(|pod| &**pod).collect();
        let Some(chosen) = victims(pod, &pods, &self.shared.node.allocatable) else { return false };
        let named: Vec<(String, String)> =
            chosen.into_iter().map(|at| all[at].namespace_and_name()).collect();
        let short = lacking.and_then(|lacking| lacking.reason.strip_prefix("OutOf")).unwrap_or_default();
        let (kubelet, short) = (self.clone(), short.to_owned());
        // With the kubelet it ends, too.
        self.shared.context.tasks.spawn("preemption", async move { kubelet.preempt(named, &short).await });
        true
    }

    async fn preempt(&self, pods: Vec<(String, String)>, short: &str) {
        for (namespace, name) in &pods {
            self.shared.counted.preempted(short);
            let ending = PodEnding {
                reason: PREEMPTING,
                message: "Preempted in order to admit critical pod".into(),
                grace_seconds: None,
                is_disruption: true,
            };
            self.end_pod(namespace, name, ending, Some(PREEMPTING)).await;
        }
    }
}

/// The places of those among `others` that go: those without guarantees first, of those the least important
/// and the smallest, and no more than have to. None where that does not help.
fn victims(pod: &Pod, others: &[&Pod], allocatable: &BTreeMap<String, String>) -> Option<Vec<usize>> {
    let is_less = |at: &usize| !is_critical(others[*at]) || priority(others[*at]) < priority(pod);
    let mut order: Vec<usize> = (0..others.len()).filter(is_less).collect();
    let size = |pod: &Pod| ["cpu", "memory"].map(|name| admission::requests(pod, name));
    order.sort_by_key(|at| (QosClass::of_pod(others[*at]), priority(others[*at]), size(others[*at])));
    let fits_without = |gone: &[usize]| {
        let left = others.iter().enumerate().filter(|(at, _)| !gone.contains(at)).map(|(_, other)| *other);
        admission::rejection(pod, left, allocatable).is_none()
    };
    let count = (1..=order.len()).find(|count| fits_without(&order[..*count]))?;
    let mut gone = order[..count].to_vec();
    for spared in order[..count].iter().rev() {
        let fewer: Vec<usize> = gone.iter().copied().filter(|at| at != spared).collect();
        if fits_without(&fewer) {
            gone = fewer;
        }
    }
    Some(gone)
}

fn priority(pod: &Pod) -> i64 {
    pod.spec.priority.unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;
    use serde_json::json;

    fn pod(cpu: &str, priority: i64) -> Pod {
        let resources = json!({"requests": {"cpu": cpu}});
        let spec = json!({"containers": [{"name": "c", "resources": resources}], "priority": priority});
        Pod::deserialize(json!({"spec": spec})).unwrap()
    }

    #[test]
    fn no_more_go_than_have_to() {
        const CRITICAL: i64 = 2_000_000_000;
        let allocatable = BTreeMap::from([("cpu".to_owned(), "8".to_owned())]);
        let (small, large, vital) = (pod("1", 0), pod("4", 5), pod("3", CRITICAL));
        // The smallest goes, wherever it stands.
        assert_eq!(victims(&pod("1", CRITICAL), &[&large, &small, &vital], &allocatable), Some(vec![1]));
        let others = [&small, &large, &vital];
        assert_eq!(victims(&pod("1", CRITICAL), &others, &allocatable), Some(vec![0]));
        assert_eq!(victims(&pod("4", CRITICAL), &others, &allocatable), Some(vec![1]));
        assert_eq!(victims(&pod("5", CRITICAL), &others, &allocatable), Some(vec![0, 1]));
        // Its like stays.
        assert_eq!(victims(&pod("6", CRITICAL), &others, &allocatable), None);
        assert_eq!(victims(&pod("6", CRITICAL + 1000), &others, &allocatable), Some(vec![1, 2]));
    }
}
