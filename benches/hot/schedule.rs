//! A pod's way to a node: created, scheduled, bound. The scheduler runs, kubelets and controllers do not.

use criterion::{BatchSize, Criterion, criterion_group};
use kubarium::apimachinery::options::ListOptions;
use kubarium::apimachinery::watch::WatchEvent;
use kubarium::apis::core::node::NODES;
use kubarium::apis::core::pod::PODS;
use kubarium::apis::core::service_account::SERVICE_ACCOUNTS;
use kubarium::cluster::Components;
use kubarium::{Cluster, Config};
use serde_json::json;
use tokio::runtime::Runtime;

async fn with_nodes(nodes: usize) -> Cluster {
    let components = Components::NONE.scheduler(true);
    let cluster = Cluster::start(Config::new().components(components)).await.unwrap();
    let client = cluster.client();
    let account = json!({"metadata": {"name": "default"}});
    client.create(&SERVICE_ACCOUNTS, "default", account).await.unwrap();
    for number in 0..nodes {
        let capacity = json!({"cpu": "1000000", "memory": "1000000Gi", "pods": "100000000"});
        let node = json!({"metadata": {"name": format!("n{number}")},
            "status": {"capacity": capacity, "allocatable": capacity}});
        let created = client.create(&NODES, "", node.clone()).await.unwrap();
        let untainted = json!({"metadata": {"name": created.metadata.name}, "spec": {}});
        client.update(&NODES, "", &created.metadata.name, untainted).await.unwrap();
        client.update_status(&NODES, "", &created.metadata.name, node).await.unwrap();
    }
    cluster
}

/// Creates a pod, and waits until it is on a node.
async fn schedule(cluster: &Cluster, number: u64) {
    let client = cluster.client();
    let pod = json!({"metadata": {"name": format!("p{number}")},
        "spec": {"containers": [{"name": "a", "image": "a", "resources": {"requests": {"cpu": "1m"}}}]}});
    let created = client.create(&PODS, "default", pod).await.unwrap();
    let predicate = kubarium::apimachinery::selectable::Predicate {
        fields: kubarium::apimachinery::fields::FieldSelector::equal("metadata.name", &created.metadata.name),
        ..Default::default()
    };
    let resource_version = Some(created.metadata.resource_version.to_string());
    let options = ListOptions { predicate, resource_version, ..ListOptions::default() };
    let mut events = client.watch(&PODS, "default", &options).await.unwrap();
    while let Some(WatchEvent::Added(pod) | WatchEvent::Modified(pod)) = events.recv().await {
        if !pod.fields[0].is_empty() {
            return;
        }
    }
}

fn pods(criterion: &mut Criterion) {
    let runtime = Runtime::new().unwrap();
    for nodes in [10, 1000] {
        let cluster = runtime.block_on(with_nodes(nodes));
        let mut number = 0;
        criterion.bench_function(&format!("create and place a pod among {nodes} nodes"), |bencher| {
            let next = || {
                number += 1;
                number
            };
            let cluster = &cluster;
            bencher.to_async(&runtime).iter_batched(
                next,
                |number| schedule(cluster, number),
                BatchSize::SmallInput,
            );
        });
    }
}

criterion_group!(benches, pods);
