//! DaemonSet, as its controller reads it.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;

use super::deployment::RollingUpdate;
use super::meta::Metadata;
use apimachinery::labels::LabelSelector;
use apimachinery::object::nullable;

/// `apps/v1.DaemonSet`
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct DaemonSet {
    /// The metadata, of which readers need the annotations.
    pub metadata: Metadata,
    /// The desired state, from whoever wrote the object.
    pub spec: DaemonSetSpec,
    /// The observed state, from whoever acts on the object.
    pub status: DaemonSetStatus,
}

/// `apps/v1.DaemonSetSpec`
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DaemonSetSpec {
    /// Which pods.
    pub selector: LabelSelector,
    /// What a pod is made from, as it stands.
    #[serde(deserialize_with = "nullable")]
    pub template: Arc<Value>,
    /// How one revision follows another.
    pub update_strategy: DaemonSetUpdateStrategy,
    /// Seconds that a pod must have been ready to count as available.
    pub min_ready_seconds: i64,
    /// How many old revisions are kept.
    pub revision_history_limit: Option<i64>,
}

/// `apps/v1.DaemonSetUpdateStrategy`
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DaemonSetUpdateStrategy {
    /// `RollingUpdate` or `OnDelete`.
    #[serde(rename = "type")]
    pub strategy_type: String,
    /// Only beside `RollingUpdate`.
    pub rolling_update: Option<RollingUpdate>,
}

/// `apps/v1.DaemonSetStatus`, without the conditions, which nobody sets.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DaemonSetStatus {
    /// Nodes that run a pod and should.
    pub current_number_scheduled: i64,
    /// Nodes that run a pod and should not.
    pub number_misscheduled: i64,
    /// Nodes that should run a pod.
    pub desired_number_scheduled: i64,
    /// Of these, those whose pod is ready.
    pub number_ready: i64,
    /// The generation that all this speaks of.
    pub observed_generation: i64,
    /// Nodes whose pod has the newest template.
    pub updated_number_scheduled: i64,
    /// Nodes whose pod has been ready for `minReadySeconds`.
    pub number_available: i64,
    /// Nodes that should have such a pod, and do not.
    pub number_unavailable: i64,
    /// How often the hash of a template met the revision of another.
    pub collision_count: Option<i64>,
}
