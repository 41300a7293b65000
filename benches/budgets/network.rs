//! What a connection between pods costs: through a Service, a policy and a listener, and through the apiserver.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt;
use kubarium::apis::core::service::SERVICES;
use kubarium::apis::networking::network_policy::NETWORK_POLICIES;
use kubarium::kinds::PODS;
use kubarium::network::http_client;
use kubarium::{Clock, Cluster, Config};
use serde_json::{Value, json};

use crate::table::Row;

const REQUESTS: u32 = 5_000;
/// Services beside the one that is asked.
const MANY: usize = 10_000;

/// All on one thread, whose time of the processor is read: whatever else the machine does is no part of it.
pub(crate) fn measure() -> Vec<Row> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let cluster = Cluster::start(Config::new()).await.expect("it starts");
        let (client, service) = set_up(&cluster).await;
        let alone = microseconds(&cluster, client, service).await;
        for number in 0..MANY {
            let ports = json!([{"port": 80}]);
            create(&cluster, &SERVICES, &format!("other-{number}"), json!({"ports": ports})).await;
        }
        // What hears of the Services is not what is measured.
        cluster.settled().await.expect("it settles");
        let among_many = microseconds(&cluster, client, service).await;
        vec![
            Row::new("a request between pods: Service, policy, listener, CPU", alone, "us").budget(20.0),
            Row::new("the same among 10,000 Services", among_many, "us").budget(20.0),
        ]
    })
}

async fn create(cluster: &Cluster, kind: &kubarium::apis::kind::Kind, name: &str, spec: Value) -> Value {
    let object = json!({"metadata": {"name": name, "labels": {"app": name}}, "spec": spec});
    cluster.client().create(kind, "default", object).await.expect("it is created").to_value()
}

/// A client, a server behind a Service, and a policy that lets the one ask the other.
async fn set_up(cluster: &Cluster) -> (IpAddr, SocketAddr) {
    for (name, image) in [("client", "redis"), ("web", "nginx")] {
        create(cluster, &PODS, name, json!({"containers": [{"name": "c", "image": image}]})).await;
    }
    let spec = json!({"selector": {"app": "web"}, "ports": [{"port": 80}]});
    let service = create(cluster, &SERVICES, "web", spec).await;
    let from = json!([{"from": [{"podSelector": {"matchLabels": {"app": "client"}}}]}]);
    create(cluster, &NETWORK_POLICIES, "web", json!({"podSelector": {}, "ingress": from})).await;
    let address = service["spec"]["clusterIP"].as_str().and_then(|text| text.parse::<IpAddr>().ok());
    let to = SocketAddr::new(address.expect("it has an address"), 80);
    loop {
        let pod = cluster.client().get(&PODS, "default", "client").await.expect("it is there").to_value();
        let client = pod["status"]["podIP"].as_str().and_then(|text| text.parse::<IpAddr>().ok());
        if let Some(client) = client
            && tokio::time::timeout(Duration::from_millis(100), ask(cluster, client, to)).await == Ok(true)
        {
            return (client, to);
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Whether the canned page of nginx came.
async fn ask(cluster: &Cluster, from: IpAddr, to: SocketAddr) -> bool {
    let Ok(io) = cluster.network().connect(from, to).await else { return false };
    let request = http::Request::get("/").header("host", "web").body(Bytes::new()).expect("a request");
    let Ok(response) = http_client::ask(&Clock::real(), io, request).await else { return false };
    response.into_body().collect().await.is_ok_and(|body| !body.to_bytes().is_empty())
}

async fn microseconds(cluster: &Cluster, from: IpAddr, to: SocketAddr) -> f64 {
    let before = thread_nanoseconds();
    for _ in 0..REQUESTS {
        assert!(ask(cluster, from, to).await, "it is answered");
    }
    (thread_nanoseconds() - before) / 1e3 / f64::from(REQUESTS)
}

/// How long this thread has had a processor: the first number of its `schedstat`.
fn thread_nanoseconds() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux says so");
    text.split_whitespace().next().and_then(|first| first.parse().ok()).expect("a number")
}
