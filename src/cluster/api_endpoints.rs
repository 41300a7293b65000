//! The Endpoints and the EndpointSlice of `default/kubernetes`: where this server can be reached
//! (`controlplane/reconcilers`).

use std::net::SocketAddr;

use serde_json::{Value, json};

use apimachinery::status::Status;
use apis::core::endpoints::ENDPOINTS;
use apis::discovery::endpoint_slice::ENDPOINT_SLICES;
use apis::kind::Kind;
use client_go::client::Client;

/// Where they are.
pub(super) const NAMESPACE: &str = "default";
/// What they are called, as the Service.
pub(super) const NAME: &str = "kubernetes";

/// Writes down where the server is. What is there from an earlier start is replaced.
///
/// # Errors
/// The server's refusal.
pub(crate) async fn publish(client: &Client, address: SocketAddr) -> Result<(), Status> {
    let (ip, port) =
        (address.ip().to_string(), json!({"name": "https", "port": address.port(), "protocol": "TCP"}));
    // The slice is made here: nobody needs to mirror the Endpoints.
    let endpoints = json!({
        "metadata": {"name": NAME, "namespace": NAMESPACE,
            "labels": {"endpointslice.kubernetes.io/skip-mirror": "true"}},
        "subsets": [{"addresses": [{"ip": ip}], "ports": [port]}],
    });
    let slice = json!({
        "metadata": {"name": NAME, "namespace": NAMESPACE, "labels": {"kubernetes.io/service-name": NAME}},
        "addressType": if address.is_ipv4() { "IPv4" } else { "IPv6" },
        "endpoints": [{"addresses": [ip], "conditions": {"ready": true}}],
        "ports": [port],
    });
    put(client, &ENDPOINTS, endpoints).await?;
    put(client, &ENDPOINT_SLICES, slice).await
}

async fn put(client: &Client, kind: &Kind, tree: Value) -> Result<(), Status> {
    match client.create(kind, NAMESPACE, tree.clone()).await {
        Err(status) if status.is_already_exists() => {
            client.update(kind, NAMESPACE, NAME, tree).await.map(drop)
        }
        created => created.map(drop),
    }
}
