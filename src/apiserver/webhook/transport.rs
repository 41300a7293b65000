//! `Transport`: HTTP/1.1 over TLS with connections that are used again (`http.Transport` as client-go sets it
//! up). HTTP/2 is left out, as upstream does: a connection would go to one endpoint for ever.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use axum::body::Body;
use hyper::body::Incoming;
use hyper_rustls::{FixedServerNameResolver, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls_pki_types::ServerName;

use super::config::{ClientConfig, Target};
use super::connector::Connector;
use super::errors::{CallError, describe};
use super::service_resolver::ServiceResolver;
use super::tls::tls_config;

/// Connections that are kept open while nobody needs them, as in client-go; beyond it they are closed. How
/// many are in use at once is bounded by the requests that the server takes.
const MAX_IDLE_CONNECTIONS: usize = 25;
/// How long one is kept, as Go's `IdleConnTimeout`.
const IDLE_TIMEOUT: Duration = Duration::from_secs(90);

type Http = Client<HttpsConnector<Connector>, Body>;

/// Sends requests to one target. Cloning shares its connections.
#[derive(Clone)]
pub struct Transport(Arc<Inner>);

struct Inner {
    config: ClientConfig,
    resolver: ServiceResolver,
    /// Made with the first request: certificates take time to read.
    http: OnceLock<Result<Http, String>>,
}

impl Transport {
    /// Connects to the target of `config`, whatever host a request's URL names when that is a Service.
    pub fn new(config: &ClientConfig, resolver: &ServiceResolver) -> Transport {
        let (config, resolver) = (config.clone(), resolver.clone());
        Transport(Arc::new(Inner { config, resolver, http: OnceLock::new() }))
    }

    /// Sends a request with an absolute URL. The answer's body is still to be read.
    ///
    /// # Errors
    /// In Go's words.
    pub async fn send(&self, request: http::Request<Body>) -> Result<http::Response<Incoming>, CallError> {
        let url = request.uri().to_string();
        let made = self.0.http.get_or_init(|| self.0.connect());
        let http = made.as_ref().map_err(|error| CallError::failed(&url, error))?;
        http.request(request).await.map_err(|error| CallError::failed(&url, &describe(&error, 0)))
    }
}

impl Inner {
    fn connect(&self) -> Result<Http, String> {
        let service = match &self.config.target {
            Target::Service(service) => Some((self.resolver.clone(), service.clone())),
            Target::Url(_) => None,
        };
        let builder = HttpsConnectorBuilder::new().with_tls_config(tls_config(&self.config)?).https_or_http();
        let builder = match &self.config.server_name {
            Some(name) => {
                let name = ServerName::try_from(name.clone()).map_err(|error| error.to_string())?;
                builder.with_server_name_resolver(FixedServerNameResolver::new(name))
            }
            None => builder,
        };
        let connector = builder.enable_http1().wrap_connector(Connector::new(service));
        Ok(Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE_TIMEOUT)
            .pool_max_idle_per_host(MAX_IDLE_CONNECTIONS)
            .build(connector))
    }
}
