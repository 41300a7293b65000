//! kwok's kinds that say what pods use, and what kubelets answer about it.

use http_body_util::BodyExt;
use kubarium::kinds::PODS;
use kubarium::{Config, DeleteOptions, KwokKind};
use serde_json::{Value, json};

use super::Stages;

const ALL: [KwokKind; 3] = [KwokKind::ResourceUsage, KwokKind::ClusterResourceUsage, KwokKind::Metric];

impl Stages {
    async fn create_of_kwok(&self, plural: &str, object: Value) {
        let kind = self.cluster.scheme().resource("kwok.x-k8s.io", "v1alpha1", plural).unwrap();
        let namespace = if plural == "resourceusages" { "default" } else { "" };
        self.client.create(&kind, namespace, object).await.unwrap();
        self.settle().await;
    }

    /// What the kubelet of the node answers.
    async fn scraped(&self, path: &str) -> (u16, String) {
        let uri = format!("/api/v1/nodes/node-1/proxy{path}");
        let request = http::Request::get(uri).body(Default::default()).unwrap();
        let answer = self.client.raw(request).await;
        let code = answer.status().as_u16();
        let body = answer.into_body().collect().await.unwrap().to_bytes();
        (code, String::from_utf8(body.to_vec()).unwrap())
    }

    /// Cores, and bytes of memory.
    async fn used(&self, pod: &str) -> (String, String) {
        let path = format!("/apis/metrics.k8s.io/v1beta1/namespaces/default/pods/{pod}");
        let usage = self.client.get_path(&path).await.unwrap()["containers"][0]["usage"].clone();
        let text = |name: &str| usage[name].as_str().unwrap().to_owned();
        (text("cpu"), text("memory"))
    }
}

fn published(file: &str) -> Value {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/kwok/metrics");
    serde_yaml::from_str(&std::fs::read_to_string(format!("{folder}/{file}")).unwrap()).unwrap()
}

#[tokio::test]
async fn pods_use_what_kwoks_objects_say_and_kubelets_answer_its_metrics() {
    let stages = Stages::with(Config::new().metrics_server(true).kwok_kinds(ALL)).await;
    let said = json!({"kwok.x-k8s.io/usage-cpu": "250m", "kwok.x-k8s.io/usage-memory": "100Mi"});
    stages.create_pod("said", json!({"metadata": {"annotations": said}})).await;
    stages.create_pod("silent", json!({})).await;
    stages.pass(60).await;
    assert_eq!(stages.used("silent").await, ("1000000n".into(), "8192Ki".into()));
    stages.create_of_kwok("clusterresourceusages", published("usage-from-annotation.yaml")).await;
    assert_eq!(stages.used("said").await, ("250000000n".into(), "102400Ki".into()));
    assert_eq!(stages.used("silent").await, ("1000000n".into(), "1024Ki".into()));

    let path = "/metrics/nodes/node-1/metrics/resource";
    assert_eq!(stages.scraped(path).await.0, 404);
    stages.create_of_kwok("metrics", published("metrics-resource.yaml")).await;
    let (code, text) = stages.scraped(path).await;
    let line = "pod_memory_working_set_bytes{namespace=\"default\",pod=\"said\"} 1.048576e+08\n";
    assert!(
        code == 200 && text.contains(line) && text.contains("node_memory_working_set_bytes 1.05906176e+08\n"),
        "{text}"
    );
    // What is there by itself stays.
    assert!(stages.scraped("/metrics/resource").await.1.contains("resource_scrape_error 0"));

    let usages = json!([{"usage": {"cpu": {"value": "2"}, "memory": {"expression": "Quantity('1Gi')"}}}]);
    stages
        .create_of_kwok("resourceusages", json!({"metadata": {"name": "silent"}, "spec": {"usages": usages}}))
        .await;
    assert_eq!(stages.used("silent").await, ("2000000000n".into(), "1048576Ki".into()));
}

#[tokio::test]
async fn who_goes_over_its_limit_by_what_kwoks_objects_say_is_killed_and_goes_on_when_they_are_gone() {
    let stages = Stages::with(Config::new().kwok_kinds(ALL)).await;
    let limits = json!({"limits": {"memory": "64Mi"}});
    let containers = json!([{"name": "main", "image": "nginx", "resources": limits}]);
    stages.create_pod("small", json!({"spec": {"containers": containers}})).await;
    stages.pass(30).await;
    let restarts = async || {
        let pod = stages.pod("small").await.unwrap();
        let status = &pod["status"]["containerStatuses"][0];
        (status["restartCount"].as_i64().unwrap(), status["lastState"]["terminated"]["reason"].clone())
    };
    assert_eq!(restarts().await, (0, Value::Null));
    let usages = json!([{"usage": {"memory": {"value": "1Gi"}}}]);
    let spec = json!({"selector": {"matchNames": ["small"]}, "usages": usages});
    stages
        .create_of_kwok("clusterresourceusages", json!({"metadata": {"name": "hungry"}, "spec": spec}))
        .await;
    stages.pass(5).await;
    assert_eq!(restarts().await.1, "OOMKilled");
    let kind =
        stages.cluster.scheme().resource("kwok.x-k8s.io", "v1alpha1", "clusterresourceusages").unwrap();
    stages.client.delete(&kind, "", "hungry", &DeleteOptions::default()).await.unwrap();
    stages.pass(60).await;
    let calm = restarts().await;
    stages.pass(600).await;
    assert_eq!(restarts().await, calm);
}

#[tokio::test]
async fn pods_that_stages_play_use_what_kwoks_objects_say() {
    let all = [KwokKind::Stage, KwokKind::ClusterResourceUsage];
    let stages = Stages::with(Config::new().metrics_server(true).kwok_kinds(all)).await;
    stages.publish("pod/fast").await;
    stages.create_of_kwok("clusterresourceusages", published("usage-from-annotation.yaml")).await;
    stages.create_pod("played", json!({})).await;
    stages.pass(60).await;
    assert_eq!(
        stages.client.get(&PODS, "default", "played").await.unwrap().to_value()["status"]["phase"],
        "Running"
    );
    assert_eq!(stages.used("played").await, ("1000000n".into(), "1024Ki".into()));
}

#[tokio::test]
async fn what_is_wrong_with_an_object_of_kwoks_is_told() {
    let stages = Stages::with(Config::new().kwok_kinds(ALL)).await;
    let spec = json!({"usages": [{"usage": {"cpu": {"expression": "pod."}}}]});
    stages
        .create_of_kwok("clusterresourceusages", json!({"metadata": {"name": "wrong"}, "spec": spec}))
        .await;
    let told = stages.told("wrong", "InvalidClusterResourceUsage").await;
    assert!(
        told[0].starts_with(
            "This ClusterResourceUsage counts for nothing: spec.usages[0].usage[cpu].expression: "
        ),
        "{told:?}"
    );
}
