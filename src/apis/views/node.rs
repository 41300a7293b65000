//! Node, as scheduler, kubelet and node lifecycle read it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::meta::{Condition, Metadata};
use apimachinery::object::{list, nullable};
use apimachinery::time::Time;

/// `v1.Node`
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Node {
    /// The metadata, of which readers need the annotations.
    pub metadata: Metadata,
    /// The desired state, from whoever wrote the object.
    pub spec: NodeSpec,
    /// The observed state, from whoever acts on the object.
    pub status: NodeStatus,
}

/// `v1.NodeSpec`
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeSpec {
    /// Whether it is cordoned.
    pub unschedulable: bool,
    /// Who may not come or stay.
    #[serde(deserialize_with = "list")]
    pub taints: Vec<Taint>,
    /// The range of its pods' addresses.
    #[serde(rename = "podCIDR")]
    pub pod_cidr: String,
    /// Its ranges by IP family, [`NodeSpec::pod_cidr`] first.
    #[serde(rename = "podCIDRs", deserialize_with = "list")]
    pub pod_cidrs: Vec<String>,
}

impl NodeSpec {
    /// The ranges of its pods' addresses; none before it has any.
    pub fn pod_ranges(&self) -> &[String] {
        match &self.pod_cidrs[..] {
            [] if !self.pod_cidr.is_empty() => std::slice::from_ref(&self.pod_cidr),
            all => all,
        }
    }
}

/// `v1.Taint`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Taint {
    /// As `node.kubernetes.io/unreachable`.
    pub key: String,
    /// May be empty.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub value: String,
    /// `NoSchedule`, `PreferNoSchedule`, `NoExecute`.
    pub effect: String,
    /// When a `NoExecute` taint was put on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_added: Option<Time>,
}

/// `v1.NodeStatus`
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeStatus {
    /// What it has.
    #[serde(deserialize_with = "nullable")]
    pub capacity: BTreeMap<String, String>,
    /// What pods may use of it.
    #[serde(deserialize_with = "nullable")]
    pub allocatable: BTreeMap<String, String>,
    /// `Ready` and the pressures.
    #[serde(deserialize_with = "list")]
    pub conditions: Vec<Condition>,
    /// Where it is.
    #[serde(deserialize_with = "list")]
    pub addresses: Vec<NodeAddress>,
    /// The images that it has.
    #[serde(deserialize_with = "list")]
    pub images: Vec<ContainerImage>,
    /// What its kubelet can do that others cannot.
    #[serde(deserialize_with = "nullable")]
    pub declared_features: Vec<String>,
}

/// `v1.NodeAddress`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct NodeAddress {
    /// `InternalIP`, `Hostname`, ...
    #[serde(rename = "type")]
    pub address_type: String,
    /// The address.
    pub address: String,
}

/// `v1.ContainerImage`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ContainerImage {
    /// All names of the image.
    #[serde(deserialize_with = "list")]
    pub names: Vec<String>,
    /// Its size.
    pub size_bytes: i64,
}
