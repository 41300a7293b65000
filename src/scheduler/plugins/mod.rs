//! The scheduler's plugins, in the order in which they run, with their weights (`plugins.getDefaultPlugins`).

pub mod args;
pub mod catalog;

pub mod scheduling_gates;

pub mod priority_sort;

pub mod node_unschedulable;

pub mod node_name;

pub mod taint_toleration;

pub mod node_affinity;

pub mod node_ports;

pub mod extended_resources;
pub mod node_resources_fit;
mod resource_scores;

pub mod node_declared_features;

mod claims;
pub mod claims_made;
pub mod volume_restrictions;

pub mod node_volume_limits;

mod spread_counts;
mod storage_capacity;
pub mod volume_binding;

pub mod volume_zone;

mod default_selector;
pub mod pod_topology_spread;

pub mod inter_pod_affinity;

mod device_binding;
pub mod dynamic_resources;
mod extended_claims;
mod extended_requests;

pub mod default_preemption;

pub mod node_resources_balanced_allocation;

pub mod image_locality;

pub mod default_binder;

use std::sync::Arc;

use super::config::merge::MergedProfile;
use super::config::types::{Profile, SchedulerConfigError};
use super::framework::plugin::Plugin;
use super::framework::preempting::Preempting;
use super::framework::runtime::Weighted;
use apis::core::namespace::NAMESPACES;
use apis::kind::Kind;
use apis::policy::pod_disruption_budget::POD_DISRUPTION_BUDGETS;
use apis::resource::device_class::DEVICE_CLASSES;
use client_go::lister::Lister;
use clock::Clock;
use component_base::metrics::Family;
use default_selector::DefaultSelector;
use entropy::Entropy;
use extended_resources::ExtendedResources;

/// What plugins are made from.
pub struct PluginHandle<'a> {
    /// Gives the cache of a kind.
    pub lister: &'a dyn Fn(&Arc<Kind>) -> Lister,
    /// The cluster's clock.
    pub clock: &'a Clock,
    /// The cluster's chance.
    pub entropy: &'a Entropy,
    /// Counts the claims that plugins make.
    pub claims_made: &'a Arc<Family<1>>,
    /// Whose victims are on their way out.
    pub preempting: &'a Preempting,
}

/// The built-in plugins of a profile, in their order; those that are not built in are left out.
///
/// # Errors
/// What a plugin is told that it does not understand.
pub fn make_all(
    profile: &Profile,
    merged: &MergedProfile,
    handle: &PluginHandle<'_>,
) -> Result<Vec<Weighted>, SchedulerConfigError> {
    let mut plugins = Vec::new();
    for (name, weight) in &merged.plugins {
        let plugin = make(name, profile, handle)?;
        plugins.extend(plugin.map(|plugin| Weighted { plugin, weight: *weight }));
    }
    Ok(plugins)
}

pub(super) fn make(
    name: &str,
    profile: &Profile,
    handle: &PluginHandle<'_>,
) -> Result<Option<Box<dyn Plugin>>, SchedulerConfigError> {
    let PluginHandle { lister, clock, entropy, claims_made, preempting } = *handle;
    Ok(Some(match name {
        "SchedulingGates" => Box::new(scheduling_gates::SchedulingGates),
        "PrioritySort" => Box::new(priority_sort::PrioritySort),
        "NodeUnschedulable" => Box::new(node_unschedulable::NodeUnschedulable),
        "NodeName" => Box::new(node_name::NodeName),
        "TaintToleration" => Box::new(taint_toleration::TaintToleration),
        "NodePorts" => Box::new(node_ports::NodePorts),
        "NodeDeclaredFeatures" => Box::new(node_declared_features::NodeDeclaredFeatures),
        "NodeVolumeLimits" => Box::new(node_volume_limits::NodeVolumeLimits::new(lister)),
        "VolumeZone" => Box::new(volume_zone::VolumeZone::new(lister)),
        "VolumeBinding" => {
            Box::new(volume_binding::VolumeBinding::new(lister, clock, &profile.args("VolumeBinding")?))
        }
        "VolumeRestrictions" => {
            let claims = lister(&apis::core::persistent_volume_claim::PERSISTENT_VOLUME_CLAIMS);
            Box::new(volume_restrictions::VolumeRestrictions { claims })
        }
        "DynamicResources" => {
            let args = profile.args("DynamicResources")?;
            let plugin = dynamic_resources::DynamicResources::new(lister, clock, entropy, &args);
            Box::new(plugin.counting(claims_made))
        }
        "DefaultPreemption" => {
            let budgets = lister(&POD_DISRUPTION_BUDGETS);
            let args = profile.args("DefaultPreemption")?;
            let (entropy, preempting) = (entropy.clone(), preempting.clone());
            Box::new(default_preemption::DefaultPreemption { budgets, args, entropy, preempting })
        }
        "ImageLocality" => Box::new(image_locality::ImageLocality),
        "DefaultBinder" => Box::new(default_binder::DefaultBinder),
        other => return make_scoring(other, profile, lister),
    }))
}

/// Those that are told how to score.
fn make_scoring(
    name: &str,
    profile: &Profile,
    lister: &dyn Fn(&Arc<Kind>) -> Lister,
) -> Result<Option<Box<dyn Plugin>>, SchedulerConfigError> {
    Ok(Some(match name {
        "NodeAffinity" => {
            let args: args::NodeAffinityArgs = profile.args(name)?;
            Box::new(node_affinity::NodeAffinityPlugin { added: args.added_affinity.unwrap_or_default() })
        }
        "NodeResourcesFit" => {
            let devices = ExtendedResources::new(lister(&DEVICE_CLASSES));
            Box::new(node_resources_fit::NodeResourcesFit { args: profile.args(name)?, devices })
        }
        "PodTopologySpread" => {
            let selectors = DefaultSelector::new(lister);
            Box::new(pod_topology_spread::PodTopologySpread::new(&profile.args(name)?, selectors))
        }
        "InterPodAffinity" => {
            let (namespaces, args) = (lister(&NAMESPACES), profile.args(name)?);
            Box::new(inter_pod_affinity::InterPodAffinity { namespaces, args })
        }
        "NodeResourcesBalancedAllocation" => {
            let args = profile.args(name)?;
            Box::new(node_resources_balanced_allocation::NodeResourcesBalancedAllocation { args })
        }
        _ => return Ok(None),
    }))
}

/// The default plugins, told nothing, for tests.
#[cfg(test)]
pub(crate) fn default_plugins(lister: &dyn Fn(&Arc<Kind>) -> Lister, clock: &Clock) -> Vec<Weighted> {
    let profile = Profile::default();
    let merged = super::config::merge::merge(&profile, &[]).expect("the default profile is valid");
    let (entropy, claims_made) = (Entropy::seeded(7), Arc::new(claims_made::family()));
    let preempting = &Preempting::new(lister(&apis::core::pod::PODS));
    let handle = PluginHandle { lister, clock, entropy: &entropy, claims_made: &claims_made, preempting };
    make_all(&profile, &merged, &handle).expect("the default arguments are valid")
}
