//! IPAddress objects: one for each address that a Service holds (`ipallocator.Allocator`).

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use serde_json::{Value, json};

use super::super::Registry;
use super::{addresses, families, is_service, is_service_cidr};
use crate::request::RequestContext;
use apimachinery::object::Object;
use apimachinery::status::Status;
use apis::kind::Kind;
use apis::networking::ip_range::IpRange;
use apis::tree::{items, text, texts};

/// By which label an IPAddress says of which family it is (`LabelIPAddressFamily`), ...
const FAMILY: &str = "ipaddress.kubernetes.io/ip-family";
/// ... by which one who looks after it (`LabelManagedBy`), ...
pub const MANAGED_BY: &str = "ipaddress.kubernetes.io/managed-by";
/// ... and what it says there of those that Services hold.
pub const ALLOCATOR: &str = "ipallocator.k8s.io";

impl Registry {
    /// Writes down which addresses a service has gained and lost; nothing for other kinds. What has been
    /// allocated is known without these objects, so that a failure costs nothing but the object.
    pub(in super::super) async fn record_addresses(
        &self,
        kind: &Arc<Kind>,
        old: Option<&Object>,
        new: Option<&Object>,
    ) {
        if is_service_cidr(kind) {
            return self.note_ranges(old, new);
        }
        if !is_service(kind) {
            return;
        }
        if self.is_shared() {
            return self.give_up_shared(kind, old, new).await;
        }
        let Ok(addresses) = self.kind("networking.k8s.io", "v1", "ipaddresses") else { return };
        let held = |object: Option<&Object>| {
            object.map(|object| addresses::held(&object.to_value()).ips).unwrap_or_default()
        };
        let (before, after) = (held(old), held(new));
        if let Some(service) = new {
            for address in after.difference(&before) {
                let tree = address_of(&service.to_value()["metadata"], *address);
                drop(Box::pin(self.create(&RequestContext::default(), &addresses, "", tree, &())).await);
            }
        }
        for address in before.difference(&after) {
            drop(self.remove_address(&addresses, *address).await);
        }
    }

    /// Somebody writes a range here.
    pub(super) fn note_ranges(&self, old: Option<&Object>, new: Option<&Object>) {
        if let Some(name) = new.or(old).map(|object| &object.metadata.name) {
            self.0.services.set_ranges(name, new.map(usable_ranges).unwrap_or_default());
        }
    }

    pub(super) async fn remove_address(&self, kind: &Arc<Kind>, address: IpAddr) -> Result<(), Status> {
        let current = self.get(kind, "", &address.to_string(), None).await?;
        Box::pin(self.remove(&RequestContext::default(), kind, &current)).await.map(drop)
    }
}

/// A range may be used as soon as it is there, unless it says that it is not ready or is on its way out.
pub(super) fn usable_ranges(object: &Object) -> Vec<IpRange> {
    let tree = object.to_value();
    let is_refused = |one: &Value| text(one, "type") == "Ready" && text(one, "status") == "False";
    let is_usable = !object.is_deleting() && !items(&tree, "status.conditions").iter().any(is_refused);
    let ranges = texts(&tree, "spec.cidrs").into_iter().filter_map(IpRange::parse);
    ranges.filter(|_| is_usable).collect()
}

/// The labels of an IPAddress that a Service holds.
pub fn labels_of(address: IpAddr) -> [(&'static str, &'static str); 2] {
    let family = if address.is_ipv4() { families::V4 } else { families::V6 };
    [(FAMILY, family), (MANAGED_BY, ALLOCATOR)]
}

/// The IPAddress of a service with this metadata.
pub fn address_of(metadata: &Value, address: IpAddr) -> Value {
    let (namespace, name) = (text(metadata, "namespace"), text(metadata, "name"));
    let labels = BTreeMap::from(labels_of(address));
    json!({
        "metadata": {"name": address.to_string(), "labels": labels},
        "spec": {"parentRef": {"resource": "services", "namespace": namespace, "name": name}},
    })
}
