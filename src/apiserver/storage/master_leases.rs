//! Which servers of a cluster there are (`controlplane/reconcilers/lease.go`): each keeps a key in the etcd
//! that they share, on a lease, so that the key of one that is lost goes by itself.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};

use super::errors::interpret;
use super::foreign;
use super::interface::Storage;
use apimachinery::status::Status;
use apis::core::endpoints::ENDPOINTS;
use apis::tree::items;
use etcd::{Expect, Op, StoreError};

/// Where they are, as upstream has them.
const MASTER_LEASES: &str = "/registry/masterleases/";
/// How long a server counts after it was heard of last (`DefaultEndpointReconcilerTTL`).
const LEASE_TTL: Duration = Duration::from_secs(15);
/// So many servers are read; more would not fit into one Endpoints anyway.
const MAX_SERVERS: usize = 1000;

impl Storage {
    /// Says that the server at an address is there, and tells which there are: of a store of its own, which
    /// nobody shares, this one alone.
    ///
    /// # Errors
    /// 500 when the store fails.
    pub async fn renew_master_lease(&self, address: SocketAddr) -> Result<Vec<SocketAddr>, Status> {
        if !self.is_shared() {
            return Ok(vec![address]);
        }
        self.write_master_lease(address).await.map_err(interpret)?;
        self.masters(address).await.map_err(interpret)
    }

    /// The server at an address ends; those that stay.
    ///
    /// # Errors
    /// 500 when the store fails.
    pub async fn remove_master_lease(&self, address: SocketAddr) -> Result<Vec<SocketAddr>, Status> {
        self.kv().txn(&key(address), Expect::Any, Op::Delete).await.map_err(interpret)?;
        self.masters(address).await.map_err(interpret)
    }

    async fn write_master_lease(&self, address: SocketAddr) -> Result<(), StoreError> {
        let lease = Some(self.kv().grant_lease(LEASE_TTL).await?);
        let value = encode(address, self.writes_protobuf());
        self.kv().txn(&key(address), Expect::Any, Op::Put { value, lease }).await.map(drop)
    }

    async fn masters(&self, own: SocketAddr) -> Result<Vec<SocketAddr>, StoreError> {
        let found = self.kv().range(MASTER_LEASES, None, Some(MAX_SERVERS), None).await?;
        let found = found.kvs.into_iter().filter_map(|kv| decode(kv.value, own.port()));
        let mut masters: Vec<SocketAddr> = found.collect();
        masters.sort_unstable();
        masters.dedup();
        Ok(masters)
    }
}

/// Servers of one machine have one address, and so the port is part of it; upstream's key has the address
/// alone, and readers look at the value.
fn key(address: SocketAddr) -> String {
    format!("{MASTER_LEASES}{}:{}", address.ip(), address.port())
}

fn encode(address: SocketAddr, as_protobuf: bool) -> Bytes {
    let (ip, port) = (address.ip().to_string(), address.port());
    let endpoints = json!({
        "kind": "Endpoints",
        "apiVersion": "v1",
        "metadata": {},
        "subsets": [{"addresses": [{"ip": ip}], "ports": [{"name": "https", "port": port, "protocol": "TCP"}]}],
    });
    let protobuf = if as_protobuf { foreign::as_protobuf(&ENDPOINTS, &endpoints) } else { None };
    protobuf.unwrap_or_else(|| endpoints.to_string().into())
}

/// Where a server is that says so in either form. Upstream's say no port: all of a cluster have one. None for
/// what somebody else keeps there.
fn decode(value: Bytes, own_port: u16) -> Option<SocketAddr> {
    let own_form = foreign::own_form(&ENDPOINTS, value).ok()?;
    let tree: Value = serde_json::from_slice(&own_form).ok()?;
    let subset = items(&tree, "subsets").first()?;
    let ip = subset["addresses"].get(0)?["ip"].as_str()?.parse().ok()?;
    let port = match subset["ports"].get(0) {
        Some(port) => u16::try_from(port["port"].as_u64()?).ok()?,
        None => own_port,
    };
    Some(SocketAddr::new(ip, port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_server_writes_is_what_others_read() {
        for text in ["10.0.0.1:6443", "[fd00::1]:443"] {
            let address: SocketAddr = text.parse().unwrap();
            for as_protobuf in [false, true] {
                let written = encode(address, as_protobuf);
                assert_eq!(written.starts_with(b"k8s\0"), as_protobuf);
                assert_eq!(decode(written, 1), Some(address));
            }
        }
        for other in ["", "k8s\0", "{}", r#"{"subsets":[{"addresses":[{"ip":"x"}]}]}"#] {
            assert_eq!(decode(other.into(), 1), None, "{other}");
        }
        assert_eq!(key("10.0.0.1:6443".parse().unwrap()), "/registry/masterleases/10.0.0.1:6443");
    }

    #[test]
    fn upstream_s_servers_say_no_port_and_have_ours() {
        // As kube-apiserver keeps it: an envelope, metadata with a generation, one address.
        let mut theirs = Vec::new();
        let (generation, address) = ([0x38, 7], b"\x0a\x0a\x0a\x08\x31\x30\x2e\x30\x2e\x30\x2e\x39");
        apimachinery::protobuf::seal(&mut theirs, "v1", "Endpoints", |out| {
            apimachinery::protobuf::write_bytes(out, 1, &generation);
            apimachinery::protobuf::write_bytes(out, 2, address);
        });
        assert_eq!(decode(theirs.into(), 6443), Some("10.0.0.9:6443".parse().unwrap()));
    }
}
