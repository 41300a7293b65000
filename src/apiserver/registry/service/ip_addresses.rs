//! IPAddress objects: one for each address that a Service holds (`ipallocator.Allocator`).

use std::net::Ipv4Addr;
use std::sync::Arc;

use serde_json::{Value, json};

use super::super::Registry;
use super::{addresses, is_service};
use crate::apimachinery::object::Object;
use crate::apimachinery::status::Status;
use crate::apis::kind::Kind;
use crate::apiserver::request::RequestContext;

const FAMILY: &str = "ipaddress.kubernetes.io/ip-family";
const MANAGED_BY: &str = "ipaddress.kubernetes.io/managed-by";
const ALLOCATOR: &str = "ipallocator.k8s.io";

impl Registry {
    /// Writes down which addresses a service has gained and lost; nothing for other kinds. What has been
    /// allocated is known without these objects, so that a failure costs nothing but the object.
    pub(in super::super) async fn record_addresses(
        &self,
        kind: &Kind,
        old: Option<&Object>,
        new: Option<&Object>,
    ) {
        if !is_service(kind) {
            return;
        }
        let Ok(addresses) = self.kind("networking.k8s.io", "v1", "ipaddresses") else { return };
        let held = |object: Option<&Object>| {
            object.map(|object| addresses::held(&object.to_value()).ips).unwrap_or_default()
        };
        let (before, after) = (held(old), held(new));
        if let Some(service) = new {
            for address in after.difference(&before) {
                let tree = address_of(service, *address);
                drop(Box::pin(self.create(&RequestContext::default(), &addresses, "", tree, &())).await);
            }
        }
        for address in before.difference(&after) {
            drop(self.remove_address(&addresses, *address).await);
        }
    }

    async fn remove_address(&self, kind: &Arc<Kind>, address: Ipv4Addr) -> Result<(), Status> {
        let current = self.get(kind, "", &address.to_string(), None).await?;
        Box::pin(self.remove(&RequestContext::default(), kind, &current)).await.map(drop)
    }
}

fn address_of(service: &Object, address: Ipv4Addr) -> Value {
    let (namespace, name) = (&service.metadata.namespace, &service.metadata.name);
    json!({
        "metadata": {"name": address.to_string(), "labels": {FAMILY: "IPv4", MANAGED_BY: ALLOCATOR}},
        "spec": {"parentRef": {"resource": "services", "namespace": namespace, "name": name}},
    })
}
