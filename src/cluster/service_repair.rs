//! What Services hold where servers share an etcd, mended: a server that was killed may have claimed an
//! address or a node port, and never have written the Service (`ipallocator/controller.RepairIPAddress`,
//! `portallocator/controller.Repair`). On a store of its own a server knows that by the Services alone.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use chrono::TimeDelta;
use serde_json::Value;

use super::inside::Inside;
use apimachinery::object::Object;
use apimachinery::options::{DeleteOptions, ListOptions, Preconditions};
use apimachinery::status::Status;
use apimachinery::time::Time;
use apis::core::service::SERVICES;
use apis::networking::ip_address::IP_ADDRESSES;
use apis::networking::port_range::PortRange;
use apis::tree::{items, text, texts};
use apiserver::registry::service::ip_addresses::{ALLOCATOR, MANAGED_BY, address_of};
use apiserver::registry::service::shared::NODE_PORTS;
use apiserver::storage::{RangeAllocation, Storage};
use client_go::ComponentContext;
use client_go::client::Client;
use client_go::event_recorder::EventRecorder;

/// How often it is looked (`repairLoopInterval`).
const REPAIR_EVERY: Duration = Duration::from_secs(3 * 60);
/// So long an address may be claimed by a Service that is still being written.
const WRITTEN_WITHIN: i64 = 60;
/// So often a port is seen to be nobody's until it is given back (`numRepairsBeforeLeakCleanup`).
const LOOKS_BEFORE_CLEANUP: u32 = 3;

/// Looks at once and then every three minutes, for as long as it is polled.
pub(super) fn following(inside: Arc<Inside>) -> impl Future<Output = ()> {
    inside.clock.clone().named("kube-apiserver").tracked(follow(inside))
}

async fn follow(inside: Arc<Inside>) {
    let (clock, entropy) = (inside.clock.clone(), inside.config.entropy.clone());
    let recorder = |source: &str| {
        ComponentContext::new("kube-apiserver", (source, ""), inside.kit(), clock.clone(), entropy.clone())
    };
    let contexts = ["ipallocator-repair-controller", "portallocator-repair-controller"].map(recorder);
    let _tasks = contexts.each_ref().map(|context| context.tasks.stop_on_drop());
    let mut repair = ServiceRepair {
        client: inside.kit(),
        of_addresses: contexts[0].recorder.clone(),
        of_ports: contexts[1].recorder.clone(),
        book: PortBook {
            range: inside.config.apiserver.services.service_node_port_range,
            unclaimed: BTreeMap::new(),
        },
    };
    loop {
        if let Err(status) = repair.look(&inside.storage, clock.now()).await {
            tracing::info!(status.message, "what Services hold is not looked at just now");
        }
        clock.sleep(REPAIR_EVERY).await;
    }
}

struct ServiceRepair {
    client: Client,
    of_addresses: EventRecorder,
    of_ports: EventRecorder,
    book: PortBook,
}

/// A Service and what it holds.
struct Holder {
    object: Arc<Object>,
    ips: Vec<String>,
    ports: BTreeSet<u16>,
}

impl Holder {
    fn of(object: &Arc<Object>) -> Holder {
        let tree = object.to_value();
        let is_port =
            |port: &Value| port.as_u64().and_then(|port| u16::try_from(port).ok()).filter(|port| *port > 0);
        let ports = items(&tree, "spec.ports").iter().map(|port| &port["nodePort"]);
        let ports = ports.chain([&tree["spec"]["healthCheckNodePort"]]).filter_map(is_port).collect();
        let ips = texts(&tree, "spec.clusterIPs").into_iter().filter(|ip| *ip != "None").map(str::to_owned);
        Holder { object: object.clone(), ips: ips.collect(), ports }
    }

    fn is_called(&self, parent: &Value) -> bool {
        text(parent, "namespace") == self.object.metadata.namespace
            && text(parent, "name") == self.object.metadata.name
    }
}

