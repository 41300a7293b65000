//! Node selectors and node affinity, as scheduler and controllers read them
//! (`component-helpers/scheduling/corev1/nodeaffinity`).

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use super::pod::Pod;
use apimachinery::object::{ObjectMeta, nullable};

/// `v1.NodeAffinity`
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct NodeAffinity {
    /// The node must match; none means any node.
    #[serde(rename = "requiredDuringSchedulingIgnoredDuringExecution")]
    pub required: Option<NodeSelector>,
    /// The more of these a node matches, the better.
    #[serde(rename = "preferredDuringSchedulingIgnoredDuringExecution", deserialize_with = "nullable")]
    pub preferred: Vec<PreferredTerm>,
}

/// `v1.NodeSelector`: one of the terms must match.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeSelector {
    /// The terms.
    #[serde(deserialize_with = "nullable")]
    pub node_selector_terms: Vec<Term>,
}

/// `v1.NodeSelectorTerm`: all of it must match, and an empty one matches nothing.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Term {
    /// On labels.
    #[serde(deserialize_with = "nullable")]
    pub match_expressions: Vec<Expression>,
    /// On fields; `metadata.name` is the only one there is.
    #[serde(deserialize_with = "nullable")]
    pub match_fields: Vec<Expression>,
}

/// `v1.PreferredSchedulingTerm`
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct PreferredTerm {
    /// From 1 to 100.
    pub weight: i64,
    /// What earns it.
    pub preference: Term,
}

/// `v1.NodeSelectorRequirement`
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Expression {
    /// A label's key, or a field.
    pub key: String,
    /// `In`, `NotIn`, `Exists`, `DoesNotExist`, `Gt`, `Lt`.
    pub operator: String,
    /// What it is compared with.
    #[serde(deserialize_with = "nullable")]
    pub values: Vec<String>,
}

impl NodeAffinity {
    /// Of a pod; nothing when it has none.
    pub fn of(pod: &Pod) -> NodeAffinity {
        let affinity = pod.spec.affinity.as_ref().and_then(|affinity| affinity.get("nodeAffinity"));
        affinity.and_then(|affinity| NodeAffinity::deserialize(affinity).ok()).unwrap_or_default()
    }

    /// The only nodes that can match, when fields name them: those of all terms together.
    pub fn named_nodes(&self) -> Option<BTreeSet<String>> {
        let terms = &self.required.as_ref()?.node_selector_terms;
        let mut names = BTreeSet::new();
        for term in terms {
            let by_name = |field: &&Expression| field.key == "metadata.name" && field.operator == "In";
            let mut sets = term.match_fields.iter().filter(by_name);
            let mut found: BTreeSet<String> = sets.next()?.values.iter().cloned().collect();
            for other in sets {
                found.retain(|name| other.values.contains(name));
            }
            names.extend(found);
        }
        Some(names)
    }
}

impl NodeSelector {
    /// Whether a node matches.
    pub fn matches(&self, node: &ObjectMeta) -> bool {
        self.node_selector_terms.iter().any(|term| term.matches(node))
    }
}

impl Term {
    /// Whether a node matches.
    pub fn matches(&self, node: &ObjectMeta) -> bool {
        let name = |key: &str| (key == "metadata.name").then_some(node.name.as_str());
        let label = |key: &str| node.labels.get(key).map(String::as_str);
        !self.is_empty()
            && self.match_expressions.iter().all(|expression| expression.matches(label(&expression.key)))
            && self.match_fields.iter().all(|field| field.matches(name(&field.key)))
    }

    fn is_empty(&self) -> bool {
        self.match_expressions.is_empty() && self.match_fields.is_empty()
    }
}

impl Expression {
    fn matches(&self, value: Option<&str>) -> bool {
        let among = |value: &str| self.values.iter().any(|candidate| candidate == value);
        let number = |text: &str| text.parse::<i64>().ok();
        let bound = self.values.first().and_then(|text| number(text)).filter(|_| self.values.len() == 1);
        match self.operator.as_str() {
            "In" => value.is_some_and(among),
            "NotIn" => !value.is_some_and(among),
            "Exists" => value.is_some(),
            "DoesNotExist" => value.is_none(),
            "Gt" => value.and_then(number).zip(bound).is_some_and(|(value, bound)| value > bound),
            "Lt" => value.and_then(number).zip(bound).is_some_and(|(value, bound)| value < bound),
            _ => false,
        }
    }
}

/// Whether a node has all the labels of a pod's `nodeSelector`.
pub fn has_labels(node: &ObjectMeta, selector: &BTreeMap<String, String>) -> bool {
    selector.iter().all(|(key, value)| node.labels.get(key) == Some(value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn terms_match_as_upstream() {
        let labels = [("zone", "a"), ("cores", "8")].map(|(key, value)| (key.into(), value.into()));
        let node = ObjectMeta { name: "node-1".into(), labels: labels.into(), ..ObjectMeta::default() };
        let expression = |key, operator, values: &[&str]| {
            let expression = json!({"key": key, "operator": operator, "values": values});
            json!({"matchExpressions": [expression]})
        };
        let field = |operator, values: &[&str]| {
            let field = json!({"key": "metadata.name", "operator": operator, "values": values});
            json!({"matchFields": [field]})
        };
        let cases = [
            (expression("zone", "In", &["a", "b"]), true),
            (expression("zone", "NotIn", &["a"]), false),
            (expression("disk", "NotIn", &["ssd"]), true),
            (expression("zone", "Exists", &[]), true),
            (expression("disk", "DoesNotExist", &[]), true),
            (expression("cores", "Gt", &["4"]), true),
            (expression("cores", "Lt", &["8"]), false),
            (expression("zone", "Gt", &["1"]), false),
            (expression("zone", "Near", &["a"]), false),
            (field("In", &["node-1"]), true),
            (field("NotIn", &["node-1"]), false),
            (json!({}), false),
        ];
        for (term, matches) in cases {
            let selector: NodeSelector =
                serde_json::from_value(json!({"nodeSelectorTerms": [term]})).unwrap();
            assert_eq!(selector.matches(&node), matches, "{term}");
        }
        assert!(!NodeSelector::default().matches(&node));
    }
}
