//! One question to a running cluster, asked as its kubeconfig says: the address, whom to trust, who we are.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use axum::body::Body;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::Method;
use http::header::{HeaderName, HeaderValue};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, ServerName};
use serde_yaml::Value;
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::Failure;
use super::kubeconfig::current;
use super::trust::Trust;
use crate::cluster::Access;
use apimachinery::yaml;
use pki::Identity;

/// A line of an answer that is longer is none: the record is told in lines of some megabytes at most.
const MAX_LINE_BYTES: usize = 64 * 1024 * 1024;

/// A context of a kubeconfig.
#[derive(Clone)]
pub(crate) struct Context {
    /// What it says.
    pub access: Access,
    /// What goes with each request, as a token.
    headers: Vec<(HeaderName, HeaderValue)>,
}

impl Context {
    /// Reads the context `name` of a file.
    pub(crate) fn load(path: &Path, name: &str) -> Result<Context, Failure> {
        let shown = path.display();
        let text =
            fs::read_to_string(path).map_err(|error| Failure::new(format!("cannot read {shown}"), error))?;
        Context::parse(&text, &shown.to_string(), name)
    }

    /// As the one whose access it is.
    pub(crate) fn of(access: Access) -> Context {
        Context { access, headers: vec![] }
    }

    /// As this one, of another server that trusts whom this one trusts.
    pub(crate) fn at(&self, server: &str) -> Context {
        Context { access: Access { server: server.to_owned(), ..self.access.clone() }, ..self.clone() }
    }

    /// Reads the context `name` of a text; `shown` is what errors call it.
    pub(crate) fn parse(text: &str, shown: &str, name: &str) -> Result<Context, Failure> {
        let config: Value =
            yaml::from_str(text).map_err(|error| Failure::new(format!("{shown} is not YAML"), error))?;
        let named = |section: &str| {
            let entries = config[section].as_sequence()?;
            entries.iter().find(|entry| entry["name"].as_str() == Some(name)).cloned()
        };
        let none = || Failure(format!("{shown} has no context {name:?}"));
        let (cluster, user) = (named("clusters").ok_or_else(none)?, named("users").ok_or_else(none)?);
        let decoded = |value: &Value| {
            let bytes = STANDARD.decode(value.as_str()?).ok()?;
            String::from_utf8(bytes).ok()
        };
        let (cluster, user) = (&cluster["cluster"], &user["user"]);
        let identity = decoded(&user["client-certificate-data"])
            .zip(decoded(&user["client-key-data"]))
            .map(|(certificate_pem, key_pem)| Identity { certificate_pem, key_pem });
        let server = cluster["server"].as_str().ok_or_else(none)?.to_owned();
        let authority_pem = decoded(&cluster["certificate-authority-data"]);
        Ok(Context::of(Access { server, authority_pem, identity }))
    }

    /// In the name of whom kubectl asks this server, if its current context is about it; else as it is.
    pub(crate) fn for_the_user(mut self) -> Result<Context, Failure> {
        if let Some(credentials) = current::credentials_at(&self.access.server)? {
            (self.access.identity, self.headers) = (credentials.identity, credentials.headers);
        }
        Ok(self)
    }

    /// The body of the answer to a GET; anything but success is a failure with the server's message.
    pub(crate) async fn get(&self, path_and_query: &str) -> Result<Vec<u8>, Failure> {
        self.ask(Method::GET, path_and_query, Vec::new()).await
    }

    /// The body of the answer to any request, with a body of JSON or none.
    pub(crate) async fn ask(
        &self,
        method: Method,
        path_and_query: &str,
        body: Vec<u8>,
    ) -> Result<Vec<u8>, Failure> {
        let (response, _connection) = self.open(method, path_and_query, body).await?;
        let status = response.status();
        let body = response.into_body().collect().await.map_err(|error| self.failed(error))?.to_bytes();
        if status.is_success() { Ok(body.to_vec()) } else { Err(refusal(status, &body)) }
    }

