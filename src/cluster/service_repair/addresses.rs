//! Whether each cluster IP of a Service is one, is of a range, and has the one IPAddress that says so
//! (`RepairIPAddress.syncService`).

use std::net::IpAddr;

use super::claims::AddressClaims;
use super::clerk::AddressClerk;
use super::holder::{Holder, Holders};
use apimachinery::status::Status;
use apis::core::service::SERVICES;
use apis::networking::ip_range::IpRange;

/// What there was at one moment.
pub(super) struct HeldAddresses<'a> {
    pub(super) claims: &'a AddressClaims,
    pub(super) holders: &'a Holders,
    pub(super) ranges: &'a [IpRange],
}

/// What is wrong with an address that a Service holds.
#[derive(Debug, PartialEq, Eq)]
enum AddressFault {
    NotValid,
    OutOfRange,
    NotAllocated,
    WrongReference,
    AlreadyAllocated,
    WrongLabels,
}

/// What is said of it.
struct AddressWarning {
    action: &'static str,
    reason: &'static str,
    note: String,
}

impl HeldAddresses<'_> {
    pub(super) async fn mend(&self, clerk: &AddressClerk) -> Result<(), Status> {
        for holder in self.holders.all() {
            for ip in &holder.ips {
                if let Some(fault) = self.fault(holder, ip) {
                    self.mend_one(clerk, (holder, ip), &fault).await?;
                }
            }
        }
        Ok(())
    }

    fn fault(&self, holder: &Holder, ip: &str) -> Option<AddressFault> {
        let Ok(address) = ip.parse::<IpAddr>() else { return Some(AddressFault::NotValid) };
        // A cluster has a range at least; where none is seen, it is not there yet.
        if !self.ranges.is_empty() && !self.ranges.iter().any(|range| range.contains(address)) {
            return Some(AddressFault::OutOfRange);
        }
        let Some(claim) = self.claims.get(ip) else { return Some(AddressFault::NotAllocated) };
        if !claim.is_of_services() {
            return Some(AddressFault::WrongReference);
        }
        match self.holders.named(claim.parent()) {
            None => Some(AddressFault::WrongReference),
            Some(own) if std::ptr::eq(own, holder) => {
                (!claim.is_labelled(address)).then_some(AddressFault::WrongLabels)
            }
            Some(other) if other.has(ip) => Some(AddressFault::AlreadyAllocated),
            // The claim is looked at by itself, and is gone the next time.
            Some(_) => None,
        }
    }

    /// What is mended is told once it is: others may have been faster.
    async fn mend_one(
        &self,
        clerk: &AddressClerk,
        (holder, ip): (&Holder, &str),
        fault: &AddressFault,
    ) -> Result<(), Status> {
        let is_done = match fault {
            AddressFault::NotAllocated => clerk.claim(&holder.object, ip).await?,
            AddressFault::WrongReference | AddressFault::WrongLabels => match self.claims.get(ip) {
                Some(claim) => clerk.release(&claim.object).await? && clerk.claim(&holder.object, ip).await?,
                None => false,
            },
            AddressFault::NotValid | AddressFault::OutOfRange | AddressFault::AlreadyAllocated => true,
        };
        if let Some(warning) = warning(holder, ip, fault).filter(|_| is_done) {
            let AddressWarning { action, reason, note } = warning;
            clerk.tell((&SERVICES, &*holder.object), action, reason, note);
        }
        Ok(())
    }
}

