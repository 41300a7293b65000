//! The Endpoints and the EndpointSlices of `default/kubernetes`: where the servers of the cluster can be
//! reached (`controlplane/reconcilers`).

use std::collections::BTreeMap;
use std::net::SocketAddr;

use serde_json::{Value, json};

use apimachinery::labels::Selector;
use apimachinery::options::{DeleteOptions, ListOptions};
use apimachinery::selectable::Predicate;
use apimachinery::status::Status;
use apis::core::endpoints::ENDPOINTS;
use apis::discovery::endpoint_slice::ENDPOINT_SLICES;
use apis::kind::Kind;
use client_go::client::Client;

/// Where they are.
pub(super) const NAMESPACE: &str = "default";
/// What they are called, as the Service.
pub(super) const NAME: &str = "kubernetes";
const SERVICE_LABEL: &str = "kubernetes.io/service-name";

/// Servers with one port and of one family: what fits into one slice.
type AddressesOfPort = ((bool, u16), Vec<String>);

/// Writes down where the servers are. What is there from an earlier start is replaced.
///
/// # Errors
/// The server's refusal.
pub(crate) async fn publish(client: &Client, servers: &[SocketAddr]) -> Result<(), Status> {
    let groups = groups(servers);
    let subsets: Vec<Value> = groups.iter().map(subset).collect();
    // The slices are made here: nobody needs to mirror the Endpoints.
    let endpoints = json!({
        "metadata": {"name": NAME, "namespace": NAMESPACE,
            "labels": {"endpointslice.kubernetes.io/skip-mirror": "true"}},
        "subsets": subsets,
    });
    put(client, &ENDPOINTS, NAME, endpoints).await?;
    for (at, group) in groups.iter().enumerate() {
        let name = slice_name(at, group);
        put(client, &ENDPOINT_SLICES, &name, slice(&name, group)).await?;
    }
    remove_others(client, &groups).await
}

fn groups(servers: &[SocketAddr]) -> Vec<AddressesOfPort> {
    let mut groups: BTreeMap<(bool, u16), Vec<String>> = BTreeMap::new();
    for server in servers {
        let group = groups.entry((server.is_ipv6(), server.port())).or_default();
        group.push(server.ip().to_string());
    }
    groups.into_iter().collect()
}

/// There is one, unless servers have several ports.
fn slice_name(at: usize, group: &AddressesOfPort) -> String {
    let (is_v6, port) = group.0;
    match at {
        0 => NAME.to_owned(),
        _ => format!("{NAME}-{}-{port}", if is_v6 { "ipv6" } else { "ipv4" }),
    }
}

fn port(group: &AddressesOfPort) -> Value {
    json!({"name": "https", "port": group.0.1, "protocol": "TCP"})
}

fn subset(group: &AddressesOfPort) -> Value {
    let addresses: Vec<Value> = group.1.iter().map(|ip| json!({"ip": ip})).collect();
    json!({"addresses": addresses, "ports": [port(group)]})
}

fn slice(name: &str, group: &AddressesOfPort) -> Value {
    let endpoint = |ip: &String| json!({"addresses": [ip], "conditions": {"ready": true}});
    let endpoints: Vec<Value> = group.1.iter().map(endpoint).collect();
    json!({
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": {SERVICE_LABEL: NAME}},
        "addressType": if group.0.0 { "IPv6" } else { "IPv4" },
        "endpoints": endpoints,
        "ports": [port(group)],
    })
}

/// Slices of ports that no server has any more.
async fn remove_others(client: &Client, groups: &[AddressesOfPort]) -> Result<(), Status> {
    let names: Vec<String> = groups.iter().enumerate().map(|(at, group)| slice_name(at, group)).collect();
    let labels = Selector::parse(&format!("{SERVICE_LABEL}={NAME}")).unwrap_or_default();
    let predicate = Predicate { labels, ..Predicate::default() };
    let options = ListOptions { predicate, ..ListOptions::default() };
    for slice in client.list(&ENDPOINT_SLICES, NAMESPACE, &options).await?.items.iter() {
        let name = &slice.metadata.name;
        if name.starts_with(&format!("{NAME}-ip")) && !names.contains(name) {
            client.delete(&ENDPOINT_SLICES, NAMESPACE, name, &DeleteOptions::default()).await?;
        }
    }
    Ok(())
}

async fn put(client: &Client, kind: &Kind, name: &str, tree: Value) -> Result<(), Status> {
    match client.create(kind, NAMESPACE, tree.clone()).await {
        Err(status) if status.is_already_exists() => {}
        created => return created.map(drop),
    }
    // No slice becomes one of the other family. Another server may do all this at the same time.
    let there = client.get(kind, NAMESPACE, name).await?.to_value();
    if there["addressType"] != tree["addressType"] {
        match client.delete(kind, NAMESPACE, name, &DeleteOptions::default()).await {
            Err(status) if !status.is_not_found() => return Err(status),
            _ => {}
        }
        match client.create(kind, NAMESPACE, tree.clone()).await {
            Err(status) if status.is_already_exists() => {}
            created => return created.map(drop),
        }
    }
    client.update(kind, NAMESPACE, name, tree).await.map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::{Cluster, Components, Config};

    #[tokio::test]
    async fn a_slice_of_the_other_family_is_replaced() {
        let config = Config::new().components(Components::NONE).nodes(0);
        let cluster = Cluster::start(config).await.unwrap();
        let client = cluster.client();
        for (server, family) in
            [("10.0.0.1:6443", "IPv4"), ("[fd00::1]:6443", "IPv6"), ("10.0.0.1:6443", "IPv4")]
        {
            let server: SocketAddr = server.parse().unwrap();
            publish(&client, &[server]).await.unwrap();
            let slice = client.get(&ENDPOINT_SLICES, NAMESPACE, NAME).await.unwrap().to_value();
            assert_eq!(slice["addressType"], family);
            assert_eq!(slice["endpoints"][0]["addresses"], json!([server.ip().to_string()]));
            let endpoints = client.get(&ENDPOINTS, NAMESPACE, NAME).await.unwrap().to_value();
            assert_eq!(endpoints["subsets"][0]["addresses"][0]["ip"], server.ip().to_string());
        }
    }

    #[test]
    fn servers_with_one_port_share_a_slice() {
        let servers: Vec<SocketAddr> = ["10.0.0.1:6443", "10.0.0.2:6443", "10.0.0.1:7443", "[fd00::1]:6443"]
            .map(|text| text.parse().unwrap())
            .into();
        let groups = groups(&servers);
        let names: Vec<String> = groups.iter().enumerate().map(|(at, group)| slice_name(at, group)).collect();
        assert_eq!(names, ["kubernetes", "kubernetes-ipv4-7443", "kubernetes-ipv6-6443"]);
        assert_eq!(groups[0].1, ["10.0.0.1", "10.0.0.2"]);
        let first = slice(NAME, &groups[0]);
        assert_eq!(
            (first["endpoints"].as_array().unwrap().len(), &first["ports"][0]["port"]),
            (2, &json!(6443))
        );
        assert_eq!(subset(&groups[1])["addresses"], json!([{"ip": "10.0.0.1"}]));
        assert_eq!(slice("a", &groups[2])["addressType"], "IPv6");
    }
}