    /// Each line of the answer to a GET as it comes, until the answer ends or nobody listens.
    pub(crate) async fn lines(&self, path_and_query: &str, to: mpsc::Sender<Vec<u8>>) -> Result<(), Failure> {
        let (response, _connection) = self.open(Method::GET, path_and_query, Vec::new()).await?;
        let (status, mut body) = (response.status(), response.into_body());
        if !status.is_success() {
            let body = body.collect().await.map_err(|error| self.failed(error))?.to_bytes();
            return Err(refusal(status, &body));
        }
        let mut rest = Vec::new();
        while let Some(Ok(frame)) = body.frame().await {
            rest.extend_from_slice(frame.data_ref().map_or(&[][..], |data| data));
            while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
                let line = rest.drain(..=end).collect();
                if to.send(line).await.is_err() {
                    return Ok(());
                }
            }
            if rest.len() > MAX_LINE_BYTES {
                return Err(
                    self.failed(format!("a line of its answer is longer than {MAX_LINE_BYTES} bytes"))
                );
            }
        }
        Ok(())
    }

    fn failed(&self, error: impl std::fmt::Display) -> Failure {
        Failure::new(format!("cannot ask {}", self.access.server), error)
    }

    /// Sends a request; the connection ends with what comes beside the answer.
    async fn open(
        &self,
        method: Method,
        path_and_query: &str,
        body: Vec<u8>,
    ) -> Result<(http::Response<Incoming>, JoinSet<()>), Failure> {
        let (scheme, authority) =
            self.access.server.split_once("://").ok_or_else(|| self.failed("it is not a URL"))?;
        let stream = TcpStream::connect(authority).await.map_err(|error| self.failed(error))?;
        let mut request = http::Request::builder()
            .method(method)
            .uri(path_and_query)
            .header("content-type", "application/json")
            .header("host", authority)
            .header("accept", "application/json")
            .header("user-agent", concat!("kubarium/", env!("CARGO_PKG_VERSION")))
            .body(Body::from(body))
            .map_err(|error| self.failed(error))?;
        request.headers_mut().extend(self.headers.iter().cloned());
        let sent = if scheme == "https" {
            send(self.tls(stream).await.map_err(|error| self.failed(error))?, request).await
        } else {
            send(stream, request).await
        };
        sent.map_err(|error| self.failed(error))
    }

    async fn tls(
        &self,
        stream: TcpStream,
    ) -> Result<tokio_rustls::client::TlsStream<TcpStream>, Box<dyn std::error::Error + Send + Sync>> {
        let authority = self.access.authority_pem.as_deref().unwrap_or_default();
        let trusted = CertificateDer::pem_slice_iter(authority.as_bytes()).collect::<Result<_, _>>()?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Trust::new(trusted, provider)?));
        let identity = self.access.identity.as_ref().and_then(Identity::to_der);
        let config = match identity {
            Some((certificate, key)) => builder.with_client_auth_cert(vec![certificate], key)?,
            None => builder.with_no_client_auth(),
        };
        let name = ServerName::from(stream.peer_addr()?.ip());
        Ok(tokio_rustls::TlsConnector::from(Arc::new(config)).connect(name, stream).await?)
    }
}

fn refusal(status: http::StatusCode, body: &[u8]) -> Failure {
    let answer: serde_json::Value = serde_json::from_slice(body).unwrap_or_default();
    let text = || format!("{status}: {}", String::from_utf8_lossy(body).trim());
    Failure(answer["message"].as_str().map_or_else(text, str::to_owned))
}

async fn send<S>(
    stream: S,
    request: http::Request<Body>,
) -> Result<(http::Response<Incoming>, JoinSet<()>), hyper::Error>
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
{
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    let mut connections = JoinSet::new();
    connections.spawn(async move {
        // What goes wrong with it is seen in the answer.
        let _ = connection.await;
    });
    Ok((sender.send_request(request).await?, connections))
}
