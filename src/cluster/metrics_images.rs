//! Pods of metrics-server and of the Prometheus adapter, which many install: their images serve what is
//! measured in this process, so that `kubectl top` and autoscalers go on when somebody registers them.

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, OnceLock, Weak};

use axum::body::Body;
use bytes::Bytes;
use chrono::{DateTime, Utc};
use futures::FutureExt;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Limited};
use tower::ServiceExt;

use super::inside::Inside;
use apimachinery::wire::{ApiRequest, text_response};
use kubelet::container_runtime::own_listeners::StandIn;
use network::tls::TlsIdentity;
use pki::Authority;

/// Images that serve APIs of metrics.
const IMAGES: &[&str] = &["metrics-server", "prometheus-adapter", "k8s-prometheus-adapter"];
/// What anybody may ask: probes do.
const HEALTH: &[&str] = &["/healthz", "/livez", "/readyz"];
/// The longest answer: the usage of as many pods as a cluster can have.
const MAX_ANSWER_BYTES: usize = 256 << 20;

/// Who answers for the images.
struct MetricsPods {
    /// It holds the listeners, so that they do not hold it.
    inside: Weak<Inside>,
    service: (&'static str, &'static str),
    started_at: DateTime<Utc>,
    /// Made when somebody connects for the first time.
    identity: OnceLock<Option<TlsIdentity>>,
}

/// Lets the server behind a Service answer for pods of the images.
pub(super) fn stand_in(inside: &Arc<Inside>, service: (&'static str, &'static str)) {
    let pods = Arc::new(MetricsPods {
        inside: Arc::downgrade(inside),
        service,
        started_at: inside.clock.now(),
        identity: OnceLock::new(),
    });
    let handler = Arc::new(move |io, from: String| {
        let pods = pods.clone();
        async move { pods.serve(io, &from).await }.boxed()
    });
    inside.config.listeners.stand_in(StandIn { images: IMAGES, handler });
}

impl MetricsPods {
    async fn serve(&self, io: tokio::io::DuplexStream, from: &str) {
        let Some(identity) = self.identity.get_or_init(|| identity(self.started_at)) else { return };
        let is_server = self.is_server(from);
        // Whoever does not trust the certificate has gone.
        let Ok(io) = identity.accept(io).await else { return };
        network::http_server::serve(io, |request| self.answer(request, is_server)).await;
    }

    /// Whether the apiserver asks. It alone may say for whom.
    fn is_server(&self, from: &str) -> bool {
        let from: Option<IpAddr> = from.parse::<SocketAddr>().ok().map(|from| from.ip());
        let kubelets = self.inside.upgrade().map(|inside| inside.running.kubelets());
        from.is_some() && from == kubelets.and_then(|kubelets| kubelets.first_address())
    }

    async fn answer(&self, request: Request<Bytes>, is_server: bool) -> Response<Bytes> {
        if HEALTH.contains(&request.uri().path()) {
            return Response::new(Bytes::from_static(b"ok"));
        }
        let inside = self.inside.upgrade().filter(|_| is_server);
        let server = inside.and_then(|inside| inside.interceptors.servers.at(self.service.0, self.service.1));
        let response = match server {
            Some(server) => {
                let request: ApiRequest = request.map(Body::from);
                server.oneshot(request).await.unwrap_or_else(|never| match never {})
            }
            None => text_response(StatusCode::UNAUTHORIZED, "Unauthorized\n"),
        };
        let (head, body) = response.into_parts();
        match Limited::new(body, MAX_ANSWER_BYTES).collect().await {
            Ok(body) => Response::from_parts(head, body.to_bytes()),
            Err(_) => text_response(StatusCode::INTERNAL_SERVER_ERROR, "").map(|_| Bytes::new()),
        }
    }
}

/// A certificate of its own, as theirs is: their APIServices skip to verify it.
fn identity(now: DateTime<Utc>) -> Option<TlsIdentity> {
    let made = Authority::generate(now).ok()?.server(&["localhost"], &[], now).ok()?;
    TlsIdentity::new(made.certificate_pem.as_bytes(), made.key_pem.as_bytes()).ok()
}
