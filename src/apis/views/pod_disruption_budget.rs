//! PodDisruptionBudget, as the disruption controller and eviction read it.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::meta::{Condition, Metadata};
use apimachinery::int_or_string::IntOrString;
use apimachinery::labels::LabelSelector;
use apimachinery::object::nullable;
use apimachinery::time::Time;

/// `policy/v1.PodDisruptionBudget`
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct PodDisruptionBudget {
    /// The metadata, of which readers need the annotations.
    pub metadata: Metadata,
    /// The desired state, from whoever wrote the object.
    pub spec: PodDisruptionBudgetSpec,
    /// The observed state, from whoever acts on the object.
    pub status: PodDisruptionBudgetStatus,
}

/// `policy/v1.PodDisruptionBudgetSpec`
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodDisruptionBudgetSpec {
    /// How many pods must stay healthy.
    pub min_available: Option<IntOrString>,
    /// How many may be missing.
    pub max_unavailable: Option<IntOrString>,
    /// Which pods: none when it is null, all of the namespace when it is empty.
    pub selector: Option<LabelSelector>,
}

/// `policy/v1.PodDisruptionBudgetStatus`
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodDisruptionBudgetStatus {
    /// The generation that all this speaks of.
    pub observed_generation: i64,
    /// Pods whose eviction was granted and has not yet been seen, with the time of the grant.
    #[serde(deserialize_with = "nullable")]
    pub disrupted_pods: BTreeMap<String, Time>,
    /// How many may be evicted now.
    pub disruptions_allowed: i64,
    /// Healthy pods.
    pub current_healthy: i64,
    /// How many must be healthy.
    pub desired_healthy: i64,
    /// How many pods there should be.
    pub expected_pods: i64,
    /// `DisruptionAllowed`
    #[serde(deserialize_with = "nullable")]
    pub conditions: Vec<Condition>,
}
