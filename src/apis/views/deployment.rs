//! Deployment, as its controller reads it.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;

use super::meta::{Condition, Metadata};
use apimachinery::int_or_string::IntOrString;
use apimachinery::labels::LabelSelector;
use apimachinery::object::nullable;

/// `apps/v1.Deployment`
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Deployment {
    /// The metadata, of which readers need the annotations.
    pub metadata: Metadata,
    /// The desired state, from whoever wrote the object.
    pub spec: DeploymentSpec,
    /// The observed state, from whoever acts on the object.
    pub status: DeploymentStatus,
}

/// `apps/v1.DeploymentSpec`
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DeploymentSpec {
    /// How many pods; the server defaults it to 1.
    pub replicas: Option<i64>,
    /// Which ReplicaSets and pods.
    pub selector: LabelSelector,
    /// What a pod is made from, as it stands.
    #[serde(deserialize_with = "nullable")]
    pub template: Arc<Value>,
    /// How one revision follows another.
    pub strategy: DeploymentStrategy,
    /// Seconds that a pod must have been ready to count as available.
    pub min_ready_seconds: i64,
    /// How many old ReplicaSets are kept.
    pub revision_history_limit: Option<i64>,
    /// Nothing is rolled out while it is set.
    pub paused: bool,
    /// Seconds without progress after which it is said to have failed.
    pub progress_deadline_seconds: Option<i64>,
}

/// `apps/v1.DeploymentStrategy`
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DeploymentStrategy {
    /// `RollingUpdate` or `Recreate`.
    #[serde(rename = "type")]
    pub strategy_type: String,
    /// Only beside `RollingUpdate`.
    pub rolling_update: Option<RollingUpdate>,
}

/// `apps/v1.RollingUpdateDeployment`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RollingUpdate {
    /// How many may be missing.
    pub max_unavailable: Option<IntOrString>,
    /// How many there may be above the desired number.
    pub max_surge: Option<IntOrString>,
}

/// `apps/v1.DeploymentStatus`
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DeploymentStatus {
    /// The generation that all this speaks of.
    pub observed_generation: i64,
    /// Pods of all its ReplicaSets.
    pub replicas: i64,
    /// Those of the newest template.
    pub updated_replicas: i64,
    /// Those that are ready.
    pub ready_replicas: i64,
    /// Those that have been ready for `minReadySeconds`.
    pub available_replicas: i64,
    /// Those still missing.
    pub unavailable_replicas: i64,
    /// Pods that are on their way out.
    pub terminating_replicas: Option<i64>,
    /// `Available`, `Progressing`, `ReplicaFailure`
    #[serde(deserialize_with = "nullable")]
    pub conditions: Vec<Condition>,
    /// How often the hash of a template met a ReplicaSet of another.
    pub collision_count: Option<i64>,
}

impl Deployment {
    /// The desired number of pods.
    pub fn replicas(&self) -> i64 {
        self.spec.replicas.unwrap_or(1)
    }
}
