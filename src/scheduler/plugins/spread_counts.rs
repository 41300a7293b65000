//! How many pods that count each domain has, kept from one attempt to the next: only nodes that have changed
//! meanwhile are counted anew.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::node_affinity;
use super::taint_toleration::untolerated;
use crate::framework::node_info::NodeInfo;
use crate::framework::pod_info::PodInfo;
use crate::framework::topology_spread::SpreadConstraint;
use apis::views::node_affinity::NodeAffinity;
use apis::views::toleration::Toleration;
use sync::Mutex;

/// So many kinds of pods are remembered; of another one the one goes that was asked for least lately.
const MAX_KEPT: usize = 16;

/// The counts of the kinds of pods that were tried lately.
#[derive(Default)]
pub(super) struct SpreadCounts {
    /// The one that was asked for last is the last. Bound: [`MAX_KEPT`].
    kept: Mutex<Vec<KeptCounts>>,
}

/// The domains of one constraint. Cloning copies two numbers for each.
#[derive(Clone, Debug, Default)]
pub(super) struct Domains {
    /// By the value of the label.
    places: Arc<HashMap<String, usize>>,
    /// The pods that count, by place.
    pods: Vec<i64>,
    /// The nodes, by place; a domain without any is none.
    nodes: Vec<usize>,
}

/// What was counted for pods that are alike in all that it depends on.
struct KeptCounts {
    namespace: String,
    node_selector: BTreeMap<String, String>,
    affinity: NodeAffinity,
    tolerations: Arc<[Toleration]>,
    constraints: Vec<SpreadConstraint>,
    requires_all: bool,
    /// Of each node as it was counted last.
    generations: Vec<u64>,
    /// What each node has given to each constraint: the domain, and how many pods.
    shares: Vec<Option<(usize, i64)>>,
    domains: Vec<Domains>,
}

impl Domains {
    /// How many pods count in the domain of that name.
    pub(super) fn get(&self, value: &str) -> i64 {
        self.places.get(value).map_or(0, |at| self.pods[*at])
    }

    /// How many pods count on the one node that the domain of that name is; none if it is no node or several.
    pub(super) fn get_of_one_node(&self, value: &str) -> Option<i64> {
        let at = *self.places.get(value)?;
        (self.nodes[at] == 1).then(|| self.pods[at])
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.nodes.iter().filter(|nodes| **nodes > 0).count()
    }

    /// How many pods the emptiest one has.
    pub(super) fn least(&self) -> i64 {
        let there = self.pods.iter().zip(&self.nodes).filter(|(_, nodes)| **nodes > 0);
        there.map(|(pods, _)| *pods).min().unwrap_or(0)
    }

    fn place(&mut self, value: &str) -> usize {
        if let Some(at) = self.places.get(value) {
            return *at;
        }
        let at = self.pods.len();
        Arc::make_mut(&mut self.places).insert(value.to_owned(), at);
        self.pods.push(0);
        self.nodes.push(0);
        at
    }
}

impl SpreadCounts {
    /// The domains of each constraint of a pod. With `requires_all` nodes count that have the labels of all
    /// constraints, and those that the pod may go to as far as each constraint cares.
    pub(super) fn of(
        &self,
        pod: &PodInfo,
        nodes: &[Arc<NodeInfo>],
        constraints: &[SpreadConstraint],
        requires_all: bool,
    ) -> Vec<Domains> {
        let mut kept = self.kept.lock();
        let at = kept.iter().position(|kept| kept.is_for(pod, constraints, requires_all));
        let mut counts = match at {
            Some(at) => kept.remove(at),
            None => KeptCounts::new(pod, constraints, requires_all),
        };
        counts.bring_up_to_date(pod, nodes);
        let domains = counts.domains.clone();
        if kept.len() >= MAX_KEPT {
            kept.remove(0);
        }
        kept.push(counts);
        domains
    }
}

impl KeptCounts {
    fn new(pod: &PodInfo, constraints: &[SpreadConstraint], requires_all: bool) -> KeptCounts {
        KeptCounts {
            namespace: pod.object.metadata.namespace.clone(),
            node_selector: pod.node_selector.clone(),
            affinity: pod.affinity.clone(),
            tolerations: pod.tolerations.clone(),
            constraints: constraints.to_vec(),
            requires_all,
            generations: Vec::new(),
            shares: Vec::new(),
            domains: vec![Domains::default(); constraints.len()],
        }
    }

    fn is_for(&self, pod: &PodInfo, constraints: &[SpreadConstraint], requires_all: bool) -> bool {
        self.requires_all == requires_all
            && self.namespace == pod.object.metadata.namespace
            && self.constraints == constraints
            && self.node_selector == pod.node_selector
            && self.tolerations == pod.tolerations
            && self.affinity == pod.affinity
    }

