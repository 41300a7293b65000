//! What Services hold: cluster IPs and node ports (`pkg/registry/core/service/storage/alloc.go`).
//!
//! In comes a Service that is about to be written; it goes on with its addresses filled in. They are given
//! back when the write fails, when a later write no longer wants them, and when the Service is deleted. What
//! is allocated is known from the stored Services alone and read once, unless servers share an etcd; it must
//! not know a kind but this.

mod addresses;
mod allocator_metrics;
mod allocator_page;
mod allocators;
mod families;
mod fields;
pub mod ip_addresses;
mod normalize;
pub mod options;
pub mod shared;

use std::sync::Arc;

use serde_json::Value;

use super::Registry;
use super::store::Part;
use apimachinery::object::Object;
use apimachinery::options::ListOptions;
use apimachinery::status::Status;
use apis::kind::Kind;

pub use addresses::node_ports;
pub use allocators::{Allocation, Allocators};
pub use options::ServiceOptions;

/// What is done behind the write of a service, in words.
pub(super) const AFTER_WRITE: &str = "its addresses and ports are kept, and told as IPAddresses";

pub(super) fn is_service(kind: &Kind) -> bool {
    &*kind.plural == "services" && kind.group_version.group.is_empty()
}

fn is_service_cidr(kind: &Kind) -> bool {
    &*kind.plural == "servicecidrs" && &*kind.group_version.group == "networking.k8s.io"
}

impl Registry {
    /// Where Services take addresses and ports from; who says it first is believed.
    pub fn set_service_options(&self, options: ServiceOptions) {
        self.0.services.configure(options);
    }

    /// The ServiceCIDR that the server makes of itself says what the flag says.
    pub(super) fn follow_service_ranges(&self, kind: &Kind, new: &mut Value) {
        if is_service_cidr(kind) {
            new["spec"]["cidrs"] = self.0.services.configured().texts().into();
        }
    }

    /// `BeginCreate` of services; nothing for other kinds.
    pub(super) async fn allocate_on_create(
        &self,
        kind: &Arc<Kind>,
        new: &mut Value,
        dry_run: bool,
    ) -> Result<Allocation, Status> {
        if !is_service(kind) {
            return Ok(Allocation::default());
        }
        normalize::for_create(new);
        self.allocate(kind, new, None, dry_run).await
    }

    /// `BeginUpdate` of services; nothing for other kinds and for their status.
    pub(super) async fn allocate_on_update(
        &self,
        kind: &Arc<Kind>,
        part: Part,
        new: &mut Value,
        old: &Value,
        dry_run: bool,
    ) -> Result<Allocation, Status> {
        if !is_service(kind) || part != Part::Main {
            return Ok(Allocation::default());
        }
        normalize::for_update(new, old);
        self.allocate(kind, new, Some(old), dry_run).await
    }

    async fn allocate(
        &self,
        kind: &Arc<Kind>,
        new: &mut Value,
        old: Option<&Value>,
        dry_run: bool,
    ) -> Result<Allocation, Status> {
        if !self.is_shared() {
            self.load_services(kind).await?;
            return addresses::allocate(&self.0.services, new, old, self.0.services.begin(dry_run));
        }
        if !dry_run {
            return Box::pin(self.allocate_shared(kind, new, old)).await;
        }
        let known = self.held_by_all(kind, new).await?;
        addresses::allocate(&self.0.services, new, old, Allocation::among(known))
    }

    /// `AfterDelete` of services.
    pub(super) fn release_on_delete(&self, kind: &Kind, object: &Object) {
        if is_service(kind) && !self.is_shared() {
            self.0.services.release(&addresses::held(&object.to_value()));
        }
    }

    /// What stored services hold is read before the first allocation.
    async fn load_services(&self, kind: &Arc<Kind>) -> Result<(), Status> {
        let load = || async {
            let list = self.0.storage.list(kind, "", &ListOptions::default()).await?;
            for service in list.items.iter() {
                self.0.services.take(&addresses::held(&service.to_value()));
            }
            let ranges = self.kind("networking.k8s.io", "v1", "servicecidrs")?;
            if !self.is_known_to_be_empty(&ranges) {
                for range in self.0.storage.list(&ranges, "", &ListOptions::default()).await?.items.iter() {
                    self.note_ranges(None, Some(range));
                }
            }
            Ok(())
        };
        self.0.services.loaded().get_or_try_init(load).await.copied()
    }
}
