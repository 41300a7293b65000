//! Affinity and anti-affinity between pods, read once per pod (`framework.AffinityTerm`).

use std::collections::BTreeSet;

use serde::Deserialize;

use apimachinery::labels::{LabelSelector, Selector};
use apimachinery::object::{ObjectMeta, nullable};
use apis::views::pod::Pod;

/// What a pod wants of other pods.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PodAffinity {
    /// Such pods must be near.
    pub required: Vec<AffinityTerm>,
    /// Such pods must not be near.
    pub required_anti: Vec<AffinityTerm>,
    /// The weight that such pods near by earn: negative for those that it would rather not have there.
    pub preferred: Vec<(i64, AffinityTerm)>,
}

/// Which pods, and what near means: nodes with the same value of a label.
#[derive(Clone, Debug, PartialEq)]
pub struct AffinityTerm {
    /// The label of nodes.
    pub topology_key: String,
    selector: Selector,
    namespaces: BTreeSet<String>,
    namespace_selector: Option<Selector>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Affinity {
    #[serde(deserialize_with = "nullable")]
    pod_affinity: Terms,
    #[serde(deserialize_with = "nullable")]
    pod_anti_affinity: Terms,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Terms {
    #[serde(rename = "requiredDuringSchedulingIgnoredDuringExecution", deserialize_with = "nullable")]
    required: Vec<WrittenAffinityTerm>,
    #[serde(rename = "preferredDuringSchedulingIgnoredDuringExecution", deserialize_with = "nullable")]
    preferred: Vec<WrittenWeightedTerm>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct WrittenWeightedTerm {
    weight: i64,
    pod_affinity_term: WrittenAffinityTerm,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct WrittenAffinityTerm {
    label_selector: Option<LabelSelector>,
    #[serde(deserialize_with = "nullable")]
    namespaces: Vec<String>,
    namespace_selector: Option<LabelSelector>,
    topology_key: String,
}

impl PodAffinity {
    /// Of a pod in a namespace; nothing when it has none.
    pub fn of(pod: &Pod, namespace: &str) -> PodAffinity {
        let Some(affinity) = pod.spec.affinity.as_ref() else { return PodAffinity::default() };
        let Affinity { pod_affinity: near, pod_anti_affinity: far } =
            Affinity::deserialize(&**affinity).unwrap_or_default();
        let all = |terms: Vec<WrittenAffinityTerm>| {
            terms.into_iter().map(|term| AffinityTerm::new(term, namespace)).collect()
        };
        let weigh = |term: WrittenWeightedTerm, sign: i64| {
            (sign * term.weight, AffinityTerm::new(term.pod_affinity_term, namespace))
        };
        let nearer = near.preferred.into_iter().map(|term| weigh(term, 1));
        let farther = far.preferred.into_iter().map(|term| weigh(term, -1));
        PodAffinity {
            preferred: nearer.chain(farther).collect(),
            required: all(near.required),
            required_anti: all(far.required),
        }
    }

    /// Whether it wants nothing.
    pub fn is_empty(&self) -> bool {
        self.required.is_empty() && self.required_anti.is_empty() && self.preferred.is_empty()
    }
}

impl AffinityTerm {
    /// Without namespaces the pod's own is meant; without a label selector no pod is.
    fn new(term: WrittenAffinityTerm, namespace: &str) -> AffinityTerm {
        let selector = |selector: &LabelSelector| selector.selector().unwrap_or_else(|_| Selector::nothing());
        let mut namespaces: BTreeSet<String> = term.namespaces.into_iter().collect();
        if namespaces.is_empty() && term.namespace_selector.is_none() {
            namespaces.insert(namespace.to_owned());
        }
        AffinityTerm {
            topology_key: term.topology_key,
            selector: term.label_selector.as_ref().map_or_else(Selector::nothing, selector),
            namespaces,
            namespace_selector: term.namespace_selector.as_ref().map(selector),
        }
    }

    /// Whether it means a pod. `namespace` finds the labels of a namespace.
    pub fn matches(&self, pod: &ObjectMeta, namespace: impl Fn(&str) -> Option<ObjectMeta>) -> bool {
        let by_labels = |selector: &Selector| {
            selector.is_everything()
                || namespace(&pod.namespace).is_some_and(|found| selector.matches(&found.labels))
        };
        self.selector.matches(&pod.labels)
            && (self.namespaces.contains(&pod.namespace)
                || self.namespace_selector.as_ref().is_some_and(by_labels))
    }
}
