//! Which plugins are built in, and how much they count (`plugins.getDefaultPlugins`). At which points they
//! have something to do is [`crate::framework::points::points_of`].

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
