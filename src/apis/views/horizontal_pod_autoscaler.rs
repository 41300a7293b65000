//! HorizontalPodAutoscaler (`autoscaling/v2`), as its controller reads it.

use serde::Deserialize;
use serde_json::Value;

use super::meta::Condition;
use apimachinery::object::nullable;
use apimachinery::time::Time;

/// `autoscaling/v2.HorizontalPodAutoscaler`
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct HorizontalPodAutoscaler {
    /// The desired state, from whoever wrote the object.
    pub spec: HorizontalPodAutoscalerSpec,
    /// The observed state, from whoever acts on the object.
    pub status: HorizontalPodAutoscalerStatus,
}

/// `autoscaling/v2.HorizontalPodAutoscalerSpec`
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HorizontalPodAutoscalerSpec {
    /// What is scaled.
    pub scale_target_ref: CrossVersionObjectReference,
    /// Not less; the server defaults it to 1.
    pub min_replicas: Option<i64>,
    /// Not more.
    pub max_replicas: i64,
    /// By what, as it stands.
    #[serde(deserialize_with = "nullable")]
    pub metrics: Vec<Value>,
    /// How fast; without it upstream's fixed rules hold.
    pub behavior: Option<HorizontalPodAutoscalerBehavior>,
}

/// `autoscaling/v2.HorizontalPodAutoscalerBehavior`; the server defaults both.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HorizontalPodAutoscalerBehavior {
    /// On the way up.
    pub scale_up: Option<HpaScalingRules>,
    /// On the way down.
    pub scale_down: Option<HpaScalingRules>,
}

/// `autoscaling/v2.HPAScalingRules`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HpaScalingRules {
    /// How far back recommendations are looked at.
    pub stabilization_window_seconds: Option<i64>,
    /// `Max`, `Min` or `Disabled`.
    pub select_policy: Option<String>,
    /// How much may change in how long.
    #[serde(deserialize_with = "nullable")]
    pub policies: Vec<HpaScalingPolicy>,
    /// A quantity: within such a share of the target nothing changes.
    pub tolerance: Option<Value>,
}

/// `autoscaling/v2.HPAScalingPolicy`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HpaScalingPolicy {
    /// `Pods` or `Percent`.
    #[serde(rename = "type")]
    pub policy_type: String,
    /// So many.
    pub value: i64,
    /// Within so long.
    pub period_seconds: i64,
}

/// `autoscaling/v2.CrossVersionObjectReference`
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CrossVersionObjectReference {
    /// As `apps/v1`.
    pub api_version: String,
    /// As `Deployment`.
    pub kind: String,
    /// In the autoscaler's namespace.
    pub name: String,
}

/// `autoscaling/v2.HorizontalPodAutoscalerStatus`
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HorizontalPodAutoscalerStatus {
    /// When it last scaled.
    pub last_scale_time: Option<Time>,
    /// As it was found.
    pub current_replicas: i64,
    /// As it was left.
    pub desired_replicas: i64,
    /// One for each metric, as they stand.
    pub current_metrics: Option<Value>,
    /// `AbleToScale`, `ScalingActive`, `ScalingLimited`.
    #[serde(deserialize_with = "nullable")]
    pub conditions: Vec<Condition>,
}
