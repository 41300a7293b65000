//! The services and their methods, by path.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use clock::Clock;
use etcd::Kv;
use http::{HeaderValue, Request, Response, StatusCode};

use crate::messages::{HeaderResponse, Nested, ResponseHeader};
use crate::status::{EtcdError, GrpcStatus, MAX_REQUEST_BYTES, UNIMPLEMENTED};
use crate::unary::{failed, unary};
use crate::values::Values;
use crate::watch::PROGRESS_INTERVAL;
use crate::{cluster, http1, kv, lease, maintenance, snapshot, txn, watch};

/// What etcd calls a cluster of one member with its default name and URLs.
pub(crate) const CLUSTER_ID: u64 = 0xcdf8_1819_4e3a_8c32;
/// What etcd calls its member.
pub(crate) const MEMBER_ID: u64 = 0x8e9e_05c5_2164_694d;
/// There is one leader for ever.
pub(crate) const RAFT_TERM: u64 = 2;

/// etcd tells progress no more often than this (`minWatchProgressInterval`).
const MIN_PROGRESS_INTERVAL: Duration = Duration::from_millis(100);

/// Where the store is; why there is none at the moment.
pub type Source = Arc<dyn Fn() -> Result<Kv, GrpcStatus> + Send + Sync>;

/// etcd's API on a store. Cloning shares it.
#[derive(Clone)]
pub struct EtcdServer(Arc<Inner>);

struct Inner {
    source: Source,
    values: Arc<dyn Values>,
    name: String,
    client_urls: Vec<String>,
    clock: Clock,
    progress_interval: Duration,
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
}

impl Default for ServerOptions {
    fn default() -> ServerOptions {
        let name = "default".to_owned();
        ServerOptions { name, client_urls: Vec::new(), progress_interval: PROGRESS_INTERVAL }
    }
}

impl EtcdServer {
    /// On a store whose values are shown so.
    pub fn new(source: Source, values: Arc<dyn Values>, options: ServerOptions) -> EtcdServer {
        let ServerOptions { name, client_urls, progress_interval } = options;
        let progress_interval = progress_interval.max(MIN_PROGRESS_INTERVAL);
        // Who waits for a watch's progress lives in real time, whatever the store's clock says.
        let clock = Clock::real();
        EtcdServer(Arc::new(Inner { source, values, name, client_urls, clock, progress_interval }))
    }

    /// Answers a request: of gRPC, or what etcd answers to plain HTTP beside it (`/health`, `/version`).
    pub async fn serve(&self, request: Request<Body>) -> Response<Body> {
        let kind = request.headers().get(http::header::CONTENT_TYPE).map(HeaderValue::as_bytes);
        if !kind.unwrap_or_default().starts_with(b"application/grpc") {
            return http1::answer(self, request.uri().path());
        }
        let path = request.uri().path().to_owned();
        let body = request.into_body();
        match path.strip_prefix("/etcdserverpb.").and_then(|path| path.split_once('/')) {
            Some(("KV", method)) => self.serve_kv(method, body).await,
            Some(("Watch", "Watch")) => watch::serve(self, body),
            Some(("Lease", method)) => self.serve_lease(method, body).await,
            Some(("Maintenance", method)) => self.serve_maintenance(method, body).await,
            Some(("Cluster", method)) => cluster::serve(self, method, body).await,
            Some(("Auth", method)) => self.serve_auth(method, body).await,
            _ if path == "/grpc.health.v1.Health/Check" => maintenance::health(self, body).await,
            _ => unknown(&path),
        }
    }

    async fn serve_kv(&self, method: &str, body: Body) -> Response<Body> {
        match method {
            "Range" => unary(body, async |request, _| kv::range(self, &request)).await,
            "Put" => unary(body, async |request, bytes| kv::put(self, request, bytes).await).await,
            "DeleteRange" => unary(body, async |request, _| kv::delete_range(self, request).await).await,
            "Txn" => unary(body, async |request, bytes| txn::txn(self, request, bytes).await).await,
            "Compact" => unary(body, async |request, _| kv::compact(self, &request).await).await,
            other => unknown(other),
        }
    }

    async fn serve_lease(&self, method: &str, body: Body) -> Response<Body> {
        match method {
            "LeaseGrant" => unary(body, async |request, _| lease::grant(self, &request).await).await,
            "LeaseRevoke" => unary(body, async |request, _| lease::revoke(self, &request).await).await,
            "LeaseKeepAlive" => lease::keep_alive(self, body),
            "LeaseTimeToLive" => unary(body, async |request, _| lease::time_to_live(self, &request)).await,
            "LeaseLeases" => unary(body, async |request, _| lease::leases(self, &request)).await,
            other => unknown(other),
        }
    }

    async fn serve_maintenance(&self, method: &str, body: Body) -> Response<Body> {
        match method {
            "Status" => unary(body, async |request, _| maintenance::status(self, &request)).await,
            "Alarm" => unary(body, async |request, _| maintenance::alarm(self, &request)).await,
            "Defragment" => {
                unary(body, async |request, _| maintenance::defragment(self, &request).await).await
            }
            "Hash" => unary(body, async |request, _| maintenance::hash(self, &request)).await,
            "HashKV" => unary(body, async |request, _| maintenance::hash_kv(self, &request)).await,
            "Snapshot" => snapshot::serve(self, body).await,
            "MoveLeader" | "Downgrade" => failed(&GrpcStatus::new(
                UNIMPLEMENTED,
                "kubarium: this etcd is one process: there is no other member",
            )),
            other => unknown(other),
        }
    }

    /// Nobody has a user here: who may connect may do all, as in an etcd without users.
    async fn serve_auth(&self, method: &str, body: Body) -> Response<Body> {
        match method {
            "AuthStatus" => unary(body, async |request, _| maintenance::auth_status(self, &request)).await,
            "Authenticate" | "AuthDisable" => failed(&EtcdError::AuthNotEnabled.into()),
            _ => failed(&GrpcStatus::new(
                UNIMPLEMENTED,
                "kubarium: this etcd keeps no users and roles; let clients show certificates (--client-cert-auth)",
            )),
        }
    }

    /// The store.
    pub(crate) fn kv(&self) -> Result<Kv, GrpcStatus> {
        (self.0.source)()
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

fn unknown(method: &str) -> Response<Body> {
    let mut response = failed(&GrpcStatus::new(UNIMPLEMENTED, format!("unknown method {method}")));
    *response.status_mut() = StatusCode::OK;
    response
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

pub(crate) fn header_only(revision: u64) -> HeaderResponse {
    HeaderResponse { header: header(revision) }
}

/// A revision as it is sent.
pub(crate) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// What is written at once has a bound (`ErrRequestTooLarge`).
pub(crate) fn check_size(bytes: usize) -> Result<(), GrpcStatus> {
    if bytes > MAX_REQUEST_BYTES { Err(EtcdError::RequestTooLarge.into()) } else { Ok(()) }
}
