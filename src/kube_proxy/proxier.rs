//! `Proxier`: where a passage leads, as the rules of kube-proxy have it (`pkg/proxy/iptables`).

use std::net::IpAddr;
use std::sync::Arc;

use network::{Obstacle, Passage, Route};
use sync::{Mutex, RwLock};

use crate::affinity::Affinities;
use crate::slice::EndpointInfo;
use crate::tables::{Destination, Meant, Tables};
use crate::topology::{Standpoint, cluster_endpoints, has_any, local_endpoints};
use apimachinery::object::Object;
use apis::core::node::NODES;
use apis::core::node_labels::ZONE;
use apis::core::service::SERVICES;
use apis::discovery::endpoint_slice::ENDPOINT_SLICES;
use client_go::component::ComponentContext;
use client_go::lister::Lister;
use client_go::shared_informer::{Deleted, ResourceEventHandler};
use clock::Clock;
use entropy::Entropy;

/// Which node an address belongs to.
pub trait Whereabouts: Send + Sync {
    /// The node of an address: the node's own, or one of its pods'.
    fn node_of(&self, address: IpAddr) -> Option<Arc<str>>;

    /// The address of a node itself, of the IP family of `like`.
    fn address_of(&self, node: &str, like: IpAddr) -> Option<IpAddr>;
}

/// The proxies of all nodes. Cloning shares them.
#[derive(Clone)]
pub struct Proxier {
    tables: Arc<RwLock<Tables>>,
    affinity: Arc<Mutex<Affinities>>,
    placement: Arc<dyn Whereabouts>,
    nodes: Lister,
    clock: Clock,
    entropy: Entropy,
}

/// Nodes and their zones of one passage.
struct PassageOrigin {
    /// The node that the passage comes in on; empty for none.
    node: Arc<str>,
    /// Whether who asks is a pod, or a node itself.
    is_from_cluster: bool,
    /// Whether it is one of the node that it comes in on.
    is_from_node: bool,
    zone: String,
}

impl Proxier {
    /// With the informers of a component, which are begun elsewhere.
    pub fn new(context: &ComponentContext, placement: Arc<dyn Whereabouts>) -> Proxier {
        let nodes = context.informers.informer(&NODES).lister();
        let tables = Arc::<RwLock<Tables>>::default();
        context.informers.informer(&SERVICES).add_handler(ServiceHandler(tables.clone()));
        context.informers.informer(&ENDPOINT_SLICES).add_handler(SliceHandler(tables.clone()));
        Proxier::of(tables, nodes, placement, (&context.clock, &context.entropy))
    }

    pub(crate) fn of(
        tables: Arc<RwLock<Tables>>,
        nodes: Lister,
        placement: Arc<dyn Whereabouts>,
        (clock, entropy): (&Clock, &Entropy),
    ) -> Proxier {
        let (clock, entropy) = (clock.clone(), entropy.clone());
        Proxier { tables, affinity: Arc::default(), placement, nodes, clock, entropy }
    }

    /// Where a passage leads.
    pub fn route(&self, passage: Passage) -> Route {
        let Some(destination) = self.destination(&passage) else {
            // A port that the Service does not have: iptables has no rule, and the packet goes astray.
            let is_virtual = self.tables.read().is_virtual(passage.to.ip());
            return if is_virtual { Route::Nowhere(Obstacle::TimedOut) } else { Route::Direct };
        };
        let origin = self.origin(&passage, destination.meant);
        match self.usable(&destination, &passage, &origin) {
            Err(obstacle) => Route::Nowhere(obstacle),
            Ok(endpoints) => self.chosen(&destination, &endpoints, &passage, &origin),
        }
    }

    /// What is answered where a load balancer asks whether a node has endpoints: code and body; nothing
    /// where nobody asks (`pkg/proxy/healthcheck`).
    pub fn health_check(&self, node: &str, port: u16) -> Option<(u16, String)> {
        let (service, endpoints) = self.tables.read().at_health_check(port)?;
        let count = endpoints.iter().filter(|endpoint| endpoint.is_ready && endpoint.is_on(node)).count();
        let (namespace, name) = service.split_once('/')?;
        let body = format!(
            "{{\n\t\"service\": {{\n\t\t\"namespace\": {namespace:?},\n\t\t\"name\": {name:?}\n\t}},\n\
             \t\"localEndpoints\": {count},\n\t\"serviceProxyHealthy\": true\n}}"
        );
        Some((if count > 0 { 200 } else { 503 }, body))
    }

    fn destination(&self, passage: &Passage) -> Option<Destination> {
        let tables = self.tables.read();
        let (address, port) = (passage.to.ip(), passage.to.port());
        tables.at(address, port, passage.protocol).or_else(|| {
            let node = self.placement.node_of(address)?;
            let is_node = self.placement.address_of(&node, address) == Some(address);
            tables.at_node_port(port, passage.protocol).filter(|_| is_node)
        })
    }

