//! The services and their methods, by path.

use axum::body::Body;
use http::{HeaderValue, Request, Response};

use crate::metrics::CountedCall;
use crate::server::EtcdServer;
use crate::status::{EtcdError, EtcdStatus, UNIMPLEMENTED};
use crate::unary::{failed, unary};
use crate::{cluster, http1, kv, lease, maintenance, snapshot, txn, watch};

impl EtcdServer {
    /// Answers a request: of gRPC, or what etcd answers to plain HTTP beside it (`/health`, `/version`,
    /// `/metrics`).
    pub async fn serve(&self, request: Request<Body>) -> Response<Body> {
        let kind = request.headers().get(http::header::CONTENT_TYPE).map(HeaderValue::as_bytes);
        if !kind.unwrap_or_default().starts_with(b"application/grpc") {
            return http1::answer(self, request.method(), request.uri());
        }
        let path = request.uri().path().to_owned();
        let body = request.into_body();
        match CountedCall::begin(self.metrics(), &path) {
            Some(call) => {
                let body = call.asked(body);
                call.answered(self.serve_grpc(path, body).await)
            }
            None => self.serve_grpc(path, body).await,
        }
    }

    async fn serve_grpc(&self, path: String, body: Body) -> Response<Body> {
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
            "MoveLeader" | "Downgrade" => failed(&EtcdStatus::new(
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
            // Of an etcd without users that is no mistake.
            "AuthDisable" => unary(body, async |request, _| maintenance::auth_disable(self, &request)).await,
            "Authenticate" => failed(&EtcdError::AuthNotEnabled.into()),
            _ => failed(&EtcdStatus::new(
                UNIMPLEMENTED,
                "kubarium: this etcd keeps no users and roles; let clients show certificates (--client-cert-auth)",
            )),
        }
    }
}

fn unknown(method: &str) -> Response<Body> {
    failed(&EtcdStatus::new(UNIMPLEMENTED, format!("unknown method {method}")))
}
