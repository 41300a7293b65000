//! Opens connections: a Service's name is looked up in the cluster, any other by the system (upstream's
//! `cfg.Dial`). Where a Service leads to a pod, the cluster's own network leads there.

use std::net::{IpAddr, SocketAddr};
use std::task::{Context, Poll};
use std::time::Duration;

use futures::future::BoxFuture;
use http::Uri;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioIo;
use tower::Service;

use super::config::ServiceReference;
use super::errors::{DialError, of_system};
use super::line::WebhookConnection;
use super::service_resolver::{ServiceBackend, ServiceResolver};

/// So long a connection may take to be there, as in client-go (`net.Dialer`).
const DIAL_TIMEOUT: Duration = Duration::from_secs(30);

/// Connects to a Service's endpoint where the URL names that, or to the host of the URL.
#[derive(Clone)]
pub(super) struct Connector {
    tcp: HttpConnector,
    service: Option<(ServiceResolver, ServiceReference)>,
}

impl Connector {
    /// To whatever URLs say, and to one Service.
    pub(super) fn new(service: Option<(ServiceResolver, ServiceReference)>) -> Connector {
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_connect_timeout(Some(DIAL_TIMEOUT));
        Connector { tcp, service }
    }
}

impl Service<Uri> for Connector {
    type Response = WebhookConnection;
    type Error = DialError;
    type Future = BoxFuture<'static, Result<Self::Response, DialError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), DialError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let Connector { mut tcp, service } = self.clone();
        Box::pin(async move {
            let uri = match service.as_ref().filter(|(_, service)| is_of(service, &uri)) {
                None => uri,
                Some((resolver, service)) => {
                    let found = resolver.resolve(&service.namespace, &service.name, service.port).await;
                    let backend = found.map_err(|status| DialError(status.message))?;
                    if let Some(dialed) = dial_pod(resolver, &backend, service.port).await {
                        return dialed;
                    }
                    endpoint(&backend.host, backend.port)?
                }
            };
            let failed = |error| DialError(refusal(&uri, &error));
            let stream = tcp.call(uri.clone()).await.map_err(failed)?;
            let to = stream.inner().peer_addr().ok();
            Ok(WebhookConnection::new(stream, to))
        })
    }
}

/// Whether a URL names the Service: a redirect may lead elsewhere.
fn is_of(service: &ServiceReference, uri: &Uri) -> bool {
    uri.host() == Some(&service.server_name()) && uri.port_u16().unwrap_or(443) == service.port
}

/// Connects to a pod; nothing where it is none. Whoever asks knows but the Service's address, if it has one.
async fn dial_pod(
    resolver: &ServiceResolver,
    backend: &ServiceBackend,
    service_port: u16,
) -> Option<Result<WebhookConnection, DialError>> {
    let address: IpAddr = backend.host.parse().ok()?;
    let dialer = resolver.pods().dialer_to(address)?;
    let to = SocketAddr::new(address, backend.port);
    let shown = backend.cluster_ip.map_or(to, |address| SocketAddr::new(address, service_port));
    let dialed = dialer.dial(to).await;
    let failed = |error: std::io::Error| DialError(format!("dial tcp {shown}: {}", of_system(&error)));
    Some(dialed.map(|stream| WebhookConnection::new(TokioIo::new(stream), Some(to))).map_err(failed))
}

fn endpoint(host: &str, port: u16) -> Result<Uri, DialError> {
    let host = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
    format!("https://{host}:{port}").parse().map_err(|error| DialError(format!("dial tcp: {error}")))
}

fn refusal(uri: &Uri, error: &(dyn std::error::Error + 'static)) -> String {
    let host = uri.host().unwrap_or_default();
    let default = if uri.scheme_str() == Some("http") { 80 } else { 443 };
    let port = uri.port_u16().unwrap_or(default);
    let mut cause = Some(error);
    while let Some(current) = cause {
        if let Some(io) = current.downcast_ref::<std::io::Error>() {
            if io.raw_os_error().is_some() {
                return format!("dial tcp {host}:{port}: {}", of_system(io));
            }
            return format!("dial tcp: lookup {host}: no such host");
        }
        cause = current.source();
    }
    format!("dial tcp {host}:{port}: {error}")
}
