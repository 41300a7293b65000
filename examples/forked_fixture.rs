//! An expensive fixture that is built once, and of which each test gets a fork: the same objects, the same
//! running pods, and from there a future of its own. envtest and kind start anew for each test, or let tests
//! share what they leave behind.
//!
//! `cargo run --example forked_fixture`

use std::error::Error;

use kubarium::kinds::{CONFIG_MAPS, DEPLOYMENTS, PODS};
use kubarium::{Cluster, Config, DeleteOptions, ListOptions, Snapshot};
use serde_json::json;

#[tokio::main]
pub(crate) async fn main() -> Result<(), Box<dyn Error>> {
    let fixture = fixture().await?;
    // In a test suite these are tests, and the fixture is in a `tokio::sync::OnceCell`.
    tokio::try_join!(one_deletes(&fixture), another_counts(&fixture))?;

    // The fixture outlives the process in a file, which `kubarium up --snapshot` starts, too.
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("fixture");
    fixture.save(&file)?;
    let loaded = Cluster::load(&file).await?;
    assert_eq!(pods(&loaded).await?, 3);
    assert!(fixture.snapshot()?.diff(&Snapshot::read(&file)?, false).await?.added.is_empty());
    loaded.stop().await;
    fixture.stop().await;
    Ok(())
}

/// What takes long: here three pods until they run.
async fn fixture() -> Result<Cluster, Box<dyn Error>> {
    let cluster = Cluster::start(Config::new()).await?;
    let client = cluster.client();
    let pod = json!({
        "metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "c", "image": "nginx"}]},
    });
    let spec = json!({"replicas": 3, "selector": {"matchLabels": {"app": "web"}}, "template": pod});
    client.create(&DEPLOYMENTS, "default", json!({"metadata": {"name": "web"}, "spec": spec})).await?;
    client.create(&CONFIG_MAPS, "default", json!({"metadata": {"name": "settings"}})).await?;
    while client.get(&DEPLOYMENTS, "default", "web").await?.to_value()["status"]["availableReplicas"] != 3 {
        tokio::task::yield_now().await;
    }
    Ok(cluster)
}

async fn one_deletes(fixture: &Cluster) -> Result<(), Box<dyn Error>> {
    let own = fixture.fork().await?;
    own.client().delete(&DEPLOYMENTS, "default", "web", &DeleteOptions::default()).await?;
    own.client().delete(&CONFIG_MAPS, "default", "settings", &DeleteOptions::default()).await?;
    // The controllers of the fork are at work: its pods go, and only its.
    while pods(&own).await? > 0 {
        tokio::task::yield_now().await;
    }
    own.stop().await;
    Ok(())
}

async fn another_counts(fixture: &Cluster) -> Result<(), Box<dyn Error>> {
    let own = fixture.fork().await?;
    assert!(own.client().get(&CONFIG_MAPS, "default", "settings").await.is_ok());
    assert_eq!(pods(&own).await?, 3);
    own.stop().await;
    Ok(())
}

async fn pods(cluster: &Cluster) -> Result<usize, Box<dyn Error>> {
    Ok(cluster.client().list(&PODS, "default", &ListOptions::default()).await?.items.len())
}
