//! Chaos, said in YAML: what goes wrong with a container is a stage, here of images with the tag `flaky`. With
//! kind you would need a broken registry; here an operator or a rollout can be tested against one at once.
//!
//! `cargo run --example chaos_by_stages`, or in a shell `kubarium up --stages examples/stages`. The stages
//! that are built in (`manifests/stages`) are chosen by an annotation, such as `kubarium.dev/stage: crash-loop`.

use std::error::Error;
use std::path::Path;
use std::time::Duration;

use kubarium::kinds::{DEPLOYMENTS, PODS};
use kubarium::{Cluster, Config, ListOptions, PatchType};
use serde_json::{Value, json};

#[tokio::main]
pub(crate) async fn main() -> Result<(), Box<dyn Error>> {
    let stages = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/stages");
    let cluster = Cluster::start(Config::new().stages(stages)).await?;
    let client = cluster.client();

    client.create(&DEPLOYMENTS, "default", web("nginx:flaky")).await?;
    until(&cluster, &|pod| waiting(pod)["reason"] == "ErrImagePull").await?;
    let told = waiting(&pods(&cluster).await?[0])["message"].to_string();
    assert!(told.contains("the registry has no docker.io/library/nginx:flaky today"), "{told}");
    let deployment = client.get(&DEPLOYMENTS, "default", "web").await?.to_value();
    assert_eq!(deployment["status"]["availableReplicas"], Value::Null);

    // Whoever heals it (your operator, say) names another image, and the rollout goes on.
    let patch = web("nginx:sound");
    client.patch(&DEPLOYMENTS, "default", "web", PatchType::Merge, &patch).await?;
    until(&cluster, &|pod| pod["status"]["phase"] == "Running").await?;
    cluster.stop().await;
    Ok(())
}

fn web(image: &str) -> Value {
    let container = json!({"name": "web", "image": image});
    let pod = json!({"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container]}});
    json!({
        "metadata": {"name": "web"},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "web"}}, "template": pod},
    })
}

async fn pods(cluster: &Cluster) -> Result<Vec<Value>, Box<dyn Error>> {
    let list = cluster.client().list(&PODS, "default", &ListOptions::default()).await?;
    Ok(list.items.iter().map(|pod| pod.to_value()).collect())
}

/// Why the container is not running.
fn waiting(pod: &Value) -> &Value {
    &pod["status"]["containerStatuses"][0]["state"]["waiting"]
}

/// Waits for a pod of which something is true.
async fn until(cluster: &Cluster, is_so: &dyn Fn(&Value) -> bool) -> Result<(), Box<dyn Error>> {
    while !pods(cluster).await?.iter().any(is_so) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    Ok(())
}
