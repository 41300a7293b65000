//! Old pods give way to new ones, as far as the strategy allows (`rollingUpdate`).
//!
//! Without surge old pods are deleted, and the next round makes new ones; with surge new pods come beside old
//! ones, which go when the new ones are available. What has gone wrong on a node with an old pod counts as
//! missing already: it is replaced at once.

use std::sync::Arc;

use super::DaemonSetController;
use super::manage::{Plan, max_surge, max_unavailable};
use super::template::is_updated;
use super::work::{DaemonSetWork, PodsByNode};
use crate::controller::Reconcile;
use crate::pod_state::is_available;
use apimachinery::object::Object;
use apimachinery::status::Status;

/// A node's pods that are not on their way out.
struct OnNode<'a> {
    new: Option<&'a Arc<Object>>,
    old: Option<&'a Arc<Object>>,
}

impl DaemonSetController {
    pub(super) async fn rolling_update(
        &self,
        ctx: &Reconcile,
        work: &DaemonSetWork,
        hash: &str,
    ) -> Result<(), Status> {
        let mut pods = work.pods_by_node(&self.pods);
        for node in work.desired() {
            if !pods.contains_key(node) {
                pods.insert(node.to_owned(), vec![]);
            }
        }
        let desired = work.desired().count();
        let (surge, unavailable) = (max_surge(&work.view, desired), max_unavailable(&work.view, desired));
        let plan = match surge {
            // Neither is allowed, or a share of few nodes comes to nothing: one may always be missing.
            0 => replace(work, &pods, if desired > 0 { unavailable.max(1) } else { unavailable }, hash),
            surge => surge_onto(work, &pods, surge, desired, hash),
        };
        self.carry_out(ctx, work, plan, hash).await
    }
}

/// Deletes old pods until `max_unavailable` nodes are without an available one.
fn replace(work: &DaemonSetWork, pods: &PodsByNode, max_unavailable: usize, hash: &str) -> Plan {
    let mut unavailable = 0;
    let mut broken = vec![];
    let mut candidates = vec![];
    for pods in pods.values() {
        match find_updated(work, pods, hash) {
            Some(OnNode { new: Some(new), old: None }) if available(work, new) => {}
            Some(OnNode { new: None, old: Some(old) }) if !available(work, old) => {
                broken.push(old.clone());
                unavailable += 1;
            }
            Some(OnNode { new: None, old: Some(old) }) => candidates.push(old.clone()),
            _ => unavailable += 1,
        }
    }
    let room = max_unavailable.saturating_sub(unavailable);
    candidates.truncate(room);
    Plan { delete: broken.into_iter().chain(candidates).collect(), create_on: vec![] }
}

/// Creates new pods beside old ones on `max_surge` nodes.
fn surge_onto(work: &DaemonSetWork, pods: &PodsByNode, max_surge: usize, desired: usize, hash: &str) -> Plan {
    let mut surging = 0_usize;
    let mut available_nodes = 0_usize;
    let mut plan = Plan::default();
    let mut candidates = vec![];
    let mut unwanted = vec![];
    for (node, pods) in pods {
        let Some(on_node) = find_updated(work, pods, hash) else {
            surging += 1;
            continue;
        };
        let counted = on_node.old.or(on_node.new);
        available_nodes += usize::from(counted.is_some_and(|pod| available(work, pod)));
        match on_node {
            OnNode { old: None, .. } => {}
            OnNode { new: Some(new), old: Some(old) } if available(work, new) => {
                plan.delete.push(old.clone())
            }
            OnNode { new: Some(_), old: Some(_) } => surging += 1,
            OnNode { new: None, old: Some(old) } => match (available(work, old), work.should_run(node)) {
                (false, false) => plan.delete.push(old.clone()),
                (false, true) => plan.create_on.push(node.clone()),
                (true, false) => unwanted.push(old.clone()),
                (true, true) => candidates.push(node.clone()),
            },
        }
    }
    candidates.truncate(max_surge.saturating_sub(surging));
    plan.create_on.extend(candidates);
    // Whoever surges expects all to be available: a pod leaves a node that is wanted no more when there are
    // enough elsewhere.
    unwanted.truncate(available_nodes.saturating_sub(desired));
    plan.delete.extend(unwanted);
    plan
}

