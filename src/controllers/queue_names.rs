//! The names that upstream's work queues have in metrics, where they are not those of controllers here.

/// By the name of a controller.
const NAMES: &[(&str, &str)] = &[
    ("PV protection", "pvprotection"),
    ("PVC protection", "pvcprotection"),
    ("VAC protection", "vacprotection"),
    ("certificatesigningrequest-approving", "csrapproving"),
    ("certificatesigningrequest-signing", "csrsigning"),
    ("clusterrole-aggregation", "ClusterRoleAggregator"),
    ("endpointslice", "endpoint_slice"),
    ("endpointslicemirroring", "endpoint_slice_mirroring"),
    ("garbage-collector", "garbage_collector_attempt_to_delete"),
    ("garbage-collector-orphan", "garbage_collector_attempt_to_orphan"),
    ("node-ipam", "node"),
    ("node-lifecycle", "node_lifecycle_controller"),
    ("persistentvolume-binder", "claims"),
    ("persistentvolume-expander", "volume_expand"),
    ("pod-garbage-collector", "orphaned_pods_nodes"),
    ("replicationcontroller", "replicationmanager"),
    ("root-ca-certificate-publisher", "root_ca_cert_publisher"),
    ("service-cidr", "servicecidrs"),
    ("service-lb", "service"),
    ("serviceaccount-token", "serviceaccount_tokens_secret"),
    ("taint-eviction", "noexec_taint_pod"),
    ("ttl", "ttlcontroller"),
];

/// What the queue of a controller is counted as.
pub(crate) fn of(controller: &'static str) -> &'static str {
    NAMES.iter().find(|(own, _)| *own == controller).map_or(controller, |(_, upstream)| upstream)
}

/// The controller whose queue is counted so.
pub fn controller_of(queue: &str) -> &str {
    NAMES.iter().find(|(_, upstream)| *upstream == queue).map_or(queue, |(own, _)| own)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_queues_are_counted_as_one() {
        let mut names: Vec<&str> = NAMES.iter().map(|(_, upstream)| *upstream).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), NAMES.len());
        assert_eq!((of("deployment"), of("endpointslice")), ("deployment", "endpoint_slice"));
        assert_eq!((controller_of("job"), controller_of("endpoint_slice")), ("job", "endpointslice"));
    }
}
