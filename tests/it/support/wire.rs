//! A client that interprets nothing: HTTP over TLS, bytes out, bytes in, one connection.
//!
//! Also compiled into the benches, where its cost must stay small beside the server's.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::{Bytes, BytesMut};
use http::header::{ACCEPT, CONTENT_TYPE, HOST};
use http::{HeaderMap, Method, Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use serde_json::Value;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// What is asked for when it does not matter.
pub(crate) const JSON: &str = "application/json";

/// Any failure on the way; the tests only need its text.
pub(crate) type Error = Box<dyn std::error::Error + Send + Sync>;

/// A server and who we are to it, as a kubeconfig says.
#[derive(Clone)]
pub(crate) struct Target {
    /// As `127.0.0.1:40123`.
    pub authority: String,
    tls: Arc<ClientConfig>,
    tls_http2: Arc<ClientConfig>,
}

impl Target {
    /// The one cluster of a kubeconfig.
    pub(crate) fn of_kubeconfig(path: &Path) -> Target {
        let config: serde_yaml::Value = serde_yaml::from_slice(&fs::read(path).unwrap()).unwrap();
        let (cluster, user) = (&config["clusters"][0]["cluster"], &config["users"][0]["user"]);
        let pem = |value: &serde_yaml::Value| STANDARD.decode(value.as_str().unwrap()).unwrap();
        let identity = [&user["client-certificate-data"], &user["client-key-data"]].map(pem);
        let server = cluster["server"].as_str().unwrap();
        Target::new(server, &pem(&cluster["certificate-authority-data"]), Some(identity))
    }

    /// A server (`https://...`), its authority, and our certificate and key, if any; PEM.
    pub(crate) fn new(server: &str, authority_pem: &[u8], identity: Option<[Vec<u8>; 2]>) -> Target {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(authority_pem) {
            roots.add(certificate.unwrap()).unwrap();
        }
        let builder = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots);
        let config = match identity {
            Some([certificate, key]) => {
                let certificate = CertificateDer::from_pem_slice(&certificate).unwrap();
                let key = PrivateKeyDer::from_pem_slice(&key).unwrap();
                builder.with_client_auth_cert(vec![certificate], key).unwrap()
            }
            None => builder.with_no_client_auth(),
        };
        let mut http2 = config.clone();
        http2.alpn_protocols = vec![b"h2".to_vec()];
        let authority = server.strip_prefix("https://").unwrap().to_owned();
        Target { authority, tls: Arc::new(config), tls_http2: Arc::new(http2) }
    }

    /// A TLS connection on which nothing has been said yet.
    pub(crate) async fn connect(&self) -> Result<TlsStream<TcpStream>, Error> {
        self.handshake(&self.tls).await
    }

    /// HTTP/1.1: one request at a time.
    pub(crate) async fn http1(&self) -> Result<Wire, Error> {
        let stream = self.handshake(&self.tls).await?;
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        Ok(Wire { sender: Sender::Http1(sender), authority: self.authority.clone() })
    }

    /// HTTP/2: up to a hundred requests at a time, through clones.
    pub(crate) async fn http2(&self) -> Result<Wire, Error> {
        Ok(Wire { sender: Sender::Http2(self.http2_sender().await?), authority: self.authority.clone() })
    }

    /// The same for somebody else's requests.
    pub(crate) async fn http2_sender<B>(&self) -> Result<http2::SendRequest<B>, Error>
    where
        B: hyper::body::Body<Data = Bytes, Error: Into<Error>> + Send + Unpin + 'static,
    {
        let stream = self.handshake(&self.tls_http2).await?;
        let (sender, connection) = http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        Ok(sender)
    }

    async fn handshake(&self, tls: &Arc<ClientConfig>) -> Result<TlsStream<TcpStream>, Error> {
        let stream = TcpStream::connect(&self.authority).await?;
        stream.set_nodelay(true)?;
        let name = ServerName::from(stream.peer_addr()?.ip());
        Ok(TlsConnector::from(tls.clone()).connect(name, stream).await?)
    }
}

/// One connection.
pub(crate) struct Wire {
    sender: Sender,
    authority: String,
}

enum Sender {
    Http1(http1::SendRequest<Full<Bytes>>),
    Http2(http2::SendRequest<Full<Bytes>>),
}

