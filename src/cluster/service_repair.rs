//! What Services hold, mended: a server that was killed may have claimed an address or a node port, and never
//! have written the Service; somebody may have deleted an IPAddress, or a range; what an earlier release or
//! another server has stored may lack the claims (`ipallocator/controller.RepairIPAddress`,
//! `portallocator/controller.Repair`). Where servers share an etcd that is looked at every three minutes. On
//! a store of its own a server knows by the Services alone what is held; it looks at what it finds until it
//! has looked once.

mod addresses;
mod claims;
mod clerk;
mod holder;
mod ports;

use std::sync::Arc;
use std::time::Duration;

use self::addresses::HeldAddresses;
use self::claims::AddressClaims;
use self::clerk::AddressClerk;
use self::holder::{Holder, Holders};
use self::ports::{PortBook, PortWarning};
use super::inside::Inside;
use apimachinery::object::Object;
use apimachinery::options::ListOptions;
use apimachinery::status::Status;
use apimachinery::time::Time;
use apis::core::service::SERVICES;
use apis::networking::ip_address::IP_ADDRESSES;
use apis::networking::ip_range::IpRange;
use apis::networking::service_cidr::SERVICE_CIDRS;
use apis::tree::texts;
use apiserver::registry::service::shared::NODE_PORTS;
use apiserver::storage::{ByteStore, RangeAllocation, Storage};
use client_go::ComponentContext;
use client_go::client::Client;
use client_go::event_recorder::EventRecorder;

/// How often it is looked (`repairLoopInterval`).
const REPAIR_EVERY: Duration = Duration::from_secs(3 * 60);

/// Looks at once and then every three minutes, for as long as it is polled; at a store of its own until it
/// has looked once.
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
        clerk: AddressClerk::new(inside.kit(), contexts[0].recorder.clone()),
        of_ports: contexts[1].recorder.clone(),
        book: PortBook::of(inside.config.apiserver.services.service_node_port_range),
    };
    loop {
        match repair.look(&inside.kv, &inside.storage, clock.now()).await {
            // Who looks once stays for what was told to be written.
            Ok(()) if !inside.kv.is_shared() => return std::future::pending().await,
            Ok(()) => {}
            Err(status) => tracing::info!(status.message, "what Services hold is not looked at just now"),
        }
        clock.sleep(REPAIR_EVERY).await;
    }
}

struct ServiceRepair {
    client: Client,
    clerk: AddressClerk,
    of_ports: EventRecorder,
    book: PortBook,
}

impl ServiceRepair {
    async fn look(&mut self, kv: &ByteStore, storage: &Storage, now: Time) -> Result<(), Status> {
        // First what is claimed: a Service that is written between the two is not missed. Then the ranges,
        // which stay while somebody holds an address of theirs.
        let addresses = self.client.list(&IP_ADDRESSES, "", &ListOptions::default()).await?;
        let (stored, revision) = storage.range_allocation(NODE_PORTS).await?;
        let services = self.client.list(&SERVICES, "", &ListOptions::default()).await?;
        let holders = Holders::of(services.items.iter().map(Holder::of));
        let claims = AddressClaims::of(&addresses.items);
        let ranges = self.ranges().await?;
        HeldAddresses { claims: &claims, holders: &holders, ranges: &ranges }.mend(&self.clerk).await?;
        for claim in claims.all() {
            claim.look(&self.clerk, &holders, now).await?;
        }
        if !kv.is_shared() {
            self.tell_of_ports(self.book.wrong(holders.all()));
            return Ok(());
        }
        let range = self.book.range().to_string();
        let Some(stored) = stored.filter(|stored| stored.range == range) else { return Ok(()) };
        self.mend_ports(storage, (stored, revision), &holders).await
    }

    async fn ranges(&self) -> Result<Vec<IpRange>, Status> {
        let found = self.client.list(&SERVICE_CIDRS, "", &ListOptions::default()).await?;
        let ranges = |range: &Arc<Object>| -> Vec<IpRange> {
            texts(&range.to_value(), "spec.cidrs").into_iter().filter_map(IpRange::parse).collect()
        };
        Ok(found.items.iter().flat_map(ranges).collect())
    }

    async fn mend_ports(
        &mut self,
        storage: &Storage,
        (stored, revision): (RangeAllocation, u64),
        holders: &Holders,
    ) -> Result<(), Status> {
        let (mended, warnings) = self.book.mended(&stored, holders.all());
        self.tell_of_ports(warnings);
        if mended != stored {
            // Whoever was faster is looked at next time.
            storage.put_range_allocation(NODE_PORTS, &mended, revision).await?;
        }
        Ok(())
    }

    fn tell_of_ports(&self, warnings: Vec<PortWarning>) {
        for (service, reason, text) in warnings {
            self.of_ports.event((&SERVICES, &*service), "Warning", reason, text);
        }
    }
}
