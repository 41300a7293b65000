//! kwok's Stages in a whole cluster: its published ones play pods and nodes, others whatever they are for.

mod answers;
mod measures;
mod nodes;
mod others;
mod pods;

use std::path::Path;
use std::time::Duration;

use kubarium::apis::kind::Kind;
use kubarium::kinds::{CONFIG_MAPS, EVENTS, PODS};
use kubarium::{Client, Clock, Cluster, Config, Entropy, KwokKind, ListOptions};
use serde_json::{Value, json};

/// A cluster that has the kind, on a clock that the test owns.
struct Stages {
    cluster: Cluster,
    client: Client,
}

impl Stages {
    async fn start() -> Stages {
        Stages::with(Config::new().kwok_kinds([KwokKind::Stage])).await
    }

    async fn with(config: Config) -> Stages {
        let clock = Clock::stepped("2030-01-01T00:00:00Z".parse().unwrap());
        let cluster = Cluster::start(config.clock(clock).entropy(Entropy::seeded(7))).await.unwrap();
        let client = cluster.client();
        let stages = Stages { cluster, client };
        stages.settle().await;
        stages
    }

    async fn settle(&self) {
        self.cluster.settled().await.unwrap();
    }

    async fn pass(&self, seconds: u64) {
        self.cluster.pass(Duration::from_secs(seconds)).await.unwrap();
    }

    /// Creates the stages that kwok publishes in a folder, as `pod/fast`.
    async fn publish(&self, folder: &str) {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/kwok").join(folder);
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "yaml") {
                let stage = serde_yaml::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
                self.create_stage(stage).await;
            }
        }
        self.settle().await;
    }

    fn kind(&self) -> std::sync::Arc<Kind> {
        self.cluster.scheme().resource("kwok.x-k8s.io", "v1alpha1", "stages").unwrap()
    }

    async fn create_stage(&self, stage: Value) {
        self.client.create(&self.kind(), "", stage).await.unwrap();
    }

    /// A stage of ConfigMaps with the label `stage: NAME`.
    async fn stage_of_config_maps(&self, name: &str, more: Value) {
        let mut spec = json!({
            "resourceRef": {"apiGroup": "v1", "kind": "ConfigMap"},
            "selector": {"matchLabels": {"stage": name}},
        });
        json_patch::merge(&mut spec, &more);
        self.create_stage(json!({"metadata": {"name": name}, "spec": spec})).await;
        self.settle().await;
    }

    async fn create_config_map(&self, name: &str, label: &str) {
        let object = json!({"metadata": {"name": name, "labels": {"stage": label}}});
        self.client.create(&CONFIG_MAPS, "default", object).await.unwrap();
        self.settle().await;
    }

    async fn config_map(&self, name: &str) -> Value {
        self.client.get(&CONFIG_MAPS, "default", name).await.unwrap().to_value()
    }

    async fn create_pod(&self, name: &str, extra: Value) {
        let containers = json!([{"name": "main", "image": "nginx"}]);
        let mut pod = json!({"metadata": {"name": name}, "spec": {"containers": containers}});
        json_patch::merge(&mut pod, &extra);
        self.client.create(&PODS, "default", pod).await.unwrap();
        self.settle().await;
    }

    async fn pod(&self, name: &str) -> Option<Value> {
        Some(self.client.get(&PODS, "default", name).await.ok()?.to_value())
    }

    /// The messages of the Events with a reason, about an object.
    async fn told(&self, name: &str, reason: &str) -> Vec<String> {
        let events = self.client.list(&EVENTS, "", &ListOptions::default()).await.unwrap();
        let events = events.items.iter().map(|event| event.to_value());
        let is_it = |event: &Value| event["involvedObject"]["name"] == name && event["reason"] == reason;
        events.filter(is_it).map(|event| event["message"].as_str().unwrap_or_default().to_owned()).collect()
    }
}
