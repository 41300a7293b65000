//! `Snapshot`: the store as a file of bbolt, as etcd's backend would be (`v3rpc/maintenance.go`,
//! `storage/schema`). `etcdutl snapshot restore` takes it.

use axum::body::Body;
use bytes::{BufMut, Bytes};
use etcd::Kv;
use futures::stream;
use http::Response;
use sha2::{Digest, Sha256};

use crate::bolt::{BoltBucket, Item};
use crate::frames::{Received, framed};
use crate::history::{self, KeyHistory};
use crate::messages::{Empty, KeptLease, SnapshotResponse};
use crate::server::{CLUSTER_VERSION, EtcdServer, RAFT_TERM, signed};
use crate::status::EtcdStatus;
use crate::unary::{failed, streamed};
use crate::wire::ProtoMessage;

/// What is sent at a time.
const PIECE_BYTES: usize = 32 * 1024;

/// Sends the file in pieces, and its checksum behind it.
pub(crate) async fn serve(server: &EtcdServer, body: Body) -> Response<Body> {
    let file = match Received::new(body).only::<Empty>().await.and_then(|_| file(server)) {
        Ok(file) => Bytes::from(file),
        Err(status) => return failed(&status),
    };
    let digest = Bytes::copy_from_slice(&Sha256::digest(&file));
    let starts = (0..file.len()).step_by(PIECE_BYTES);
    let pieces = starts.map(move |start| {
        let end = (start + PIECE_BYTES).min(file.len());
        piece(file.slice(start..end), file.len() - end)
    });
    streamed(stream::iter(pieces.chain([piece(digest, 0)])))
}

fn piece(blob: Bytes, left: usize) -> Result<Bytes, EtcdStatus> {
    let remaining_bytes = left as u64;
    let version = CLUSTER_VERSION.to_owned();
    Ok(framed(&SnapshotResponse { remaining_bytes, blob, version, ..SnapshotResponse::default() }))
}

impl EtcdServer {
    /// The file with its checksum behind it, as `etcdctl snapshot save` writes it.
    ///
    /// # Errors
    /// The store's.
    pub fn snapshot_file(&self) -> Result<Vec<u8>, EtcdStatus> {
        let mut file = file(self)?;
        let digest = Sha256::digest(&file);
        file.extend_from_slice(&digest);
        Ok(file)
    }
}

/// The whole file, in memory as the image is that it is made of.
fn file(server: &EtcdServer) -> Result<Vec<u8>, EtcdStatus> {
    let kv = server.kv()?;
    let history = history::read(&kv, server.values())?;
    let empty = |name: &'static str| BoltBucket { name, items: Vec::new() };
    let buckets = vec![
        empty("alarm"),
        empty("auth"),
        empty("authRoles"),
        empty("authUsers"),
        empty("cluster"),
        BoltBucket {
            name: "key",
            items: history.rows.iter().map(|row| (row.key(), row.value.clone())).collect(),
        },
        BoltBucket { name: "lease", items: leases(&kv) },
        empty("members"),
        empty("members_removed"),
        BoltBucket { name: "meta", items: meta(&history) },
    ];
    Ok(crate::bolt::file(buckets))
}

fn leases(kv: &Kv) -> Vec<Item> {
    let kept = kv.leases().into_iter().map(|status| {
        let id = status.name.cast_signed();
        let ttl = signed(status.ttl.as_secs());
        let lease = KeptLease { id, ttl, remaining_ttl: signed(status.remaining.as_secs()) };
        (status.name.to_be_bytes().to_vec(), lease.encode())
    });
    let mut kept: Vec<Item> = kept.collect();
    kept.sort_unstable();
    kept
}

fn meta(history: &KeyHistory) -> Vec<Item> {
    let mut items = vec![
        (b"consistent_index".to_vec(), history.revision.to_be_bytes().to_vec()),
        (b"term".to_vec(), RAFT_TERM.to_be_bytes().to_vec()),
    ];
    if history.compact_revision > 0 {
        let mut compacted = Vec::new();
        compacted.put_u64(history.compact_revision);
        compacted.push(b'_');
        compacted.put_u64(0);
        items.push((b"finishedCompactRev".to_vec(), compacted.clone()));
        items.push((b"scheduledCompactRev".to_vec(), compacted));
    }
    items.sort_unstable();
    items
}
