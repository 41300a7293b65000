//! What the plugins are told (`kubescheduler.config.k8s.io/v1`, `types_pluginargs.go`), with upstream's
//! defaults.

use std::collections::BTreeSet;

use serde::Deserialize;

use apis::views::node_affinity::NodeAffinity;
use serde_json::Value;

/// A resource and how much it counts (`ResourceSpec`).
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResourceSpec {
    /// As `cpu`.
    pub name: String,
    /// From 1 to 100.
    #[serde(default = "one")]
    pub weight: i64,
}

/// `NodeResourcesFitArgs`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct NodeResourcesFitArgs {
    /// Extended resources that are not looked at.
    pub ignored_resources: BTreeSet<String>,
    /// Groups of them: what stands before the `/`.
    pub ignored_resource_groups: BTreeSet<String>,
    /// Which nodes are better.
    pub scoring_strategy: ScoringStrategy,
}

/// `ScoringStrategy`
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct ScoringStrategy {
    /// Which of the three.
    #[serde(rename = "type")]
    pub strategy: StrategyType,
    /// By which resources.
    pub resources: Vec<ResourceSpec>,
    /// Of `RequestedToCapacityRatio`.
    pub requested_to_capacity_ratio: Option<RequestedToCapacityRatioParam>,
}

/// `ScoringStrategyType`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub enum StrategyType {
    /// The emptier the better.
    #[default]
    LeastAllocated,
    /// The fuller the better.
    MostAllocated,
    /// As the shape says.
    RequestedToCapacityRatio,
}

/// `RequestedToCapacityRatioParam`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RequestedToCapacityRatioParam {
    /// Points between which scores are interpolated, by utilization.
    pub shape: Vec<UtilizationShapePoint>,
}

/// `UtilizationShapePoint`
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UtilizationShapePoint {
    /// In percent.
    pub utilization: i64,
    /// From 0 to 10.
    pub score: i64,
}

/// `NodeResourcesBalancedAllocationArgs`
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NodeResourcesBalancedAllocationArgs {
    /// Which resources are to be used alike.
    pub resources: Vec<ResourceSpec>,
}

/// `InterPodAffinityArgs`
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct InterPodAffinityArgs {
    /// What a pod earns at a node near which a pod is that requires it; from 0 to 100.
    pub hard_pod_affinity_weight: i64,
    /// Whether what other pods only prefer counts for nothing.
    pub ignore_preferred_terms_of_existing_pods: bool,
}

/// `PodTopologySpreadArgs`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct PodTopologySpreadArgs {
    /// For pods that say nothing.
    pub default_constraints: Vec<Value>,
    /// Whether those are `System`'s or the `List`.
    pub defaulting_type: DefaultingType,
}

/// `PodTopologySpreadConstraintsDefaulting`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub enum DefaultingType {
    /// Nodes with a skew of 3 and zones with a skew of 5, if possible.
    #[default]
    System,
    /// As the list says.
    List,
}

/// `NodeAffinityArgs`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct NodeAffinityArgs {
    /// What every pod wants beside what it wants itself.
    pub added_affinity: Option<NodeAffinity>,
}

/// `VolumeBindingArgs`
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct VolumeBindingArgs {
    /// How long volumes may take.
    pub bind_timeout_seconds: u64,
}

/// `DefaultPreemptionArgs`
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct DefaultPreemptionArgs {
    /// At least this share of the nodes is looked at.
    pub min_candidate_nodes_percentage: usize,
    /// And at least so many.
    pub min_candidate_nodes_absolute: usize,
}

/// `DynamicResourcesArgs`
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct DynamicResourcesArgs {
    /// How long the search on one node may take; a number with a unit, `0s` for no bound.
    pub filter_timeout: String,
    /// How long devices may take to become ready for a pod.
    pub binding_timeout: String,
}

fn one() -> i64 {
    1
}

fn cpu_and_memory() -> Vec<ResourceSpec> {
    let of = |name: &str| ResourceSpec { name: name.into(), weight: 1 };
    vec![of("cpu"), of("memory")]
}

impl Default for ScoringStrategy {
    fn default() -> ScoringStrategy {
        ScoringStrategy {
            strategy: StrategyType::default(),
            resources: cpu_and_memory(),
            requested_to_capacity_ratio: None,
        }
    }
}

impl Default for NodeResourcesBalancedAllocationArgs {
    fn default() -> NodeResourcesBalancedAllocationArgs {
        NodeResourcesBalancedAllocationArgs { resources: cpu_and_memory() }
    }
}

impl Default for InterPodAffinityArgs {
    fn default() -> InterPodAffinityArgs {
        InterPodAffinityArgs { hard_pod_affinity_weight: 1, ignore_preferred_terms_of_existing_pods: false }
    }
}

impl Default for VolumeBindingArgs {
    fn default() -> VolumeBindingArgs {
        VolumeBindingArgs { bind_timeout_seconds: 600 }
    }
}

impl Default for DefaultPreemptionArgs {
    fn default() -> DefaultPreemptionArgs {
        DefaultPreemptionArgs { min_candidate_nodes_percentage: 10, min_candidate_nodes_absolute: 100 }
    }
}

impl Default for DynamicResourcesArgs {
    fn default() -> DynamicResourcesArgs {
        DynamicResourcesArgs { filter_timeout: "10s".into(), binding_timeout: "600s".into() }
    }
}
