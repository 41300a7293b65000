//! Which nodes a DaemonSet wants (`NodeShouldRunDaemonPod`): what its pods ask of a node, held against the
//! node's name, labels and taints. Room is none of it.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::json;

use super::template::with_daemon_tolerations;
use crate::controller::Change;
use apimachinery::object::Object;
use apis::views::daemon_set::DaemonSet;
use apis::views::node::{Node, Taint};
use apis::views::node_affinity::{NodeAffinity, has_labels};
use apis::views::pod::{Pod, untolerated};
use client_go::lister::Lister;

/// What a set wants on one node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Placement {
    /// A pod, should there be none.
    pub should_run: bool,
    /// The pod that is there may stay.
    pub should_continue: bool,
}

/// What the pods of a set ask of a node, read once.
pub(super) struct Eligibility {
    pod: Pod,
    affinity: NodeAffinity,
}

impl Eligibility {
    /// Of a set's template.
    pub(super) fn of(set: &DaemonSet) -> Eligibility {
        let template = with_daemon_tolerations(&set.spec.template);
        let pod = Pod::deserialize(json!({"spec": template["spec"]})).unwrap_or_default();
        let affinity = NodeAffinity::of(&pod);
        Eligibility { pod, affinity }
    }

    /// On a node.
    pub(super) fn on(&self, node: &Object) -> Placement {
        let (spec, metadata) = (&self.pod.spec, &node.metadata);
        let fits = (spec.node_name.is_empty() || spec.node_name == metadata.name)
            && has_labels(metadata, &spec.node_selector)
            && self.affinity.required.as_ref().is_none_or(|required| required.matches(metadata));
        if !fits {
            return Placement::default();
        }
        let taints = &node.view::<Node>().spec.taints;
        let tolerates = |effects: &[&str]| untolerated(taints, &spec.tolerations, effects).is_none();
        let should_run = tolerates(&["NoSchedule", "NoExecute"]);
        Placement { should_run, should_continue: should_run || tolerates(&["NoExecute"]) }
    }
}

/// The sets that a change of a node concerns: those that want something else there now.
pub(super) fn concerned(sets: &Lister, change: &Change<'_>) -> Vec<Arc<Object>> {
    let node = change.object();
    if change.old().is_some_and(|old| looks_the_same(old, node)) {
        return vec![];
    }
    let mut concerned = sets.all();
    concerned.retain(|set| {
        let eligibility = Eligibility::of(&set.view::<DaemonSet>());
        let now = eligibility.on(node);
        match change {
            Change::Added(_) => now.should_run,
            Change::Updated { old, .. } => eligibility.on(old) != now,
            // Upstream learns it from the pods, which go with their node; those that were never bound stay.
            Change::Deleted(_) => now.should_continue,
        }
    });
    concerned
}

/// Most changes of a node are signs of life.
fn looks_the_same(old: &Object, new: &Object) -> bool {
    let taints = |node: &Object| -> Vec<Taint> { node.view::<Node>().spec.taints.clone() };
    old.metadata.labels == new.metadata.labels && taints(old) == taints(new)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn node(labels: Value, taints: Value) -> Object {
        let tree = json!({"metadata": {"name": "n1", "labels": labels}, "spec": {"taints": taints}});
        Object::from_value(&tree, vec![]).unwrap()
    }

    fn taint(key: &str, effect: &str) -> Value {
        json!([{"key": key, "effect": effect}])
    }

    #[test]
    fn a_node_is_wanted_for_its_name_labels_and_taints() {
        let required = |term: Value| {
            let selector = json!({"nodeSelectorTerms": [term]});
            json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": selector}}})
        };
        let by_label = |value: &str| {
            required(json!({"matchExpressions": [{"key": "disk", "operator": "In", "values": [value]}]}))
        };
        let ssd = || node(json!({"disk": "ssd"}), json!([]));
        let tainted = |key: &str, effect: &str| node(json!({}), taint(key, effect));
        let tolerant = json!({"tolerations": [{"key": "own", "operator": "Exists"}]});
        let (run, stay, go) = ((true, true), (false, true), (false, false));
        let cases = [
            (json!({}), ssd(), run),
            (json!({"nodeName": "n1"}), ssd(), run),
            (json!({"nodeName": "n2"}), ssd(), go),
            (json!({"nodeSelector": {"disk": "ssd"}}), ssd(), run),
            (json!({"nodeSelector": {"disk": "hdd"}}), ssd(), go),
            (by_label("ssd"), ssd(), run),
            (by_label("hdd"), ssd(), go),
            (json!({}), tainted("own", "NoSchedule"), stay),
            (json!({}), tainted("own", "NoExecute"), go),
            (json!({}), tainted("own", "PreferNoSchedule"), run),
            (tolerant.clone(), tainted("own", "NoExecute"), run),
            (tolerant, tainted("other", "NoSchedule"), stay),
            (json!({}), tainted("node.kubernetes.io/unschedulable", "NoSchedule"), run),
            (json!({}), tainted("node.kubernetes.io/not-ready", "NoExecute"), run),
            (json!({}), tainted("node.kubernetes.io/not-ready", "NoSchedule"), stay),
            (json!({}), tainted("node.kubernetes.io/disk-pressure", "NoSchedule"), run),
            (json!({}), tainted("node.kubernetes.io/network-unavailable", "NoSchedule"), stay),
            (
                json!({"hostNetwork": true}),
                tainted("node.kubernetes.io/network-unavailable", "NoSchedule"),
                run,
            ),
        ];
        for (spec, node, expected) in cases {
            let set = json!({"spec": {"template": {"spec": spec}}});
            let placement = Eligibility::of(&DaemonSet::deserialize(set).unwrap()).on(&node);
            assert_eq!((placement.should_run, placement.should_continue), expected, "{spec}");
        }
    }
}
