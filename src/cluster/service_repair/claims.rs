//! IPAddresses: which Service each is of, and those that no Service needs (`RepairIPAddress.syncIPAddress`).

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use chrono::TimeDelta;
use serde_json::Value;

use super::clerk::AddressClerk;
use super::holder::Holders;
use apimachinery::object::Object;
use apimachinery::status::Status;
use apimachinery::time::Time;
use apis::networking::ip_address::IP_ADDRESSES;
use apis::tree::text;
use apiserver::registry::service::ip_addresses::{ALLOCATOR, MANAGED_BY, labels_of};

/// So long an address may be claimed by a Service that is still being written.
const WRITTEN_WITHIN: i64 = 60;

/// An IPAddress.
pub(super) struct AddressClaim {
    pub(super) object: Arc<Object>,
    tree: Value,
}

/// All that there are, by name.
pub(super) struct AddressClaims(BTreeMap<String, AddressClaim>);

impl AddressClaims {
    pub(super) fn of(objects: &[Arc<Object>]) -> AddressClaims {
        let claim = |object: &Arc<Object>| AddressClaim { object: object.clone(), tree: object.to_value() };
        AddressClaims(objects.iter().map(|object| (object.metadata.name.clone(), claim(object))).collect())
    }

    pub(super) fn get(&self, ip: &str) -> Option<&AddressClaim> {
        self.0.get(ip)
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &AddressClaim> {
        self.0.values()
    }
}

impl AddressClaim {
    fn name(&self) -> &str {
        &self.object.metadata.name
    }

    pub(super) fn parent(&self) -> &Value {
        &self.tree["spec"]["parentRef"]
    }

    pub(super) fn is_of_services(&self) -> bool {
        text(self.parent(), "group").is_empty() && text(self.parent(), "resource") == "services"
    }

    /// `verifyIPAddressLabels`
    pub(super) fn is_labelled(&self, address: IpAddr) -> bool {
        labels_of(address).iter().all(|(name, value)| self.label(name) == Some(value))
    }

    /// By the allocator; others look after their own.
    fn is_managed(&self) -> bool {
        self.label(MANAGED_BY) == Some(ALLOCATOR)
    }

    fn label(&self, name: &str) -> Option<&str> {
        self.object.metadata.labels.get(name).map(|value| &**value)
    }

    /// Whether it may belong to a Service that is still being written.
    fn is_young(&self, now: Time) -> bool {
        let created = self.object.metadata.creation_timestamp;
        created.is_some_and(|created| created + TimeDelta::seconds(WRITTEN_WITHIN) > now)
    }

    /// Releases it if nobody needs it.
    pub(super) async fn look(
        &self,
        clerk: &AddressClerk,
        holders: &Holders,
        now: Time,
    ) -> Result<(), Status> {
        let Some((reason, note)) = self.is_lost(holders, now) else { return Ok(()) };
        if clerk.release(&self.object).await? {
            clerk.tell((&IP_ADDRESSES, &*self.object), "IPAddressAllocation", reason, note);
        }
        Ok(())
    }

    /// Why nobody needs it, as a reason and for people.
    fn is_lost(&self, holders: &Holders, now: Time) -> Option<(&'static str, String)> {
        let (name, parent) = (self.name(), self.parent());
        if !self.is_managed() {
            return None;
        }
        if !self.is_of_services() {
            let shown = shown(parent);
            let note = "appears to have been modified, not referencing a Service";
            return Some(("IPAddressNotAllocated", format!("IPAddress {name} {note} {shown}: cleaning up")));
        }
        let holder = holders.named(parent);
        if self.is_young(now) || holder.is_some_and(|holder| holder.has(name)) {
            return None;
        }
        let service = format!("{}/{}", text(parent, "namespace"), text(parent, "name"));
        Some(match holder {
            Some(_) => (
                "IPAddressWrongReference",
                format!("IPAddress: {name} for Service {service} has a wrong reference; cleaning up"),
            ),
            None => (
                "IPAddressNotAllocated",
                format!("IPAddress: {name} for Service {service} appears to have leaked: cleaning up"),
            ),
        })
    }
}

/// As Go prints a `ParentReference`.
fn shown(parent: &Value) -> String {
    let field = |name: &str| text(parent, name).to_owned();
    let (group, resource) = (field("group"), field("resource"));
    let (namespace, name) = (field("namespace"), field("name"));
    format!("&ParentReference{{Group:{group},Resource:{resource},Namespace:{namespace},Name:{name},}}")
}

#[cfg(test)]
pub(super) mod tests {
    use serde_json::json;

    use super::super::holder::service;
    use super::*;

    /// An IPAddress of which the name and the parent are said.
    pub(in super::super) fn claim(said: &Value) -> Arc<Object> {
        let family = said["family"].as_str().unwrap_or("IPv4");
        let manager = said["manager"].as_str().unwrap_or(ALLOCATOR);
        let created = said["created"].as_str().unwrap_or("2026-01-01T00:00:00Z");
        let tree = json!({
            "metadata": {"name": said["name"], "creationTimestamp": created,
                "labels": {"ipaddress.kubernetes.io/ip-family": family, MANAGED_BY: manager}},
            "spec": {"parentRef": said["parent"]},
        });
        Arc::new(Object::from_value(&tree, vec![]).unwrap())
    }

    #[test]
    fn a_claim_that_nobody_needs_is_known_and_a_young_one_left_alone() {
        let now: Time = "2026-01-01T00:01:00Z".parse().unwrap();
        let holders = Holders::of([service("web", &["10.96.0.7"], &[])]);
        let lost = |said: Value| {
            let claims = AddressClaims::of(&[claim(&said)]);
            claims
                .all()
                .next()
                .unwrap()
                .is_lost(&holders, now)
                .map(|(reason, note)| format!("{reason} {note}"))
        };
        let of = |service: &str| json!({"resource": "services", "namespace": "default", "name": service});
        assert_eq!(lost(json!({"name": "10.96.0.7", "parent": of("web")})), None);
        let leaked = lost(json!({"name": "10.96.0.9", "parent": of("gone")}));
        let told = "IPAddress: 10.96.0.9 for Service default/gone appears to have leaked: cleaning up";
        assert_eq!(leaked.unwrap(), format!("IPAddressNotAllocated {told}"));
        let wrong = lost(json!({"name": "10.96.0.9", "parent": of("web")}));
        let told = "IPAddress: 10.96.0.9 for Service default/web has a wrong reference; cleaning up";
        assert_eq!(wrong.unwrap(), format!("IPAddressWrongReference {told}"));
        let young = "2026-01-01T00:00:01Z";
        assert_eq!(lost(json!({"name": "10.96.0.9", "parent": of("gone"), "created": young})), None);
        let mine = json!({"name": "10.96.0.9", "parent": of("gone"), "manager": "mine"});
        assert_eq!(lost(mine), None);
        let gateway = json!({"group": "g", "resource": "gateways", "name": "web"});
        let modified = lost(json!({"name": "10.96.0.9", "parent": gateway, "created": young})).unwrap();
        let shown = "&ParentReference{Group:g,Resource:gateways,Namespace:,Name:web,}";
        assert!(modified.ends_with(&format!("not referencing a Service {shown}: cleaning up")), "{modified}");
    }
}
