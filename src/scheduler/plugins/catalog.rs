//! Which plugins are built in, how much they count, and at which points they have something to do
//! (`plugins.getDefaultPlugins`).

use crate::framework::points::Point;

/// The plugins that run unless a profile says otherwise, with their weights. Filters that ask little and
/// reject much come first; only what scores has a weight that matters. Taking claims back costs less than
/// evicting pods, so DynamicResources comes before preemption.
pub const DEFAULT_PLUGINS: &[(&str, i64)] = &[
    ("SchedulingGates", 0),
    ("PrioritySort", 0),
    ("NodeUnschedulable", 0),
    ("NodeName", 0),
    ("TaintToleration", 3),
    ("NodeAffinity", 2),
    ("NodePorts", 0),
    ("NodeResourcesFit", 1),
    ("NodeDeclaredFeatures", 0),
    ("VolumeRestrictions", 0),
    ("NodeVolumeLimits", 0),
    ("VolumeBinding", 0),
    ("VolumeZone", 0),
    ("PodTopologySpread", 2),
    ("InterPodAffinity", 2),
    ("DynamicResources", 2),
    ("DefaultPreemption", 0),
    ("NodeResourcesBalancedAllocation", 1),
    ("ImageLocality", 1),
    ("DefaultBinder", 0),
];

/// The points at which a built-in plugin has something to do.
pub fn points_of(name: &str) -> Option<&'static [Point]> {
    use Point::{
        Bind, Filter, Permit, PostFilter, PreBind, PreEnqueue, PreFilter, PreScore, QueueSort, Reserve, Score,
    };
    Some(match name {
        "SchedulingGates" => &[PreEnqueue],
        "PrioritySort" => &[QueueSort],
        "NodeUnschedulable" | "NodeName" => &[Filter],
        "TaintToleration" => &[Filter, PreScore, Score],
        "NodeAffinity" | "NodeResourcesFit" | "PodTopologySpread" | "InterPodAffinity" => {
            &[PreFilter, Filter, PreScore, Score]
        }
        "NodePorts" | "NodeDeclaredFeatures" | "VolumeRestrictions" | "NodeVolumeLimits" | "VolumeZone" => {
            &[PreFilter, Filter]
        }
        "VolumeBinding" => &[PreFilter, Filter, Reserve, PreBind],
        "DynamicResources" => {
            &[PreEnqueue, PreFilter, Filter, PostFilter, PreScore, Score, Reserve, Permit, PreBind]
        }
        "DefaultPreemption" => &[PostFilter],
        "NodeResourcesBalancedAllocation" | "ImageLocality" => &[PreScore, Score],
        "DefaultBinder" => &[Bind],
        _ => return None,
    })
}
