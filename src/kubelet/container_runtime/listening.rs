//! Servers that take connections: which container listens at a port, and what it answers.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use http::{Request, Response};
use machine::access_log;
use machine::agnhost::forward_tester::{ForwardTester, HalfClosing};
use machine::image_identity::LOCALHOST;
use machine::logs::LogLine;
use machine::questions::{Answered, NetworkReply, Question};
use machine::server_state::ServerState;
use machine::servers::{ContainerServer, TlsFiles};
use machine::surroundings::Surroundings;
use machine::text_lines::HeardText;
use machine::text_servers::TextSession;
use machine::web::{Backing, Served, TlsClient, WebAnswer, WebRequest};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream};

use super::answered::response;
use super::consumed::ConsumedBook;
use super::forward_testing;
use super::health_messages;
use super::listeners::{configured, is_all_declared, served};
use super::request_log::AskedRun;
use super::scripted;
use super::services::{ContainerId, PodSandboxConfig, PortListener, RunningContainer, RuntimeError};
use super::used;
use crate::talking;
use apimachinery::time::{self, Time};
use apis::views::pod::Container;
use clock::Clock;
use network::Network;
use network::grpc::{self, GrpcStatus};
use network::tls::{self, ServedOverTls, TlsIdentity};

/// So many questions does a server ask for one request; then it has failed.
const MAX_QUESTIONS: usize = 400;

/// What is known of a server that runs.
struct Listening {
    server: Arc<ContainerServer>,
    port: i64,
    host_name: String,
    address: String,
    started_at: Time,
    run: Arc<AskedRun>,
    around: Option<Arc<Surroundings>>,
    network: Option<Network>,
    /// Where it is noted what a server was told to use.
    consumed: Option<NotedConsumer>,
}

struct NotedConsumer {
    book: ConsumedBook,
    pod: String,
    container: String,
    /// How much memory it may have, in bytes.
    limit: Option<f64>,
}

/// What a node has for the servers of its containers.
pub(super) struct ListeningNode<'a> {
    pub(super) network: Option<&'a Network>,
    /// What is kept of a container's run.
    pub(super) run: &'a dyn Fn(&ContainerId) -> Arc<AskedRun>,
    /// What a container finds.
    pub(super) around: &'a dyn Fn(&ContainerId) -> Option<Arc<Surroundings>>,
    /// Where it is noted what servers are told to use.
    pub(super) consumed: &'a ConsumedBook,
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
    (config, address): (&PodSandboxConfig<'_>, &str),
    running: &[RunningContainer<'_>],
    port: u16,
    node: &ListeningNode<'_>,
) -> Result<PortListener, RuntimeError> {
    let number = port;
    let port = i64::from(port);
    let mut unknown = None;
    let mut scripted = None;
    let listening = |running: &RunningContainer<'_>, run: Arc<AskedRun>, server: Arc<ContainerServer>| {
        let RunningContainer { container, id, started_at } = running;
        let exit = run.exit.clone();
        let consumed = server.consumes(port).then(|| NotedConsumer {
            book: node.consumed.clone(),
            pod: config.metadata.uid.clone(),
            container: container.name.clone(),
            limit: used::memory_limit(config.pod, container),
        });
        let listening = Arc::new(Listening {
            server,
            port,
            host_name: config.pod.spec.host_name(&config.metadata.name).to_owned(),
            address: address.to_owned(),
            started_at: *started_at,
            run,
            around: (node.around)(id),
            network: node.network.cloned(),
            consumed,
        });
        let serve = move |io, from, clock| listening.clone().serve(io, from, clock).boxed();
        let (container, started_at) = (container.name.clone(), *started_at);
        PortListener { container, started_at, serve: Arc::new(serve), exit, listens: None }
    };
    for running in running {
        let RunningContainer { container, id, .. } = running;
        let run = (node.run)(id);
        match run.served.get_or_init(|| served(container).map(Arc::new)).clone() {
            Some(server) if server.is_scripted() => {
                // Whether it listens there is seen by playing it, which nobody does here.
                scripted = scripted.or((node.around)(id).map(|around| (running, around)));
            }
            Some(server) if server.is_configured() => match read(&run, container, id, node) {
                Some(server) if server.listens(port) => return Ok(listening(running, run, server)),
                Some(_) => {}
                None => unknown = unknown.or(Some(running)),
            },
            Some(server) if server.listens(port) => return Ok(listening(running, run, server)),
            Some(_) => {}
            None => unknown = unknown.or(Some(running)),
        }
    }
    for running in running {
        let run = (node.run)(running.id);
        let begun = run.state.lock().runner(port).cloned();
        if let Some(tester) = begun {
            return Ok(listening(running, run, Arc::new(ContainerServer::of_runner(port, tester))));
        }
    }
    if let Some(server) = ContainerServer::of_known_port(port).filter(|_| !is_all_declared(config.pod))
        && let Some(running) = running.iter().find(|running| may_serve(running.container, port))
    {
        return Ok(listening(running, (node.run)(running.id), Arc::new(server)));
    }
    if let Some((running, around)) = scripted {
        return Ok(scripted::listener(running, around, number, (node.run)(running.id)));
    }
    Err(refused("tcp4", port, unknown.map(|running| &running.container.image)))
}

