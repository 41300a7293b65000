//! A webhook: a TLS server in this process on a free port, whose answers the test makes.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use chrono::{DateTime, Utc};
use http_body_util::{BodyExt, Full};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use kubarium::pki::Authority;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;

/// What the webhook does with a request.
pub(crate) enum Reply {
    /// 200 and a tree.
    Json(Value),
    /// A code and bytes.
    Raw(u16, String),
    /// A code and where else to ask.
    Redirect(u16, String),
    /// It is never answered.
    Never,
}

/// One that was asked: the path with its query, the body, the headers.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    /// As `POST`.
    pub method: String,
    /// As `/validate?timeout=10s`.
    pub path: String,
    /// The body; null when it is no JSON.
    pub body: Value,
    /// The headers.
    pub headers: http::HeaderMap,
}

/// A running webhook; dropped, it ends.
pub(crate) struct Webhook {
    /// Where it listens, on 127.0.0.1.
    pub port: u16,
    /// Its authority, PEM.
    pub authority: String,
    asked: Arc<Mutex<Vec<Asked>>>,
    connections: Arc<Mutex<usize>>,
    serving: tokio::task::JoinHandle<()>,
}

impl Webhook {
    /// Starts one for `127.0.0.1` and `localhost`.
    pub(crate) async fn start(answer: impl Fn(&Asked) -> Reply + Send + Sync + 'static) -> Webhook {
        Webhook::named(&["localhost"], answer).await
    }

    /// Starts one whose certificate bears these names (and 127.0.0.1).
    pub(crate) async fn named(
        names: &[&str],
        answer: impl Fn(&Asked) -> Reply + Send + Sync + 'static,
    ) -> Webhook {
        let now = DateTime::<Utc>::from(std::time::SystemTime::now());
        let authority = Authority::generate(now).unwrap();
        let address = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let identity = authority.server(names, &[address], now).unwrap();
        let certificate = CertificateDer::from_pem_slice(identity.certificate_pem.as_bytes()).unwrap();
        let key = PrivateKeyDer::from_pem_slice(identity.key_pem.as_bytes()).unwrap();
        let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate], key)
            .unwrap();
        let listener = TcpListener::bind((address, 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (asked, connections) = (Arc::<Mutex<Vec<Asked>>>::default(), Arc::<Mutex<usize>>::default());
        let state = (Arc::new(answer), asked.clone(), connections.clone());
        let serving = tokio::spawn(serve(listener, TlsAcceptor::from(Arc::new(config)), state));
        let authority = authority.certificate_pem().to_owned();
        Webhook { port, authority, asked, connections, serving }
    }

    /// As `https://127.0.0.1:1234/path`.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("https://127.0.0.1:{}{path}", self.port)
    }

    /// Its authority as a `caBundle`.
    pub(crate) fn ca_bundle(&self) -> String {
        STANDARD.encode(&self.authority)
    }

    /// What it was asked so far.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }

    /// How many connections it has seen.
    pub(crate) fn connections(&self) -> usize {
        *self.connections.lock().unwrap()
    }
}

impl Drop for Webhook {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

type State<F> = (Arc<F>, Arc<Mutex<Vec<Asked>>>, Arc<Mutex<usize>>);

async fn serve<F>(listener: TcpListener, acceptor: TlsAcceptor, (answer, asked, connections): State<F>)
where
    F: Fn(&Asked) -> Reply + Send + Sync + 'static,
{
    let mut serving = tokio::task::JoinSet::new();
    loop {
        let Ok((stream, _)) = listener.accept().await else { return };
        *connections.lock().unwrap() += 1;
        let (acceptor, answer, asked) = (acceptor.clone(), answer.clone(), asked.clone());
        serving.spawn(async move {
            let Ok(stream) = acceptor.accept(stream).await else { return };
            let service = service_fn(move |request: http::Request<hyper::body::Incoming>| {
                let (answer, asked) = (answer.clone(), asked.clone());
                async move {
                    let (method, path) = (request.method().to_string(), request.uri().to_string());
                    let headers = request.headers().clone();
                    let bytes = request.into_body().collect().await?.to_bytes();
                    let body = serde_json::from_slice(&bytes).unwrap_or_default();
                    let question = Asked { method, path, body, headers };
                    asked.lock().unwrap().push(question.clone());
                    let mut response = http::Response::builder();
                    let (code, text) = match answer(&question) {
                        Reply::Json(tree) => (200, tree.to_string()),
                        Reply::Raw(code, text) => (code, text),
                        Reply::Redirect(code, location) => {
                            response = response.header("location", location);
                            (code, "go on".into())
                        }
                        Reply::Never => std::future::pending().await,
                    };
                    let body = Full::<bytes::Bytes>::from(text);
                    Ok::<_, hyper::Error>(response.status(code).body(body).unwrap())
                }
            });
            let builder = hyper_util::server::conn::auto::Builder::new(TokioExecutor::new());
            let _ = builder.serve_connection(TokioIo::new(stream), service).await;
        });
    }
}
