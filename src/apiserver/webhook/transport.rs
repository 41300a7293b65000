//! `Transport`: HTTP/1.1 over TLS with connections that are used again (`http.Transport` as client-go sets it
//! up). HTTP/2 is left out, as upstream does: a connection would go to one endpoint for ever.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use axum::body::Body;
use hyper::body::Incoming;
use hyper_rustls::builderstates::WantsProtocols1;
use hyper_rustls::{FixedServerNameResolver, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::{Builder, Client};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls_pki_types::ServerName;

use super::config::{ClientConfig, WebhookTarget};
use super::connector::Connector;
use super::errors::{CallError, DialError, describe};
use super::redirects::{Journey, skip};
use super::service_resolver::ServiceResolver;
use super::tls::tls_config;

/// Connections that are kept open while nobody needs them, as in client-go; beyond it they are closed. How
/// many are in use at once is bounded by the requests that the server takes.
const MAX_IDLE_CONNECTIONS: usize = 25;
/// How long one is kept, as Go's `IdleConnTimeout`.
const IDLE_TIMEOUT: Duration = Duration::from_secs(90);

pub(super) type Http = Client<HttpsConnector<Connector>, Body>;

/// Sends requests to one target. Cloning shares its connections.
#[derive(Clone)]
pub struct Transport(Arc<TransportInner>);

struct TransportInner {
    config: ClientConfig,
    resolver: ServiceResolver,
    /// Made with the first request: certificates take time to read.
    http: OnceLock<Result<Http, String>>,
    /// Connections to hosts that redirects lead to, who are not shown our certificate.
    elsewhere: OnceLock<Result<Http, String>>,
}

impl Transport {
    /// Connects to the target of `config`. The name of a Service (`name.namespace.svc`, with its port) leads
    /// to one of its endpoints; any other host is the system's to find.
    pub fn new(config: &ClientConfig, resolver: &ServiceResolver) -> Transport {
        let (config, resolver) = (config.clone(), resolver.clone());
        let http = OnceLock::new();
        let elsewhere = OnceLock::new();
        Transport(Arc::new(TransportInner { config, resolver, http, elsewhere }))
    }

    /// Sends a request with an absolute URL. The answer's body is still to be read.
    ///
    /// # Errors
    /// In Go's words.
    pub async fn send(&self, request: http::Request<Body>) -> Result<http::Response<Incoming>, CallError> {
        let (method, url) = (request.method().clone(), request.uri().to_string());
        let sent = self.send_to(false, request).await;
        sent.map_err(|why| CallError::failed(&method, &url, &why))
    }

    /// Sends a journey's next request.
    ///
    /// # Errors
    /// In Go's words.
    pub async fn send_on(&self, journey: &Journey) -> Result<http::Response<Incoming>, CallError> {
        let is_elsewhere = journey.has_left() && self.0.config.identity.is_some();
        let sent = self.send_to(is_elsewhere, journey.request()?).await;
        sent.map_err(|why| journey.failed(&why))
    }

    /// Sends a journey's requests until an answer sends it no further.
    ///
    /// # Errors
    /// In Go's words.
    pub async fn send_all_the_way(
        &self,
        mut journey: Journey,
    ) -> Result<http::Response<Incoming>, CallError> {
        loop {
            let response = self.send_on(&journey).await?;
            if !journey.follow(response.status(), response.headers())? {
                return Ok(response);
            }
            skip(response.into_body()).await;
        }
    }

    async fn send_to(
        &self,
        is_elsewhere: bool,
        request: http::Request<Body>,
    ) -> Result<http::Response<Incoming>, String> {
        let made = if is_elsewhere {
            self.0.elsewhere.get_or_init(|| self.0.connect(&self.0.config.anonymous()))
        } else {
            self.0.http.get_or_init(|| self.0.connect(&self.0.config))
        };
        let sent = made.as_ref().map_err(Clone::clone)?.request(request).await;
        sent.map_err(|error| describe(&error, 0))
    }
}

impl TransportInner {
    fn connect(&self, config: &ClientConfig) -> Result<Http, String> {
        let service = match &config.target {
            WebhookTarget::Service(service) => Some((self.resolver.clone(), service.clone())),
            WebhookTarget::Url(_) => None,
        };
        let secured = secured(config).map_err(|why| why.0)?;
        let connector = secured.enable_http1().wrap_connector(Connector::new(service));
        Ok(builder().build(connector))
    }
}

/// With the TLS that a config asks for.
pub(super) fn secured(config: &ClientConfig) -> Result<HttpsConnectorBuilder<WantsProtocols1>, DialError> {
    let tls = tls_config(config).map_err(|why| DialError(why.into()))?;
    let builder = HttpsConnectorBuilder::new().with_tls_config(tls).https_or_http();
    let Some(name) = config.expected_name() else { return Ok(builder) };
    let name = ServerName::try_from(name).map_err(|error| DialError(error.to_string()))?;
    Ok(builder.with_server_name_resolver(FixedServerNameResolver::new(name)))
}

/// Connections are kept as client-go keeps them.
pub(super) fn builder() -> Builder {
    let mut builder = Client::builder(TokioExecutor::new());
    builder
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(IDLE_TIMEOUT)
        .pool_max_idle_per_host(MAX_IDLE_CONNECTIONS);
    builder
}
