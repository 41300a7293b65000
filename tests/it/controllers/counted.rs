//! What controllers count, under upstream's names.

use std::time::Duration;

use http_body_util::BodyExt;
use kubarium::apimachinery::options::{DeleteOptions, PatchType};
use kubarium::apis::batch::cron_job::CRON_JOBS;
use kubarium::apis::batch::job::JOBS;
use kubarium::apis::core::endpoints::ENDPOINTS;
use kubarium::apis::core::node::NODES;
use kubarium::apis::core::persistent_volume::PERSISTENT_VOLUMES;
use kubarium::apis::core::pod::PODS;
use kubarium::apis::core::service::SERVICES;
use kubarium::apis::kind::Kind;
use kubarium::{Clock, Cluster, Config, Entropy};
use serde_json::{Value, json};

pub(super) async fn counted(cluster: &Cluster) -> String {
    let path = "/kubarium/v1/components/metrics?name=kube-controller-manager";
    let answer = cluster.client().raw(http::Request::get(path).body(Default::default()).unwrap()).await;
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    String::from_utf8(body.to_vec()).unwrap()
}

async fn create(cluster: &Cluster, kind: &Kind, namespace: &str, object: Value) {
    cluster.client().create(kind, namespace, object).await.unwrap();
}

fn job(command: &str, more: Value) -> Value {
    let container = json!({"name": "c", "image": "busybox", "command": ["sh", "-c", command]});
    let template = json!({"spec": {"restartPolicy": "Never", "containers": [container]}});
    let mut spec = json!({"template": template});
    json_patch::merge(&mut spec, &more);
    spec
}

#[tokio::test]
async fn controllers_count_what_they_do() {
    let clock = Clock::stepped("2026-01-01T00:00:00Z".parse().unwrap());
    let config = Config::new().nodes(1).clock(clock).entropy(Entropy::seeded(7));
    let cluster = Cluster::start(config).await.unwrap();
    let spec = job("echo", json!({"ttlSecondsAfterFinished": 5}));
    create(&cluster, &JOBS, "default", json!({"metadata": {"name": "well"}, "spec": spec})).await;
    let indexed = json!({"completionMode": "Indexed", "completions": 2, "parallelism": 2, "backoffLimit": 0});
    let rules = json!([{"action": "FailJob", "onExitCodes": {"operator": "In", "values": [3]}}]);
    let spec = job("exit 3", json!({"podFailurePolicy": {"rules": rules}, "backoffLimit": 6}));
    create(&cluster, &JOBS, "default", json!({"metadata": {"name": "badly"}, "spec": spec})).await;
    let spec = job("echo", indexed);
    create(&cluster, &JOBS, "default", json!({"metadata": {"name": "numbered"}, "spec": spec})).await;
    let spec = job("echo", json!({"managedBy": "example.com/other"}));
    create(&cluster, &JOBS, "default", json!({"metadata": {"name": "other"}, "spec": spec})).await;
    let spec = json!({"schedule": "* * * * *", "jobTemplate": {"spec": job("echo", json!({}))}});
    create(&cluster, &CRON_JOBS, "default", json!({"metadata": {"name": "often"}, "spec": spec})).await;
    let spec =
        json!({"ports": [{"port": 80}], "selector": {"app": "web"}, "trafficDistribution": "PreferSameZone"});
    create(&cluster, &SERVICES, "default", json!({"metadata": {"name": "web"}, "spec": spec})).await;
    let spec = json!({"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": "manual",
        "hostPath": {"path": "/data"}});
    create(&cluster, &PERSISTENT_VOLUMES, "", json!({"metadata": {"name": "disk"}, "spec": spec})).await;
    cluster.pass(Duration::from_secs(70)).await.unwrap();
    cluster.settled().await.unwrap();
    let text = counted(&cluster).await;
    for line in [
        "job_controller_jobs_finished_total{completion_mode=\"NonIndexed\",reason=\"PodFailurePolicy\",result=\"failed\"} 1\n",
        "job_controller_jobs_finished_total{completion_mode=\"Indexed\",reason=\"CompletionsReached\",result=\"succeeded\"} 1\n",
        "job_controller_job_pods_finished_total{completion_mode=\"Indexed\",result=\"succeeded\"} 2\n",
        "job_controller_job_finished_indexes_total{backoffLimit=\"global\",status=\"succeeded\"} 2\n",
        "job_controller_jobs_by_external_controller_total{controller_name=\"example.com/other\"} 1\n",
        "job_controller_pod_failures_handled_by_failure_policy_total{action=\"FailJob\"} 1\n",
        "job_controller_job_pods_creation_total{reason=\"new\",status=\"succeeded\"} 5\n",
        "job_controller_job_syncs_total{action=\"pods_created\",completion_mode=\"Indexed\",result=\"success\"} 1\n",
        "cronjob_controller_cronjob_job_creation_skew_duration_seconds_count 1\n",
        "ttl_after_finished_controller_job_deletion_duration_seconds_count 1\n",
        "endpoint_slice_controller_num_endpoint_slices 1\n",
        "endpoint_slice_controller_services_count_by_traffic_distribution{traffic_distribution=\"PreferSameZone\"} 1\n",
        "pv_collector_unbound_pv_count{storage_class=\"manual\"} 1\n",
        "pv_collector_total_pv_count{plugin_name=\"kubernetes.io/host-path\",volume_mode=\"Filesystem\"} 1\n",
        "garbagecollector_controller_resources_sync_error_total 0\n",
    ] {
        assert!(text.contains(line), "{line} in {text}");
    }
    cluster.stop().await;
}

