//! The tables that informers keep: by address and port, which port of which Service that is.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;
use std::net::IpAddr;
use std::sync::Arc;

use network::Protocol;

use crate::service_port::{ProxiedService, ServicePortInfo};
use crate::slice::{EndpointInfo, ProxiedSlice};
use apimachinery::object::{Object, object_key};

/// The labels of what another proxy looks after, and of what has no address of its own.
const NOT_OURS: [&str; 2] = ["service.kubernetes.io/service-proxy-name", "service.kubernetes.io/headless"];
/// The label of a slice that names its Service.
const SERVICE_NAME: &str = "kubernetes.io/service-name";

/// How traffic for an address is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Meant {
    /// For the Service's own address.
    Internal,
    /// For an external address, or a port of a node.
    External,
    /// For the address of a load balancer.
    Balancer,
}

/// A port of a Service.
#[derive(Clone, Debug)]
pub(crate) struct Destination {
    pub(crate) service: Arc<str>,
    pub(crate) port: Arc<ServicePortInfo>,
    pub(crate) endpoints: Arc<[EndpointInfo]>,
    pub(crate) meant: Meant,
}

/// All Services that are proxied. Bound: the cluster's Services and EndpointSlices.
#[derive(Default)]
pub(crate) struct Tables {
    services: HashMap<Arc<str>, ProxiedKnown>,
    /// By Service, then by slice.
    slices: HashMap<Arc<str>, BTreeMap<Arc<str>, ProxiedSlice>>,
    by_address: HashMap<(IpAddr, u16, Protocol), PortPlaces>,
    by_node_port: HashMap<(u16, Protocol), PortPlaces>,
    by_health_check: HashMap<u16, Arc<str>>,
    /// How many Services have an address.
    virtual_addresses: HashMap<IpAddr, usize>,
}

struct ProxiedKnown {
    ports: Vec<(Arc<ServicePortInfo>, Arc<[EndpointInfo]>)>,
    addresses: Vec<(IpAddr, Meant)>,
    health_check: u16,
}

#[derive(Clone)]
struct PortPlace {
    service: Arc<str>,
    port: usize,
    meant: Meant,
}

/// All who want one address and port, the one who has it first: whose own address it is, before whoever only
/// names it (`externalIPs`), and then by name. Bound: the cluster's Services.
type PortPlaces = Vec<PortPlace>;

impl Tables {
    pub(crate) fn put_service(&mut self, object: &Object) {
        self.remove_service(object);
        if is_for_others(object) {
            return;
        }
        // What was validated can be read.
        let Ok(service) = serde_json::from_slice::<ProxiedService>(&object.stored()) else { return };
        if service.is_skipped() {
            return;
        }
        let key = object.shared_key().clone();
        let own = service.addresses();
        let meant =
            |addresses: Vec<IpAddr>, meant| addresses.into_iter().map(move |address| (address, meant));
        let addresses: Vec<(IpAddr, Meant)> = meant(own.cluster, Meant::Internal)
            .chain(meant(own.external, Meant::External))
            .chain(meant(own.balancer, Meant::Balancer))
            .collect();
        let ports = service.ports().into_iter().map(|port| {
            let endpoints = self.endpoints(&key, &port);
            (Arc::new(port), endpoints)
        });
        let (ports, health_check) = (ports.collect(), service.health_check_node_port());
        let known = ProxiedKnown { ports, addresses, health_check };
        self.enter(&key, &known);
        self.services.insert(key, known);
    }

    pub(crate) fn remove_service(&mut self, object: &Object) {
        let key = object.shared_key();
        let Some(known) = self.services.remove(key) else { return };
        for (address, _) in &known.addresses {
            let count = self.virtual_addresses.get_mut(address).map(|count| {
                *count -= 1;
                *count
            });
            if count == Some(0) {
                self.virtual_addresses.remove(address);
            }
        }
        for (port, _) in &known.ports {
            for (address, _) in &known.addresses {
                remove_place(&mut self.by_address, &(*address, port.port, port.protocol), key);
            }
            remove_place(&mut self.by_node_port, &(port.node_port, port.protocol), key);
        }
        if self.by_health_check.get(&known.health_check) == Some(key) {
            self.by_health_check.remove(&known.health_check);
        }
    }

    pub(crate) fn put_slice(&mut self, object: &Object) {
        if is_for_others(object) {
            return self.remove_slice(object);
        }
        let Some(service) = service_of(object) else { return };
        let Ok(slice) = serde_json::from_slice::<ProxiedSlice>(&object.stored()) else { return };
        self.slices.entry(service.clone()).or_default().insert(object.shared_key().clone(), slice);
        self.refresh(&service);
    }

