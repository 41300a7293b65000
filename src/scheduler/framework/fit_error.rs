//! Why no node fits, in the words that everybody who runs a cluster knows (`framework.FitError`).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::status::{Code, Status};

/// What each node said to a pod (`framework.NodeToStatus`).
#[derive(Clone, Debug, Default)]
pub struct NodeStatuses {
    /// By the node's name.
    pub explicit: BTreeMap<Arc<str>, Status>,
    /// What all others said.
    pub absent: Status,
}

/// What was learnt of a pod that fits nowhere (`framework.Diagnosis`).
#[derive(Clone, Debug, Default)]
pub struct Diagnosis {
    /// What each node said.
    pub nodes: NodeStatuses,
    /// The plugins that said no: their events move the pod.
    pub unschedulable_plugins: BTreeSet<&'static str>,
    /// What a PreFilter plugin said of all nodes at once.
    pub pre_filter_message: String,
    /// What came of trying to make room.
    pub post_filter_message: String,
}

/// A pod that fits on none of the nodes.
#[derive(Clone, Debug, Default)]
pub struct FitError {
    /// How many nodes there are.
    pub node_count: usize,
    /// What was learnt.
    pub diagnosis: Diagnosis,
}

impl NodeStatuses {
    /// What a node said.
    pub fn get(&self, node: &str) -> &Status {
        self.explicit.get(node).unwrap_or(&self.absent)
    }

    /// Whether a node's no might become a yes when pods leave it.
    pub fn may_be_resolved(&self, node: &str) -> bool {
        self.get(node).code == Code::Unschedulable
    }
}

impl std::fmt::Display for FitError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Diagnosis { nodes, pre_filter_message, post_filter_message, .. } = &self.diagnosis;
        write!(f, "0/{} nodes are available:", self.node_count)?;
        if pre_filter_message.is_empty() {
            let counts = reasons(nodes, self.node_count);
            if !counts.is_empty() {
                write!(f, " {}.", counts.join(", "))?;
            }
        } else {
            write!(f, " {pre_filter_message}.")?;
        }
        if post_filter_message.is_empty() { Ok(()) } else { write!(f, " {post_filter_message}") }
    }
}

/// Each reason with how many nodes gave it, in the order of the texts: `10` comes before `2`, as upstream.
fn reasons(nodes: &NodeStatuses, node_count: usize) -> Vec<String> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for reason in nodes.explicit.values().flat_map(|status| &status.reasons) {
        *counts.entry(reason).or_default() += 1;
    }
    let others = node_count.saturating_sub(nodes.explicit.len());
    if others > 0 {
        for reason in &nodes.absent.reasons {
            *counts.entry(reason).or_default() += others;
        }
    }
    let mut texts: Vec<String> = counts.iter().map(|(reason, count)| format!("{count} {reason}")).collect();
    texts.sort();
    texts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_counted_and_sorted_as_texts() {
        let mut error = FitError { node_count: 13, ..FitError::default() };
        let nodes = &mut error.diagnosis.nodes;
        nodes.explicit.insert("a".into(), Status::unresolvable("node(s) were unschedulable"));
        for index in 0..10 {
            nodes.explicit.insert(format!("b{index}").into(), Status::unschedulable("Insufficient cpu"));
        }
        for index in 0..2 {
            let mut status = Status::unschedulable("Insufficient cpu");
            status.reasons.push("Too many pods".into());
            nodes.explicit.insert(format!("c{index}").into(), status);
        }
        error.diagnosis.post_filter_message = "preemption: none".into();
        assert_eq!(
            error.to_string(),
            "0/13 nodes are available: 1 node(s) were unschedulable, 12 Insufficient cpu, 2 Too many pods. \
             preemption: none"
        );
    }

    #[test]
    fn a_pre_filter_speaks_for_all_nodes() {
        let mut error = FitError { node_count: 3, ..FitError::default() };
        error.diagnosis.pre_filter_message = "pod affinity terms conflict".into();
        error.diagnosis.nodes.absent = Status::unresolvable("not printed");
        assert_eq!(error.to_string(), "0/3 nodes are available: pod affinity terms conflict.");
        assert_eq!(FitError::default().to_string(), "0/0 nodes are available:");
    }
}
