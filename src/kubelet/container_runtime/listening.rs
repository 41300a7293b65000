//! Servers that take connections: which container listens at a port, and what it answers.

use std::sync::Arc;

use bytes::Bytes;
use futures::FutureExt;
use http::{HeaderName, HeaderValue, Request, Response, StatusCode};
use machine::access_log;
use machine::logs::LogLine;
use machine::servers::Server;
use machine::text_servers::TextProtocol;
use machine::web::{WebAnswer, WebRequest};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

use super::listeners::served;
use super::request_log::AskedRun;
use super::services::{ContainerId, PodSandboxConfig, PortListener, RunningContainer, RuntimeError};
use apimachinery::time::{self, Time};
use clock::Clock;

/// What is known of a server that runs.
struct Listening {
    server: Server,
    port: i64,
    host_name: String,
    address: String,
    started_at: Time,
    run: Arc<AskedRun>,
}

/// A datagram, as a server sees it.
pub(super) struct AskedDatagram<'a> {
    pub(super) port: i64,
    pub(super) from: &'a str,
    pub(super) bytes: &'a [u8],
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
    run: &dyn Fn(&ContainerId) -> Arc<AskedRun>,
) -> Result<PortListener, RuntimeError> {
    let port = i64::from(port);
    let mut unknown = None;
    for RunningContainer { container, id, started_at } in running {
        match served(container) {
            Some(server) if server.listens(port) => {
                let (host_name, address) = (host_name(config).to_owned(), address.to_owned());
                let (started_at, run) = (*started_at, run(id));
                let listening = Arc::new(Listening { server, port, host_name, address, started_at, run });
                let serve = move |io, from, clock| listening.clone().serve(io, from, clock).boxed();
                let container = container.name.clone();
                return Ok(PortListener { container, started_at, serve: Arc::new(serve) });
            }
            Some(_) => {}
            None => unknown = unknown.or(Some(&container.image)),
        }
    }
    Err(refused("tcp4", port, unknown))
}

fn host_name<'a>(config: &PodSandboxConfig<'a>) -> &'a str {
    match config.pod.spec.hostname.as_str() {
        "" => &config.metadata.name,
        host_name => host_name,
    }
}

fn refused(network: &str, port: i64, unknown: Option<&String>) -> RuntimeError {
    let hint = unknown.map(|image| format!(" (what {image} serves is not simulated)"));
    let hint = hint.unwrap_or_default();
    let message = format!("dial {network} 127.0.0.1:{port}: connect: connection refused{hint}");
    RuntimeError { reason: "Unavailable".into(), message }
}

/// What comes back of a datagram; nothing where nobody says anything.
///
/// # Errors
/// That nobody listens there.
pub(super) fn datagram(
    config: &PodSandboxConfig<'_>,
    running: &[RunningContainer<'_>],
    asked: &AskedDatagram<'_>,
) -> Result<Option<Vec<u8>>, RuntimeError> {
    let servers = running.iter().filter_map(|running| served(running.container));
    let heard =
        servers.filter_map(|server| server.datagram(asked.port, asked.bytes, asked.from, host_name(config)));
    heard.into_iter().next().ok_or_else(|| refused("udp4", asked.port, None))
}

impl Listening {
    async fn serve(self: Arc<Listening>, io: DuplexStream, from: String, clock: Clock) {
        if let Some(protocol) = self.server.text(self.port) {
            // Whoever hangs up in the middle has heard enough.
            return self.talk(protocol, io).await.unwrap_or_default();
        }
        let handler = |request: Request<Bytes>| std::future::ready(self.answer(&request, &from, clock.now()));
        network::http_server::serve(io, handler).await;
    }

    async fn talk(&self, protocol: TextProtocol, mut io: DuplexStream) -> std::io::Result<()> {
        if let Some(greeting) = protocol.greeting(&self.host_name) {
            return io.write_all(&greeting).await;
        }
        let mut received = Vec::new();
        while io.read_buf(&mut received).await? > 0 {
            loop {
                let heard = protocol.hear(&mut self.run.store.lock(), &received);
                let Some(heard) = heard else { break };
                received.drain(..heard.taken);
                io.write_all(&heard.says).await?;
                if heard.ends {
                    return Ok(());
                }
            }
        }
        Ok(())
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
        let answered = self.server.answer(self.port, &asked);
        if let Some(text) = access_log::line(&self.server, self.port, &asked, &answered, now) {
            self.run.log.push(LogLine { at: now, text });
        }
        response(answered)
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
