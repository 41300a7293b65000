//! `/metrics`: where the store stands, and what was counted, under etcd's names, as its dashboards and
//! `etcdctl check` read them.
//!
//! What one process without a raft cannot have is left out where a number would mislead (peers,
//! snapshots for them), and constant where it is so.

use std::fmt::Write;

use component_base::metrics::heading;
use component_base::process;
use etcd::{KeySpan, Kv};

use crate::metrics::one;
use crate::server::{CLUSTER_VERSION, EtcdServer, MEMBER_ID, VERSION};

/// The whole text.
pub(crate) fn render(server: &EtcdServer) -> String {
    let mut out = String::new();
    let kv = server.kv().ok();
    let writable = kv.as_ref().is_some_and(|kv| kv.writable().is_ok());
    member(&mut out, writable);
    let help = "Current backend storage quota size in bytes.";
    one(&mut out, "etcd_server_quota_backend_bytes", "gauge", help, server.quota().bytes());
    if let Some(kv) = kv {
        store(&mut out, &kv);
    }
    server.metrics().render(&mut out);
    process::render(&mut out);
    out
}

/// A member that is alone leads, as long as it can write.
fn member(out: &mut String, writable: bool) {
    let leads = u8::from(writable);
    for (name, kind, help, value) in [
        ("has_leader", "gauge", "Whether or not a leader exists. 1 is existence, 0 is not.", leads),
        ("is_leader", "gauge", "Whether or not this member is a leader. 1 if is, 0 otherwise.", leads),
        ("is_learner", "gauge", "Whether or not this member is a learner. 1 if is, 0 otherwise.", 0),
        ("leader_changes_seen_total", "counter", "The number of leader changes seen.", 1),
        (
            "heartbeat_send_failures_total",
            "counter",
            "The total number of leader heartbeat send failures.",
            0,
        ),
        ("proposals_pending", "gauge", "The current number of pending proposals to commit.", 0),
        ("proposals_failed_total", "counter", "The total number of failed proposals seen.", 0),
        ("slow_apply_total", "counter", "The total number of slow apply requests.", 0),
        ("slow_read_indexes_total", "counter", "The total number of pending read indexes.", 0),
        ("read_indexes_failed_total", "counter", "The total number of failed read indexes seen.", 0),
    ] {
        one(out, &format!("etcd_server_{name}"), kind, help, value);
    }
    let cluster = CLUSTER_VERSION.rsplit_once('.').map_or(CLUSTER_VERSION, |(minor, _)| minor);
    for (name, help, label, value) in [
        ("etcd_server_version", "Which version is running.", "server_version", VERSION),
        (
            "etcd_server_id",
            "Server or member ID in hexadecimal format.",
            "server_id",
            &*format!("{MEMBER_ID:x}"),
        ),
        ("etcd_cluster_version", "Which version is running.", "cluster_version", cluster),
    ] {
        heading(out, name, "gauge", help);
        let _ = writeln!(out, "{name}{{{label}=\"{value}\"}} 1");
    }
}

fn store(out: &mut String, kv: &Kv) {
    let revision = kv.revision();
    let size = kv.bytes_on_disk();
    // Counted in the index, without a look at values.
    let keys = kv.range_of(&KeySpan::ALL, 0, None).map_or(0, |found| found.count);
    for (name, help, value) in [
        (
            "etcd_server_proposals_committed_total",
            "The total number of consensus proposals committed.",
            revision,
        ),
        ("etcd_server_proposals_applied_total", "The total number of consensus proposals applied.", revision),
        ("etcd_mvcc_db_total_size_in_bytes", "Total size of the underlying database.", size),
        ("etcd_mvcc_db_total_size_in_use_in_bytes", "Total size of the underlying database in use.", size),
        ("etcd_debugging_mvcc_db_total_size_in_bytes", "Total size of the underlying database.", size),
        ("etcd_debugging_mvcc_keys_total", "Total number of keys.", keys as u64),
        ("etcd_debugging_mvcc_current_revision", "The current revision of store.", revision),
        (
            "etcd_debugging_mvcc_compact_revision",
            "The revision of the last compaction in store.",
            kv.compact_revision(),
        ),
    ] {
        one(out, name, "gauge", help, value);
    }
}