impl ServiceRepair {
    async fn look(&mut self, storage: &Storage, now: Time) -> Result<(), Status> {
        // First what is claimed: a Service that is written between the two is not missed.
        let addresses = self.client.list(&IP_ADDRESSES, "", &ListOptions::default()).await?;
        let (stored, revision) = storage.range_allocation(NODE_PORTS).await?;
        let services = self.client.list(&SERVICES, "", &ListOptions::default()).await?;
        let holders: Vec<Holder> = services.items.iter().map(Holder::of).collect();
        for address in addresses.items.iter() {
            self.look_at_address(address, &holders, now).await?;
        }
        let known: BTreeSet<&str> = addresses.items.iter().map(|address| &*address.metadata.name).collect();
        for holder in &holders {
            for ip in holder.ips.iter().filter(|ip| !known.contains(ip.as_str())) {
                self.claim_again(holder, ip).await?;
            }
        }
        let range = self.book.range.to_string();
        let Some(stored) = stored.filter(|stored| stored.range == range) else { return Ok(()) };
        let (mended, warnings) = self.book.mended(&stored, &holders);
        for (service, reason, text) in warnings {
            self.of_ports.event((&SERVICES, &*service), "Warning", reason, text);
        }
        if mended != stored {
            // Whoever was faster is looked at next time.
            storage.put_range_allocation(NODE_PORTS, &mended, revision).await?;
        }
        Ok(())
    }

    /// `syncIPAddress`
    async fn look_at_address(
        &self,
        address: &Arc<Object>,
        holders: &[Holder],
        now: Time,
    ) -> Result<(), Status> {
        let tree = address.to_value();
        let (name, parent) = (&address.metadata.name, &tree["spec"]["parentRef"]);
        if address.metadata.labels.get(MANAGED_BY).is_none_or(|manager| &**manager != ALLOCATOR) {
            return Ok(());
        }
        let service = format!("{}/{}", text(parent, "namespace"), text(parent, "name"));
        let (reason, message) = match holders.iter().find(|holder| holder.is_called(parent)) {
            Some(holder) if holder.ips.iter().any(|ip| *ip == **name) => return Ok(()),
            Some(_) if is_young(&tree, now) => return Ok(()),
            Some(_) => (
                "IPAddressWrongReference",
                format!("IPAddress: {name} for Service {service} has a wrong reference; cleaning up"),
            ),
            None if is_young(&tree, now) => return Ok(()),
            None => (
                "IPAddressNotAllocated",
                format!("IPAddress: {name} for Service {service} appears to have leaked: cleaning up"),
            ),
        };
        tracing::info!("{message}");
        self.of_addresses.event_of(
            (&IP_ADDRESSES, &**address),
            ("IPAddressAllocation", None),
            "Warning",
            reason,
            message,
        );
        // Another Service may have claimed it since it was looked at.
        let resource_version = Some(address.metadata.resource_version.to_string());
        let preconditions = Some(Preconditions { resource_version, ..Preconditions::default() });
        let as_seen = DeleteOptions { preconditions, ..DeleteOptions::default() };
        match self.client.delete(&IP_ADDRESSES, "", name, &as_seen).await {
            Err(status) if !status.is_not_found() && !status.is_conflict() => Err(status),
            _ => Ok(()),
        }
    }

    /// `syncService`, of an address that has no object.
    async fn claim_again(&self, holder: &Holder, ip: &str) -> Result<(), Status> {
        let Ok(address) = ip.parse::<IpAddr>() else { return Ok(()) };
        let family = if address.is_ipv4() { "IPv4" } else { "IPv6" };
        let claim = address_of(&holder.object.to_value()["metadata"], address);
        match self.client.create(&IP_ADDRESSES, "", claim).await {
            // It was read before the Service was.
            Err(status) if status.is_already_exists() => return Ok(()),
            Err(status) => return Err(status),
            Ok(_) => {}
        }
        self.of_addresses.event_of(
            (&SERVICES, &*holder.object),
            ("ClusterIPAllocation", None),
            "Warning",
            "ClusterIPNotAllocated",
            format!("Cluster IP [{family}]: {ip} is not allocated; repairing"),
        );
        Ok(())
    }
}

/// Node ports: who has which, and which nobody has.
struct PortBook {
    range: PortRange,
    /// Ports that nobody has, and how often that is to be seen yet. Bound: the range.
    unclaimed: BTreeMap<u16, u32>,
}

