//! `/configz`: what a kubelet goes by, as a `KubeletConfiguration` with upstream's defaults filled in.

use serde_json::{Map, Value, json};

use crate::node_config::NodeConfig;
use crate::ports::{HEALTHZ_PORT, KUBELET_PORT};
use apimachinery::duration;

/// The whole page.
pub(super) fn configuration(config: &NodeConfig) -> String {
    let mut all = serving();
    all.extend(resources());
    all.extend(told(config));
    json!({"kubeletconfig": all}).to_string()
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}

/// How it is asked, and asks.
fn serving() -> Map<String, Value> {
    object(json!({
        "enableServer": true,
        "address": "0.0.0.0",
        "port": KUBELET_PORT,
        "authentication": {
            "x509": {}, "webhook": {"enabled": true, "cacheTTL": "2m0s"}, "anonymous": {"enabled": false},
        },
        "authorization": {
            "mode": "Webhook",
            "webhook": {"cacheAuthorizedTTL": "5m0s", "cacheUnauthorizedTTL": "30s"},
        },
        "healthzBindAddress": "127.0.0.1",
        "healthzPort": HEALTHZ_PORT,
        "clusterDomain": "cluster.local",
        "containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock",
        "contentType": "application/vnd.kubernetes.protobuf",
        "kubeAPIQPS": 50,
        "kubeAPIBurst": 100,
        "eventRecordQPS": 50,
        "eventBurst": 100,
        "registryPullQPS": 5,
        "registryBurst": 10,
        "imagePullCredentialsVerificationPolicy": "NeverVerifyPreloadedImages",
        "enableDebuggingHandlers": true,
        "enableDebugFlagsHandler": true,
        "enableProfilingHandler": true,
        "enableSystemLogHandler": true,
        "enableSystemLogQuery": false,
        "registerNode": true,
        "logging": {"format": "text", "flushFrequency": "5s", "verbosity": 0,
            "options": {"text": {"infoBufferSize": "0"}, "json": {"infoBufferSize": "0"}}},
    }))
}

/// What it does with what its node has.
fn resources() -> Map<String, Value> {
    object(json!({
        "cgroupDriver": "systemd",
        "cgroupsPerQOS": true,
        "configMapAndSecretChangeDetectionStrategy": "Watch",
        "containerLogMaxFiles": 5,
        "containerLogMaxSize": "10Mi",
        "containerLogMaxWorkers": 1,
        "containerLogMonitorInterval": "10s",
        "cpuCFSQuota": true,
        "cpuCFSQuotaPeriod": "100ms",
        "cpuManagerPolicy": "none",
        "cpuManagerReconcilePeriod": "10s",
        "enableControllerAttachDetach": true,
        "enforceNodeAllocatable": ["pods"],
        "failCgroupV1": true,
        "failSwapOn": true,
        "fileCheckFrequency": "20s",
        "hairpinMode": "promiscuous-bridge",
        "httpCheckFrequency": "20s",
        "localStorageCapacityIsolation": true,
        "makeIPTablesUtilChains": true,
        "maxOpenFiles": 1_000_000,
        "memoryManagerPolicy": "None",
        "memorySwap": {},
        "memoryThrottlingFactor": 0.9,
        "mergeDefaultEvictionSettings": false,
        "nodeLeaseDurationSeconds": 40,
        "nodeStatusReportFrequency": "5m0s",
        "oomScoreAdj": -999,
        "podLogsDir": "/var/log/pods",
        "podPidsLimit": -1,
        "resolvConf": "/etc/resolv.conf",
        "runtimeRequestTimeout": "2m0s",
        "seccompDefault": false,
        "shutdownGracePeriod": "0s",
        "shutdownGracePeriodCriticalPods": "0s",
        "syncFrequency": "1m0s",
        "topologyManagerPolicy": "none",
        "topologyManagerScope": "container",
        "volumePluginDir": "/usr/libexec/kubernetes/kubelet-plugins/volume/exec/",
        "volumeStatsAggPeriod": "1m0s",
    }))
}

/// What somebody has told it; what is left out upstream where it is nothing is so here.
fn told(config: &NodeConfig) -> Map<String, Value> {
    let options = &config.options;
    let pods = config.capacity.get("pods").and_then(|pods| pods.parse::<i64>().ok());
    let restarts = duration::format(options.max_container_restart_period);
    let mut told = object(json!({
        "clusterDNS": [config.cluster_dns],
        "crashLoopBackOff": {"maxContainerRestartPeriod": restarts},
        "evictionHard": options.eviction_hard.by_signal(),
        "evictionPressureTransitionPeriod": duration::format(options.eviction_pressure_transition_period),
        "imageMinimumGCAge": duration::format(options.minimum_image_ttl_duration),
        "imageMaximumGCAge": duration::format(options.image_maximum_gc_age),
        "imageGCHighThresholdPercent": options.image_gc_high_threshold,
        "imageGCLowThresholdPercent": options.image_gc_low_threshold,
        "maxPods": pods,
        "nodeStatusMaxImages": options.node_status_max_images,
        "nodeStatusUpdateFrequency": duration::format(options.node_status_update_frequency),
        "podCIDR": config.pod_cidrs.join(","),
        "streamingConnectionIdleTimeout": duration::format(options.streaming_connection_idle_timeout),
    }));
    let optional = [
        ("evictionSoft", json!(options.eviction_soft.by_signal())),
        ("evictionSoftGracePeriod", json!(options.eviction_soft_grace_period.by_signal())),
        ("evictionMinimumReclaim", json!(options.eviction_minimum_reclaim.by_signal())),
    ];
    let given = optional.into_iter().filter(|(_, by_signal)| *by_signal != json!({}));
    told.extend(given.map(|(name, by_signal)| (name.to_owned(), by_signal)));
    if options.eviction_max_pod_grace_period > 0 {
        told.insert("evictionMaxPodGracePeriod".into(), options.eviction_max_pod_grace_period.into());
    }
    if let Some(folder) = &options.pod_manifest_path {
        told.insert("staticPodPath".into(), folder.to_string_lossy().into());
    }
    told
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kubelet_says_what_it_goes_by() {
        let mut config = NodeConfig::numbered(1);
        let shown = |config: &NodeConfig| {
            let shown: Value = serde_json::from_str(&configuration(config)).unwrap();
            shown["kubeletconfig"].clone()
        };
        let plain = shown(&config);
        assert_eq!((&plain["maxPods"], &plain["syncFrequency"]), (&json!(110), &json!("1m0s")));
        assert_eq!(plain["evictionHard"]["memory.available"], "100Mi");
        assert_eq!(plain["evictionHard"]["nodefs.available"], "10%");
        assert!(plain.get("evictionSoft").is_none() && plain.get("staticPodPath").is_none(), "{plain}");
        config.options.eviction_soft = "memory.available<1Gi".parse().unwrap();
        config.options.eviction_soft_grace_period = "memory.available=90s".parse().unwrap();
        config.options.pod_manifest_path = Some("/manifests".into());
        let given = shown(&config);
        assert_eq!(given["evictionSoft"], json!({"memory.available": "1Gi"}));
        assert_eq!(given["evictionSoftGracePeriod"], json!({"memory.available": "1m30s"}));
        assert_eq!(given["staticPodPath"], "/manifests");
    }
}
