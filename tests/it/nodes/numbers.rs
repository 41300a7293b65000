//! What kubelets count: what is in volumes, how long a pod's worker takes, who waited for what; and images that
//! nobody has used for too long.

use std::time::Duration;

use http_body_util::BodyExt;
use kubarium::apimachinery::options::DeleteOptions;
use kubarium::apis::core::persistent_volume_claim::PERSISTENT_VOLUME_CLAIMS;
use kubarium::cluster::Settle;
use kubarium::kinds::{NODES, PODS};
use kubarium::kubelet::options::KubeletOptions;
use kubarium::{Clock, Cluster, Config, Entropy};
use serde_json::{Value, json};

async fn start(options: KubeletOptions) -> Cluster {
    let clock = Clock::stepped("2026-01-01T00:00:00Z".parse().unwrap());
    let config = Config::new().clock(clock).entropy(Entropy::seeded(7)).kubelet(options);
    let config = config.nodes(1).default_storage_class(true);
    Cluster::start(config).await.unwrap()
}

async fn settle(cluster: &Cluster) {
    cluster.settle(Settle::new()).await.unwrap();
}

/// What the kubelet answers at a path.
async fn page(cluster: &Cluster, path: &str) -> String {
    let path = format!("/api/v1/nodes/node-1/proxy/{path}");
    let answer = cluster.client().raw(http::Request::get(path).body(Default::default()).unwrap()).await;
    assert_eq!(answer.status().as_u16(), 200);
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    String::from_utf8(body.to_vec()).unwrap()
}

fn has_line(text: &str, line: &str) {
    assert!(text.lines().any(|said| said == line), "{line}: {text}");
}

/// A pod with the volume of a claim of 1Gi that says that so much is in it.
async fn run_with_claim(cluster: &Cluster) {
    let spec = json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}});
    let claim = json!({"metadata": {"name": "data"}, "spec": spec});
    cluster.client().create(&PERSISTENT_VOLUME_CLAIMS, "default", claim).await.unwrap();
    let mounts = json!([{"name": "v", "mountPath": "/data"}]);
    let container = json!({"name": "c", "image": "nginx", "volumeMounts": mounts});
    let volume = json!({"name": "v", "persistentVolumeClaim": {"claimName": "data"}});
    let annotations = json!({"kubarium.dev/usage-volume.v": "24Mi"});
    let pod = json!({"metadata": {"name": "p", "annotations": annotations},
        "spec": {"containers": [container], "volumes": [volume]}});
    cluster.client().create(&PODS, "default", pod).await.unwrap();
    settle(cluster).await;
    cluster.pass(Duration::from_secs(20)).await.unwrap();
    settle(cluster).await;
}

#[tokio::test]
async fn kubelets_say_what_is_in_the_volumes_of_claims() {
    let cluster = start(KubeletOptions::default()).await;
    assert!(!page(&cluster, "metrics").await.contains("kubelet_volume_stats_"));
    run_with_claim(&cluster).await;
    let metrics = page(&cluster, "metrics").await;
    for (name, value) in [
        ("capacity_bytes", 1_u64 << 30),
        ("used_bytes", 24 << 20),
        ("available_bytes", (1 << 30) - (24 << 20)),
        ("inodes", 65_536),
        ("inodes_used", 11),
        ("inodes_free", 65_525),
    ] {
        let labels = "namespace=\"default\",persistentvolumeclaim=\"data\"";
        has_line(&metrics, &format!("kubelet_volume_stats_{name}{{{labels}}} {value}"));
    }
    let summary: Value = serde_json::from_str(&page(&cluster, "stats/summary").await).unwrap();
    let of_system = summary["node"]["systemContainers"].as_array().unwrap();
    let names: Vec<&Value> = of_system.iter().map(|own| &own["name"]).collect();
    assert_eq!(names, ["kubelet", "runtime", "misc", "pods"], "{summary}");
    let memory = |usage: &Value| usage["memory"]["rssBytes"].as_u64().unwrap();
    assert_eq!(memory(&of_system[3]), summary["pods"].as_array().unwrap().iter().map(memory).sum::<u64>());
    let volume = &summary["pods"][0]["volume"][0];
    assert_eq!((&volume["name"], &volume["usedBytes"]), (&json!("v"), &json!(24 << 20)), "{summary}");
    assert_eq!(volume["pvcRef"], json!({"name": "data", "namespace": "default"}));
    cluster.stop().await;
}

