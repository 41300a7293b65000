//! The scheduler's plugins, in the order in which they run, with their weights (`plugins.getDefaultPlugins`).

pub mod scheduling_gates;

pub mod priority_sort;

pub mod node_unschedulable;

pub mod node_name;

pub mod taint_toleration;

pub mod node_affinity;

pub mod node_ports;

pub mod node_resources_fit;

pub mod volume_binding;

pub mod pod_topology_spread;

pub mod inter_pod_affinity;

pub mod dynamic_resources;

pub mod default_preemption;

pub mod node_resources_balanced_allocation;

pub mod default_binder;

use std::sync::Arc;

use super::framework::plugin::Plugin;
use super::framework::runtime::Weighted;
use apis::core::namespace::NAMESPACES;
use apis::kind::Kind;
use apis::policy::pod_disruption_budget::POD_DISRUPTION_BUDGETS;
use client_go::lister::Lister;
use clock::Clock;

/// The plugins of the profile `default-scheduler`. Filters that ask little and reject much come first; only
/// what scores has a weight that matters. `lister` gives the cache of a kind.
pub fn default_plugins(lister: &dyn Fn(&Arc<Kind>) -> Lister, clock: &Clock) -> Vec<Weighted> {
    let (namespaces, budgets) = (lister(&NAMESPACES), lister(&POD_DISRUPTION_BUDGETS));
    let plugin = |plugin: Box<dyn Plugin>, weight| Weighted { plugin, weight };
    vec![
        plugin(Box::new(scheduling_gates::SchedulingGates), 0),
        plugin(Box::new(priority_sort::PrioritySort), 0),
        plugin(Box::new(node_unschedulable::NodeUnschedulable), 0),
        plugin(Box::new(node_name::NodeName), 0),
        plugin(Box::new(taint_toleration::TaintToleration), 3),
        plugin(Box::new(node_affinity::NodeAffinity), 2),
        plugin(Box::new(node_ports::NodePorts), 0),
        plugin(Box::new(node_resources_fit::NodeResourcesFit), 1),
        plugin(Box::new(volume_binding::VolumeBinding::new(lister, clock)), 0),
        plugin(Box::new(pod_topology_spread::PodTopologySpread), 2),
        plugin(Box::new(inter_pod_affinity::InterPodAffinity { namespaces }), 2),
        // Taking claims back costs less than evicting pods, so it is tried before preemption.
        plugin(Box::new(dynamic_resources::DynamicResources), 0),
        plugin(Box::new(default_preemption::DefaultPreemption { budgets }), 0),
        plugin(Box::new(node_resources_balanced_allocation::NodeResourcesBalancedAllocation), 1),
        plugin(Box::new(default_binder::DefaultBinder), 0),
    ]
}
