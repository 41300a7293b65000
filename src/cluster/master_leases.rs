//! Which servers of a cluster there are (`controlplane/reconcilers/lease.go`): each keeps a key in the etcd
//! that they share, on a lease, so that the key of one that is lost goes by itself.

use std::net::SocketAddr;
use std::time::Duration;

use apimachinery::status::Status;
use apiserver::storage::ByteStore;
use etcd::{Error, Expect, Op};
use serde_json::{Value, json};

/// Where they are, as upstream has them.
const MASTER_LEASES: &str = "/registry/masterleases/";
/// How long a server counts after it was heard of last (`DefaultEndpointReconcilerTTL`).
const LEASE_TTL: Duration = Duration::from_secs(15);
/// So many servers are read; more would not fit into one Endpoints anyway.
const MAX_SERVERS: usize = 1000;

/// Says that the server at an address is there, and tells which there are: of our own store, which nobody
/// shares, this one alone.
///
/// # Errors
/// The store's.
pub(super) async fn renew(kv: &ByteStore, address: SocketAddr) -> Result<Vec<SocketAddr>, Status> {
    if !kv.is_shared() {
        return Ok(vec![address]);
    }
    write(kv, address).await.map_err(Status::internal)?;
    servers(kv).await.map_err(Status::internal)
}

async fn write(kv: &ByteStore, address: SocketAddr) -> Result<(), Error> {
    let lease = Some(kv.grant_lease(LEASE_TTL).await?);
    let value = serde_json::to_vec(&endpoints(address)).unwrap_or_default().into();
    kv.txn(&key(address), Expect::Any, Op::Put { value, lease }).await.map(drop)
}

async fn servers(kv: &ByteStore) -> Result<Vec<SocketAddr>, Error> {
    let found = kv.range(MASTER_LEASES, None, Some(MAX_SERVERS), None).await?;
    let mut servers: Vec<SocketAddr> = found.kvs.iter().filter_map(|kv| server(&kv.value)).collect();
    servers.sort_unstable();
    servers.dedup();
    Ok(servers)
}

/// The server at an address ends; those that stay.
///
/// # Errors
/// The store's.
pub(super) async fn remove(kv: &ByteStore, address: SocketAddr) -> Result<Vec<SocketAddr>, Status> {
    kv.txn(&key(address), Expect::Any, Op::Delete).await.map_err(Status::internal)?;
    servers(kv).await.map_err(Status::internal)
}

/// Servers of one machine have one address, and so the port is part of it; upstream's key has the address
/// alone, and readers look at the value.
fn key(address: SocketAddr) -> String {
    format!("{MASTER_LEASES}{}:{}", address.ip(), address.port())
}

fn endpoints(address: SocketAddr) -> Value {
    let ip = address.ip().to_string();
    json!({
        "kind": "Endpoints",
        "apiVersion": "v1",
        "metadata": {},
        "subsets": [{"addresses": [{"ip": ip}], "ports": [{"name": "https", "port": address.port()}]}],
    })
}

/// None for what somebody else keeps there in another form.
fn server(value: &[u8]) -> Option<SocketAddr> {
    let tree: Value = serde_json::from_slice(value).ok()?;
    let subset = tree["subsets"].get(0)?;
    let ip = subset["addresses"].get(0)?["ip"].as_str()?.parse().ok()?;
    let port = u16::try_from(subset["ports"].get(0)?["port"].as_u64()?).ok()?;
    Some(SocketAddr::new(ip, port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_server_writes_is_what_others_read() {
        for text in ["10.0.0.1:6443", "[fd00::1]:443"] {
            let address: SocketAddr = text.parse().unwrap();
            let written = serde_json::to_vec(&endpoints(address)).unwrap();
            assert_eq!(server(&written), Some(address));
        }
        for other in ["", "k8s\0", "{}", r#"{"subsets":[{"addresses":[{"ip":"x"}]}]}"#] {
            assert_eq!(server(other.as_bytes()), None, "{other}");
        }
        assert_eq!(key("10.0.0.1:6443".parse().unwrap()), "/registry/masterleases/10.0.0.1:6443");
    }
}