/// None for what is mended in silence.
fn warning(holder: &Holder, ip: &str, fault: &AddressFault) -> Option<AddressWarning> {
    let family = if ip.contains(':') { "IPv6" } else { "IPv4" };
    let metadata = &holder.object.metadata;
    let service = format!("{}/{}", metadata.namespace, metadata.name);
    let (reason, note) = match fault {
        AddressFault::NotValid => {
            ("ClusterIPNotValid", format!("Cluster IP {ip} is not a valid IP; please recreate Service"))
        }
        AddressFault::OutOfRange => (
            "ClusterIPOutOfRange",
            format!(
                "Cluster IP [{family}]: {ip} is not within any configured Service CIDR; please recreate service"
            ),
        ),
        AddressFault::NotAllocated => {
            ("ClusterIPNotAllocated", format!("Cluster IP [{family}]: {ip} is not allocated; repairing"))
        }
        AddressFault::WrongReference => (
            "ClusterIPNotAllocated",
            format!("the ClusterIP [{family}]: {ip} for Service {service} has a wrong reference; repairing"),
        ),
        AddressFault::AlreadyAllocated => (
            "ClusterIPAlreadyAllocated",
            format!("Cluster IP [{family}]:{ip} was assigned to multiple services; please recreate service"),
        ),
        AddressFault::WrongLabels => return None,
    };
    let action = if *fault == AddressFault::NotValid { "ClusterIPValidation" } else { "ClusterIPAllocation" };
    Some(AddressWarning { action, reason, note })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::claims::tests::claim;
    use super::super::holder::service;
    use super::*;

    /// What is said of the last of these Services, which holds one address.
    fn told(
        holders: impl IntoIterator<Item = Holder>,
        claims: &[serde_json::Value],
    ) -> Option<(&'static str, String)> {
        let claims: Vec<_> = claims.iter().map(claim).collect();
        let ranges = [IpRange::parse("10.96.0.0/16").unwrap(), IpRange::parse("fd00::/64").unwrap()];
        let holders = Holders::of(holders);
        let seen = HeldAddresses { claims: &AddressClaims::of(&claims), holders: &holders, ranges: &ranges };
        let last = holders.all().last().unwrap();
        let fault = seen.fault(last, &last.ips[0])?;
        Some(warning(last, &last.ips[0], &fault).map_or(("", String::new()), |one| (one.reason, one.note)))
    }

    #[test]
    fn each_address_is_judged_as_upstream_judges_it() {
        let of = |service: &str| json!({"resource": "services", "namespace": "default", "name": service});
        let web = |ip: &str| service("web", &[ip], &[]);
        let says = |found: Option<(&str, String)>, reason: &str, note: &str| {
            assert_eq!(found, Some((reason, note.to_owned())));
        };
        let good = json!({"name": "10.96.0.7", "parent": of("web")});
        assert_eq!(told([web("10.96.0.7")], &[good]), None);
        says(
            told([web("10.96.0.x")], &[]),
            "ClusterIPNotValid",
            "Cluster IP 10.96.0.x is not a valid IP; please recreate Service",
        );
        says(
            told([web("10.97.0.7")], &[]),
            "ClusterIPOutOfRange",
            "Cluster IP [IPv4]: 10.97.0.7 is not within any configured Service CIDR; please recreate service",
        );
        says(
            told([web("fd00::7")], &[]),
            "ClusterIPNotAllocated",
            "Cluster IP [IPv6]: fd00::7 is not allocated; repairing",
        );
        let wrong =
            "the ClusterIP [IPv4]: 10.96.0.7 for Service default/web has a wrong reference; repairing";
        let gateway = json!({"group": "gateway.networking.k8s.io", "resource": "gateways", "name": "web"});
        for parent in [gateway, of("gone")] {
            let claim = json!({"name": "10.96.0.7", "parent": parent});
            says(told([web("10.96.0.7")], &[claim]), "ClusterIPNotAllocated", wrong);
        }
        let of_other = json!({"name": "10.96.0.7", "parent": of("api")});
        let twice = [service("api", &["10.96.0.7"], &[]), web("10.96.0.7")];
        says(
            told(twice, std::slice::from_ref(&of_other)),
            "ClusterIPAlreadyAllocated",
            "Cluster IP [IPv4]:10.96.0.7 was assigned to multiple services; please recreate service",
        );
        // One that holds it no longer has its claim released by whoever looks at claims.
        let moved = [service("api", &["10.96.0.8"], &[]), web("10.96.0.7")];
        assert_eq!(told(moved, &[of_other]), None);
        let unlabelled = json!({"name": "10.96.0.7", "parent": of("web"), "family": "IPv6"});
        says(told([web("10.96.0.7")], &[unlabelled]), "", "");
    }
}
