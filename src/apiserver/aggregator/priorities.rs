//! Which group goes before which, and within a group which version (`apiVersionPriorities`): the order of
//! discovery, and what the APIServices of local groups say.

/// Group, version, `groupPriorityMinimum`, `versionPriority`.
const PRIORITIES: &[(&str, &str, u32, u32)] = &[
    ("", "v1", 18000, 1),
    ("apps", "v1", 17800, 15),
    ("apps", "v1beta2", 17800, 9),
    ("apps", "v1beta1", 17800, 1),
    ("events.k8s.io", "v1", 17750, 15),
    ("authentication.k8s.io", "v1", 17700, 15),
    ("authorization.k8s.io", "v1", 17600, 15),
    ("autoscaling", "v1", 17500, 15),
    ("autoscaling", "v2", 17500, 30),
    ("batch", "v1", 17400, 15),
    ("batch", "v1beta1", 17400, 9),
    ("batch", "v2alpha1", 17400, 9),
    ("certificates.k8s.io", "v1", 17300, 15),
    ("networking.k8s.io", "v1", 17200, 15),
    // Behind what replaced it: a bare `deployments` means those of `apps`.
    ("extensions", "v1beta1", 17150, 1),
    ("policy", "v1", 17100, 15),
    ("rbac.authorization.k8s.io", "v1", 17000, 15),
    ("storage.k8s.io", "v1", 16800, 15),
    ("admissionregistration.k8s.io", "v1", 16700, 15),
    ("apiextensions.k8s.io", "v1", 16700, 15),
    ("scheduling.k8s.io", "v1", 16600, 15),
    ("coordination.k8s.io", "v1", 16500, 15),
    ("node.k8s.io", "v1", 16300, 15),
    ("discovery.k8s.io", "v1", 16200, 15),
    ("resource.k8s.io", "v1", 16200, 21),
    ("flowcontrol.apiserver.k8s.io", "v1", 16100, 21),
];

/// The group whose kinds are the aggregator's own; it has no APIService and comes before all but the core.
const AGGREGATOR: (&str, u32) = ("apiregistration.k8s.io", 17_900);
/// Of groups that custom resources make.
const CUSTOM: (u32, u32) = (1000, 100);

/// `groupPriorityMinimum` and `versionPriority` of a local group and version; those of a custom one where
/// nothing is known of it.
pub fn priorities(group: &str, version: &str) -> (u32, u32) {
    let found = PRIORITIES.iter().find(|(own, of, ..)| *own == group && *of == version);
    found.map_or(CUSTOM, |(_, _, group, version)| (*group, *version))
}

/// The place of a group in discovery: the higher, the earlier.
pub fn group_priority(group: &str) -> u32 {
    if group == AGGREGATOR.0 {
        return AGGREGATOR.1;
    }
    let found = PRIORITIES.iter().find(|(own, ..)| *own == group);
    found.map_or(CUSTOM.0, |(_, _, group, _)| *group)
}

/// Whether an APIService is made for a local group.
pub fn is_registered(group: &str) -> bool {
    group != AGGREGATOR.0
}