    /// A node whose generation is not known is counted each time.
    fn bring_up_to_date(&mut self, pod: &PodInfo, nodes: &[Arc<NodeInfo>]) {
        let width = self.constraints.len();
        if self.generations.len() != nodes.len() {
            self.generations = vec![0; nodes.len()];
            self.shares = vec![None; nodes.len() * width];
            self.domains = vec![Domains::default(); width];
        }
        for (at, node) in nodes.iter().enumerate() {
            if node.generation != 0 && node.generation == self.generations[at] {
                continue;
            }
            self.generations[at] = node.generation;
            self.count(pod, node, at * width);
        }
    }

    fn count(&mut self, pod: &PodInfo, node: &NodeInfo, first: usize) {
        let counts_at_all =
            !self.requires_all || self.constraints.iter().all(|it| node.label(&it.topology_key).is_some());
        for (at, constraint) in self.constraints.iter().enumerate() {
            let (domains, share) = (&mut self.domains[at], &mut self.shares[first + at]);
            if let Some((place, pods)) = share.take() {
                domains.pods[place] -= pods;
                domains.nodes[place] -= 1;
            }
            let value = node.label(&constraint.topology_key).filter(|_| counts_at_all);
            let Some(value) = value.filter(|_| may_go(pod, node, constraint)) else { continue };
            let (place, pods) = (domains.place(value), matching_pods(pod, node, constraint));
            domains.pods[place] += pods;
            domains.nodes[place] += 1;
            *share = Some((place, pods));
        }
    }
}

fn may_go(pod: &PodInfo, node: &NodeInfo, constraint: &SpreadConstraint) -> bool {
    let wanted = || node.object.as_ref().is_some_and(|object| node_affinity::matches(pod, &object.metadata));
    (constraint.ignores_affinity || wanted())
        && (!constraint.honors_taints || untolerated(&node.node.spec.taints, &pod.tolerations).is_none())
}

/// Pods that are on their way out do not count.
pub(super) fn matching_pods(pod: &PodInfo, node: &NodeInfo, constraint: &SpreadConstraint) -> i64 {
    node.label_groups.count(&pod.object.metadata.namespace, &constraint.selector)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::object;
    use serde_json::json;

    fn pod(name: &str) -> Arc<PodInfo> {
        let constraint = json!({"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": "web"}}});
        let metadata = json!({"name": name, "uid": name, "namespace": "ns", "labels": {"app": "web"}});
        Arc::new(PodInfo::new(object(
            json!({"metadata": metadata, "spec": {"topologySpreadConstraints": [constraint]}}),
        )))
    }

    fn node(name: &str, zone: &str, pods: usize, generation: u64) -> Arc<NodeInfo> {
        let mut info = NodeInfo::new(name.into());
        info.set_node(object(json!({"metadata": {"name": name, "labels": {"zone": zone}}})));
        (0..pods).for_each(|at| info.add_pod(pod(&format!("{name}-{at}"))));
        Arc::new(NodeInfo { generation, ..info })
    }

    #[test]
    fn nodes_are_counted_anew_when_they_have_changed() {
        let (counts, pod) = (SpreadCounts::default(), pod("p"));
        let of = |nodes: &[Arc<NodeInfo>]| {
            let domains = &counts.of(&pod, nodes, &pod.spread, true)[0];
            (domains.get("a"), domains.get("b"), domains.len(), domains.least())
        };
        assert_eq!(of(&[node("1", "a", 1, 1), node("2", "a", 2, 2), node("3", "b", 1, 3)]), (3, 1, 2, 1));
        // The third has changed, the second only says so of itself, and nobody looks at it.
        assert_eq!(of(&[node("1", "a", 1, 1), node("2", "a", 9, 2), node("3", "b", 5, 4)]), (3, 5, 2, 3));
        // One moves to another domain; one has no generation.
        assert_eq!(of(&[node("1", "b", 1, 5), node("2", "b", 2, 6), node("3", "b", 2, 0)]), (0, 5, 1, 5));
        assert_eq!(of(&[node("1", "b", 1, 5), node("2", "b", 2, 6), node("3", "b", 3, 0)]), (0, 6, 1, 6));
        assert_eq!(of(&[node("4", "a", 1, 7)]), (1, 0, 1, 1));
        let nodes = [node("1", "a", 1, 8), node("2", "a", 2, 9), node("3", "b", 3, 10)];
        let domains = &counts.of(&pod, &nodes, &pod.spread, true)[0];
        let of_one_node = ["a", "b", "c"].map(|value| domains.get_of_one_node(value));
        assert_eq!(of_one_node, [None, Some(3), None]);
    }

    #[test]
    fn few_kinds_of_pods_are_remembered() {
        let (counts, pod) = (SpreadCounts::default(), pod("p"));
        for skew in 0..40 {
            let constraints = [SpreadConstraint { max_skew: skew, ..pod.spread[0].clone() }];
            counts.of(&pod, &[node("1", "a", 1, 1)], &constraints, true);
        }
        assert_eq!(counts.kept.lock().len(), MAX_KEPT);
    }
}