    /// Traffic for a port of a node comes in there; all other where its sender is.
    fn origin(&self, passage: &Passage, meant: Meant) -> PassageOrigin {
        let sender = self.placement.node_of(passage.from.ip());
        let receiver = self.placement.node_of(passage.to.ip()).filter(|_| meant != Meant::Internal);
        let is_from_cluster = sender.is_some();
        let node = receiver.or_else(|| sender.clone()).unwrap_or_default();
        let is_from_node = sender.is_some_and(|sender| sender == node);
        let zone = self.nodes.get("", &node).and_then(|node| node.metadata.labels.get(ZONE).cloned());
        PassageOrigin { node, is_from_cluster, is_from_node, zone: zone.unwrap_or_default() }
    }

    /// The endpoints that may take it. Without any in the whole cluster it is refused; without any on the
    /// node that it must stay on it is dropped.
    fn usable<'a>(
        &self,
        destination: &'a Destination,
        passage: &Passage,
        origin: &PassageOrigin,
    ) -> Result<Vec<&'a EndpointInfo>, Obstacle> {
        let Destination { port, endpoints, meant, .. } = destination;
        let client = passage.from.ip();
        let is_in_range =
            port.source_ranges.is_empty() || port.source_ranges.iter().any(|range| range.contains(client));
        if *meant == Meant::Balancer && !is_in_range {
            return Err(Obstacle::TimedOut);
        }
        if !has_any(endpoints) {
            return Err(Obstacle::Refused);
        }
        // Whoever is on the node reaches external addresses as if they were the Service's own; another
        // node's pods come in as that node, from outside. A load balancer sends to a node that has endpoints.
        let is_anywhere = *meant == Meant::Balancer && origin.node.is_empty();
        let is_local = match meant {
            Meant::Internal => port.is_internal_local,
            _ if is_anywhere => false,
            _ => port.is_external_local && !origin.is_from_node,
        };
        let at = Standpoint { node: &origin.node, zone: &origin.zone };
        let mut found =
            if is_local { local_endpoints(endpoints, at.node) } else { cluster_endpoints(endpoints, at) };
        found.retain(|endpoint| endpoint.address.is_ipv4() == passage.to.is_ipv4());
        let obstacle = if is_local { Obstacle::TimedOut } else { Obstacle::Refused };
        if found.is_empty() { Err(obstacle) } else { Ok(found) }
    }

    fn chosen(
        &self,
        destination: &Destination,
        endpoints: &[&EndpointInfo],
        passage: &Passage,
        origin: &PassageOrigin,
    ) -> Route {
        let Destination { service, port, meant, .. } = destination;
        let client = passage.from.ip();
        let draw = || endpoints[self.entropy.below(endpoints.len())].address;
        let to = match port.affinity {
            None => draw(),
            Some(timeout) => {
                let (now, asker) = (self.clock.elapsed(), (service.clone(), port.port, client));
                let mut affinity = self.affinity.lock();
                let is_usable = |to| endpoints.iter().any(|endpoint| endpoint.address == to);
                let again = affinity.again(&asker, now, timeout, is_usable);
                again.unwrap_or_else(|| {
                    let to = draw();
                    affinity.remember(asker, to, now, timeout);
                    to
                })
            }
        };
        // Whose answers would not come back this way is asked in the node's name: who reaches himself, and
        // who comes in on a node that passes him on.
        let is_hairpin = to.ip() == client;
        let is_passed_on = *meant != Meant::Internal && !port.is_external_local;
        let is_stranger = *meant == Meant::Internal && !origin.is_from_cluster;
        let masquerade = is_hairpin || is_passed_on || is_stranger;
        let node = self.placement.address_of(&origin.node, to.ip()).filter(|_| masquerade);
        Route::To { to, from: node.unwrap_or(client) }
    }
}

struct ServiceHandler(Arc<RwLock<Tables>>);

impl ResourceEventHandler for ServiceHandler {
    fn on_add(&self, new: &Arc<Object>, _is_initial_list: bool) {
        self.0.write().put_service(new);
    }

    fn on_update(&self, _: &Arc<Object>, new: &Arc<Object>) {
        self.0.write().put_service(new);
    }

    fn on_delete(&self, last: &Deleted) {
        self.0.write().remove_service(last.last());
    }
}

struct SliceHandler(Arc<RwLock<Tables>>);

impl ResourceEventHandler for SliceHandler {
    fn on_add(&self, new: &Arc<Object>, _is_initial_list: bool) {
        self.0.write().put_slice(new);
    }

    /// It may be another Service's now.
    fn on_update(&self, old: &Arc<Object>, new: &Arc<Object>) {
        let mut tables = self.0.write();
        tables.remove_slice(old);
        tables.put_slice(new);
    }

    fn on_delete(&self, last: &Deleted) {
        self.0.write().remove_slice(last.last());
    }
}