#[tokio::test]
async fn kubelets_count_their_pods_and_how_long_a_worker_takes() {
    let cluster = start(KubeletOptions::default()).await;
    run_with_claim(&cluster).await;
    let metrics = page(&cluster, "metrics").await;
    for line in [
        "kubelet_desired_pods{static=\"\"} 1",
        "kubelet_desired_pods{static=\"true\"} 0",
        "kubelet_active_pods{static=\"\"} 1",
        "kubelet_mirror_pods 0",
        "kubelet_managed_ephemeral_containers 0",
        "kubelet_working_pods{config=\"desired\",lifecycle=\"sync\",static=\"\"} 1",
        "kubelet_working_pods{config=\"desired\",lifecycle=\"terminating\",static=\"\"} 0",
        "kubelet_working_pods{config=\"runtime_only\",lifecycle=\"terminated\",static=\"unknown\"} 0",
        "kubelet_containers_per_pod_count_bucket{le=\"1\"} 1",
        "kubelet_pod_worker_start_duration_seconds_count 1",
        "kubelet_pod_worker_duration_seconds_count{operation_type=\"create\"} 1",
    ] {
        has_line(&metrics, line);
    }
    let synced = "kubelet_pod_worker_duration_seconds_count{operation_type=\"sync\"} ";
    assert!(metrics.lines().any(|line| line.starts_with(synced)), "{metrics}");
    let spec = json!({"nodeName": "node-1", "containers": [{"name": "c", "image": "nginx",
        "resources": {"requests": {"cpu": "1000"}}}]});
    let pod = json!({"metadata": {"name": "large"}, "spec": spec});
    cluster.client().create(&PODS, "default", pod).await.unwrap();
    settle(&cluster).await;
    let metrics = page(&cluster, "metrics").await;
    has_line(&metrics, "kubelet_admission_rejections_total{reason=\"OutOfcpu\"} 1");
    has_line(&metrics, "kubelet_active_pods{static=\"\"} 1");
    cluster.stop().await;
}

#[tokio::test]
async fn kubelets_say_how_long_pods_take_to_start_and_what_their_runtime_does() {
    let cluster = start(KubeletOptions::default()).await;
    let container =
        |name: &str, command: Value| json!({"name": name, "image": "busybox", "command": command});
    let init = container("i", json!(["sleep", "7"]));
    let spec = json!({"initContainers": [init], "containers": [container("c", json!(["sleep", "9999"]))],
        "terminationGracePeriodSeconds": 3, "restartPolicy": "Never"});
    let pod = json!({"metadata": {"name": "p"}, "spec": spec});
    cluster.client().create(&PODS, "default", pod).await.unwrap();
    settle(&cluster).await;
    let before = page(&cluster, "metrics").await;
    assert!(!before.contains("kubelet_pod_start_sli_duration_seconds"), "it does not run yet: {before}");
    cluster.pass(Duration::from_secs(20)).await.unwrap();
    settle(&cluster).await;
    let metrics = page(&cluster, "metrics").await;
    for line in [
        // Of which seven seconds are its init container's.
        "kubelet_pod_start_total_duration_seconds_bucket{le=\"6\"} 0",
        "kubelet_pod_start_total_duration_seconds_bucket{le=\"20\"} 1",
        "kubelet_pod_start_sli_duration_seconds_bucket{le=\"6\"} 1",
        "kubelet_pod_start_sli_duration_seconds_count 1",
        "kubelet_pod_start_duration_seconds_bucket{le=\"2700\"} 1",
        "kubelet_image_pull_duration_seconds_count{image_size_in_bytes=\"0-10MB\"} 2",
        "kubelet_runtime_operations_total{operation_type=\"run_podsandbox\"} 1",
        "kubelet_runtime_operations_total{operation_type=\"pull_image\"} 2",
        "kubelet_runtime_operations_total{operation_type=\"image_status\"} 2",
        "kubelet_runtime_operations_total{operation_type=\"create_container\"} 2",
        "kubelet_runtime_operations_duration_seconds_count{operation_type=\"start_container\"} 2",
    ] {
        has_line(&metrics, line);
    }
    assert!(!metrics.contains("kubelet_runtime_operations_errors_total{"), "{metrics}");
    cluster.client().delete(&PODS, "default", "p", &DeleteOptions::default()).await.unwrap();
    cluster.pass(Duration::from_secs(10)).await.unwrap();
    let pod = json!({"metadata": {"name": "q", "annotations": {"kubarium.dev/chaos-pull": "reason=ErrImagePull"}},
        "spec": {"containers": [{"name": "c", "image": "nginx"}]}});
    cluster.client().create(&PODS, "default", pod).await.unwrap();
    settle(&cluster).await;
    let metrics = page(&cluster, "metrics").await;
    for line in [
        "kubelet_runtime_operations_duration_seconds_count{operation_type=\"stop_container\"} 1",
        "kubelet_runtime_operations_total{operation_type=\"stop_podsandbox\"} 1",
        "kubelet_runtime_operations_total{operation_type=\"remove_container\"} 2",
        "kubelet_runtime_operations_errors_total{operation_type=\"pull_image\"} 1",
        "kubelet_pleg_discard_events 0",
        "kubernetes_feature_enabled{name=\"SidecarContainers\",stage=\"\"} 1",
    ] {
        has_line(&metrics, line);
    }
    cluster.stop().await;
}