/// None when there are several of a sort: the next round of managing leaves one.
fn find_updated<'a>(work: &DaemonSetWork, pods: &'a [Arc<Object>], hash: &str) -> Option<OnNode<'a>> {
    let living = pods.iter().filter(|pod| !pod.is_deleting());
    let (new, old): (Vec<_>, Vec<_>) = living.partition(|pod| is_updated(pod, &work.view, hash));
    let is_clear = new.len() <= 1 && old.len() <= 1;
    is_clear.then(|| OnNode { new: new.first().copied(), old: old.first().copied() })
}

fn available(work: &DaemonSetWork, pod: &Object) -> bool {
    is_available(pod, work.view.spec.min_ready_seconds, work.now)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::daemon_set::eligibility::Placement;
    use apimachinery::labels::Selector;
    use apis::views::daemon_set::DaemonSet;
    use chrono::DateTime;
    use serde_json::json;

    fn pod(name: &str, hash: &str, ready: bool) -> Arc<Object> {
        let status = if ready { "True" } else { "False" };
        let tree = json!({
            "metadata": {"name": name, "labels": {"controller-revision-hash": hash}},
            "status": {"conditions": [{"type": "Ready", "status": status}]},
        });
        Arc::new(Object::from_value(&tree, vec![]).unwrap())
    }

    /// Nodes `a`, `b`, ...: one per text, in which each letter is a pod: `O` old, `N` new, in small letters
    /// when it is not ready; a `!` behind says that the node is wanted no more.
    fn cluster(nodes: &[&str]) -> (DaemonSetWork, PodsByNode) {
        let mut pods = PodsByNode::new();
        let mut placements = vec![];
        for (name, text) in ('a'..).zip(nodes) {
            let should_run = !text.ends_with('!');
            let letters = text.chars().filter(|letter| letter.is_alphabetic());
            let on_node = letters.map(|letter| {
                let hash = if letter.eq_ignore_ascii_case(&'n') { "new" } else { "old" };
                pod(&format!("{hash}-{name}"), hash, letter.is_uppercase())
            });
            pods.insert(name.to_string(), on_node.collect());
            let node = json!({"metadata": {"name": name}});
            let node = Arc::new(Object::from_value(&node, vec![]).unwrap());
            placements.push((node, Placement { should_run, should_continue: true }));
        }
        let object = Object::from_value(&json!({"metadata": {"name": "ds"}}), vec![]).unwrap();
        let work = DaemonSetWork {
            object: Arc::new(object),
            view: Arc::new(DaemonSet::default()),
            selector: Selector::everything(),
            placements,
            now: DateTime::UNIX_EPOCH,
        };
        (work, pods)
    }

    fn shown(plan: &Plan) -> (String, String) {
        let deleted: Vec<&str> = plan.delete.iter().map(|pod| pod.metadata.name.as_str()).collect();
        (plan.create_on.join(" "), deleted.join(" "))
    }

    #[test]
    fn old_pods_give_way_as_far_as_may_be_missing() {
        let cases: [(&[&str], usize, &str); 7] = [
            (&["O", "O", "O"], 1, "old-a"),
            (&["O", "O", "O"], 2, "old-a old-b"),
            (&["N", "O", "O"], 1, "old-b"),
            (&["n", "O", "O"], 1, ""),
            (&["", "O", "O"], 1, ""),
            (&["O", "o", "o"], 1, "old-b old-c"),
            (&["NO", "O", "O"], 2, "old-b"),
        ];
        for (nodes, max_unavailable, expected) in cases {
            let (work, pods) = cluster(nodes);
            let plan = replace(&work, &pods, max_unavailable, "new");
            assert_eq!(shown(&plan), (String::new(), expected.into()), "{nodes:?}");
        }
    }

    #[test]
    fn new_pods_come_beside_old_ones_as_far_as_may_be_too_many() {
        let cases: [(&[&str], usize, &str, &str); 8] = [
            (&["O", "O", "O"], 1, "a", ""),
            (&["On", "O", "O"], 1, "", ""),
            (&["ON", "O", "O"], 1, "b", "old-a"),
            (&["N", "O", "O"], 2, "b c", ""),
            (&["O", "o", "O"], 1, "b a", ""),
            (&["O!", "o!", "O"], 1, "c", "old-b old-a"),
            (&["O!", "n", "n"], 1, "", ""),
            (&["NN", "O", "O"], 1, "", ""),
        ];
        for (nodes, max_surge, created, deleted) in cases {
            let (work, pods) = cluster(nodes);
            let desired = work.desired().count();
            let plan = surge_onto(&work, &pods, max_surge, desired, "new");
            assert_eq!(shown(&plan), (created.into(), deleted.into()), "{nodes:?}");
        }
    }
}