#[tokio::test]
async fn controllers_count_what_they_take_away_and_mirror() {
    let clock = Clock::stepped("2026-01-01T00:00:00Z".parse().unwrap());
    let config = Config::new().nodes(1).clock(clock).entropy(Entropy::seeded(7));
    let cluster = Cluster::start(config).await.unwrap();
    let claim = json!({"spec": {"accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}}}});
    let volume = json!({"name": "d", "ephemeral": {"volumeClaimTemplate": claim}});
    let container = json!({"name": "c", "image": "nginx"});
    let spec = json!({"containers": [container], "volumes": [volume]});
    create(&cluster, &PODS, "default", json!({"metadata": {"name": "waits"}, "spec": spec})).await;
    let spec = json!({"containers": [container]});
    create(&cluster, &PODS, "default", json!({"metadata": {"name": "driven-out"}, "spec": spec})).await;
    let metadata = json!({"name": "stuck", "finalizers": ["example.com/keep"]});
    let spec = json!({"containers": [container], "schedulerName": "nobody"});
    create(&cluster, &PODS, "default", json!({"metadata": metadata, "spec": spec})).await;
    let spec = json!({"ports": [{"port": 80}]});
    create(&cluster, &SERVICES, "default", json!({"metadata": {"name": "own"}, "spec": spec})).await;
    let subset = json!({"addresses": [{"ip": "192.0.2.1"}], "ports": [{"port": 80}]});
    create(&cluster, &ENDPOINTS, "default", json!({"metadata": {"name": "own"}, "subsets": [subset]})).await;
    cluster.pass(Duration::from_secs(10)).await.unwrap();
    cluster.client().delete(&PODS, "default", "stuck", &DeleteOptions::default()).await.unwrap();
    let taint = json!({"spec": {"taints": [{"key": "out", "effect": "NoExecute"}]}});
    cluster.client().patch(&NODES, "", "node-1", PatchType::Merge, &taint).await.unwrap();
    cluster.pass(Duration::from_secs(70)).await.unwrap();
    cluster.settled().await.unwrap();
    let text = counted(&cluster).await;
    for sample in [
        "taint_eviction_controller_pod_deletions_total 1\n",
        "taint_eviction_controller_pod_deletion_duration_seconds_count 1\n",
        "pod_gc_collector_force_delete_pods_total{namespace=\"default\",reason=\"unscheduled\"} ",
        "ephemeral_volume_controller_create_total 1\n",
        "endpoint_slice_mirroring_controller_changes{operation=\"create\"} 1\n",
        "endpoint_slice_mirroring_controller_endpoints_sync_duration_count ",
        "endpoint_slice_mirroring_controller_num_endpoint_slices 1\n",
        "endpoint_slice_mirroring_controller_desired_endpoint_slices 1\n",
        "endpoint_slice_mirroring_controller_endpoints_desired 1\n",
        "endpoint_slice_mirroring_controller_endpoints_added_per_sync_sum 1\n",
        "kubernetes_build_info{build_date=",
        "kubernetes_feature_enabled{name=\"WatchList\",stage=\"BETA\"} 1\n",
    ] {
        assert!(text.contains(sample), "{sample} in {text}");
    }
    cluster.stop().await;
}
