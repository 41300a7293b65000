//! What Services hold where several servers give it away: nothing is given twice, since each address is an
//! IPAddress that one server alone can make (`ipallocator`), and each node port a place in a range that is
//! compared before it is written (`portallocator`, `ranges/servicenodeports`).

use std::net::IpAddr;
use std::sync::Arc;

use serde_json::Value;

use super::super::Registry;
use super::addresses;
use super::allocators::{Allocation, ServiceAllocations};
use super::ip_addresses::{address_of, usable_ranges};
use super::normalize::needs_node_ports;
use crate::request::RequestContext;
use crate::storage::RangeAllocation;
use apimachinery::object::Object;
use apimachinery::options::ListOptions;
use apimachinery::status::Status;
use apis::kind::Kind;

/// Where taken node ports are.
pub const NODE_PORTS: &str = "servicenodeports";
/// So often others may be faster until somebody is told.
const MAX_ROUNDS: usize = 100;

impl Registry {
    /// Fills in what a Service lacks, of what no server has given away.
    pub(super) async fn allocate_shared(
        &self,
        kind: &Arc<Kind>,
        new: &mut Value,
        old: Option<&Value>,
    ) -> Result<Allocation, Status> {
        let mut lost = ServiceAllocations::default();
        for _ in 0..MAX_ROUNDS {
            let mut filled = new.clone();
            let mut known = self.held_by_all(kind, &filled).await?;
            known.add(&lost);
            let begun = self.0.services.begin_among(known);
            let allocation = addresses::allocate(&self.0.services, &mut filled, old, begun)?;
            let others = self.claim(kind, &filled, allocation.taken()).await;
            if others.as_ref().is_ok_and(ServiceAllocations::is_empty) {
                *new = filled;
                let registry = self.clone();
                let kind = kind.clone();
                return Ok(allocation.given_back_by(Box::new(move |held| registry.give_back(kind, held))));
            }
            allocation.lose();
            lost.add(&others?);
        }
        let why = "other servers have been faster each time";
        Err(Status::internal(format!("failed to allocate a serviceIP: {why}")))
    }

    /// What is known of all servers, as far as `service` may want some of it; the addresses may be a moment
    /// old.
    pub(super) async fn held_by_all(
        &self,
        kind: &Arc<Kind>,
        service: &Value,
    ) -> Result<ServiceAllocations, Status> {
        self.follow_ranges_of_others().await?;
        let any = ListOptions { resource_version: Some("0".into()), ..ListOptions::default() };
        let addresses = self.kind("networking.k8s.io", "v1", "ipaddresses")?;
        let found = self.0.storage.list(&addresses, "", &any).await?;
        let ips = found.items.iter().filter_map(|object| object.metadata.name.parse::<IpAddr>().ok());
        let mut held = ServiceAllocations { ips: ips.collect(), ..ServiceAllocations::default() };
        if needs_node_ports(service) {
            let (taken, _) = self.node_ports(kind).await?;
            held.ports = self.0.services.node_ports().filter(|port| self.is_in(&taken, *port)).collect();
        }
        Ok(held)
    }

    async fn follow_ranges_of_others(&self) -> Result<(), Status> {
        let any = ListOptions { resource_version: Some("0".into()), ..ListOptions::default() };
        let kind = self.kind("networking.k8s.io", "v1", "servicecidrs")?;
        let found = self.0.storage.list(&kind, "", &any).await?;
        let usable = |range: &Arc<Object>| (range.metadata.name.clone(), usable_ranges(range));
        self.0.services.replace_ranges(found.items.iter().map(usable));
        Ok(())
    }

    fn is_in(&self, ports: &RangeAllocation, port: u16) -> bool {
        self.0.services.place_of(port).is_some_and(|place| ports.has(place))
    }

    /// The taken node ports, and the revision of their key. What is not there, or of another range, or cannot
    /// be read, is what the Services say.
    async fn node_ports(&self, kind: &Arc<Kind>) -> Result<(RangeAllocation, u64), Status> {
        let (found, revision) = self.0.storage.range_allocation(NODE_PORTS).await?;
        let range = self.0.services.node_port_range();
        if let Some(found) = found.filter(|found| found.range == range) {
            return Ok((found, revision));
        }
        let mut made = RangeAllocation::of(range);
        for service in self.0.storage.list(kind, "", &ListOptions::default()).await?.items.iter() {
            let ports = addresses::held(&service.to_value()).ports;
            ports.into_iter().filter_map(|port| self.0.services.place_of(port)).for_each(|at| made.take(at));
        }
        Ok((made, revision))
    }

