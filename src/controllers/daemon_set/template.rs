//! What the pods of a DaemonSet are made from (`pkg/controller/daemon/util`): the template, what it takes to
//! stay on a node in trouble, and the node that the pod is for.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::history::REVISION_HASH;
use apimachinery::object::Object;
use apis::tree::{flag, items_mut, object_mut, set, string_map};
use apis::views::daemon_set::DaemonSet;
use apis::views::node_affinity::NodeAffinity;
use apis::views::pod::Pod;

/// An older way to tell revisions apart (`DaemonSetTemplateGenerationKey`).
const TEMPLATE_GENERATION_LABEL: &str = "pod-template-generation";
/// Where the set counts the changes of its template (`DeprecatedTemplateGeneration`).
const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

/// Daemons stay whatever becomes of their node, and come to cordoned ones.
const TOLERATIONS: [(&str, &str); 6] = [
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
];
/// Those that bring no network of their own.
const HOST_NETWORK_TOLERATION: (&str, &str) = ("node.kubernetes.io/network-unavailable", "NoSchedule");

/// The template with what all daemons tolerate (`AddOrUpdateDaemonPodTolerations`).
pub(super) fn with_daemon_tolerations(template: &Value) -> Value {
    let mut template = template.clone();
    let on_host_network = flag(&template, "spec.hostNetwork").then_some(HOST_NETWORK_TOLERATION);
    let mut tolerations: Vec<Value> = items_mut(&mut template, "spec.tolerations").to_vec();
    for (key, effect) in TOLERATIONS.into_iter().chain(on_host_network) {
        let toleration = json!({"key": key, "operator": "Exists", "effect": effect});
        // What is the same but for the time that it holds is replaced by what holds for ever.
        let same = |it: &Value| {
            ["key", "operator", "effect", "value"].iter().all(|name| it.get(name) == toleration.get(name))
        };
        match tolerations.iter_mut().find(|it| same(it)) {
            Some(place) => *place = toleration,
            None => tolerations.push(toleration),
        }
    }
    set(&mut template, "spec.tolerations", tolerations);
    template
}

/// The template of a set's pods of one revision (`CreatePodTemplate`).
pub(super) fn pod_template(daemon_set: &DaemonSet, hash: &str) -> Value {
    let mut template = with_daemon_tolerations(&daemon_set.spec.template);
    let labels = object_mut(&mut template, "metadata.labels");
    if let Some(generation) = template_generation(daemon_set) {
        labels.insert(TEMPLATE_GENERATION_LABEL.into(), generation.into());
    }
    labels.insert(REVISION_HASH.into(), hash.into());
    template
}

/// The template for one node (`ReplaceDaemonSetPodNodeNameNodeAffinity`): whatever nodes the template
/// requires, this one was found to be among them.
pub(super) fn for_node(template: &Value, node: &str) -> Value {
    let mut template = template.clone();
    let field = json!({"key": "metadata.name", "operator": "In", "values": [node]});
    let terms = json!([{"matchFields": [field]}]);
    let required = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution";
    object_mut(&mut template, required).insert("nodeSelectorTerms".into(), terms);
    template
}

/// The labels of a template.
pub(super) fn labels(template: &Value) -> BTreeMap<String, String> {
    string_map(template, "metadata.labels")
}

/// The node that a pod is on, or for (`GetTargetNodeName`).
pub(super) fn target_node(pod: &Pod) -> Option<String> {
    if !pod.spec.node_name.is_empty() {
        return Some(pod.spec.node_name.clone());
    }
    let required = NodeAffinity::of(pod).required?;
    let mut fields = required.node_selector_terms.into_iter().flat_map(|term| term.match_fields);
    let by_name = fields.find(|field| field.key == "metadata.name" && field.operator == "In")?;
    <[String; 1]>::try_from(by_name.values).ok().map(|[name]| name)
}

/// Whether a pod is of the newest template (`IsPodUpdated`).
pub(super) fn is_updated(pod: &Object, daemon_set: &DaemonSet, hash: &str) -> bool {
    let label = |key: &str| pod.metadata.labels.get(key).map(String::as_str);
    let by_generation = template_generation(daemon_set);
    (!hash.is_empty() && label(REVISION_HASH) == Some(hash))
        || by_generation.is_some_and(|generation| label(TEMPLATE_GENERATION_LABEL) == Some(&generation))
}

/// A number that cannot be read is none: the hash decides then.
fn template_generation(daemon_set: &DaemonSet) -> Option<String> {
    let text = daemon_set.metadata.annotations.get(TEMPLATE_GENERATION)?;
    text.parse::<i64>().ok().map(|generation| generation.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[test]
    fn daemons_tolerate_trouble_for_ever() {
        let own = json!({"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute",
            "tolerationSeconds": 5});
        let template = with_daemon_tolerations(&json!({"spec": {"tolerations": [own]}}));
        let tolerations = template["spec"]["tolerations"].as_array().unwrap();
        assert_eq!(tolerations.len(), TOLERATIONS.len());
        assert!(tolerations.iter().all(|it| it.get("tolerationSeconds").is_none()));
        let template = with_daemon_tolerations(&json!({"spec": {"hostNetwork": true}}));
        assert_eq!(template["spec"]["tolerations"].as_array().unwrap().len(), TOLERATIONS.len() + 1);
    }

    #[test]
    fn a_pod_is_for_the_node_that_it_names() {
        let required = json!({"nodeSelectorTerms": [{"matchExpressions": []}]});
        let affinity = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}});
        for spec in [json!({}), json!({"affinity": affinity})] {
            let template = for_node(&json!({"spec": spec}), "n7");
            let target = target_node(&Pod::deserialize(template).unwrap());
            assert_eq!(target.as_deref(), Some("n7"));
        }
        let bound = Pod::deserialize(json!({"spec": {"nodeName": "n1"}})).unwrap();
        assert_eq!(target_node(&bound).as_deref(), Some("n1"));
        assert_eq!(target_node(&Pod::default()), None);
    }
}
