//! Topology spread constraints, read once per pod.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use apimachinery::labels::{LabelSelector, Operator, Requirement, Selector};
use apimachinery::object::nullable;
use apis::views::pod::Pod;

/// `v1.TopologySpreadConstraint`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpreadConstraint {
    /// By how many pods two domains may differ.
    pub max_skew: i64,
    /// The label of nodes whose values are the domains.
    pub topology_key: String,
    /// Whether it must hold (`DoNotSchedule`), or had better.
    pub is_hard: bool,
    /// The pods that count.
    pub selector: Selector,
    /// With fewer domains than this the emptiest counts as empty.
    pub min_domains: usize,
    /// Whether nodes that the pod does not want count (`nodeAffinityPolicy: Ignore`).
    pub ignores_affinity: bool,
    /// Whether nodes whose taints the pod does not tolerate do not count (`nodeTaintsPolicy: Honor`).
    pub honors_taints: bool,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Constraint {
    max_skew: i64,
    topology_key: String,
    when_unsatisfiable: String,
    label_selector: Option<LabelSelector>,
    min_domains: Option<usize>,
    node_affinity_policy: Option<String>,
    node_taints_policy: Option<String>,
    #[serde(deserialize_with = "nullable")]
    match_label_keys: Vec<String>,
}

impl SpreadConstraint {
    /// Of a pod with these labels.
    pub fn of(pod: &Pod, labels: &BTreeMap<String, String>) -> Vec<SpreadConstraint> {
        let Some(constraints) = pod.spec.topology_spread_constraints.as_ref() else { return Vec::new() };
        let constraints = Vec::<Constraint>::deserialize(&**constraints).unwrap_or_default();
        constraints.into_iter().map(|constraint| constraint.read(labels)).collect()
    }

    /// Those that pods have which say nothing; whoever applies them says which pods count.
    pub fn read_all(constraints: &[Value]) -> Vec<SpreadConstraint> {
        let read =
            |constraint: &Value| Some(Constraint::deserialize(constraint).ok()?.read(&BTreeMap::new()));
        constraints.iter().filter_map(read).collect()
    }

    /// One that had better hold.
    pub fn soft(topology_key: &str, max_skew: i64) -> SpreadConstraint {
        SpreadConstraint {
            max_skew,
            topology_key: topology_key.to_owned(),
            is_hard: false,
            selector: Selector::nothing(),
            min_domains: 1,
            ignores_affinity: false,
            honors_taints: false,
        }
    }
}

impl Constraint {
    fn read(self, labels: &BTreeMap<String, String>) -> SpreadConstraint {
        let selector = self.label_selector.as_ref().and_then(|selector| selector.selector().ok());
        let mut selector = selector.unwrap_or_else(Selector::nothing);
        for key in &self.match_label_keys {
            let Some(value) = labels.get(key) else { continue };
            selector.requirements.extend(Requirement::new(key, Operator::In, vec![value.clone()]));
        }
        SpreadConstraint {
            max_skew: self.max_skew,
            topology_key: self.topology_key,
            is_hard: self.when_unsatisfiable != "ScheduleAnyway",
            selector,
            min_domains: self.min_domains.unwrap_or(1),
            ignores_affinity: self.node_affinity_policy.as_deref() == Some("Ignore"),
            honors_taints: self.node_taints_policy.as_deref() == Some("Honor"),
        }
    }
}