    pub(crate) fn remove_slice(&mut self, object: &Object) {
        let Some(service) = service_of(object) else { return };
        let Some(slices) = self.slices.get_mut(&service) else { return };
        slices.remove(object.shared_key());
        if slices.is_empty() {
            self.slices.remove(&service);
        }
        self.refresh(&service);
    }

    pub(crate) fn at(&self, address: IpAddr, port: u16, protocol: Protocol) -> Option<Destination> {
        self.destination(self.by_address.get(&(address, port, protocol))?.first()?)
    }

    pub(crate) fn at_node_port(&self, port: u16, protocol: Protocol) -> Option<Destination> {
        self.destination(self.by_node_port.get(&(port, protocol))?.first()?)
    }

    /// The Service whose health is asked for at a port of a node, and its endpoints.
    pub(crate) fn at_health_check(&self, port: u16) -> Option<(Arc<str>, Arc<[EndpointInfo]>)> {
        let key = self.by_health_check.get(&port)?;
        let (_, endpoints) = self.services.get(key)?.ports.first()?;
        Some((key.clone(), endpoints.clone()))
    }

    /// Whether an address is a Service's.
    pub(crate) fn is_virtual(&self, address: IpAddr) -> bool {
        self.virtual_addresses.contains_key(&address)
    }

    fn destination(&self, place: &PortPlace) -> Option<Destination> {
        let PortPlace { service, port, meant } = place.clone();
        let (port, endpoints) = self.services.get(&service)?.ports.get(port)?.clone();
        Some(Destination { service, port, endpoints, meant })
    }

    fn enter(&mut self, key: &Arc<str>, known: &ProxiedKnown) {
        for (address, _) in &known.addresses {
            *self.virtual_addresses.entry(*address).or_default() += 1;
        }
        for (index, (port, _)) in known.ports.iter().enumerate() {
            let place = |meant| PortPlace { service: key.clone(), port: index, meant };
            for (address, meant) in &known.addresses {
                add_place(&mut self.by_address, (*address, port.port, port.protocol), place(*meant));
            }
            if port.node_port != 0 {
                add_place(&mut self.by_node_port, (port.node_port, port.protocol), place(Meant::External));
            }
        }
        if known.health_check != 0 {
            self.by_health_check.insert(known.health_check, key.clone());
        }
    }

    /// The endpoints of a Service have changed.
    fn refresh(&mut self, service: &Arc<str>) {
        let Some(mut known) = self.services.remove(service) else { return };
        for (port, endpoints) in &mut known.ports {
            *endpoints = self.endpoints(service, port);
        }
        self.services.insert(service.clone(), known);
    }

    /// Those of all slices, each address once.
    fn endpoints(&self, service: &Arc<str>, port: &ServicePortInfo) -> Arc<[EndpointInfo]> {
        let slices = self.slices.get(service).into_iter().flat_map(BTreeMap::values);
        let all = slices.flat_map(|slice| slice.endpoints(&port.name, port.protocol));
        let by_address: BTreeMap<_, _> = all.map(|endpoint| (endpoint.address, endpoint)).collect();
        by_address.into_values().collect()
    }
}

fn add_place<K: Eq + Hash>(map: &mut HashMap<K, PortPlaces>, key: K, place: PortPlace) {
    let places = map.entry(key).or_default();
    let rank = |place: &PortPlace| (place.meant != Meant::Internal, place.service.clone());
    let own = rank(&place);
    let at = places.partition_point(|other| rank(other) <= own);
    places.insert(at, place);
}

/// What others want stays theirs.
fn remove_place<K: Eq + Hash>(map: &mut HashMap<K, PortPlaces>, key: &K, service: &str) {
    let Some(places) = map.get_mut(key) else { return };
    places.retain(|place| &*place.service != service);
    if places.is_empty() {
        map.remove(key);
    }
}

/// Whether a Service or a slice is another proxy's, or nobody's: kube-proxy does not even watch these
/// (`ProxyServer.Run`).
fn is_for_others(object: &Object) -> bool {
    NOT_OURS.iter().any(|label| object.metadata.labels.contains_key(*label))
}

fn service_of(slice: &Object) -> Option<Arc<str>> {
    let name = slice.metadata.labels.get(SERVICE_NAME).filter(|name| !name.is_empty())?;
    Some(object_key(&slice.metadata.namespace, name).into())
}
