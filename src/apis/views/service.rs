//! Service, as the endpoint controllers read it.

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde::Deserialize;

use super::meta::Metadata;
use apimachinery::int_or_string::IntOrString;
use apimachinery::object::{list, nullable};

/// `v1.Service`
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Service {
    /// The metadata, of which readers need the annotations.
    pub metadata: Metadata,
    /// The desired state, from whoever wrote the object.
    pub spec: ServiceSpec,
    /// What its load balancer has.
    pub status: ServiceStatus,
}

/// `v1.ServiceSpec`
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ServiceSpec {
    /// Labels of its pods; without any, somebody else keeps its endpoints.
    #[serde(deserialize_with = "nullable")]
    pub selector: BTreeMap<String, String>,
    /// What it offers.
    #[serde(deserialize_with = "list")]
    pub ports: Vec<ServicePort>,
    /// `None` for a headless service.
    #[serde(rename = "clusterIP")]
    pub cluster_ip: String,
    /// `ClusterIP`, `NodePort`, `LoadBalancer`, `ExternalName`.
    #[serde(rename = "type")]
    pub service_type: String,
    /// Also pods that are not ready.
    pub publish_not_ready_addresses: bool,
    /// `IPv4`, `IPv6`.
    #[serde(rename = "ipFamilies", deserialize_with = "list")]
    pub ip_families: Vec<String>,
    /// As `PreferSameZone`; who says nothing has all endpoints used alike.
    pub traffic_distribution: Option<String>,
}

/// `v1.ServicePort`
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ServicePort {
    /// Empty for a single port.
    pub name: String,
    /// `TCP`, `UDP`, `SCTP`.
    pub protocol: String,
    /// As `kubernetes.io/h2c`.
    pub app_protocol: Option<String>,
    /// Of the service.
    pub port: i64,
    /// Of nodes; 0 for none.
    pub node_port: u16,
    /// Of the pods: a number, or the name of a container's port.
    pub target_port: Option<IntOrString>,
}

/// `v1.ServiceStatus`
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ServiceStatus {
    load_balancer: BalancerStatus,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct BalancerStatus {
    #[serde(deserialize_with = "nullable")]
    ingress: Vec<BalancerIngress>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct BalancerIngress {
    #[serde(deserialize_with = "nullable")]
    ip: String,
}

impl Service {
    /// The first address of its load balancer.
    pub fn balancer_address(&self) -> Option<IpAddr> {
        self.status.load_balancer.ingress.iter().find_map(|own| own.ip.parse().ok())
    }
}

impl ServicePort {
    /// Whether connections are TCP, as they are when nothing is said.
    pub fn is_tcp(&self) -> bool {
        matches!(self.protocol.as_str(), "" | "TCP")
    }
}
