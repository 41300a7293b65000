//! The kinds as they are written (kwok's `resource_usage_types.go`, `cluster_resource_usage_types.go`,
//! `metric_types.go`).

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

/// The spec of a ResourceUsage, and of a ClusterResourceUsage.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct UsageSpec {
    /// Of a ClusterResourceUsage, of which pods: of all where there is none.
    pub(super) selector: Option<PodChoice>,
    pub(super) usages: Vec<ContainerUsage>,
}

/// Both must hold; what is empty holds for all.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct PodChoice {
    pub(super) match_namespaces: Vec<String>,
    pub(super) match_names: Vec<String>,
}

/// What these containers use, or all of which nothing else is said.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ContainerUsage {
    pub(super) containers: Vec<String>,
    /// By resource.
    pub(super) usage: BTreeMap<String, UsageValue>,
}

/// An amount, else what an expression says.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct UsageValue {
    /// A quantity: a text, or a number.
    pub(super) value: Option<Value>,
    pub(super) expression: Option<String>,
}

/// The spec of a Metric.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct MetricSpec {
    pub(super) path: String,
    pub(super) metrics: Vec<MetricConfig>,
}

/// A family.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct MetricConfig {
    pub(super) name: String,
    pub(super) help: String,
    /// `counter`, `gauge` or `histogram`
    pub(super) kind: String,
    pub(super) labels: Vec<MetricLabel>,
    /// Of counters and gauges.
    pub(super) value: String,
    /// Of histograms.
    pub(super) buckets: Vec<MetricBucket>,
    /// `node`, `pod` or `container`
    pub(super) dimension: String,
}

/// A label, whose value is an expression.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct MetricLabel {
    pub(super) name: String,
    pub(super) value: String,
}

/// How many were observed in one bucket.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct MetricBucket {
    pub(super) le: f64,
    pub(super) value: String,
    pub(super) hidden: bool,
}
