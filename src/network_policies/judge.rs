//! Whether a policy allows a passage.

use std::collections::BTreeMap;
use std::net::IpAddr;

use network::{Passage, Protocol};

use crate::policy::{AllowedTraffic, Peer, PolicyPorts, ReadPolicy};

/// One side of a passage.
#[derive(Clone, Debug)]
pub(crate) struct PassageSide {
    pub(crate) address: IpAddr,
    /// When it is a pod.
    pub(crate) pod: Option<PodIdentity>,
}

/// Who a pod is for policies.
#[derive(Clone, Debug, Default)]
pub(crate) struct PodIdentity {
    pub(crate) namespace: String,
    /// Empty for whoever is no pod of the cluster.
    pub(crate) name: String,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) namespace_labels: BTreeMap<String, String>,
    /// Its ports that have names.
    pub(crate) ports: Vec<(String, u16, Protocol)>,
}

impl PassageSide {
    /// As `default/web`; whoever is no pod by his address.
    pub(crate) fn shown(&self) -> String {
        match self.pod.as_ref().filter(|pod| !pod.name.is_empty()) {
            Some(pod) => format!("{}/{}", pod.namespace, pod.name),
            None => self.address.to_string(),
        }
    }
}

/// A passage with both its sides.
pub(crate) struct PassageCase<'a> {
    pub(crate) passage: Passage,
    pub(crate) from: &'a PassageSide,
    pub(crate) to: &'a PassageSide,
}

/// In which direction a policy is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Ingress,
    Egress,
}

impl PassageCase<'_> {
    /// What the policies of a side's namespace say: who of them allows it; nothing where none isolates that
    /// side.
    ///
    /// # Errors
    /// Those who isolate it, and none of whom allows it.
    pub(crate) fn judged<'a>(
        &self,
        direction: Direction,
        policies: impl Iterator<Item = &'a ReadPolicy>,
    ) -> Result<Option<&'a str>, Vec<&'a str>> {
        let (own, other) = match direction {
            Direction::Ingress => (self.to, self.from),
            Direction::Egress => (self.from, self.to),
        };
        let Some(identity) = &own.pod else { return Ok(None) };
        let mut isolating = vec![];
        for policy in policies.filter(|policy| policy.pods.matches(&identity.labels)) {
            let rules = match direction {
                Direction::Ingress => policy.ingress.as_ref(),
                Direction::Egress => policy.egress.as_ref(),
            };
            let Some(rules) = rules else { continue };
            if rules.iter().any(|rule| self.is_allowed(rule, &identity.namespace, other)) {
                return Ok(Some(&policy.name));
            }
            isolating.push(&*policy.name);
        }
        if isolating.is_empty() { Ok(None) } else { Err(isolating) }
    }

    fn is_allowed(&self, rule: &AllowedTraffic, namespace: &str, other: &PassageSide) -> bool {
        let is_port = rule.ports.is_empty() || rule.ports.iter().any(|ports| self.is_at(ports));
        is_port && (rule.peers.is_empty() || rule.peers.iter().any(|peer| peer.is(namespace, other)))
    }

    /// Ports are those of who is asked, in both directions.
    fn is_at(&self, ports: &PolicyPorts) -> bool {
        let Passage { protocol, to, .. } = self.passage;
        match ports {
            PolicyPorts::All(own) => *own == Some(protocol),
            PolicyPorts::Numbers(own, first, last) => {
                *own == Some(protocol) && (*first..=*last).contains(&to.port())
            }
            PolicyPorts::Named(own, name) => {
                let named = self.to.pod.iter().flat_map(|pod| &pod.ports);
                let is_it = |port: &(String, u16, Protocol)| {
                    port.0 == *name && port.1 == to.port() && port.2 == protocol
                };
                *own == Some(protocol) && named.into_iter().any(is_it)
            }
        }
    }
}

impl Peer {
    fn is(&self, own_namespace: &str, other: &PassageSide) -> bool {
        match self {
            Peer::Addresses(range, except) => {
                range.contains(other.address) && !except.iter().any(|range| range.contains(other.address))
            }
            Peer::Pods(namespaces, pods) => other.pod.as_ref().is_some_and(|pod| {
                let is_namespace = match namespaces {
                    Some(namespaces) => namespaces.matches(&pod.namespace_labels),
                    None => pod.namespace == own_namespace,
                };
                is_namespace && pods.matches(&pod.labels)
            }),
        }
    }
}
