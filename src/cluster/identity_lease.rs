//! The Lease by which a server says that it is there, and the removal of those of servers that are gone
//! (`controlplane/controller/leaderelection`'s neighbours `apiserver.identity` and `apiserverleasegc`). A
//! server on a store of its own has no neighbours, and takes what an earlier life has left.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use chrono::TimeDelta;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::elections::{host_name, uid};
use super::inside::Inside;
use apimachinery::labels::Selector;
use apimachinery::object::Object;
use apimachinery::options::{DeleteOptions, ListOptions};
use apimachinery::selectable::Predicate;
use apimachinery::status::Status;
use apimachinery::time::{Time, rfc3339_micro};
use apis::coordination::lease::LEASES;
use apis::core::node_labels::HOSTNAME;
use client_go::client::Client;
use clock::Clock;

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

/// Who keeps it.
struct IdentityHolder {
    host: String,
    uid: String,
    /// By which neighbours on one host are told apart; none where no other server has the store.
    among: Option<SocketAddr>,
}

async fn keep(inside: Arc<Inside>, address: SocketAddr) {
    let (client, clock) = (inside.kit(), inside.clock.clone());
    let among = inside.kv.is_shared().then_some(address);
    let uid = among.map_or_else(|| uid(&inside.config.entropy, IDENTITY), uid_of);
    let holder = IdentityHolder { host: host_name(), uid, among };
    let mut own = None;
    let mut next_collection = clock.elapsed();
    loop {
        if let Err(status) = holder.renew(&client, &mut own, &clock).await {
            tracing::debug!(status.message, "the server's Lease is not renewed just now");
        }
        if clock.elapsed() >= next_collection {
            next_collection = clock.elapsed() + COLLECT_EVERY;
            if let Err(status) = collect(&client, clock.now()).await {
                tracing::debug!(status.message, "Leases of servers that are gone are not removed just now");
            }
        }
        clock.pulse(RENEW_EVERY).await;
    }
}

/// As upstream's: `apiserver-` and a hash of the host's name, the same after a restart. Upstream has one
/// server on a host; here one that finds the name taken by a living neighbour adds its address.
fn name(host: &str, address: Option<SocketAddr>) -> String {
    let mut hashed = Sha256::new();
    let address = address.map(|address| address.to_string());
    for part in [host, IDENTITY].into_iter().chain(address.as_deref()) {
        hashed.update(u16::try_from(part.len()).unwrap_or(u16::MAX).to_be_bytes());
        hashed.update(part);
    }
    format!("apiserver-{}", base32(&hashed.finalize()[..16]))
}

/// A UUID as upstream's holder has one; drawn from the address, so that a server knows its Lease after a
/// restart.
fn uid_of(address: SocketAddr) -> String {
    let hash = Sha256::digest(address.to_string());
    let hex: String = hash[..16].iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{}-{}-8{}-8{}-{}", &hex[..8], &hex[8..12], &hex[13..16], &hex[17..20], &hex[20..])
}

/// `base32.StdEncoding` without padding, in small letters.
fn base32(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
    let bit = |at: usize| bytes.get(at / 8).map_or(0, |byte| byte >> (7 - at % 8) & 1);
    let letters = (0..bytes.len() * 8).step_by(5);
    letters
        .map(|at| char::from(LETTERS[(at..at + 5).fold(0, |sum, at| sum << 1 | usize::from(bit(at)))]))
        .collect()
}

impl IdentityHolder {
    /// Writes the server's Lease: at first the one of the host, unless a neighbour has it. One that a
    /// neighbour has taken, whose clock is ahead or who has not heard of this server, is left to it, and
    /// there is another at once.
    async fn renew(&self, client: &Client, own: &mut Option<String>, clock: &Clock) -> Result<(), Status> {
        let names = own.clone().into_iter().chain([name(&self.host, None)]);
        for name in names.chain(self.among.map(|address| name(&self.host, Some(address)))) {
            if self.write(client, &name, clock).await? {
                *own = Some(name);
                return Ok(());
            }
        }
        Ok(())
    }

    /// Says whether it is the server's own.
    async fn write(&self, client: &Client, name: &str, clock: &Clock) -> Result<bool, Status> {
        let (holder, now) = (format!("{name}_{}", self.uid), clock.now());
        let renewed = rfc3339_micro(now);
        let spec =
            json!({"holderIdentity": holder, "leaseDurationSeconds": DURATION_SECONDS, "renewTime": renewed});
        match client.get(&LEASES, NAMESPACE, name).await {
            Ok(found) => {
                let mut lease = found.to_value();
                let is_anothers = lease["spec"]["holderIdentity"] != *holder;
                if is_anothers && self.among.is_some() && is_heard_of(&lease, now) {
                    return Ok(false);
                }
                lease["spec"] = spec;
                let written = client.update(&LEASES, NAMESPACE, name, lease).await?;
                if written.metadata.resource_version != found.metadata.resource_version {
                    clock.overlook_change();
                }
            }
            Err(status) if status.is_not_found() => {
                let labels = json!({IDENTITY_LABEL: IDENTITY, HOSTNAME: self.host});
                let metadata = json!({"name": name, "namespace": NAMESPACE, "labels": labels});
                client.create(&LEASES, NAMESPACE, json!({"metadata": metadata, "spec": spec})).await?;
            }
            Err(status) => return Err(status),
        }
        Ok(true)
    }
}

/// Whether its holder has renewed it as it should: three times in a row one does not fail.
fn is_heard_of(lease: &Value, now: Time) -> bool {
    let renewed = lease["spec"]["renewTime"].as_str().and_then(|text| text.parse::<Time>().ok());
    let silent = TimeDelta::from_std(RENEW_EVERY * 3).unwrap_or_default();
    renewed.is_some_and(|renewed| renewed + silent > now)
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
        // What upstream's server on a host of that name is called.
        assert_eq!(name("test-apiserver", None), "apiserver-iaminseh7hpv7g4j3xz5pqhgaa");
        let uid = uid_of("10.0.0.1:6443".parse().unwrap());
        let lengths: Vec<usize> = uid.split('-').map(str::len).collect();
        assert_eq!(lengths, [8, 4, 4, 4, 12], "{uid}");
        assert_ne!(uid, uid_of("10.0.0.1:6444".parse().unwrap()));
        assert_eq!(base32(b"foobar"), "mzxw6ytboi");
        let address: SocketAddr = "10.0.0.1:6443".parse().unwrap();
        assert_eq!(name("a", Some(address)), name("a", Some(address)));
        let names = [name("a", None), name("b", None), name("a", Some(address))];
        assert!(names[0] != names[1] && names[0] != names[2]);
        let now: Time = "2026-01-02T00:00:00Z".parse().unwrap();
        let of = |spec: Value| {
            let lease = json!({"metadata": {"name": "a", "namespace": "kube-system"}, "spec": spec});
            has_expired(&Object::from_value(&lease, vec![]).unwrap(), now)
        };
        let renewed = |at: &str| of(json!({"renewTime": at, "leaseDurationSeconds": 3600}));
        assert!(!renewed("2026-01-01T23:00:01.000000Z") && renewed("2026-01-01T22:59:59.000000Z"));
        assert!(of(json!({})));
        let heard_of = |at: &str| is_heard_of(&json!({"spec": {"renewTime": at}}), now);
        assert!(heard_of("2026-01-01T23:59:40.000000Z") && !heard_of("2026-01-01T23:59:20.000000Z"));
    }
}