/// What a Service is told of a port.
type PortWarning = (Arc<Object>, &'static str, String);

impl PortBook {
    /// What should be taken, and what is wrong with what is.
    fn mended(
        &mut self,
        stored: &RangeAllocation,
        holders: &[Holder],
    ) -> (RangeAllocation, Vec<PortWarning>) {
        let mut rebuilt = RangeAllocation::of(stored.range.clone());
        let mut warnings = Vec::new();
        for holder in holders {
            for port in &holder.ports {
                self.unclaimed.remove(port);
                let warning = self.take(*port, stored, &mut rebuilt);
                warnings.extend(warning.map(|(reason, text)| (holder.object.clone(), reason, text)));
            }
        }
        for place in stored.places() {
            let place_in_range = u16::try_from(place).unwrap_or(u16::MAX);
            let port = self.range.first.saturating_add(place_in_range);
            if !rebuilt.has(place) && !self.has_leaked(port) {
                rebuilt.take(place);
            }
        }
        (rebuilt, warnings)
    }

    fn take(
        &self,
        port: u16,
        stored: &RangeAllocation,
        rebuilt: &mut RangeAllocation,
    ) -> Option<(&'static str, String)> {
        let range = self.range;
        if !range.contains(port) {
            let text = format!("Port {port} is not within the port range {range}; please recreate service");
            return Some(("PortOutOfRange", text));
        }
        let place = usize::from(port - range.first);
        if rebuilt.has(place) {
            let text = format!("Port {port} was assigned to multiple services; please recreate service");
            return Some(("PortAlreadyAllocated", text));
        }
        rebuilt.take(place);
        let is_known = stored.has(place);
        (!is_known).then(|| ("PortNotAllocated", format!("Port {port} is not allocated; repairing")))
    }

    /// Nobody has this port; whether that was seen often enough.
    fn has_leaked(&mut self, port: u16) -> bool {
        let left = self.unclaimed.entry(port).or_insert(LOOKS_BEFORE_CLEANUP - 1);
        if *left > 0 {
            *left -= 1;
            return false;
        }
        tracing::info!("the node port {port} appears to have leaked: cleaning up");
        self.unclaimed.remove(&port);
        true
    }
}

/// Whether it may belong to a Service that is still being written.
fn is_young(address: &Value, now: Time) -> bool {
    let created =
        address["metadata"]["creationTimestamp"].as_str().and_then(|text| text.parse::<Time>().ok());
    created.is_some_and(|created| created + TimeDelta::seconds(WRITTEN_WITHIN) > now)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn service(name: &str, ports: &[u16]) -> Holder {
        let ports: Vec<Value> = ports.iter().map(|port| json!({"nodePort": port})).collect();
        let tree = json!({"metadata": {"name": name, "namespace": "default"},
            "spec": {"clusterIPs": ["10.96.0.7"], "ports": ports}});
        Holder::of(&Arc::new(Object::from_value(&tree, vec![]).unwrap()))
    }

    fn taken(places: &[usize]) -> RangeAllocation {
        let mut range = RangeAllocation::of("30000-30009");
        places.iter().for_each(|place| range.take(*place));
        range
    }

    #[test]
    fn a_port_that_nobody_has_is_given_back_when_that_was_seen_three_times() {
        let range = PortRange { first: 30_000, last: 30_009 };
        let mut book = PortBook { range, unclaimed: BTreeMap::new() };
        let holders = [service("a", &[30_001]), service("b", &[30_001, 30_003, 31_000])];
        let stored = taken(&[1, 5]);
        let (first, warnings) = book.mended(&stored, &holders);
        assert_eq!(first.places().collect::<Vec<_>>(), [1, 3, 5], "one was missing, one may be written yet");
        let told: Vec<(&str, &str)> =
            warnings.iter().map(|(object, reason, _)| (&*object.metadata.name, *reason)).collect();
        let wanted = [("b", "PortAlreadyAllocated"), ("b", "PortNotAllocated"), ("b", "PortOutOfRange")];
        assert_eq!(told, wanted);
        assert_eq!(warnings[1].2, "Port 30003 is not allocated; repairing");
        let (second, _) = book.mended(&first, &holders);
        assert!(second.has(5));
        let (third, _) = book.mended(&second, &holders);
        assert_eq!(third.places().collect::<Vec<_>>(), [1, 3]);
        assert!(book.unclaimed.is_empty());
        // One that is used meanwhile begins anew.
        let (_, _) = book.mended(&taken(&[1, 3, 6]), &holders);
        let (_, _) = book.mended(&taken(&[1, 3, 6]), &[service("c", &[30_006])]);
        let (again, _) = book.mended(&taken(&[1, 3, 6]), &holders);
        assert!(again.has(6) && book.unclaimed.contains_key(&30_006));
    }

    #[test]
    fn an_address_may_be_of_a_service_that_is_still_being_written() {
        let now: Time = "2026-01-01T00:01:00Z".parse().unwrap();
        let made = |at: &str| is_young(&json!({"metadata": {"creationTimestamp": at}}), now);
        assert!(made("2026-01-01T00:00:01Z") && !made("2026-01-01T00:00:00Z"));
    }
}
