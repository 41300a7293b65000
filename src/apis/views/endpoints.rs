//! Endpoints and EndpointSlice, as the endpoint controllers read and compare them.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::meta::Metadata;
use apimachinery::object::{list, nullable};

/// `v1.Endpoints`
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Endpoints {
    /// The metadata, of which readers need the annotations.
    pub metadata: Metadata,
    /// As they stand.
    #[serde(deserialize_with = "nullable")]
    pub subsets: Value,
}

/// `discovery.k8s.io/v1.EndpointSlice`
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct EndpointSlice {
    /// The metadata, of which readers need the annotations.
    pub metadata: Metadata,
    /// `IPv4`, `IPv6`, `FQDN`.
    pub address_type: String,
    /// In the slice's order.
    #[serde(deserialize_with = "list")]
    pub endpoints: Vec<Endpoint>,
    /// The ports of all its endpoints.
    #[serde(deserialize_with = "list")]
    pub ports: Vec<EndpointPort>,
}

/// `discovery.k8s.io/v1.Endpoint`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Endpoint {
    /// One, for pods.
    #[serde(deserialize_with = "list")]
    pub addresses: Vec<String>,
    /// Whether it takes traffic.
    pub conditions: EndpointConditions,
    /// A headless service's name for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hostname: Option<String>,
    /// Where its pod runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_name: Option<String>,
    /// Its pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target_ref: Option<TargetRef>,
    /// The node's zone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    /// Who should use it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hints: Option<EndpointHints>,
}

/// `discovery.k8s.io/v1.EndpointHints`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct EndpointHints {
    /// Who is in these zones.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "list")]
    pub for_zones: Vec<NamedHint>,
    /// Who is on these nodes.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "list")]
    pub for_nodes: Vec<NamedHint>,
}

/// `discovery.k8s.io/v1.ForZone`, `ForNode`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct NamedHint {
    /// Of the zone or the node.
    pub name: String,
}

/// `discovery.k8s.io/v1.EndpointConditions`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct EndpointConditions {
    /// Serving, and not on its way out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ready: Option<bool>,
    /// Its pod is ready.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub serving: Option<bool>,
    /// Its pod is on its way out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub terminating: Option<bool>,
}

/// `v1.ObjectReference`: what an endpoint belongs to. Of a pod there are its kind, namespace, name and uid;
/// whoever writes Endpoints of their own may say more, or less.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TargetRef {
    /// `Pod`
    #[serde(skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// Its namespace.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Its name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Its uid.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// The group and version of its kind.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub api_version: String,
    /// At which revision it was looked at.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub resource_version: String,
    /// A part of it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub field_path: String,
}

/// `discovery.k8s.io/v1.EndpointPort`
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct EndpointPort {
    /// The service port's name; empty for a single port.
    #[serde(deserialize_with = "nullable")]
    pub name: String,
    /// Of the pods.
    pub port: Option<i64>,
    /// `TCP`, `UDP`, `SCTP`.
    pub protocol: String,
    /// As `kubernetes.io/h2c`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub app_protocol: Option<String>,
}
