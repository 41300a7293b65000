//! Who claims and releases addresses for Services, and tells of it.

use std::net::IpAddr;

use apimachinery::object::Object;
use apimachinery::options::{DeleteOptions, Preconditions};
use apimachinery::status::Status;
use apis::networking::ip_address::IP_ADDRESSES;
use apiserver::registry::service::ip_addresses::address_of;
use client_go::client::Client;
use client_go::event_recorder::EventRecorder;
use client_go::reference::ObjectReference;

pub(super) struct AddressClerk {
    client: Client,
    recorder: EventRecorder,
}

impl AddressClerk {
    pub(super) fn new(client: Client, recorder: EventRecorder) -> AddressClerk {
        AddressClerk { client, recorder }
    }

    /// Claims an address for a Service; whether nobody was faster.
    pub(super) async fn claim(&self, service: &Object, ip: &str) -> Result<bool, Status> {
        let Ok(address) = ip.parse::<IpAddr>() else { return Ok(false) };
        let claim = address_of(&service.to_value()["metadata"], address);
        match self.client.create(&IP_ADDRESSES, "", claim).await {
            Err(status) if status.is_already_exists() => Ok(false),
            Err(status) => Err(status),
            Ok(_) => Ok(true),
        }
    }

    /// Deletes a claim as it was seen, since another Service may have claimed the address meanwhile; whether
    /// it is gone.
    pub(super) async fn release(&self, claim: &Object) -> Result<bool, Status> {
        let resource_version = Some(claim.metadata.resource_version.to_string());
        let preconditions = Some(Preconditions { resource_version, ..Preconditions::default() });
        let as_seen = DeleteOptions { preconditions, ..DeleteOptions::default() };
        match self.client.delete(&IP_ADDRESSES, "", &claim.metadata.name, &as_seen).await {
            Err(status) if status.is_not_found() => Ok(true),
            Err(status) if status.is_conflict() => Ok(false),
            Err(status) => Err(status),
            Ok(_) => Ok(true),
        }
    }

    /// Warns of it, in an event of `events.k8s.io`.
    pub(super) fn tell(&self, about: impl Into<ObjectReference>, action: &str, reason: &str, note: String) {
        tracing::info!("{note}");
        self.recorder.event_of(about, (action, None), "Warning", reason, note);
    }
}
