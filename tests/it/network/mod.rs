//! The network between simulated pods: who reaches whom, through which Service.

mod agnhost;
mod apiserver;
mod configured_servers;
mod dual_stack;
mod host_ports;
mod idle;
mod known_servers;
mod kubectl_in_pods;
mod kubelet_ports;
mod names;
mod pod_webhooks;
mod policies;
mod probes;
mod publish;
mod sample_apiserver;
mod scripts;
mod services;
mod tls_servers;

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use kubarium::apis::core::pod::PODS;
use kubarium::apis::kind::Kind;
use kubarium::client_go::client::Client;
use kubarium::network::http_client;
use kubarium::{Cluster, Config};
use serde_json::{Value, json};

use crate::support::PATIENCE;

/// A cluster of two nodes, and who asks about it.
pub(crate) struct Net {
    pub cluster: Cluster,
    pub client: Client,
}

impl Net {
    pub(crate) async fn start() -> Net {
        let cluster = Cluster::start(Config::new().nodes(2)).await.unwrap();
        let client = cluster.client();
        Net { cluster, client }
    }

    pub(crate) async fn create(&self, kind: &Kind, object: Value) -> Value {
        self.client.create(kind, "default", object).await.unwrap().to_value()
    }

    /// A pod that runs one container; returns its address when it is ready.
    pub(crate) async fn pod(&self, name: &str, container: Value) -> IpAddr {
        let mut container = container;
        container["name"] = "main".into();
        let labels = json!({"app": name.split('-').next()});
        let pod = json!({"metadata": {"name": name, "labels": labels}, "spec": {"containers": [container]}});
        self.create(&PODS, pod).await;
        self.address(name).await
    }

    pub(crate) async fn address(&self, name: &str) -> IpAddr {
        self.until(|| {
            async move {
                let pod = self.client.get(&PODS, "default", name).await.ok()?.to_value();
                let conditions = pod["status"]["conditions"].as_array()?.clone();
                let is_ready =
                    |condition: &Value| condition["type"] == "Ready" && condition["status"] == "True";
                conditions.iter().any(is_ready).then(|| pod["status"]["podIP"].as_str()?.parse().ok())?
            }
            .boxed()
        })
        .await
    }

    /// Waits until something is there.
    pub(crate) async fn until<'a, T>(&self, look: impl Fn() -> BoxFuture<'a, Option<T>>) -> T {
        let waiting = async {
            loop {
                if let Some(found) = look().await {
                    return found;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(PATIENCE, waiting).await.expect("it comes in time")
    }

    /// What somebody at an address is answered to `GET path`; nothing when nobody answers soon.
    pub(crate) async fn get(&self, from: IpAddr, to: SocketAddr, path: &str) -> Option<String> {
        let asking = async {
            let io = self.cluster.network().connect(from, to).await.ok()?;
            let request = http::Request::get(path).header("host", "test").body(bytes::Bytes::new()).unwrap();
            let response = http_client::ask(&kubarium::clock::Clock::real(), io, request).await.ok()?;
            let body = http_body_util::BodyExt::collect(response.into_body()).await.ok()?.to_bytes();
            Some(String::from_utf8_lossy(&body).into_owned())
        };
        // What is dropped takes two minutes.
        tokio::time::timeout(Duration::from_millis(500), asking).await.ok().flatten()
    }

    /// What a pod has said.
    pub(crate) async fn log(&self, pod: &str) -> String {
        let uri = format!("/api/v1/namespaces/default/pods/{pod}/log");
        let response =
            self.client.raw(http::Request::get(uri).body(axum::body::Body::empty()).unwrap()).await;
        let body = http_body_util::BodyExt::collect(response.into_body()).await.unwrap().to_bytes();
        String::from_utf8_lossy(&body).into_owned()
    }

    /// How the first container of a pod that ends once has ended.
    pub(crate) async fn ended(&self, name: &str) -> i64 {
        self.until(|| {
            async move {
                let pod = self.client.get(&PODS, "default", name).await.ok()?.to_value();
                pod["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"].as_i64()
            }
            .boxed()
        })
        .await
    }
}
