//! What a Service offers, port by port (`pkg/proxy`, `BaseServicePortInfo`).

use std::net::IpAddr;
use std::time::Duration;

use network::Protocol;
use network::address_range::AddressRange;
use serde::Deserialize;

use apimachinery::object::list;

/// How long somebody is sent to the same endpoint when the Service does not say
/// (`DefaultClientIPServiceAffinitySeconds`).
const DEFAULT_AFFINITY_SECONDS: u64 = 10_800;

/// `v1.Service`, as the proxy reads it.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ProxiedService {
    pub(crate) spec: ProxiedSpec,
    pub(crate) status: ProxiedStatus,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ProxiedSpec {
    #[serde(rename = "type")]
    service_type: String,
    #[serde(rename = "clusterIP")]
    cluster_ip: String,
    #[serde(rename = "clusterIPs", deserialize_with = "list")]
    cluster_ips: Vec<String>,
    #[serde(rename = "externalIPs", deserialize_with = "list")]
    external_ips: Vec<String>,
    #[serde(deserialize_with = "list")]
    ports: Vec<ProxiedPort>,
    session_affinity: String,
    session_affinity_config: Option<AffinityConfig>,
    internal_traffic_policy: Option<String>,
    external_traffic_policy: Option<String>,
    #[serde(deserialize_with = "list")]
    load_balancer_source_ranges: Vec<String>,
    health_check_node_port: u16,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ProxiedPort {
    name: String,
    protocol: String,
    port: u16,
    node_port: u16,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct AffinityConfig {
    #[serde(rename = "clientIP")]
    client_ip: Option<AffinityTimeout>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct AffinityTimeout {
    timeout_seconds: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ProxiedStatus {
    load_balancer: Balancer,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Balancer {
    #[serde(deserialize_with = "list")]
    ingress: Vec<Ingress>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Ingress {
    ip: String,
    ip_mode: Option<String>,
}

/// One port of a Service.
#[derive(Debug, PartialEq)]
pub(crate) struct ServicePortInfo {
    pub(crate) name: String,
    pub(crate) protocol: Protocol,
    pub(crate) port: u16,
    /// 0 for none.
    pub(crate) node_port: u16,
    /// For how long somebody is sent to the same endpoint.
    pub(crate) affinity: Option<Duration>,
    pub(crate) is_internal_local: bool,
    pub(crate) is_external_local: bool,
    /// From where its load balancer takes traffic; empty means from everywhere.
    pub(crate) source_ranges: Vec<AddressRange>,
}

/// The addresses of a Service, by how traffic for them is meant.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct ServiceAddresses {
    pub(crate) cluster: Vec<IpAddr>,
    pub(crate) external: Vec<IpAddr>,
    pub(crate) balancer: Vec<IpAddr>,
}

impl ProxiedService {
    /// Whether nothing is proxied: it has no address, or is a name alone (`ShouldSkipService`).
    pub(crate) fn is_skipped(&self) -> bool {
        matches!(self.spec.cluster_ip.as_str(), "" | "None") || self.spec.service_type == "ExternalName"
    }

    pub(crate) fn addresses(&self) -> ServiceAddresses {
        let own = std::iter::once(&self.spec.cluster_ip).filter(|_| self.spec.cluster_ips.is_empty());
        // An address of mode `Proxy` is the balancer's own: it sends traffic to node ports.
        let ingress = self.status.load_balancer.ingress.iter();
        let vips = ingress.filter(|ingress| ingress.ip_mode.as_deref() != Some("Proxy"));
        ServiceAddresses {
            cluster: parsed(own.chain(&self.spec.cluster_ips)),
            external: parsed(self.spec.external_ips.iter()),
            balancer: parsed(vips.map(|ingress| &ingress.ip)),
        }
    }

    /// Its ports; those of SCTP are nobody's, since nothing simulated speaks it.
    pub(crate) fn ports(&self) -> Vec<ServicePortInfo> {
        let spec = &self.spec;
        let ranges = spec.load_balancer_source_ranges.iter();
        let ranges: Vec<AddressRange> =
            ranges.filter_map(|range| AddressRange::parse(range.trim())).collect();
        let port = |port: &ProxiedPort| {
            Some(ServicePortInfo {
                name: port.name.clone(),
                protocol: protocol(&port.protocol)?,
                port: port.port,
                node_port: port.node_port,
                affinity: spec.affinity(),
                is_internal_local: is_local(spec.internal_traffic_policy.as_deref()),
                is_external_local: is_local(spec.external_traffic_policy.as_deref()),
                source_ranges: ranges.clone(),
            })
        };
        spec.ports.iter().filter_map(port).collect()
    }

    /// Where its load balancer asks whether a node has endpoints; 0 for nowhere.
    pub(crate) fn health_check_node_port(&self) -> u16 {
        self.spec.health_check_node_port
    }
}

impl ProxiedSpec {
    fn affinity(&self) -> Option<Duration> {
        if self.session_affinity != "ClientIP" {
            return None;
        }
        let config = self.session_affinity_config.as_ref().and_then(|config| config.client_ip.as_ref());
        let seconds = config.and_then(|config| config.timeout_seconds);
        Some(Duration::from_secs(seconds.unwrap_or(DEFAULT_AFFINITY_SECONDS)))
    }
}

/// `TCP` when it is not said; nothing for SCTP.
pub(crate) fn protocol(text: &str) -> Option<Protocol> {
    match text {
        "TCP" | "" => Some(Protocol::Tcp),
        "UDP" => Some(Protocol::Udp),
        _ => None,
    }
}

fn is_local(policy: Option<&str>) -> bool {
    policy == Some("Local")
}

fn parsed<'a>(texts: impl Iterator<Item = &'a String>) -> Vec<IpAddr> {
    texts.filter_map(|text| text.parse().ok()).collect()
}
