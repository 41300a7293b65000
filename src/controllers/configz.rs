//! `/configz`: what kube-controller-manager goes by, as upstream writes it
//! (`KubeControllerManagerConfiguration`, the internal type with Go's names).

use std::time::Duration;

use serde_json::{Value, json};

use super::options::ControllerManagerOptions;
use apimachinery::duration::format;

/// The page, with the name under which it is registered there.
pub fn configz(options: &ControllerManagerOptions) -> Value {
    let mut config = json!({"Generic": generic(options), "KubeCloudShared": shared(options)});
    for mut controllers in [of_workloads(options), of_nodes(options), of_the_rest(options)] {
        let config = config.as_object_mut().into_iter();
        config.zip(controllers.as_object_mut()).for_each(|(config, controllers)| config.append(controllers));
    }
    json!({"kubecontrollermanager.config.k8s.io": config})
}

fn generic(options: &ControllerManagerOptions) -> Value {
    json!({
        "Port": 10257,
        "Address": "0.0.0.0",
        "MinResyncPeriod": "12h0m0s",
        "Controllers": options.controllers,
        "ControllerStartInterval": "0s",
        "LeaderElection": {
            "LeaderElect": true, "LeaseDuration": "15s", "RenewDeadline": "10s", "RetryPeriod": "2s",
            "ResourceLock": "leases", "ResourceName": "kube-controller-manager", "ResourceNamespace": "kube-system",
        },
    })
}

fn shared(options: &ControllerManagerOptions) -> Value {
    let cidr = options.cluster_cidr.as_ref().map(ToString::to_string).unwrap_or_default();
    json!({
        "AllocateNodeCIDRs": options.allocate_node_cidrs,
        "CIDRAllocatorType": "RangeAllocator",
        "ClusterCIDR": cidr,
        "ClusterName": "kubernetes",
        "NodeMonitorPeriod": format(options.node_monitor_period),
        "UseServiceAccountCredentials": true,
    })
}

fn of_workloads(options: &ControllerManagerOptions) -> Value {
    json!({
        "DeploymentController": {"ConcurrentDeploymentSyncs": options.concurrent_deployment_syncs},
        "ReplicaSetController": {"ConcurrentRSSyncs": options.concurrent_replicaset_syncs},
        "ReplicationController": {"ConcurrentRCSyncs": options.concurrent_rc_syncs},
        "StatefulSetController": {"ConcurrentStatefulSetSyncs": options.concurrent_statefulset_syncs},
        "DaemonSetController": {"ConcurrentDaemonSetSyncs": options.concurrent_daemonset_syncs},
        "JobController": {"ConcurrentJobSyncs": options.concurrent_job_syncs},
        "CronJobController": {"ConcurrentCronJobSyncs": options.concurrent_cron_job_syncs},
        "TTLAfterFinishedController": {"ConcurrentTTLSyncs": options.concurrent_ttl_after_finished_syncs},
        "HPAController": {
            "ConcurrentHorizontalPodAutoscalerSyncs": options.concurrent_horizontal_pod_autoscaler_syncs,
            "HorizontalPodAutoscalerSyncPeriod": format(options.horizontal_pod_autoscaler_sync_period),
            "HorizontalPodAutoscalerDownscaleStabilizationWindow":
                format(options.horizontal_pod_autoscaler_downscale_stabilization),
            "HorizontalPodAutoscalerTolerance": options.horizontal_pod_autoscaler_tolerance,
            "HorizontalPodAutoscalerCPUInitializationPeriod":
                format(options.horizontal_pod_autoscaler_cpu_initialization_period),
            "HorizontalPodAutoscalerInitialReadinessDelay":
                format(options.horizontal_pod_autoscaler_initial_readiness_delay),
        },
    })
}

fn of_nodes(options: &ControllerManagerOptions) -> Value {
    let mask = options.node_cidr_mask_size.unwrap_or(0);
    json!({
        "NodeLifecycleController": {
            "NodeEvictionRate": options.node_eviction_rate,
            "SecondaryNodeEvictionRate": options.secondary_node_eviction_rate,
            "NodeStartupGracePeriod": format(options.node_startup_grace_period),
            "NodeMonitorGracePeriod": format(options.node_monitor_grace_period),
            "LargeClusterSizeThreshold": options.large_cluster_size_threshold,
            "UnhealthyZoneThreshold": options.unhealthy_zone_threshold,
        },
        "NodeIPAMController": {
            "NodeCIDRMaskSize": mask,
            "NodeCIDRMaskSizeIPv4": options.node_cidr_mask_size_ipv4.unwrap_or(mask),
            "NodeCIDRMaskSizeIPv6": options.node_cidr_mask_size_ipv6.unwrap_or(mask),
        },
        "PodGCController": {"TerminatedPodGCThreshold": options.terminated_pod_gc_threshold},
    })
}

fn of_the_rest(options: &ControllerManagerOptions) -> Value {
    let period = |period: Duration| format(period);
    let policies = options.concurrent_validating_admission_policy_status_syncs;
    json!({
        "EndpointController": {"ConcurrentEndpointSyncs": options.concurrent_endpoint_syncs},
        "EndpointSliceController": {
            "ConcurrentServiceEndpointSyncs": options.concurrent_service_endpoint_syncs,
            "MaxEndpointsPerSlice": 100,
        },
        "EndpointSliceMirroringController": {
            "MirroringConcurrentServiceEndpointSyncs": 5, "MirroringMaxEndpointsPerSubset": 1000,
        },
        "GarbageCollectorController": {
            "EnableGarbageCollector": true, "ConcurrentGCSyncs": options.concurrent_gc_syncs,
        },
        "NamespaceController": {
            "NamespaceSyncPeriod": period(options.namespace_sync_period),
            "ConcurrentNamespaceSyncs": options.concurrent_namespace_syncs,
        },
        "ResourceQuotaController": {
            "ResourceQuotaSyncPeriod": period(options.resource_quota_sync_period),
            "ConcurrentResourceQuotaSyncs": options.concurrent_resource_quota_syncs,
        },
        "SAController": {"ConcurrentSATokenSyncs": options.concurrent_serviceaccount_token_syncs},
        "LegacySATokenCleaner": {"CleanUpPeriod": period(options.legacy_service_account_token_clean_up_period)},
        "CSRSigningController": {"ClusterSigningDuration": period(options.cluster_signing_duration)},
        "PersistentVolumeBinderController": {
            "PVClaimBinderSyncPeriod": period(options.pvclaimbinder_sync_period),
        },
        "EphemeralVolumeController": {
            "ConcurrentEphemeralVolumeSyncs": options.concurrent_ephemeralvolume_syncs,
        },
        "ValidatingAdmissionPolicyStatusController": {"ConcurrentPolicySyncs": policies},
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_flags_say_is_where_upstream_has_it() {
        let options = ControllerManagerOptions {
            concurrent_job_syncs: 7,
            node_monitor_grace_period: Duration::from_secs(90),
            ..ControllerManagerOptions::default()
        };
        let page = configz(&options);
        let config = &page["kubecontrollermanager.config.k8s.io"];
        assert_eq!(config["JobController"]["ConcurrentJobSyncs"], 7);
        assert_eq!(config["NodeLifecycleController"]["NodeMonitorGracePeriod"], "1m30s");
        assert_eq!(config["Generic"]["Controllers"], json!(["*"]));
        assert_eq!(config["LegacySATokenCleaner"]["CleanUpPeriod"], "8760h0m0s");
    }
}
