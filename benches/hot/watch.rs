//! Reads of many objects: a list as bytes, and one change told to many watches.

use criterion::{Criterion, criterion_group};
use http_body_util::BodyExt;
use kubarium::apimachinery::options::ListOptions;
use kubarium::apis::core::config_map::CONFIG_MAPS;
use kubarium::cluster::Components;
use kubarium::{Cluster, Config};
use serde_json::json;
use tokio::runtime::Runtime;
use tower::ServiceExt;

const OBJECTS: usize = 1000;
const WATCHES: usize = 100;

async fn filled() -> Cluster {
    let cluster = Cluster::start(Config::new().components(Components::NONE)).await.unwrap();
    let client = cluster.client();
    for number in 0..OBJECTS {
        let tree = json!({"metadata": {"name": format!("c{number}")}, "data": {"text": "x".repeat(900)}});
        client.create(&CONFIG_MAPS, "default", tree).await.unwrap();
    }
    cluster
}

async fn list(cluster: &Cluster) -> usize {
    let request = http::Request::get("/api/v1/configmaps").body(axum::body::Body::empty()).unwrap();
    let answer = cluster.service().oneshot(request).await.unwrap();
    answer.into_body().collect().await.unwrap().to_bytes().len()
}

/// Changes an object, and waits until every watch has it.
async fn tell(
    cluster: &Cluster,
    watches: &tokio::sync::Mutex<Vec<tokio::sync::mpsc::Receiver<kubarium::apimachinery::watch::WatchEvent>>>,
    number: usize,
) {
    let tree = json!({"metadata": {"name": "c0"}, "data": {"text": number.to_string()}});
    cluster.client().update(&CONFIG_MAPS, "default", "c0", tree).await.unwrap();
    for watch in watches.lock().await.iter_mut() {
        watch.recv().await.unwrap();
    }
}

fn reads(criterion: &mut Criterion) {
    let runtime = Runtime::new().unwrap();
    let cluster = runtime.block_on(filled());
    criterion.bench_function("list 1,000 ConfigMaps of 1 KB as JSON", |bencher| {
        bencher.to_async(&runtime).iter(|| list(&cluster));
    });
    let client = cluster.client();
    let newest = runtime.block_on(client.list(&CONFIG_MAPS, "", &ListOptions::default())).unwrap();
    let after =
        ListOptions { resource_version: Some(newest.resource_version.to_string()), ..ListOptions::default() };
    let watch = || runtime.block_on(client.watch(&CONFIG_MAPS, "", &after)).unwrap();
    let watches = tokio::sync::Mutex::new((0..WATCHES).map(|_| watch()).collect());
    let number = std::sync::atomic::AtomicUsize::new(0);
    criterion.bench_function("tell 100 watches of a change", |bencher| {
        let next = || number.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        bencher.to_async(&runtime).iter(|| tell(&cluster, &watches, next()));
    });
}

criterion_group!(benches, reads);