/// What a container's files configure; nothing where nobody has seen them yet.
fn read(
    run: &AskedRun,
    container: &Container,
    id: &ContainerId,
    node: &ListeningNode<'_>,
) -> Option<Arc<ContainerServer>> {
    if let Some(read) = run.configured.get() {
        return read.clone();
    }
    let around = (node.around)(id)?;
    run.configured.get_or_init(|| configured(container, &around).map(Arc::new)).clone()
}

/// Whether a container of which nobody knows what it serves declares a port.
fn may_serve(container: &Container, port: i64) -> bool {
    container.ports.iter().any(|declared| i64::from(declared.container_port) == port)
        && served(container).is_none()
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
    let host_name = config.pod.spec.host_name(&config.metadata.name);
    let heard = servers.filter_map(|server| server.datagram(asked.port, asked.bytes, asked.from, host_name));
    heard.into_iter().next().ok_or_else(|| refused("udp4", asked.port, None))
}

impl Listening {
    async fn serve(self: Arc<Listening>, io: DuplexStream, from: String, clock: Clock) {
        if let Some(files) = self.server.tls(self.port) {
            // Without its certificate it would not have begun.
            let Some(identity) = self.identity(files) else { return };
            match identity.accept(io).await {
                Ok(io) if self.server.health(self.port).is_some() => self.serve_health(io, clock).await,
                Ok(io) => {
                    let chain = tls::client_chain(&io);
                    self.serve_web(io, &from, &clock, Some(&chain)).await;
                }
                Err(error) => self.log(format!("http: TLS handshake error from {from}: {error}"), &clock),
            }
            return;
        }
        if let Some(tester) = self.server.forward_tester(self.port) {
            if let Some(how) = tester.closes.as_ref().filter(|how| how.is_run) {
                return self.run_for_client(how, io, &clock).await;
            }
            return self.test_forwarding(tester, io, &clock).await;
        }
        if let Some(session) = self.server.text(self.port) {
            // Whoever hangs up in the middle has heard enough.
            return self.talk(session.clone(), io, &clock).await.unwrap_or_default();
        }
        if self.server.health(self.port).is_some() {
            return self.serve_health(io, clock).await;
        }
        self.serve_web(io, &from, &clock, None).await;
    }

