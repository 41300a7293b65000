//! Which pod goes first (`rankMemoryPressure`, `rankDiskPressureFunc`, `rankPIDPressure`).

use std::cmp::Reverse;
use std::sync::Arc;

use super::signal::Signal;
use crate::admission;
use apis::core::pod::qos::QosClass;
use apis::views::pod::Pod;

/// A pod, and what it uses.
#[derive(Clone, Debug)]
pub(crate) struct PodUse {
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) pod: Arc<Pod>,
    pub(crate) memory: i64,
    pub(crate) disk: i64,
    pub(crate) pids: i64,
    pub(crate) inodes: i64,
    /// By container: its name, and what it uses of memory and disk.
    pub(crate) containers: Vec<(String, i64, i64)>,
}

impl PodUse {
    /// Of what a signal tells of.
    fn used(&self, signal: Signal) -> i64 {
        match signal {
            Signal::Memory => self.memory,
            Signal::NodeFs | Signal::ImageFs => self.disk,
            Signal::NodeFsInodes | Signal::ImageFsInodes => self.inodes,
            Signal::Pids => self.pids,
        }
    }

    fn requested(&self, signal: Signal) -> i64 {
        match signal {
            Signal::NodeFsInodes | Signal::ImageFsInodes | Signal::Pids => 0,
            other => admission::requests(&self.pod, other.resource()),
        }
    }
}

/// Those that use more than they request, before others; of those the least important; of those who uses most
/// beyond its request. Then those with fewer guarantees.
pub(super) fn rank(pods: &mut [PodUse], signal: Signal) {
    pods.sort_by_cached_key(|pod| {
        let beyond = pod.used(signal).saturating_sub(pod.requested(signal));
        let is_modest = signal != Signal::Pids && beyond <= 0;
        let priority = pod.pod.spec.priority.unwrap_or(0);
        let names = (pod.namespace.clone(), pod.name.clone());
        (is_modest, priority, Reverse(beyond), QosClass::of_pod(&pod.pod), names)
    });
}

/// Whether a pod says itself what it uses: the pressure of a node with none such is not worked out.
pub(crate) fn says_usage(pod: &Pod) -> bool {
    const PREFIXES: [&str; 2] = ["kubarium.dev/usage-", "kwok.x-k8s.io/usage-"];
    let says = |name: &String| PREFIXES.iter().any(|prefix| name.starts_with(prefix));
    pod.metadata.annotations.keys().any(says)
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    fn pod(name: &str, (request, used): (i64, i64), priority: i64) -> PodUse {
        let requests = json!({"requests": {"memory": request.to_string()}});
        let spec = json!({"containers": [{"name": "c", "resources": requests}], "priority": priority});
        let pod = Arc::new(Pod::deserialize(json!({"spec": spec})).unwrap());
        let (namespace, name) = (String::new(), name.to_owned());
        PodUse {
            namespace,
            name,
            pod,
            memory: used,
            disk: 0,
            pids: used,
            inodes: used,
            containers: Vec::new(),
        }
    }

    fn order(mut pods: Vec<PodUse>, signal: Signal) -> Vec<String> {
        rank(&mut pods, signal);
        pods.into_iter().map(|pod| pod.name).collect()
    }

    /// The cases of upstream's `TestOrderedByPriorityMemory` and its like.
    #[test]
    fn who_exceeds_its_request_goes_first_then_the_least_important() {
        let pods = || {
            vec![
                pod("modest", (100, 50), 0),
                pod("greedy and important", (100, 900), 10),
                pod("greedy", (100, 300), 0),
                pod("greedier", (100, 500), 0),
                pod("without request", (0, 350), 0),
            ]
        };
        let names = ["greedier", "without request", "greedy", "greedy and important", "modest"];
        assert_eq!(order(pods(), Signal::Memory), names);
        let names = ["greedier", "without request", "greedy", "modest", "greedy and important"];
        assert_eq!(order(pods(), Signal::Pids), names);
        // Nobody requests inodes: whoever uses any may go.
        let names = ["greedier", "without request", "greedy", "modest", "greedy and important"];
        assert_eq!(order(pods(), Signal::NodeFsInodes), names);
    }
}
