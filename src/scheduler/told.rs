//! What the record tells of an attempt: why nodes did not fit, and what the best ones were given.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::framework::fit_error::Diagnosis;
use super::framework::node_info::NodeInfo;
use super::framework::runtime::Scores;
use flow::{FitRefusal, Flow, NodeScore};

/// Each word of each plugin with its nodes, those of most nodes first. Of nodes that nobody was asked about,
/// since a PreFilter plugin had left them out, its word stands for all, and they are not named.
pub(super) fn refusals(flow: &Flow, diagnosis: &Diagnosis, asked: usize) -> Vec<FitRefusal> {
    let nodes = &diagnosis.nodes;
    let others = u32::try_from(asked.saturating_sub(nodes.explicit.len())).unwrap_or(u32::MAX);
    let mut words: BTreeMap<(&str, &str), FitRefusal> = BTreeMap::new();
    let first = |plugin: &str, reason: &str| {
        let plugin = if plugin.is_empty() { "PreFilter" } else { plugin };
        FitRefusal { plugin: flow.name(plugin), reason: reason.into(), count: 0, nodes: vec![] }
    };
    let absent = nodes.absent.plugin;
    for reason in nodes.absent.reasons.iter().filter(|_| nodes.absent.is_rejected()) {
        words.entry((absent, reason)).or_insert_with(|| first(absent, reason)).count += others;
    }
    for (node, status) in &nodes.explicit {
        for reason in &status.reasons {
            let plugin = status.plugin;
            let refusal = words.entry((plugin, reason)).or_insert_with(|| first(plugin, reason));
            refusal.count += 1;
            if refusal.nodes.len() < FitRefusal::NAMED {
                refusal.nodes.push(node.clone());
            }
        }
    }
    let mut refusals: Vec<FitRefusal> = words.into_values().collect();
    refusals.sort_by_key(|refusal| std::cmp::Reverse(refusal.count));
    refusals.truncate(FitRefusal::MAX);
    refusals
}

/// The node that was chosen, and the best of the others.
pub(super) fn table(chosen: usize, scores: &Scores, nodes: &[Arc<NodeInfo>]) -> Vec<NodeScore> {
    let mut others: Vec<usize> = (0..nodes.len()).filter(|at| *at != chosen).collect();
    let most = (NodeScore::MAX - 1).min(others.len());
    if most < others.len() {
        others.select_nth_unstable_by_key(most, |at| std::cmp::Reverse(scores.totals[*at]));
        others.truncate(most);
    }
    others.sort_by_key(|at| std::cmp::Reverse(scores.totals[*at]));
    let row = |at: usize| NodeScore {
        node: nodes[at].name.clone(),
        total: scores.totals[at],
        by: scores.by_plugin.iter().map(|(plugin, given)| (plugin.clone(), given[at])).collect(),
    };
    std::iter::once(chosen).chain(others).map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::framework::status::Status;

    #[test]
    fn what_nodes_lack_is_told_by_plugin_and_the_most_common_first() {
        let mut diagnosis = Diagnosis::default();
        for at in 0..6 {
            let status = Status::unschedulable("Insufficient cpu").by("NodeResourcesFit");
            diagnosis.nodes.explicit.insert(format!("node-{at}").into(), status);
        }
        let status = Status::unresolvable("node(s) were unschedulable").by("NodeUnschedulable");
        diagnosis.nodes.explicit.insert("a".into(), status);
        let told = refusals(&Flow::off(), &diagnosis, 7);
        let told: Vec<(&str, &str, u32, usize)> =
            told.iter().map(|one| (&*one.plugin, &*one.reason, one.count, one.nodes.len())).collect();
        let fit = ("NodeResourcesFit", "Insufficient cpu", 6, FitRefusal::NAMED);
        assert_eq!(told, [fit, ("NodeUnschedulable", "node(s) were unschedulable", 1, 1)]);
    }

    #[test]
    fn the_chosen_node_stands_first_and_then_the_best_of_the_others() {
        let nodes: Vec<Arc<NodeInfo>> =
            (0..5).map(|at| Arc::new(NodeInfo::new(format!("n{at}").into()))).collect();
        let totals = vec![1, 9, 3, 9, 7];
        let scores = Scores { by_plugin: vec![("Fit".into(), totals.clone())], totals };
        let told = table(3, &scores, &nodes);
        let totals: Vec<i64> = told.iter().map(|row| row.total).collect();
        assert_eq!(totals, [9, 9, 7]);
        assert_eq!(told[2].by, [("Fit".into(), 7)]);
    }
}
