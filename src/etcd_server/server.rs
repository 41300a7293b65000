//! The server: which store, how its values are shown, what it says of itself.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clock::Clock;
use etcd::{DiskObserver, Kv};

use crate::alarms::{Alarms, CORRUPT, NOSPACE};
use crate::messages::{HeaderResponse, Nested, ResponseHeader};
use crate::metrics::ServerMetrics;
use crate::quota::Quota;
use crate::status::{EtcdError, EtcdStatus, MAX_REQUEST_BYTES};
use crate::values::Values;

/// The release whose API this is.
pub const VERSION: &str = "3.6.8";
/// The release whose data it would be.
pub const CLUSTER_VERSION: &str = "3.6.0";

/// What etcd calls a cluster of one member with its default name and URLs.
pub(crate) const CLUSTER_ID: u64 = 0xcdf8_1819_4e3a_8c32;
/// What etcd calls its member.
pub(crate) const MEMBER_ID: u64 = 0x8e9e_05c5_2164_694d;
/// There is one leader for ever.
pub(crate) const RAFT_TERM: u64 = 2;

/// etcd's `--watch-progress-notify-interval`: how often a quiet watch that wants it is told how far it is.
pub const PROGRESS_INTERVAL: Duration = Duration::from_secs(600);
/// etcd tells progress no more often than this (`minWatchProgressInterval`).
const MIN_PROGRESS_INTERVAL: Duration = Duration::from_millis(100);

/// Where the store is; why there is none at the moment.
pub type StoreSource = Arc<dyn Fn() -> Result<Kv, EtcdStatus> + Send + Sync>;

/// etcd's API on a store. Cloning shares it.
#[derive(Clone)]
pub struct EtcdServer(Arc<ServerInner>);

struct ServerInner {
    source: StoreSource,
    values: Arc<dyn Values>,
    name: String,
    client_urls: Vec<String>,
    clock: Clock,
    progress_interval: Duration,
    metrics: Arc<ServerMetrics>,
    disk: DiskObserver,
    alarms: Alarms,
    quota: Quota,
    /// A new store may be compacted up to 0, once; that is forgotten when this ends: nothing depends on it.
    compacted_nothing: AtomicBool,
}

/// What is told of a server as of a member of a cluster, and how it behaves.
#[derive(Debug, Clone)]
pub struct ServerOptions {
    /// `--name`
    pub name: String,
    /// `--advertise-client-urls`
    pub client_urls: Vec<String>,
    /// `--watch-progress-notify-interval`
    pub progress_interval: Duration,
    /// `--quota-backend-bytes`: 0 is etcd's default, and less than that is no quota.
    pub quota_bytes: i64,
    /// Where alarms are kept; nowhere, where the store is not kept either.
    pub alarms_file: Option<PathBuf>,
}

impl Default for ServerOptions {
    fn default() -> ServerOptions {
        ServerOptions {
            name: "default".to_owned(),
            client_urls: Vec::new(),
            progress_interval: PROGRESS_INTERVAL,
            quota_bytes: -1,
            alarms_file: None,
        }
    }
}

impl EtcdServer {
    /// On a store whose values are shown so.
    pub fn new(source: StoreSource, values: Arc<dyn Values>, options: ServerOptions) -> EtcdServer {
        let metrics: Arc<ServerMetrics> = Arc::default();
        EtcdServer(Arc::new(ServerInner {
            source,
            values,
            name: options.name,
            client_urls: options.client_urls,
            // Who waits for a watch's progress lives in real time, whatever the store's clock says.
            clock: Clock::real(),
            progress_interval: options.progress_interval.max(MIN_PROGRESS_INTERVAL),
            disk: metrics.disk_observer(),
            metrics,
            alarms: Alarms::read(options.alarms_file),
            quota: Quota::new(options.quota_bytes),
            compacted_nothing: AtomicBool::new(false),
        }))
    }

    /// The store.
    pub(crate) fn kv(&self) -> Result<Kv, EtcdStatus> {
        let kv = (self.0.source)()?;
        kv.observe_disk(&self.0.disk);
        Ok(kv)
    }

    pub(crate) fn alarms(&self) -> &Alarms {
        &self.0.alarms
    }

    pub(crate) fn quota(&self) -> &Quota {
        &self.0.quota
    }

    /// Whether alarms and the quota let something be written that needs so much room: 0 is what needs none.
    pub(crate) fn admit(&self, cost: u64) -> Result<(), EtcdStatus> {
        let alarms = &self.0.alarms;
        if alarms.is_raised(CORRUPT) {
            return Err(EtcdError::Corrupt.into());
        }
        if cost == 0 {
            return Ok(());
        }
        if alarms.is_raised(NOSPACE) {
            return Err(EtcdError::NoSpace.into());
        }
        let kv = self.kv()?;
        if !self.0.quota.has_room(cost, || kv.bytes_on_disk()) {
            alarms.raise_no_space(MEMBER_ID);
            return Err(EtcdError::NoSpace.into());
        }
        Ok(())
    }

    /// Up to where a store was compacted: -1 if never.
    pub(crate) fn compact_revision(&self, kv: &Kv) -> i64 {
        match kv.compact_revision() {
            0 if !self.0.compacted_nothing.load(Ordering::Relaxed) => -1,
            revision => signed(revision),
        }
    }

    /// A new store was compacted up to 0.
    pub(crate) fn compacted_nothing(&self) {
        self.0.compacted_nothing.store(true, Ordering::Relaxed);
    }

    pub(crate) fn values(&self) -> &Arc<dyn Values> {
        &self.0.values
    }

    pub(crate) fn clock(&self) -> &Clock {
        &self.0.clock
    }

    pub(crate) fn progress_interval(&self) -> Duration {
        self.0.progress_interval
    }

    pub(crate) fn metrics(&self) -> &Arc<ServerMetrics> {
        &self.0.metrics
    }

    pub(crate) fn name(&self) -> &str {
        &self.0.name
    }

    pub(crate) fn client_urls(&self) -> &[String] {
        &self.0.client_urls
    }
}

impl std::fmt::Debug for EtcdServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "EtcdServer {}", self.0.name)
    }
}

/// What every answer begins with.
pub(crate) fn header(revision: u64) -> Nested<ResponseHeader> {
    Nested::some(ResponseHeader {
        cluster_id: CLUSTER_ID,
        member_id: MEMBER_ID,
        revision: signed(revision),
        raft_term: RAFT_TERM,
    })
}

/// What answers within that of a transaction begin with: who answers is said once.
pub(crate) fn header_within(revision: u64) -> Nested<ResponseHeader> {
    Nested::some(ResponseHeader { revision: signed(revision), ..ResponseHeader::default() })
}

pub(crate) fn header_only(revision: u64) -> HeaderResponse {
    HeaderResponse { header: header(revision) }
}

/// A revision as it is sent.
pub(crate) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// What is written at once has a bound (`ErrRequestTooLarge`).
pub(crate) fn check_size(bytes: usize) -> Result<(), EtcdStatus> {
    if bytes > MAX_REQUEST_BYTES { Err(EtcdError::RequestTooLarge.into()) } else { Ok(()) }
}
