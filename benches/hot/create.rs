//! The way of a write: through the client, the handler chain, admission, registry and storage into the store,
//! and out to a watch. In process, so that neither sockets nor TLS nor another component is measured.

use criterion::{BatchSize, Criterion, criterion_group};
use kubarium::apimachinery::options::{ListOptions, PatchType};
use kubarium::apis::core::config_map::CONFIG_MAPS;
use kubarium::apis::core::event::EVENTS;
use kubarium::apis::core::pod::PODS;
use kubarium::apis::core::service_account::SERVICE_ACCOUNTS;
use kubarium::cluster::Components;
use kubarium::{Cluster, Config};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

fn config_map(number: u64) -> Value {
    json!({"metadata": {"name": format!("c{number}")}, "data": {"text": "x".repeat(900)}})
}

fn event(number: u64) -> Value {
    json!({
        "metadata": {"name": format!("web.{number:x}"), "namespace": "default"},
        "involvedObject": {"apiVersion": "v1", "kind": "Pod", "name": "web", "namespace": "default",
            "uid": "6f8180b5-15f3-4bc0-a5b4-666aa9b8b72f", "resourceVersion": "70",
            "fieldPath": "spec.containers{nginx}"},
        "reason": "Started", "message": "Container started", "type": "Normal", "count": 1,
        "firstTimestamp": "2026-11-20T12:00:00Z", "lastTimestamp": "2026-11-20T12:00:00Z",
        "source": {"component": "kubelet", "host": "node-1"},
        "reportingComponent": "kubelet", "reportingInstance": "node-1",
    })
}

fn pod(number: u64) -> Value {
    json!({
        "metadata": {"generateName": "web-", "name": format!("web-{number}"), "labels": {"app": "web"}},
        "spec": {"containers": [{"name": "nginx", "image": "nginx"}]},
    })
}

async fn apiserver() -> Cluster {
    let cluster = Cluster::start(Config::new().components(Components::NONE)).await.unwrap();
    let account = json!({"metadata": {"name": "default"}});
    cluster.client().create(&SERVICE_ACCOUNTS, "default", account).await.unwrap();
    // As in any cluster, somebody watches what is written.
    for kind in [&CONFIG_MAPS, &EVENTS, &PODS] {
        let mut events = cluster.client().watch(kind, "", &ListOptions::default()).await.unwrap();
        tokio::spawn(async move { while events.recv().await.is_some() {} });
    }
    cluster
}

fn creates(criterion: &mut Criterion) {
    let runtime = Runtime::new().unwrap();
    let cluster = runtime.block_on(apiserver());
    let client = cluster.client();
    let mut number = 0;
    for (name, kind, make) in [
        ("create a ConfigMap of 1 KB", &CONFIG_MAPS, config_map as fn(u64) -> Value),
        ("create an Event", &EVENTS, event),
        ("create a Pod", &PODS, pod),
    ] {
        criterion.bench_function(name, |bencher| {
            let next = || {
                number += 1;
                make(number)
            };
            bencher.to_async(&runtime).iter_batched(
                next,
                |object| async { client.create(kind, "default", object).await.unwrap() },
                BatchSize::SmallInput,
            );
        });
    }
}

fn updates(criterion: &mut Criterion) {
    let runtime = Runtime::new().unwrap();
    let cluster = runtime.block_on(apiserver());
    let client = cluster.client();
    let created = runtime.block_on(client.create(&PODS, "default", pod(0))).unwrap();
    let name = created.metadata.name.as_str();
    let mut number = 0;
    criterion.bench_function("patch the status of a Pod", |bencher| {
        let next = || {
            number += 1;
            json!({"status": {"phase": "Running", "podIP": "10.244.0.1", "message": number.to_string()}})
        };
        let merge = PatchType::StrategicMerge;
        let client = &client;
        bencher.to_async(&runtime).iter_batched(
            next,
            |patch| async move { client.patch_status(&PODS, "default", name, merge, &patch).await.unwrap() },
            BatchSize::SmallInput,
        );
    });
    criterion.bench_function("get a Pod", |bencher| {
        bencher.to_async(&runtime).iter(|| async { client.get(&PODS, "default", name).await.unwrap() });
    });
}

criterion_group!(benches, creates, updates);
