//! Forks, snapshots, exports and differences: the same story in Rust, over HTTP and on the command line.

mod command_line;
mod http;
mod in_rust;

use kubarium::kinds::{CONFIG_MAPS, DEPLOYMENTS, PODS};
use kubarium::{Cluster, Components, Config, ListOptions};
use serde_json::{Value, json};

/// An apiserver, and nobody else.
fn bare() -> Config {
    Config::new().nodes(0).components(Components::NONE)
}

fn web(replicas: u32) -> Value {
    json!({
        "metadata": {"name": "web"},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}}, "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "nginx", "image": "nginx"}]},
        }},
    })
}

async fn put(cluster: &Cluster, name: &str, text: &str) -> u64 {
    let map = json!({"metadata": {"name": name}, "data": {"text": text}});
    let client = cluster.client();
    let written = match client.create(&CONFIG_MAPS, "default", map.clone()).await {
        Err(status) if status.is_already_exists() => client.update(&CONFIG_MAPS, "default", name, map).await,
        created => created,
    };
    written.unwrap().metadata.resource_version
}

async fn text(cluster: &Cluster, name: &str) -> Option<String> {
    let found = cluster.client().get(&CONFIG_MAPS, "default", name).await.ok()?;
    found.to_value()["data"]["text"].as_str().map(str::to_owned)
}

/// The pods that run, with their restarts, when the deployment has so many and no others.
async fn running(cluster: &Cluster, replicas: u64) -> Vec<(String, Value)> {
    loop {
        let web = cluster.client().get(&DEPLOYMENTS, "default", "web").await.unwrap().to_value();
        let pods = cluster.client().list(&PODS, "default", &ListOptions::default()).await.unwrap();
        let is_there = web["status"]["availableReplicas"] == replicas && pods.items.len() as u64 == replicas;
        if is_there && web["status"]["observedGeneration"] == web["metadata"]["generation"] {
            let of = |pod: &kubarium::apimachinery::object::Object| {
                let restarts = pod.to_value()["status"]["containerStatuses"][0]["restartCount"].clone();
                (pod.metadata.uid.clone(), restarts)
            };
            return pods.items.iter().map(|pod| of(pod)).collect();
        }
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
}