/// A whole answer.
#[derive(Debug)]
pub(crate) struct Answer {
    /// The HTTP status.
    pub code: u16,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
}

impl Answer {
    /// The body as JSON, or as a string when it is something else.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|_| String::from_utf8_lossy(&self.body).into_owned().into())
    }
}

impl Wire {
    /// Sends a request with a body of that type, if any, and returns the beginning of the answer.
    pub(crate) async fn open(
        &mut self,
        method: Method,
        path: &str,
        body: Option<(&str, Bytes)>,
    ) -> Result<Response<Incoming>, Error> {
        self.open_with(method, path, &[], body).await
    }

    /// The same with headers.
    pub(crate) async fn open_with(
        &mut self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<(&str, Bytes)>,
    ) -> Result<Response<Incoming>, Error> {
        let mut request = Request::builder().method(method).header(ACCEPT, JSON);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let (content_type, bytes) = body.unwrap_or_default();
        if !content_type.is_empty() {
            request = request.header(CONTENT_TYPE, content_type);
        }
        let response = match &mut self.sender {
            Sender::Http1(sender) => {
                let request = request.uri(path).header(HOST, &self.authority).body(Full::new(bytes))?;
                sender.ready().await?;
                sender.send_request(request).await?
            }
            Sender::Http2(sender) => {
                let uri = format!("https://{}{path}", self.authority);
                sender.ready().await?;
                sender.send_request(request.uri(uri).body(Full::new(bytes))?).await?
            }
        };
        Ok(response)
    }

    /// Sends a request and waits for the whole answer.
    pub(crate) async fn ask(
        &mut self,
        method: Method,
        path: &str,
        body: Option<(&str, Bytes)>,
    ) -> Result<Answer, Error> {
        let response = self.open(method, path, body).await?;
        let (head, body) = response.into_parts();
        let body = body.collect().await?.to_bytes();
        Ok(Answer { code: head.status.as_u16(), headers: head.headers, body })
    }

    /// Without a body, and with headers.
    pub(crate) async fn get_with(&mut self, path: &str, headers: &[(&str, &str)]) -> Result<Answer, Error> {
        let (head, body) = self.open_with(Method::GET, path, headers, None).await?.into_parts();
        let body = body.collect().await?.to_bytes();
        Ok(Answer { code: head.status.as_u16(), headers: head.headers, body })
    }

    /// Without a body.
    pub(crate) async fn get(&mut self, path: &str) -> Result<Answer, Error> {
        self.ask(Method::GET, path, None).await
    }

    /// With JSON.
    pub(crate) async fn send(&mut self, method: Method, path: &str, body: &Value) -> Result<Answer, Error> {
        self.ask(method, path, Some((JSON, body.to_string().into()))).await
    }

    /// Opens a watch: a GET whose answer comes line by line.
    pub(crate) async fn watch(&mut self, path: &str) -> Result<Events, Error> {
        let response = self.open(Method::GET, path, None).await?;
        match response.status().as_u16() {
            200 => Ok(Events { body: response.into_body(), pending: BytesMut::new() }),
            code => {
                let body = response.into_body().collect().await?.to_bytes();
                Err(format!("{code}: {}", String::from_utf8_lossy(&body)).into())
            }
        }
    }
}

/// The events of a watch.
pub(crate) struct Events {
    body: Incoming,
    pending: BytesMut,
}

impl Events {
    /// The next line; none at the end.
    pub(crate) async fn next_line(&mut self) -> Result<Option<Bytes>, Error> {
        let mut searched = 0;
        loop {
            if let Some(end) = self.pending[searched..].iter().position(|byte| *byte == b'\n') {
                return Ok(Some(self.pending.split_to(searched + end + 1).freeze()));
            }
            searched = self.pending.len();
            match self.body.frame().await {
                Some(frame) => self.pending.extend_from_slice(&frame?.into_data().unwrap_or_default()),
                None => return Ok(None),
            }
        }
    }

    /// The next event; none at the end.
    pub(crate) async fn next(&mut self) -> Result<Option<Value>, Error> {
        self.next_line().await?.map(|line| Ok(serde_json::from_slice(&line)?)).transpose()
    }
}
