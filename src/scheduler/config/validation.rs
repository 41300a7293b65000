//! What cannot be in a configuration (`apis/config/validation`).

use std::collections::BTreeSet;

use super::merge::{MergedProfile, merge};
use super::types::{
    Extender, KubeSchedulerConfiguration, ManagedResource, PluginConfig, Profile, SchedulerConfigError,
};
use crate::framework::points::Point;
use crate::plugins::args::{
    DefaultPreemptionArgs, DefaultingType, DynamicResourcesArgs, InterPodAffinityArgs, NodeAffinityArgs,
    NodeResourcesBalancedAllocationArgs, NodeResourcesFitArgs, PodTopologySpreadArgs, ResourceSpec,
    StrategyType, UtilizationShapePoint, VolumeBindingArgs,
};
use apimachinery::duration::parse_flag;
use apimachinery::names::qualified_name;
use apis::validation::resources::is_extended;

/// Says what is wrong, with the field.
pub(super) fn validate(config: &KubeSchedulerConfiguration) -> Result<(), SchedulerConfigError> {
    validate_all(config).map_err(SchedulerConfigError)
}

fn validate_all(config: &KubeSchedulerConfiguration) -> Result<(), String> {
    percentage(config.percentage_of_nodes_to_score, "percentageOfNodesToScore")?;
    let parallelism = config.parallelism.unwrap_or(1);
    require(parallelism > 0, || {
        format!("parallelism: Invalid value: {parallelism}: should be an integer value greater than zero")
    })?;
    let initial = config.pod_initial_backoff_seconds;
    let most = config.pod_max_backoff_seconds;
    require(initial > 0, || "podInitialBackoffSeconds: must be greater than 0".into())?;
    require(most >= initial, || {
        "podMaxBackoffSeconds: must be greater than or equal to podInitialBackoffSeconds".into()
    })?;
    let mut names = BTreeSet::new();
    for (index, profile) in config.profiles.iter().enumerate() {
        let place = format!("profiles[{index}]");
        require(profile.scheduler_name.as_deref().is_some_and(|name| !name.is_empty()), || {
            format!("{place}.schedulerName: Required value")
        })?;
        let name = profile.name();
        require(names.insert(name), || format!("{place}.schedulerName: Duplicate value: {name:?}"))?;
        validate_profile(profile).map_err(|error| format!("{place}.{error}"))?;
    }
    queue_sorts_agree(&config.profiles)?;
    for (index, extender) in config.extenders.iter().enumerate() {
        validate_extender(extender).map_err(|error| format!("extenders[{index}].{error}"))?;
    }
    managed_resources(&config.extenders)?;
    let binders = config.extenders.iter().filter(|extender| !extender.bind_verb.is_empty()).count();
    require(binders < 2, || format!("extenders: found {binders} extenders implementing bind, one is enough"))
}

fn require(holds: bool, why: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(why()) }
}

fn said(error: SchedulerConfigError) -> String {
    error.0
}

fn percentage(value: Option<i64>, field: &str) -> Result<(), String> {
    let value = value.unwrap_or(0);
    let holds = (0..=100).contains(&value);
    require(holds, || format!("{field}: Invalid value: {value}: not in valid range [0-100]"))
}

fn validate_profile(profile: &Profile) -> Result<(), String> {
    percentage(profile.percentage_of_nodes_to_score, "percentageOfNodesToScore")?;
    for key in profile.plugins.keys() {
        let is_known = key == "multiPoint" || Point::ALL.iter().any(|point| point.key() == *key);
        require(is_known, || format!("plugins: {key:?} is no extension point"))?;
    }
    let mut told = BTreeSet::new();
    for PluginConfig { name, .. } in &profile.plugin_config {
        require(told.insert(name), || format!("pluginConfig: repeated config for plugin {name:?}"))?;
    }
    validate_args(profile).map_err(|error| format!("pluginConfig: {error}"))?;
    merge(profile, &[]).map(drop).map_err(said)
}

/// A plugin that is not built in has arguments of its own, and nobody here can read them.
fn validate_args(profile: &Profile) -> Result<(), String> {
    let NodeResourcesFitArgs { scoring_strategy, .. } = profile.args("NodeResourcesFit").map_err(said)?;
    weights(&scoring_strategy.resources, "scoringStrategy.resources")?;
    if scoring_strategy.strategy == StrategyType::RequestedToCapacityRatio {
        let ratio = scoring_strategy.requested_to_capacity_ratio.unwrap_or_default();
        shape(&ratio.shape)?;
    }
    let balanced: NodeResourcesBalancedAllocationArgs =
        profile.args("NodeResourcesBalancedAllocation").map_err(said)?;
    weights(&balanced.resources, "resources")?;
    require(balanced.resources.iter().all(|resource| resource.weight == 1), || {
        "resources: resource weight of NodeResourcesBalancedAllocation must be 1".into()
    })?;
    let affinity: InterPodAffinityArgs = profile.args("InterPodAffinity").map_err(said)?;
    let weight = affinity.hard_pod_affinity_weight;
    require((0..=100).contains(&weight), || {
        format!("hardPodAffinityWeight: Invalid value: {weight}: not in valid range [0-100]")
    })?;
    profile.args::<NodeAffinityArgs>("NodeAffinity").map_err(said)?;
    profile.args::<VolumeBindingArgs>("VolumeBinding").map_err(said)?;
    spread(&profile.args("PodTopologySpread").map_err(said)?)?;
    preemption(&profile.args("DefaultPreemption").map_err(said)?)?;
    let devices: DynamicResourcesArgs = profile.args("DynamicResources").map_err(said)?;
    for (field, text) in
        [("filterTimeout", devices.filter_timeout), ("bindingTimeout", devices.binding_timeout)]
    {
        parse_flag(&text).map_err(|error| format!("{field}: {error}"))?;
    }
    Ok(())
}