    /// Takes what is wanted for a Service, all of it or nothing; answers what others have of it.
    async fn claim(
        &self,
        kind: &Arc<Kind>,
        service: &Value,
        wanted: &ServiceAllocations,
    ) -> Result<ServiceAllocations, Status> {
        let others = self.claim_addresses(service, wanted).await?;
        if !others.is_empty() {
            return Ok(others);
        }
        let claimed = self.claim_ports(kind, wanted).await;
        if !claimed.as_ref().is_ok_and(ServiceAllocations::is_empty) {
            self.give_back_addresses(wanted.ips.iter().copied()).await;
        }
        claimed
    }

    async fn claim_addresses(
        &self,
        service: &Value,
        wanted: &ServiceAllocations,
    ) -> Result<ServiceAllocations, Status> {
        let addresses = self.kind("networking.k8s.io", "v1", "ipaddresses")?;
        let mut claimed: Vec<IpAddr> = Vec::new();
        for ip in &wanted.ips {
            let tree = address_of(&service["metadata"], *ip);
            let made = Box::pin(self.create(&RequestContext::default(), &addresses, "", tree, &())).await;
            let Err(refused) = made else {
                claimed.push(*ip);
                continue;
            };
            self.give_back_addresses(claimed.into_iter()).await;
            if refused.is_already_exists() {
                return Ok(ServiceAllocations { ips: [*ip].into(), ..ServiceAllocations::default() });
            }
            return Err(refused);
        }
        Ok(ServiceAllocations::default())
    }

    async fn claim_ports(
        &self,
        kind: &Arc<Kind>,
        wanted: &ServiceAllocations,
    ) -> Result<ServiceAllocations, Status> {
        if wanted.ports.is_empty() {
            return Ok(ServiceAllocations::default());
        }
        loop {
            let (mut range, revision) = self.node_ports(kind).await?;
            let others: ServiceAllocations = ServiceAllocations {
                ports: wanted.ports.iter().copied().filter(|port| self.is_in(&range, *port)).collect(),
                ..ServiceAllocations::default()
            };
            if !others.is_empty() {
                return Ok(others);
            }
            let places = wanted.ports.iter().filter_map(|port| self.0.services.place_of(*port));
            places.for_each(|place| range.take(place));
            if self.0.storage.put_range_allocation(NODE_PORTS, &range, revision).await? {
                return Ok(ServiceAllocations::default());
            }
        }
    }

    /// The write of a Service did not get through.
    fn give_back(&self, kind: Arc<Kind>, held: ServiceAllocations) {
        let registry = self.clone();
        self.0.clock.spawn(async move {
            registry.give_back_addresses(held.ips.iter().copied()).await;
            registry.give_back_ports(&kind, &held).await;
        });
    }

    async fn give_back_addresses(&self, ips: impl Iterator<Item = IpAddr>) {
        let Ok(addresses) = self.kind("networking.k8s.io", "v1", "ipaddresses") else { return };
        for ip in ips {
            drop(self.remove_address(&addresses, ip).await);
        }
    }

    /// A port that cannot be given back stays taken.
    async fn give_back_ports(&self, kind: &Arc<Kind>, held: &ServiceAllocations) {
        while !held.ports.is_empty() {
            let Ok((mut range, revision)) = self.node_ports(kind).await else { return };
            let places = held.ports.iter().filter_map(|port| self.0.services.place_of(*port));
            places.for_each(|place| range.free(place));
            match self.0.storage.put_range_allocation(NODE_PORTS, &range, revision).await {
                Ok(false) => {}
                Ok(true) | Err(_) => return,
            }
        }
    }

    /// A Service that was written holds no longer what it held.
    pub(super) async fn give_up_shared(&self, kind: &Arc<Kind>, old: Option<&Object>, new: Option<&Object>) {
        let held = |object: Option<&Object>| object.map(|object| addresses::held(&object.to_value()));
        let (before, after) = (held(old).unwrap_or_default(), held(new).unwrap_or_default());
        self.give_back_addresses(before.ips.difference(&after.ips).copied()).await;
        let ports = before.ports.difference(&after.ports).copied().collect();
        self.give_back_ports(kind, &ServiceAllocations { ports, ..ServiceAllocations::default() }).await;
    }
}