#[tokio::test]
async fn nobody_waits_on_a_machine_that_is_never_short() {
    let cluster = start(KubeletOptions::default()).await;
    run_with_claim(&cluster).await;
    let metrics = page(&cluster, "metrics/cadvisor").await;
    for resource in ["cpu", "io", "memory"] {
        for kind in ["stalled", "waiting"] {
            let name = format!("container_pressure_{resource}_{kind}_seconds_total");
            has_line(&metrics, &format!("# TYPE {name} counter"));
            let labels = "container=\"c\",image=\"nginx\",namespace=\"default\",pod=\"p\"";
            has_line(&metrics, &format!("{name}{{{labels}}} 0"));
        }
    }
    let summary: Value = serde_json::from_str(&page(&cluster, "stats/summary").await).unwrap();
    let calm = json!({"total": 0, "avg10": 0, "avg60": 0, "avg300": 0});
    let calm = json!({"full": calm, "some": calm});
    for of in [&summary["node"], &summary["pods"][0], &summary["pods"][0]["containers"][0]] {
        assert_eq!(
            [&of["cpu"]["psi"], &of["memory"]["psi"], &of["io"]["psi"]],
            [&calm, &calm, &calm],
            "{of}"
        );
    }
    cluster.stop().await;
}

/// What the dashboards of kubernetes-mixin draw beside usage.
#[tokio::test]
async fn dashboards_find_volumes_packets_and_certificates() {
    let cluster = start(KubeletOptions::default()).await;
    run_with_claim(&cluster).await;
    let metrics = page(&cluster, "metrics").await;
    for state in ["actual_state_of_world", "desired_state_of_world"] {
        for plugin in ["host-path", "projected"] {
            let labels = format!("plugin_name=\"kubernetes.io/{plugin}\",state=\"{state}\"");
            has_line(&metrics, &format!("volume_manager_total_volumes{{{labels}}} 1"));
        }
    }
    has_line(&metrics, "kubelet_certificate_manager_client_ttl_seconds +Inf");
    has_line(&metrics, "kubelet_certificate_manager_client_expiration_renew_errors 0");
    let metrics = page(&cluster, "metrics/cadvisor").await;
    let container = "container=\"c\",image=\"nginx\",namespace=\"default\",pod=\"p\"";
    for name in ["container_fs_reads_total", "container_fs_writes_bytes_total", "container_memory_swap"] {
        has_line(&metrics, &format!("{name}{{{container}}} 0"));
    }
    let pod = "interface=\"eth0\",namespace=\"default\",pod=\"p\"";
    has_line(&metrics, &format!("container_network_receive_packets_dropped_total{{{pod}}} 0"));
    has_line(&metrics, "# TYPE container_network_transmit_packets_total counter");
    cluster.stop().await;
}

#[tokio::test]
async fn images_go_that_nobody_has_used_for_too_long() {
    let mut options = KubeletOptions::default();
    options.image_maximum_gc_age = Duration::from_secs(15 * 60);
    let cluster = start(options).await;
    for (name, image, command) in [("done", "busybox", json!(["true"])), ("runs", "nginx", json!(null))] {
        let container = json!({"name": "c", "image": image, "command": command});
        let spec = json!({"restartPolicy": "Never", "containers": [container]});
        let pod = json!({"metadata": {"name": name}, "spec": spec});
        cluster.client().create(&PODS, "default", pod).await.unwrap();
    }
    settle(&cluster).await;
    let images = async || {
        let node = cluster.client().get(&NODES, "", "node-1").await.unwrap().to_value();
        let all = node["status"]["images"].as_array().cloned().unwrap_or_default();
        let has = |name: &str| all.iter().any(|image| image["names"].to_string().contains(name));
        (has("busybox"), has("nginx"))
    };
    // Nodes tell of images with their next status.
    cluster.pass(Duration::from_secs(12 * 60)).await.unwrap();
    settle(&cluster).await;
    assert_eq!(images().await, (true, true), "the kubelet has not run for long enough to know");
    cluster.pass(Duration::from_secs(15 * 60)).await.unwrap();
    settle(&cluster).await;
    assert_eq!(images().await, (false, true));
    let metrics = page(&cluster, "metrics").await;
    has_line(&metrics, "kubelet_image_garbage_collected_total{reason=\"age\"} 1");
    assert!(page(&cluster, "configz").await.contains("\"imageMaximumGCAge\":\"15m0s\""));
    cluster.stop().await;
}
