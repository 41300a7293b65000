//! Services and EndpointSlices, as the name server reads them.

use std::net::IpAddr;

use serde::Deserialize;

use apimachinery::object::{Object, list, nullable};

/// `v1.Service`
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct NamedService {
    pub(crate) spec: NamedSpec,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct NamedSpec {
    #[serde(rename = "type")]
    service_type: String,
    #[serde(rename = "clusterIP")]
    cluster_ip: String,
    #[serde(rename = "clusterIPs", deserialize_with = "list")]
    cluster_ips: Vec<String>,
    external_name: String,
    #[serde(deserialize_with = "list")]
    pub(crate) ports: Vec<NamedPort>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct NamedPort {
    #[serde(deserialize_with = "nullable")]
    pub(crate) name: String,
    #[serde(deserialize_with = "nullable")]
    pub(crate) protocol: String,
    #[serde(deserialize_with = "nullable")]
    pub(crate) port: u16,
}

/// `discovery.k8s.io/v1.EndpointSlice`
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct NamedSlice {
    #[serde(deserialize_with = "list")]
    pub(crate) endpoints: Vec<NamedEndpoint>,
    #[serde(deserialize_with = "list")]
    pub(crate) ports: Vec<NamedPort>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct NamedEndpoint {
    #[serde(deserialize_with = "list")]
    pub(crate) addresses: Vec<String>,
    conditions: NamedConditions,
    pub(crate) hostname: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct NamedConditions {
    ready: Option<bool>,
}

/// What kind of Service a name leads to.
pub(crate) enum Behind {
    /// Another name.
    Name(String),
    /// Its endpoints, each by itself.
    Endpoints,
    /// Its own addresses.
    Addresses(Vec<IpAddr>),
}

impl NamedService {
    pub(crate) fn of(object: &Object) -> NamedService {
        // What was validated can be read.
        serde_json::from_slice(&object.stored()).unwrap_or_default()
    }

    pub(crate) fn behind(&self) -> Behind {
        let NamedSpec { service_type, cluster_ip, cluster_ips, external_name, .. } = &self.spec;
        if service_type == "ExternalName" {
            return Behind::Name(external_name.trim_end_matches('.').to_owned());
        }
        if cluster_ip == "None" {
            return Behind::Endpoints;
        }
        let own = std::iter::once(cluster_ip).filter(|_| cluster_ips.is_empty()).chain(cluster_ips);
        Behind::Addresses(own.filter_map(|ip| ip.parse().ok()).collect())
    }
}

impl NamedSlice {
    pub(crate) fn of(object: &Object) -> NamedSlice {
        serde_json::from_slice(&object.stored()).unwrap_or_default()
    }

    /// The addresses of endpoints that are ready, and how each is called below its Service
    /// (`endpointHostname`).
    pub(crate) fn named(&self) -> impl Iterator<Item = (IpAddr, String)> + '_ {
        let ready = self.endpoints.iter().filter(|endpoint| endpoint.conditions.ready.unwrap_or(true));
        ready.flat_map(|endpoint| {
            let addresses = endpoint.addresses.iter().filter_map(|address| address.parse().ok());
            addresses.map(|address: IpAddr| {
                let dashed = || address.to_string().replace(['.', ':'], "-");
                (address, endpoint.hostname.clone().filter(|name| !name.is_empty()).unwrap_or_else(dashed))
            })
        })
    }
}

impl NamedPort {
    /// Whether `_name._protocol` means it.
    pub(crate) fn is(&self, name: &str, protocol: &str) -> bool {
        self.name.eq_ignore_ascii_case(name) && self.protocol().eq_ignore_ascii_case(protocol)
    }

    pub(crate) fn protocol(&self) -> &str {
        if self.protocol.is_empty() { "TCP" } else { &self.protocol }
    }
}
