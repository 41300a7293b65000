//! Servers that take connections: which container listens at a port, and what it answers.

use std::sync::Arc;

use bytes::Bytes;
use futures::FutureExt;
use http::{HeaderName, HeaderValue, Request, Response, StatusCode};
use machine::servers::Server;
use machine::web::{WebAnswer, WebRequest};
use tokio::io::DuplexStream;

use super::listeners::served;
use super::services::{PodSandboxConfig, PortListener, RunningContainer, RuntimeError};
use apimachinery::time::{self, Time};
use clock::Clock;

/// What is known of a server that runs.
struct Listening {
    server: Server,
    port: i64,
    host_name: String,
    address: String,
    started_at: Time,
}

/// The one of the running containers that listens at a port.
///
/// # Errors
/// That nobody does; where an image serves what nobody knows, that it does.
pub(super) fn listener(
    config: &PodSandboxConfig<'_>,
    address: &str,
    running: &[RunningContainer<'_>],
    port: u16,
) -> Result<PortListener, RuntimeError> {
    let port = i64::from(port);
    let mut unknown = None;
    for RunningContainer { container, started_at } in running {
        match served(container) {
            Some(server) if server.listens(port) => {
                let host_name = match config.pod.spec.hostname.as_str() {
                    "" => &config.metadata.name,
                    host_name => host_name,
                };
                let (host_name, address) = (host_name.to_owned(), address.to_owned());
                let listening = Listening { server, port, host_name, address, started_at: *started_at };
                let listening = Arc::new(listening);
                let serve = move |io, from, clock| listening.clone().serve(io, from, clock).boxed();
                let container = container.name.clone();
                return Ok(PortListener { container, started_at: *started_at, serve: Arc::new(serve) });
            }
            Some(_) => {}
            None => unknown = unknown.or(Some(&container.image)),
        }
    }
    let hint = unknown.map(|image| format!(" (what {image} serves is not simulated)"));
    let hint = hint.unwrap_or_default();
    let message = format!("dial tcp4 127.0.0.1:{port}: connect: connection refused{hint}");
    Err(RuntimeError { reason: "Unavailable".into(), message })
}

impl Listening {
    async fn serve(self: Arc<Listening>, io: DuplexStream, from: String, clock: Clock) {
        let handler = |request: Request<Bytes>| std::future::ready(self.answer(&request, &from, clock.now()));
        network::http_server::serve(io, handler).await;
    }

    fn answer(&self, request: &Request<Bytes>, from: &str, now: Time) -> Response<Bytes> {
        let target = request.uri().path_and_query().map_or("/", |target| target.as_str());
        let headers = request.headers().iter();
        let asked = WebRequest {
            method: request.method().as_str(),
            target,
            headers: headers
                .filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)))
                .collect(),
            from,
            host_name: &self.host_name,
            address: &self.address,
            uptime: now.signed_duration_since(self.started_at).to_std().unwrap_or_default(),
            now: &time::rfc3339(now),
        };
        response(self.server.answer(self.port, &asked))
    }
}

fn response(answered: WebAnswer) -> Response<Bytes> {
    let mut response = Response::new(Bytes::from(answered.body));
    // What is not the end of an answer is none.
    let code = StatusCode::from_u16(answered.code).ok().filter(|code| !code.is_informational());
    *response.status_mut() = code.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    for (name, value) in answered.headers {
        if let Ok(value) = HeaderValue::try_from(value) {
            response.headers_mut().insert(HeaderName::from_static(name), value);
        }
    }
    response
}
