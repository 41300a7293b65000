//! One question to a running cluster, asked as its kubeconfig says: the address, whom to trust, who we are.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use axum::body::Body;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::Method;
use http_body_util::BodyExt;
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, ServerName};
use serde_yaml::Value;
use tokio::net::TcpStream;

use super::Failure;
use super::trust::Trust;
use crate::cluster::Access;
use apimachinery::yaml;
use pki::Identity;

/// A context of a kubeconfig.
pub struct Context {
    /// What it says.
    pub access: Access,
}

impl Context {
    /// Reads the context `name` of a file.
    pub fn load(path: &Path, name: &str) -> Result<Context, Failure> {
        let shown = path.display();
        let text =
            fs::read_to_string(path).map_err(|error| Failure::new(format!("cannot read {shown}"), error))?;
        Context::parse(&text, &shown.to_string(), name)
    }

    /// Reads the context `name` of a text; `shown` is what errors call it.
    pub fn parse(text: &str, shown: &str, name: &str) -> Result<Context, Failure> {
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
        Ok(Context { access: Access { server, authority_pem, identity } })
    }

    /// The body of the answer to a GET; anything but success is a failure with the server's message.
    pub async fn get(&self, path_and_query: &str) -> Result<Vec<u8>, Failure> {
        self.ask(Method::GET, path_and_query, Vec::new()).await
    }

    /// The body of the answer to any request, with a body of JSON or none.
    pub async fn ask(&self, method: Method, path_and_query: &str, body: Vec<u8>) -> Result<Vec<u8>, Failure> {
        let server = &self.access.server;
        let failed = |error: String| Failure::new(format!("cannot ask {server}"), error);
        let (scheme, authority) = server.split_once("://").ok_or_else(|| failed("it is not a URL".into()))?;
        let stream = TcpStream::connect(authority).await.map_err(|error| failed(error.to_string()))?;
        let request = http::Request::builder()
            .method(method)
            .uri(path_and_query)
            .header("content-type", "application/json")
            .header("host", authority)
            .header("accept", "application/json")
            .header("user-agent", concat!("kubarium/", env!("CARGO_PKG_VERSION")))
            .body(Body::from(body))
            .map_err(|error| failed(error.to_string()))?;
        let response = if scheme == "https" {
            let stream = self.tls(stream).await.map_err(|error| failed(error.to_string()))?;
            send(stream, request).await
        } else {
            send(stream, request).await
        };
        let (status, body) = response.map_err(|error| failed(error.to_string()))?;
        if status.is_success() {
            return Ok(body);
        }
        let answer: serde_json::Value = serde_json::from_slice(&body).unwrap_or_default();
        let text = || format!("{status}: {}", String::from_utf8_lossy(&body).trim());
        Err(Failure(answer["message"].as_str().map_or_else(text, str::to_owned)))
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

async fn send<S>(stream: S, request: http::Request<Body>) -> Result<(http::StatusCode, Vec<u8>), axum::Error>
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
{
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(axum::Error::new)?;
    let connection = tokio::spawn(connection);
    let response = sender.send_request(request).await.map_err(axum::Error::new)?;
    let status = response.status();
    let body = response.into_body().collect().await.map_err(axum::Error::new)?.to_bytes();
    connection.abort();
    Ok((status, body.to_vec()))
}
