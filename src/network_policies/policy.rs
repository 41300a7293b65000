//! A policy, read once for all passages that it is asked about.

use network::Protocol;
use network::address_range::AddressRange;
use serde::Deserialize;

use apimachinery::int_or_string::IntOrString;
use apimachinery::labels::{LabelSelector, Selector};
use apimachinery::object::{Object, nullable};

/// `networking.k8s.io/v1.NetworkPolicy`
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct WrittenPolicy {
    spec: WrittenSpec,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct WrittenSpec {
    pod_selector: LabelSelector,
    #[serde(deserialize_with = "nullable")]
    policy_types: Vec<String>,
    #[serde(deserialize_with = "nullable")]
    ingress: Vec<WrittenIngress>,
    #[serde(deserialize_with = "nullable")]
    egress: Vec<WrittenEgress>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct WrittenIngress {
    #[serde(deserialize_with = "nullable")]
    ports: Vec<WrittenPort>,
    #[serde(deserialize_with = "nullable")]
    from: Vec<WrittenPeer>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct WrittenEgress {
    #[serde(deserialize_with = "nullable")]
    ports: Vec<WrittenPort>,
    #[serde(deserialize_with = "nullable")]
    to: Vec<WrittenPeer>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct WrittenPort {
    protocol: Option<String>,
    port: Option<IntOrString>,
    end_port: Option<u16>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct WrittenPeer {
    pod_selector: Option<LabelSelector>,
    namespace_selector: Option<LabelSelector>,
    ip_block: Option<WrittenBlock>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct WrittenBlock {
    cidr: String,
    #[serde(deserialize_with = "nullable")]
    except: Vec<String>,
}

/// One policy.
#[derive(Debug)]
pub(crate) struct ReadPolicy {
    pub(crate) name: String,
    /// Whom it isolates.
    pub(crate) pods: Selector,
    /// Who may ask those; nothing where it says nothing of that.
    pub(crate) ingress: Option<Vec<AllowedTraffic>>,
    /// Whom those may ask.
    pub(crate) egress: Option<Vec<AllowedTraffic>>,
}

/// What one rule allows.
#[derive(Debug)]
pub(crate) struct AllowedTraffic {
    /// Empty means any.
    pub(crate) ports: Vec<PolicyPorts>,
    /// Empty means anybody.
    pub(crate) peers: Vec<Peer>,
}

/// Ports of whoever is asked.
#[derive(Debug)]
pub(crate) enum PolicyPorts {
    /// All of a protocol.
    All(Option<Protocol>),
    Numbers(Option<Protocol>, u16, u16),
    Named(Option<Protocol>, String),
}

/// The other side.
#[derive(Debug)]
pub(crate) enum Peer {
    Addresses(AddressRange, Vec<AddressRange>),
    /// In namespaces with such labels; without, in the policy's own.
    Pods(Option<Selector>, Selector),
}

impl ReadPolicy {
    /// Reads one. What cannot be read selects nobody.
    pub(crate) fn of(object: &Object) -> ReadPolicy {
        let written: WrittenPolicy = serde_json::from_slice(&object.stored()).unwrap_or_default();
        let spec = written.spec;
        let isolates = |direction: &str| spec.policy_types.iter().any(|own| own == direction);
        let ingress = || spec.ingress.iter().map(|rule| allowance(&rule.ports, &rule.from)).collect();
        let egress = || spec.egress.iter().map(|rule| allowance(&rule.ports, &rule.to)).collect();
        ReadPolicy {
            name: object.metadata.name.clone(),
            pods: selector(&spec.pod_selector),
            ingress: isolates("Ingress").then(ingress),
            egress: isolates("Egress").then(egress),
        }
    }
}

fn allowance(ports: &[WrittenPort], peers: &[WrittenPeer]) -> AllowedTraffic {
    AllowedTraffic {
        ports: ports.iter().map(WrittenPort::range).collect(),
        peers: peers.iter().filter_map(WrittenPeer::peer).collect(),
    }
}

fn selector(written: &LabelSelector) -> Selector {
    written.selector().unwrap_or_else(|_| Selector::nothing())
}

impl WrittenPort {
    /// Nothing simulated speaks SCTP: its ports are nobody's.
    fn range(&self) -> PolicyPorts {
        let protocol = match self.protocol.as_deref() {
            None | Some("TCP") => Some(Protocol::Tcp),
            Some("UDP") => Some(Protocol::Udp),
            Some(_) => None,
        };
        match &self.port {
            None => PolicyPorts::All(protocol),
            Some(IntOrString::String(name)) => PolicyPorts::Named(protocol, name.clone()),
            Some(IntOrString::Int(first)) => {
                let first = u16::try_from(*first).unwrap_or_default();
                PolicyPorts::Numbers(protocol, first, self.end_port.unwrap_or(first))
            }
        }
    }
}

impl WrittenPeer {
    fn peer(&self) -> Option<Peer> {
        if let Some(block) = &self.ip_block {
            let except = block.except.iter().filter_map(|range| AddressRange::parse(range)).collect();
            return Some(Peer::Addresses(AddressRange::parse(&block.cidr)?, except));
        }
        let namespaces = self.namespace_selector.as_ref().map(selector);
        let pods = self.pod_selector.as_ref().map_or_else(Selector::everything, selector);
        Some(Peer::Pods(namespaces, pods))
    }
}