    async fn serve_health<Io>(self: Arc<Listening>, io: Io, clock: Clock)
    where
        Io: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let serving = (self, clock.clone());
        let answer = move |path: &str, message: Bytes| serving.0.health(path, &message, serving.1.now());
        grpc::serve(&clock, io, answer).await;
    }

    /// `shown` is what a client has shown of itself, where it was asked.
    async fn serve_web<Io>(&self, io: Io, from: &str, clock: &Clock, shown: Option<&Vec<Vec<u8>>>)
    where
        Io: AsyncRead + AsyncWrite + Unpin + Send,
    {
        let asker = WebAsker { from, shown };
        network::http_server::serve(io, |request| self.answer(request, asker, clock)).await;
    }

    /// As its volumes show them now.
    fn identity(&self, files: &TlsFiles) -> Option<TlsIdentity> {
        let mounted = |path: &str| self.around.as_ref().and_then(|around| around.newest_file(path));
        let (Some(certificate), Some(key)) = (mounted(&files.certificate), mounted(&files.key)) else {
            return self.run.identity.get_or_init(own_identity).clone().filter(|_| files.has_own);
        };
        let served = ServedOverTls {
            is_grpc: self.server.health(self.port).is_some(),
            asks_clients: self.server.asks_clients(self.port),
        };
        let (certificate, key) = (certificate.text(), key.text());
        let identity = TlsIdentity::serving(certificate.as_bytes(), key.as_bytes(), served);
        identity
            .inspect_err(|why| tracing::warn!(address = self.address, why = why.0, "no TLS in a pod"))
            .ok()
    }

    fn log(&self, text: String, clock: &Clock) {
        let at = clock.now();
        let text = format!("{} {text}", at.format("%Y/%m/%d %H:%M:%S"));
        self.run.log.push(LogLine { at, text });
    }

    /// It ends with its first connection; whoever comes after that one waits until then.
    async fn test_forwarding(&self, tester: &ForwardTester, io: DuplexStream, clock: &Clock) {
        if self.run.state.lock().take() {
            let say = |text| self.run.log.push(LogLine { at: clock.now(), text });
            let code = forward_testing::converse(tester, io, clock, &say).await;
            self.run.exit.ask(code);
        }
        std::future::pending().await
    }

    /// A server that was begun for who asked has one client; whoever comes after that one hears nothing until
    /// it is done.
    async fn run_for_client(&self, how: &HalfClosing, io: DuplexStream, clock: &Clock) {
        let is_first = self.run.state.lock().take_runner(self.port);
        if !is_first {
            return self.until_runner_ends(self.port).await;
        }
        forward_testing::close_and_stay(how, io, clock).await;
        self.run.state.lock().end_runner(self.port);
        self.run.runner_ends.send_replace(());
        self.network.iter().for_each(Network::stir);
    }

    async fn until_runner_ends(&self, port: i64) {
        let mut ends = self.run.runner_ends.subscribe();
        while self.run.state.lock().runner(port).is_some() {
            if ends.changed().await.is_err() {
                return;
            }
        }
    }

    async fn talk(
        &self,
        mut session: TextSession,
        mut io: DuplexStream,
        clock: &Clock,
    ) -> std::io::Result<()> {
        if let Some(greeting) = session.greeting(&self.host_name) {
            return io.write_all(&greeting).await;
        }
        let mut received = Vec::new();
        while io.read_buf(&mut received).await? > 0 {
            loop {
                let heard = self.hear(&mut session, &received, clock);
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

    fn hear(&self, session: &mut TextSession, received: &[u8], clock: &Clock) -> Option<HeardText> {
        let mut store = self.run.store.lock();
        store.advance(clock.elapsed());
        session.hear(&mut store, received)
    }

    /// gRPC's health protocol.
    fn health(&self, path: &str, message: &[u8], now: Time) -> Result<Bytes, GrpcStatus> {
        let status = |code, message: &str| GrpcStatus { code, message: message.to_owned() };
        if path != health_messages::CHECK {
            return Err(status(12, &format!("unknown method {path}")));
        }
        let service = health_messages::service(message).ok_or_else(|| status(13, "no request"))?;
        let state = self.run.state.lock();
        let serving = self.server.is_serving(self.port, service, &state, self.uptime(now));
        serving.map(health_messages::response).ok_or_else(|| status(5, "unknown service"))
    }

    fn uptime(&self, now: Time) -> Duration {
        now.signed_duration_since(self.started_at).to_std().unwrap_or_default()
    }

    /// One that asks others first answers when it has their answers.
    async fn answer(&self, request: Request<Bytes>, asker: WebAsker<'_>, clock: &Clock) -> Response<Bytes> {
        let (begun, now) = (clock.elapsed(), clock.now());
        let mut answers: Arc<Vec<Answered>> = Arc::default();
        let answered = loop {
            let (after, question) = match self.ask_server(&request, asker, (now, &answers)) {
                Served::Answer(answered) => break answered,
                Served::Asks(..) if answers.len() >= MAX_QUESTIONS => break too_much(),
                Served::Asks(after, question) => (after, question),
            };
            clock.sleep_until(begun.saturating_add(after)).await;
            let answered = self.ask_network(&question, clock).await;
            Arc::make_mut(&mut answers).push(answered);
        };
        if !answered.delay.is_zero() {
            clock.sleep(answered.delay).await;
        }
        if let Some(port) = answered.after_client_at {
            self.network.iter().for_each(Network::stir);
            self.until_runner_ends(port).await;
        }
        if let Some(code) = answered.exits {
            self.run.exit.ask(code);
            // Its connections end with it.
            return std::future::pending().await;
        }
        response(answered)
    }

    fn ask_server(
        &self,
        request: &Request<Bytes>,
        asker: WebAsker<'_>,
        (now, answers): (Time, &Arc<Vec<Answered>>),
    ) -> Served {
        let target = request.uri().path_and_query().map_or("/", |target| target.as_str());
        let headers = request.headers().iter();
        let asked = WebRequest {
            method: request.method().as_str(),
            target,
            headers: headers
                .filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)))
                .collect(),
            from: asker.from,
            host_name: &self.host_name,
            address: &self.address,
            uptime: self.uptime(now),
            now: &time::rfc3339(now),
            body: request.body(),
        };
        let is_vouched_for = |authorities: &str| {
            let seconds = u64::try_from(now.timestamp()).unwrap_or(0);
            asker.shown.is_some_and(|chain| tls::vouches_for(authorities, chain, seconds))
        };
        let client = asker.shown.map(|chain| TlsClient { chain, is_vouched_for: &is_vouched_for });
        let backing = Backing { around: self.around.as_deref(), answers, client: client.as_ref() };
        let mut state = self.run.state.lock();
        let was_told = state.is_told();
        let served = self.server.serve(self.port, &asked, &mut state, backing);
        let is_news = state.is_told() && !was_told;
        if let Some(noted) = &self.consumed {
            self.note_consumption(noted, &state, now);
        }
        drop(state);
        if is_news && let Some(network) = &self.network {
            network.stir();
        }
        if let Served::Answer(answered) = &served
            && let Some(text) = access_log::line(&self.server, self.port, &asked, answered, now)
        {
            text.lines().for_each(|text| self.run.log.push(LogLine { at: now, text: text.to_owned() }));
        }
        served
    }

    /// What it was told to use; the kernel kills whoever uses too much memory.
    fn note_consumption(&self, noted: &NotedConsumer, state: &ServerState, now: Time) {
        let NotedConsumer { book, pod, container, limit } = noted;
        book.put(pod, container, self.started_at, state.consumption.clone());
        if used::is_too_much(*limit, state.consumption.bytes(self.uptime(now).as_secs_f64())) {
            self.run.exit.kill(137, "OOMKilled");
        }
    }

    async fn ask_network(&self, question: &Question, clock: &Clock) -> Answered {
        let from: Option<IpAddr> = self.address.parse().ok();
        match (&self.network, from) {
            (Some(network), Some(from)) => talking::ask(network, clock, from, question).await,
            _ => Answered { reply: NetworkReply::Unreachable, took: Duration::ZERO },
        }
    }
}

/// Who asks.
#[derive(Clone, Copy)]
struct WebAsker<'a> {
    from: &'a str,
    /// Certificates over TLS.
    shown: Option<&'a Vec<Vec<u8>>>,
}

/// What an image has, or makes when it starts: nobody vouches for it.
fn own_identity() -> Option<TlsIdentity> {
    let own = LOCALHOST.as_ref()?;
    TlsIdentity::new(&own.certificate, &own.key).ok()
}

fn too_much() -> WebAnswer {
    let body = format!("This server asks no more than {MAX_QUESTIONS} times for one request.\n");
    WebAnswer { code: 500, body, ..WebAnswer::default() }
}
