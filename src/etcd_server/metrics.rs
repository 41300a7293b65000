//! `/metrics`: what is counted of requests, and where the store stands, under etcd's names (`etcd_server_*`,
//! `etcd_mvcc_*`, `grpc_server_*`), as its dashboards and `etcdctl check` read them.
//!
//! What one process without a raft cannot have is left out where a number would mislead (a quota, peers,
//! rounds of the write-ahead log), and constant where it is so.

use std::fmt::{Display, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::body::{Body, Bytes};
use component_base::metrics::{Family, heading};
use component_base::process;
use etcd::{KeySpan, Kv};
use http::{HeaderMap, Response};
use http_body::Frame;
use http_body_util::BodyExt;

use crate::http1::{CLUSTER_VERSION, VERSION};
use crate::messages::TxnResponse;
use crate::server::{EtcdServer, MEMBER_ID};

/// How many messages go which way (`grpc_type`).
const UNARY: &str = "unary";
const SERVER_STREAM: &str = "server_stream";
const BIDI_STREAM: &str = "bidi_stream";

/// The methods that are counted: those that are there.
const METHODS: [(&str, &[&str], &str); 8] = [
    ("KV", &["Range", "Put", "DeleteRange", "Txn", "Compact"], UNARY),
    ("Watch", &["Watch"], BIDI_STREAM),
    ("Lease", &["LeaseGrant", "LeaseRevoke", "LeaseTimeToLive", "LeaseLeases"], UNARY),
    ("Lease", &["LeaseKeepAlive"], BIDI_STREAM),
    ("Maintenance", &["Status", "Alarm", "Defragment", "Hash", "HashKV"], UNARY),
    ("Maintenance", &["Snapshot"], SERVER_STREAM),
    ("Cluster", &["MemberList"], UNARY),
    ("Auth", &["AuthStatus", "AuthDisable", "Authenticate"], UNARY),
];

/// `codes.Code`, by their numbers.
const CODES: [&str; 17] = [
    "OK",
    "Canceled",
    "Unknown",
    "InvalidArgument",
    "DeadlineExceeded",
    "NotFound",
    "AlreadyExists",
    "PermissionDenied",
    "ResourceExhausted",
    "FailedPrecondition",
    "Aborted",
    "OutOfRange",
    "Unimplemented",
    "Internal",
    "Unavailable",
    "DataLoss",
    "Unauthenticated",
];

/// What a server has counted since it began.
pub(crate) struct ServerMetrics {
    started: Family<3>,
    handled: Family<4>,
    received_bytes: AtomicU64,
    sent_bytes: AtomicU64,
    /// Ranges, puts and deletions, and transactions of several of them.
    operations: [AtomicU64; 4],
    /// Leases that were granted, revoked by a client, and renewed.
    leases: [AtomicU64; 3],
    /// Held by each stream of watches, and by each watch.
    streams: Arc<()>,
    watchers: Arc<()>,
}

/// What a client can do to a lease.
#[derive(Clone, Copy)]
pub(crate) enum LeaseStep {
    Granted,
    Revoked,
    Renewed,
}

/// Counts as one as long as it is there.
pub(crate) struct OneOf {
    _held: Arc<()>,
}

/// A call of a method that is counted.
#[derive(Clone)]
pub(crate) struct CountedCall {
    server: EtcdServer,
    /// Method, service, and which way messages go.
    labels: [&'static str; 3],
}

impl Default for ServerMetrics {
    fn default() -> ServerMetrics {
        let started = "Total number of RPCs started on the server.";
        let handled = "Total number of RPCs completed on the server, regardless of success or failure.";
        ServerMetrics {
            started: Family::counter(
                "grpc_server_started_total",
                started,
                ["grpc_method", "grpc_service", "grpc_type"],
            ),
            handled: Family::counter(
                "grpc_server_handled_total",
                handled,
                ["grpc_code", "grpc_method", "grpc_service", "grpc_type"],
            ),
            received_bytes: AtomicU64::new(0),
            sent_bytes: AtomicU64::new(0),
            operations: Default::default(),
            leases: Default::default(),
            streams: Arc::default(),
            watchers: Arc::default(),
        }
    }
}

impl ServerMetrics {
    pub(crate) fn ranged(&self) {
        count(&self.operations[0], 1);
    }

    pub(crate) fn put(&self) {
        count(&self.operations[1], 1);
    }

    pub(crate) fn deleted(&self) {
        count(&self.operations[2], 1);
    }

    /// What a transaction has done.
    pub(crate) fn transacted(&self, answer: &TxnResponse) {
        let done = operations(answer);
        self.operations.iter().zip(done).for_each(|(counter, done)| count(counter, done));
        count(&self.operations[3], u64::from(done.iter().sum::<u64>() > 1));
    }

    pub(crate) fn leased(&self, step: LeaseStep) {
        count(&self.leases[step as usize], 1);
    }

    pub(crate) fn stream(&self) -> OneOf {
        OneOf { _held: self.streams.clone() }
    }

    pub(crate) fn watcher(&self) -> OneOf {
        OneOf { _held: self.watchers.clone() }
    }

    fn render_calls(&self, out: &mut String) {
        self.started.render(out);
        self.handled.render(out);
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let sent = ("sent", load(&self.sent_bytes), "sent to");
        for (way, bytes, words) in [sent, ("received", load(&self.received_bytes), "received from")] {
            let name = format!("etcd_network_client_grpc_{way}_bytes_total");
            one(out, &name, "counter", &format!("The total number of bytes {words} grpc clients."), bytes);
        }
        for (what, counter) in ["range", "put", "delete", "txn"].iter().zip(&self.operations) {
            let help = format!("Total number of {what}s seen by this member.");
            one(out, &format!("etcd_mvcc_{what}_total"), "counter", &help, load(counter));
        }
        for (what, counter) in ["granted", "revoked", "renewed"].iter().zip(&self.leases) {
            let help = format!("The total number of {what} leases.");
            one(out, &format!("etcd_debugging_lease_{what}_total"), "counter", &help, load(counter));
        }
        let held = |all: &Arc<()>| Arc::strong_count(all) - 1;
        let name = "etcd_debugging_mvcc_watch_stream_total";
        one(out, name, "gauge", "Total number of watch streams.", held(&self.streams));
        let name = "etcd_debugging_mvcc_watcher_total";
        one(out, name, "gauge", "Total number of watchers.", held(&self.watchers));
    }
}

impl CountedCall {
    /// None for a method that is not there.
    pub(crate) fn begin(server: &EtcdServer, path: &str) -> Option<CountedCall> {
        let (service, method) = path.strip_prefix("/etcdserverpb.")?.split_once('/')?;
        let labels =
            METHODS.iter().filter(|(known, ..)| *known == service).find_map(|(_, methods, kind)| {
                let method = methods.iter().find(|known| **known == method)?;
                Some([*method, full_name(service)?, *kind])
            })?;
        server.metrics().started.count(labels);
        Some(CountedCall { server: server.clone(), labels })
    }

    /// What is asked, counted as it is read.
    pub(crate) fn asked(&self, body: Body) -> Body {
        let server = self.server.clone();
        Body::new(body.map_frame(move |frame: Frame<Bytes>| {
            count(&server.metrics().received_bytes, frame.data_ref().map_or(0, |data| data.len() as u64));
            frame
        }))
    }

    /// What is answered, counted as it goes, and how it ends.
    pub(crate) fn answered(self, response: Response<Body>) -> Response<Body> {
        self.note_end(response.headers());
        response.map(|body| {
            Body::new(body.map_frame(move |frame: Frame<Bytes>| {
                let sent = frame.data_ref().map_or(0, |data| data.len() as u64);
                count(&self.server.metrics().sent_bytes, sent);
                frame.trailers_ref().into_iter().for_each(|trailers| self.note_end(trailers));
                frame
            }))
        })
    }

    fn note_end(&self, headers: &HeaderMap) {
        let code = headers.get("grpc-status").and_then(|code| code.to_str().ok()?.parse::<usize>().ok());
        let Some(code) = code.map(|code| CODES.get(code).copied().unwrap_or("Unknown")) else { return };
        let [method, service, kind] = self.labels;
        self.server.metrics().handled.count([code, method, service, kind]);
    }
}

fn full_name(service: &str) -> Option<&'static str> {
    Some(match service {
        "KV" => "etcdserverpb.KV",
        "Watch" => "etcdserverpb.Watch",
        "Lease" => "etcdserverpb.Lease",
        "Maintenance" => "etcdserverpb.Maintenance",
        "Cluster" => "etcdserverpb.Cluster",
        "Auth" => "etcdserverpb.Auth",
        _ => return None,
    })
}

fn count(counter: &AtomicU64, more: u64) {
    counter.fetch_add(more, Ordering::Relaxed);
}

/// The ranges, puts and deletions that were done, those of nested transactions too.
fn operations(answer: &TxnResponse) -> [u64; 3] {
    let mut done = [0; 3];
    for response in &answer.responses.0 {
        done[0] += u64::from(response.range.0.is_some());
        done[1] += u64::from(response.put.0.is_some());
        done[2] += u64::from(response.delete_range.0.is_some());
        let nested = response.txn.0.as_deref().map_or([0; 3], operations);
        done.iter_mut().zip(nested).for_each(|(all, nested)| *all += nested);
    }
    done
}

/// The whole text.
pub(crate) fn render(server: &EtcdServer) -> String {
    let mut out = String::new();
    let kv = server.kv().ok();
    let writable = kv.as_ref().is_some_and(|kv| kv.writable().is_ok());
    member(&mut out, writable);
    if let Some(kv) = kv {
        store(&mut out, &kv);
    }
    server.metrics().render_calls(&mut out);
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

fn one(out: &mut String, name: &str, kind: &str, help: &str, value: impl Display) {
    heading(out, name, kind, help);
    let _ = writeln!(out, "{name} {value}");
}
