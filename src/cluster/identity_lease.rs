//! The Lease by which a server says that it is there, and the removal of those of servers that are gone
//! (`controlplane/controller/leaderelection`'s neighbours `apiserver.identity` and `apiserverleasegc`). One
//! server on a store of its own has none: nobody else asks for it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use chrono::TimeDelta;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::inside::Inside;
use apimachinery::labels::Selector;
use apimachinery::object::Object;
use apimachinery::options::{DeleteOptions, ListOptions};
use apimachinery::selectable::Predicate;
use apimachinery::status::Status;
use apimachinery::time::{Time, rfc3339_micro};
use apis::coordination::lease::LEASES;
use client_go::client::Client;

/// Where they are.
const NAMESPACE: &str = "kube-system";
/// What tells them from others (`IdentityLeaseComponentLabelKey`).
const IDENTITY_LABEL: &str = "apiserver.kubernetes.io/identity";
const IDENTITY: &str = "kube-apiserver";
/// `IdentityLeaseDurationSeconds`
const DURATION_SECONDS: i64 = 3600;
/// `IdentityLeaseRenewIntervalPeriod`
const RENEW_EVERY: Duration = Duration::from_secs(10);
/// `IdentityLeaseGCPeriod`
const COLLECT_EVERY: Duration = Duration::from_secs(3600);

/// Keeps the Lease of the server at an address, and removes those that have expired, for as long as it is
/// polled.
pub(super) fn following(inside: Arc<Inside>, address: SocketAddr) -> impl Future<Output = ()> {
    inside.clock.named("kube-apiserver").tracked(keep(inside, address))
}

async fn keep(inside: Arc<Inside>, address: SocketAddr) {
    let (client, clock) = (inside.kit(), inside.clock.clone());
    let name = name(address);
    let mut next_collection = clock.elapsed();
    loop {
        if let Err(status) = renew(&client, &name, address, clock.now()).await {
            tracing::debug!(status.message, "the server's Lease is not renewed just now");
        }
        if clock.elapsed() >= next_collection {
            next_collection = clock.elapsed() + COLLECT_EVERY;
            if let Err(status) = collect(&client, clock.now()).await {
                tracing::debug!(status.message, "Leases of servers that are gone are not removed just now");
            }
        }
        clock.sleep(RENEW_EVERY).await;
    }
}

/// As `apiserver-` and a hash of where it is: the same after a restart. Upstream takes the host's name alone,
/// and has one server on a host.
fn name(address: SocketAddr) -> String {
    let hash = Sha256::digest(address.to_string());
    let text: String = hash.iter().take(13).map(|byte| format!("{byte:02x}")).collect();
    format!("apiserver-{text}")
}

async fn renew(client: &Client, name: &str, address: SocketAddr, now: Time) -> Result<(), Status> {
    let spec = |holder: Value| {
        let renewed = rfc3339_micro(now);
        json!({"holderIdentity": holder, "leaseDurationSeconds": DURATION_SECONDS, "renewTime": renewed})
    };
    match client.get(&LEASES, NAMESPACE, name).await {
        Ok(found) => {
            let mut lease = found.to_value();
            lease["spec"] = spec(lease["spec"]["holderIdentity"].take());
            client.update(&LEASES, NAMESPACE, name, lease).await.map(drop)
        }
        Err(status) if status.is_not_found() => {
            let labels =
                json!({IDENTITY_LABEL: IDENTITY, "kubernetes.io/hostname": address.ip().to_string()});
            let metadata = json!({"name": name, "namespace": NAMESPACE, "labels": labels});
            let lease = json!({"metadata": metadata, "spec": spec(format!("{name}_{address}").into())});
            client.create(&LEASES, NAMESPACE, lease).await.map(drop)
        }
        Err(status) => Err(status),
    }
}

/// Removes the Leases of servers that have not been heard of for as long as theirs last.
async fn collect(client: &Client, now: Time) -> Result<(), Status> {
    let labels = Selector::parse(&format!("{IDENTITY_LABEL}={IDENTITY}")).unwrap_or_default();
    let predicate = Predicate { labels, ..Predicate::default() };
    let options = ListOptions { predicate, ..ListOptions::default() };
    for lease in client.list(&LEASES, NAMESPACE, &options).await?.items.iter() {
        if has_expired(lease, now) {
            let name = &lease.metadata.name;
            client.delete(&LEASES, NAMESPACE, name, &DeleteOptions::default()).await?;
        }
    }
    Ok(())
}

/// One without a time of renewal has expired, as upstream has it.
fn has_expired(lease: &Object, now: Time) -> bool {
    let spec = &lease.to_value()["spec"];
    let renewed = spec["renewTime"].as_str().and_then(|text| text.parse::<Time>().ok());
    let lasts = TimeDelta::seconds(spec["leaseDurationSeconds"].as_i64().unwrap_or(0));
    renewed.is_none_or(|renewed| renewed + lasts < now)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_has_a_name_for_good_and_expires() {
        let address = "10.0.0.1:6443".parse().unwrap();
        assert_eq!(name(address), name(address));
        assert_ne!(name(address), name("10.0.0.1:6444".parse().unwrap()));
        let now: Time = "2026-01-02T00:00:00Z".parse().unwrap();
        let of = |spec: Value| {
            let lease = json!({"metadata": {"name": "a", "namespace": "kube-system"}, "spec": spec});
            has_expired(&Object::from_value(&lease, vec![]).unwrap(), now)
        };
        let renewed = |at: &str| of(json!({"renewTime": at, "leaseDurationSeconds": 3600}));
        assert!(!renewed("2026-01-01T23:00:01.000000Z") && renewed("2026-01-01T22:59:59.000000Z"));
        assert!(of(json!({})));
    }
}
