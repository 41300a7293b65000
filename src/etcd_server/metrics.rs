//! What is counted of requests, under etcd's names (`etcd_mvcc_*`, `grpc_server_*`).

use std::fmt::{Display, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::body::{Body, Bytes};
use component_base::metrics::{FROM_A_MILLISECOND, Family, Histogram, heading};
use etcd::{DiskObserver, DiskStep};
use http::{HeaderMap, Response};
use http_body::Frame;
use http_body_util::BodyExt;

use crate::messages::TxnResponse;

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

/// `ExponentialBuckets(0.001, 2, 14)`: of the disk.
const DISK_BUCKETS: usize = 14;

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
    /// How long the log took to be durable, and how long a group of writes in all.
    syncs: Arc<Histogram>,
    commits: Arc<Histogram>,
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
    metrics: Arc<ServerMetrics>,
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
            syncs: Arc::new(Histogram::new(&FROM_A_MILLISECOND[..DISK_BUCKETS])),
            commits: Arc::new(Histogram::new(&FROM_A_MILLISECOND[..DISK_BUCKETS])),
            streams: Arc::default(),
            watchers: Arc::default(),
        }
    }
}

impl ServerMetrics {
    /// What counts how long the disk takes.
    pub(crate) fn disk_observer(&self) -> DiskObserver {
        let (syncs, commits) = (self.syncs.clone(), self.commits.clone());
        Arc::new(move |step, taken| match step {
            DiskStep::Sync => syncs.observe(taken),
            DiskStep::Commit => commits.observe(taken),
        })
    }

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

    pub(crate) fn render(&self, out: &mut String) {
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
        for (name, histogram, help) in [
            (
                "etcd_disk_wal_fsync_duration_seconds",
                &self.syncs,
                "The latency distributions of fsync called by WAL.",
            ),
            (
                "etcd_disk_backend_commit_duration_seconds",
                &self.commits,
                "The latency distributions of commit called by backend.",
            ),
        ] {
            heading(out, name, "histogram", help);
            histogram.render(out, name, "");
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
    pub(crate) fn begin(metrics: &Arc<ServerMetrics>, path: &str) -> Option<CountedCall> {
        let (service, method) = path.strip_prefix("/etcdserverpb.")?.split_once('/')?;
        let labels =
            METHODS.iter().filter(|(known, ..)| *known == service).find_map(|(_, methods, kind)| {
                let method = methods.iter().find(|known| **known == method)?;
                Some([*method, full_name(service)?, *kind])
            })?;
        metrics.started.count(labels);
        Some(CountedCall { metrics: metrics.clone(), labels })
    }

    /// What is asked, counted as it is read.
    pub(crate) fn asked(&self, body: Body) -> Body {
        let metrics = self.metrics.clone();
        Body::new(body.map_frame(move |frame: Frame<Bytes>| {
            count(&metrics.received_bytes, frame.data_ref().map_or(0, |data| data.len() as u64));
            frame
        }))
    }

    /// What is answered, counted as it goes, and how it ends.
    pub(crate) fn answered(self, response: Response<Body>) -> Response<Body> {
        self.note_end(response.headers());
        response.map(|body| {
            Body::new(body.map_frame(move |frame: Frame<Bytes>| {
                let sent = frame.data_ref().map_or(0, |data| data.len() as u64);
                count(&self.metrics.sent_bytes, sent);
                frame.trailers_ref().into_iter().for_each(|trailers| self.note_end(trailers));
                frame
            }))
        })
    }

    fn note_end(&self, headers: &HeaderMap) {
        let code = headers.get("grpc-status").and_then(|code| code.to_str().ok()?.parse::<usize>().ok());
        let Some(code) = code.map(|code| CODES.get(code).copied().unwrap_or("Unknown")) else { return };
        let [method, service, kind] = self.labels;
        self.metrics.handled.count([code, method, service, kind]);
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

/// A metric of one value.
pub(crate) fn one(out: &mut String, name: &str, kind: &str, help: &str, value: impl Display) {
    heading(out, name, kind, help);
    let _ = writeln!(out, "{name} {value}");
}
