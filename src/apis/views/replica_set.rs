//! ReplicaSet and ReplicationController, as controllers read them: the two differ in the form of their
//! selector only.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::meta::{Condition, Metadata};
use apimachinery::labels::LabelSelector;
use apimachinery::object::nullable;

/// `apps/v1.ReplicaSet` and `v1.ReplicationController`
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct ReplicaSet {
    /// The metadata, of which readers need the annotations.
    pub metadata: Metadata,
    /// The desired state, from whoever wrote the object.
    pub spec: ReplicaSetSpec,
    /// The observed state, from whoever acts on the object.
    pub status: ReplicaSetStatus,
}

/// `apps/v1.ReplicaSetSpec`
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ReplicaSetSpec {
    /// How many pods; the server defaults it to 1.
    pub replicas: Option<i64>,
    /// Seconds that a pod must have been ready to count as available.
    pub min_ready_seconds: i64,
    /// Which pods. A ReplicationController's map of labels reads as `matchLabels`.
    #[serde(deserialize_with = "either_selector")]
    pub selector: LabelSelector,
    /// What a pod is made from, as it stands.
    #[serde(deserialize_with = "nullable")]
    pub template: Arc<Value>,
}

/// `apps/v1.ReplicaSetStatus`
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ReplicaSetStatus {
    /// Active pods.
    pub replicas: i64,
    /// Those with all labels of the template.
    pub fully_labeled_replicas: i64,
    /// Those that are ready.
    pub ready_replicas: i64,
    /// Those that have been ready for `minReadySeconds`.
    pub available_replicas: i64,
    /// Pods that are on their way out.
    pub terminating_replicas: Option<i64>,
    /// The generation that all this speaks of.
    pub observed_generation: i64,
    /// `ReplicaFailure`
    #[serde(deserialize_with = "nullable")]
    pub conditions: Vec<Condition>,
}

impl ReplicaSet {
    /// The desired number of pods.
    pub fn replicas(&self) -> i64 {
        self.spec.replicas.unwrap_or(1)
    }
}

fn either_selector<'de, D: Deserializer<'de>>(deserializer: D) -> Result<LabelSelector, D::Error> {
    let members = Option::<BTreeMap<String, Value>>::deserialize(deserializer)?.unwrap_or_default();
    if members.values().all(Value::is_string) {
        let text = |(key, value): (String, Value)| (key, value.as_str().unwrap_or_default().to_owned());
        return Ok(LabelSelector {
            match_labels: members.into_iter().map(text).collect(),
            match_expressions: vec![],
        });
    }
    let tree = Value::Object(members.into_iter().collect());
    LabelSelector::deserialize(tree).map_err(serde::de::Error::custom)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn both_forms_of_a_selector_are_read() {
        let labels = |tree: Value| ReplicaSet::deserialize(tree).unwrap().spec.selector;
        let of_controller = labels(json!({"spec": {"selector": {"app": "web"}}}));
        let of_set = labels(json!({"spec": {"selector": {"matchLabels": {"app": "web"}}}}));
        assert_eq!(of_controller, of_set);
        let expression = json!({"key": "a", "operator": "Exists"});
        let by_expression = labels(json!({"spec": {"selector": {"matchExpressions": [expression]}}}));
        assert_eq!(by_expression.match_expressions.len(), 1);
    }
}
