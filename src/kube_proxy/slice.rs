//! EndpointSlices, as the proxy reads them (`pkg/proxy`, `BaseEndpointInfo`).

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use network::Protocol;
use serde::Deserialize;

use crate::service_port::protocol;
use apimachinery::object::{list, nullable};

/// `discovery.k8s.io/v1.EndpointSlice`
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ProxiedSlice {
    #[serde(deserialize_with = "list")]
    endpoints: Vec<SliceEndpoint>,
    #[serde(deserialize_with = "list")]
    ports: Vec<SlicePort>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct SliceEndpoint {
    #[serde(deserialize_with = "list")]
    addresses: Vec<String>,
    conditions: SliceConditions,
    node_name: Option<Arc<str>>,
    hints: Option<Hints>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
struct SliceConditions {
    ready: Option<bool>,
    serving: Option<bool>,
    terminating: Option<bool>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Hints {
    #[serde(deserialize_with = "list")]
    for_zones: Vec<Hint>,
    #[serde(deserialize_with = "list")]
    for_nodes: Vec<Hint>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Hint {
    name: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct SlicePort {
    #[serde(deserialize_with = "nullable")]
    name: String,
    #[serde(deserialize_with = "nullable")]
    protocol: String,
    #[serde(deserialize_with = "nullable")]
    port: u16,
}

/// One endpoint of one port of a Service.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct EndpointInfo {
    pub(crate) address: SocketAddr,
    pub(crate) is_ready: bool,
    pub(crate) is_serving: bool,
    pub(crate) is_terminating: bool,
    pub(crate) node: Option<Arc<str>>,
    pub(crate) zone_hints: Vec<String>,
    pub(crate) node_hints: Vec<String>,
}

impl ProxiedSlice {
    /// The endpoints of the port of a name.
    pub(crate) fn endpoints(&self, port: &str, wanted: Protocol) -> Vec<EndpointInfo> {
        let is_it = |own: &&SlicePort| own.name == port && protocol(&own.protocol) == Some(wanted);
        let Some(port) = self.ports.iter().find(is_it).filter(|port| port.port != 0) else { return vec![] };
        self.endpoints.iter().filter_map(|endpoint| endpoint.info(port.port)).collect()
    }
}

impl SliceEndpoint {
    /// All addresses of an endpoint are the same one; the first is taken.
    fn info(&self, port: u16) -> Option<EndpointInfo> {
        let address: IpAddr = self.addresses.first()?.parse().ok()?;
        let is_ready = self.conditions.ready.unwrap_or(true);
        let names = |hints: &[Hint]| hints.iter().map(|hint| hint.name.clone()).collect();
        let hints = self.hints.as_ref();
        Some(EndpointInfo {
            address: SocketAddr::new(address, port),
            is_ready,
            is_serving: self.conditions.serving.unwrap_or(is_ready),
            is_terminating: self.conditions.terminating.unwrap_or(false),
            node: self.node_name.clone(),
            zone_hints: hints.map(|hints| names(&hints.for_zones)).unwrap_or_default(),
            node_hints: hints.map(|hints| names(&hints.for_nodes)).unwrap_or_default(),
        })
    }
}