fn weights(resources: &[ResourceSpec], field: &str) -> Result<(), String> {
    let mut names = BTreeSet::new();
    for ResourceSpec { name, weight } in resources {
        require((1..=100).contains(weight), || {
            format!("{field}: resource weight of {name} not in valid range [1-100]")
        })?;
        require(names.insert(name), || format!("{field}: Duplicate value: {name:?}"))?;
    }
    Ok(())
}

fn shape(points: &[UtilizationShapePoint]) -> Result<(), String> {
    require(!points.is_empty(), || "shape: at least one point must be specified".into())?;
    for pair in points.windows(2) {
        require(pair[0].utilization < pair[1].utilization, || {
            "shape: utilization values must be sorted in increasing order".into()
        })?;
    }
    for UtilizationShapePoint { utilization, score } in points {
        require((0..=100).contains(utilization), || {
            format!("shape.utilization: Invalid value: {utilization}: not in valid range [0-100]")
        })?;
        require((0..=10).contains(score), || {
            format!("shape.score: Invalid value: {score}: not in valid range [0-10]")
        })?;
    }
    Ok(())
}

fn spread(args: &PodTopologySpreadArgs) -> Result<(), String> {
    let is_system = args.defaulting_type == DefaultingType::System;
    require(!is_system || args.default_constraints.is_empty(), || {
        "defaultingType: when .defaultConstraints are not empty, it must be List".into()
    })?;
    for constraint in &args.default_constraints {
        let text = |field: &str| constraint.get(field).and_then(|value| value.as_str()).unwrap_or("");
        let skew = constraint.get("maxSkew").and_then(|skew| skew.as_i64()).unwrap_or(0);
        require(skew > 0, || "defaultConstraints.maxSkew: must be greater than zero".into())?;
        require(!text("topologyKey").is_empty(), || "defaultConstraints.topologyKey: Required value".into())?;
        let action = text("whenUnsatisfiable");
        require(matches!(action, "DoNotSchedule" | "ScheduleAnyway"), || {
            format!("defaultConstraints.whenUnsatisfiable: Unsupported value: {action:?}")
        })?;
        require(constraint.get("labelSelector").is_none(), || {
            "defaultConstraints.labelSelector: constraint must not define a selector, as they deduced for each pod"
                .into()
        })?;
    }
    Ok(())
}

fn preemption(args: &DefaultPreemptionArgs) -> Result<(), String> {
    let share = args.min_candidate_nodes_percentage;
    let number = args.min_candidate_nodes_absolute;
    require(share <= 100, || "minCandidateNodesPercentage: not in valid range [0, 100]".into())?;
    require(share > 0 || number > 0, || {
        "cannot be zero at the same time as minCandidateNodesAbsolute: minCandidateNodesPercentage".into()
    })
}

/// There is one queue for all profiles.
fn queue_sorts_agree(profiles: &[Profile]) -> Result<(), String> {
    let names = |merged: MergedProfile| merged.names_at(Point::QueueSort);
    let sort = |profile: &Profile| merge(profile, &[]).map(names).map_err(said);
    let Some((first, others)) = profiles.split_first() else { return Ok(()) };
    for other in others {
        require(sort(other)? == sort(first)?, || {
            format!("profiles: {:?} has another queueSort than {:?}", other.name(), first.name())
        })?;
    }
    Ok(())
}

/// Extended resources, of which one extender looks after each.
fn managed_resources(extenders: &[Extender]) -> Result<(), String> {
    let mut names = BTreeSet::new();
    for (index, extender) in extenders.iter().enumerate() {
        for (place, ManagedResource { name, .. }) in extender.managed_resources.iter().enumerate() {
            let field = format!("extenders[{index}].managedResources[{place}].name");
            let invalid = |why: &str| format!("{field}: Invalid value: {name:?}: {why}");
            let wrong = qualified_name(name);
            require(wrong.is_empty(), || invalid(&wrong.join("; ")))?;
            require(is_extended(name), || invalid("is an invalid extended resource name"))?;
            require(names.insert(name), || invalid("duplicate extender managed resource name"))?;
        }
    }
    Ok(())
}

fn validate_extender(extender: &Extender) -> Result<(), String> {
    let prefix = &extender.url_prefix;
    let is_url = prefix.starts_with("http://") || prefix.starts_with("https://");
    require(is_url, || format!("urlPrefix: Invalid value: {prefix:?}: must begin with http:// or https://"))?;
    require(extender.prioritize_verb.is_empty() || extender.weight > 0, || {
        "weight: must have a positive weight applied to it".into()
    })?;
    if let Some(timeout) = &extender.http_timeout {
        parse_flag(timeout).map_err(|error| format!("httpTimeout: {error}"))?;
    }
    Ok(())
}
