//! Bytes in, bytes out: the only file with a socket and TLS (`SecureServingInfo` of `k8s.io/apiserver`).
//! Next: src/apiserver/handler_chain.rs
//!
//! HTTP/1.1 and HTTP/2 over TLS (1.2 and later) or, when told so, without. A client certificate is asked for,
//! not demanded: whoever has none is authenticated otherwise, or is nobody. Whether it is believed is asked
//! by authentication. Bounds: [`MAX_CONNECTIONS`] at once (further ones wait in the kernel's backlog),
//! [`HANDSHAKE_TIMEOUT`], [`HEADER_TIMEOUT`], [`MAX_STREAMS`] a connection, [`TLS_BUFFER_BYTES`] that wait to
//! be sent on each, and a bound on what all watches together wait to send
//! (`unread_watches`). Tokio's own timers are used here, because sockets live in real time whatever the
//! cluster's clock says.

mod client_certificates;
pub mod secure_serving;
mod tls_config;

mod advertised;
mod bad_requests;
mod cipher_suites;
mod executor;
mod host_header;
mod request_body;
mod response_body;
mod stopping;

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use http::header::UPGRADE;
use hyper::body::Incoming;
use hyper::rt::{Sleep, Timer};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::GracefulShutdown;
use sync::{Mutex, MutexGuard};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;
use tower::ServiceExt;

use crate::endpoints::response::unread_watches::{HangUp, UnreadWatches};
use apimachinery::wire::{ApiService, AskedBefore, PeerCertificates, PlainHttp, RemoteAddress, Severed};
use bad_requests::Explained;
use clock::Clock;
use executor::Executor;
use network::plain_http::expect_tls;
use response_body::sent;
use tls_config::server_config;

pub use advertised::advertised;
pub use tls_config::Tls;

/// Connections at once. Above it nobody is accepted until one ends.
pub const MAX_CONNECTIONS: usize = 20_000;
/// Streams at once in one HTTP/2 connection, as upstream; the client waits with further ones.
pub const MAX_STREAMS: u32 = 100;
/// How long a client may take for the TLS handshake; then it is hung up on.
pub const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a client may take for a request's head, upstream's `ReadHeaderTimeout`.
pub const HEADER_TIMEOUT: Duration = Duration::from_secs(32);
/// How much may be encrypted and not sent yet, of one connection; more is encrypted when that is gone.
pub const TLS_BUFFER_BYTES: usize = 160 * 1024;
/// A server that is listening. Dropped, it stops at once.
pub struct Server {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    accepting: JoinHandle<()>,
}

/// Takes a port; 0 is a free one. Nobody is accepted before [`Server::start`].
///
/// # Errors
/// What the system says: it is taken, or not ours to take.
pub async fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    TcpListener::bind(address).await
}

impl Server {
    /// Serves `service` on a listener, with TLS if there is any.
    ///
    /// # Errors
    /// A listener without an address, or certificates that rustls does not take.
    pub fn start(listener: TcpListener, tls: Option<&Tls>, service: ApiService) -> io::Result<Server> {
        Server::start_on(&Clock::real(), listener, tls, service)
    }

    /// Serves for a cluster whose clock knows whether anything goes on.
    ///
    /// # Errors
    /// See [`Server::start`].
    pub fn start_on(
        clock: &Clock,
        listener: TcpListener,
        tls: Option<&Tls>,
        service: ApiService,
    ) -> io::Result<Server> {
        let address = listener.local_addr()?;
        let config = tls.map(server_config).transpose().map_err(io::Error::other)?;
        let acceptor = config.map(|config| TlsAcceptor::from(Arc::new(config)));
        let (stop, stopped) = oneshot::channel();
        let accepting = tokio::spawn(accept(clock.clone(), listener, acceptor, service, stopped));
        Ok(Server { address, stop: Some(stop), accepting })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Accepts nobody any more, lets what is under way finish for a moment, and ends.
    pub async fn stop(mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
        let _ = (&mut self.accepting).await;
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn accept(
    clock: Clock,
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    service: ApiService,
    mut stopped: oneshot::Receiver<()>,
) {
    let plain = listener.local_addr().ok().map(PlainHttp);
    let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let watches = UnreadWatches::default();
    let graceful = Arc::new(GracefulShutdown::new());
    let mut connections = tokio::task::JoinSet::new();
    loop {
        let Ok(place) = places.clone().acquire_owned().await else { break };
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = &mut stopped => break,
        };
        match accepted {
            Ok((stream, from)) => {
                let watcher = graceful.watcher();
                let plain = tls.is_none().then_some(plain).flatten();
                let (tls, service, watches) = (tls.clone(), service.clone(), watches.clone());
                let (place, clock) = (Arc::new(place), clock.clone());
                let connection = Connection { clock, from, plain, tls, service, watches, place };
                connections.spawn(connection.clock.clone().tracked(connection.serve(stream, watcher)));
            }
            // Out of file descriptors, usually: wait for some to be given back.
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
        while connections.try_join_next().is_some() {}
    }
    drop(listener);
    stopping::drain(&watches, graceful, (&places, MAX_CONNECTIONS)).await;
}

struct Connection {
    /// Knows whether anything goes on here.
    clock: Clock,
    from: SocketAddr,
    /// Where there is no TLS.
    plain: Option<PlainHttp>,
    tls: Option<TlsAcceptor>,
    service: ApiService,
    watches: UnreadWatches,
    /// Given back when the stream is gone, which may be upgraded and outlive its HTTP.
    place: Arc<OwnedSemaphorePermit>,
}

impl Connection {
    async fn serve(self, stream: TcpStream, watcher: hyper_util::server::graceful::Watcher) {
        let _ = stream.set_nodelay(true);
        let Some(tls) = &self.tls else {
            return self.talk(stream, None, Builder::new(Executor(self.clock.clone())), watcher).await;
        };
        let handshake = async { tls.accept(expect_tls(stream).await?).await };
        match tokio::time::timeout(HANDSHAKE_TIMEOUT, handshake).await {
            Ok(Ok(mut stream)) => {
                stream.get_mut().1.set_buffer_limit(Some(TLS_BUFFER_BYTES));
                // TLS has agreed on the version: to wait for bytes that tell it would be to wait for ever.
                let builder = Builder::new(Executor(self.clock.clone()));
                let builder = match stream.get_ref().1.alpn_protocol() {
                    Some(b"h2") => builder.http2_only(),
                    _ => builder.http1_only(),
                };
                let presented = stream.get_ref().1.peer_certificates().unwrap_or_default();
                let chain: Arc<[Vec<u8>]> = presented.iter().map(|der| der.to_vec()).collect();
                let peer = (!chain.is_empty()).then_some(PeerCertificates(chain));
                self.talk(stream, peer, builder, watcher).await;
            }
            Ok(Err(error)) => tracing::debug!(from = %self.from, %error, "TLS handshake failed"),
            Err(_) => tracing::debug!(from = %self.from, "TLS handshake took too long"),
        }
    }

    async fn talk<S>(
        &self,
        stream: S,
        peer: Option<PeerCertificates>,
        mut builder: Builder<Executor>,
        watcher: hyper_util::server::graceful::Watcher,
    ) where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let (from, plain, service) = (RemoteAddress(self.from), self.plain, &self.service);
        let (stream, speaker) = Explained::new(stream, self.place.clone());
        let watches = &self.watches;
        let (hang_up, asked_before) = (&HangUp::default(), AskedBefore::default());
        let handler = hyper::service::service_fn(move |request: http::Request<Incoming>| {
            let version = request.version();
            let turn = speaker.begin(version);
            let refusal = host_header::refusal(&request);
            let (mut request, rest) = request_body::lend(request);
            request.extensions_mut().insert(from);
            request.extensions_mut().insert(asked_before.clone());
            plain.map(|plain| request.extensions_mut().insert(plain));
            if let Some(peer) = &peer {
                request.extensions_mut().insert(peer.clone());
            }
            if request.headers().contains_key(UPGRADE) {
                // A watch over a websocket is sent past this connection's answers.
                request.extensions_mut().insert(watches.clone());
                // And who let it in may have to end it.
                request.extensions_mut().insert(speaker.cut());
            }
            let (service, watches, hang_up) = (service.clone(), watches.clone(), hang_up.clone());
            async move {
                if let Some(refusal) = refusal {
                    return Ok(sent(refusal, turn, &watches, &hang_up));
                }
                let answer = service.oneshot(request).await;
                let mut response = answer.unwrap_or_else(|never| match never {});
                rest.finish(&mut response, version).await;
                if response.extensions().get::<Severed>().is_some() {
                    return Err(io::Error::from(io::ErrorKind::ConnectionReset));
                }
                Ok(sent(response, turn, &watches, &hang_up))
            }
        });
        builder.http1().timer(HeadTimer::default()).header_read_timeout(HEADER_TIMEOUT);
        builder.http2().timer(TokioTimer::new()).max_concurrent_streams(MAX_STREAMS);
        let connection = builder.serve_connection_with_upgrades(TokioIo::new(stream), handler);
        tokio::select! {
            ended = watcher.watch(connection.into_owned()) => if let Err(error) = ended {
                tracing::debug!(from = %self.from, %error, "connection ended");
            },
            () = hang_up.asked() => {
                tracing::info!(from = %self.from, "hung up: its watch is not read, and there are too many");
            }
        }
    }
}

/// What waits for the heads of one connection's requests. hyper takes a timer for each and drops it when the
/// head is there; here that is the same one each time: to set it to later costs nothing, to make it does.
#[derive(Clone, Default)]
struct HeadTimer(Arc<Mutex<Option<TokioSleep>>>);

type TokioSleep = Pin<Box<tokio::time::Sleep>>;

/// The timer, while somebody waits for it.
struct HeadSleep {
    /// None only while being dropped.
    sleep: Option<TokioSleep>,
    timer: HeadTimer,
}

impl HeadTimer {
    fn kept(&self) -> MutexGuard<'_, Option<TokioSleep>> {
        self.0.lock()
    }
}

impl Timer for HeadTimer {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Sleep>> {
        self.sleep_until(self.now() + duration)
    }

    fn sleep_until(&self, deadline: Instant) -> Pin<Box<dyn Sleep>> {
        let kept = self.kept().take();
        let mut sleep = kept.unwrap_or_else(|| Box::pin(tokio::time::sleep_until(deadline.into())));
        sleep.as_mut().reset(deadline.into());
        Box::pin(HeadSleep { sleep: Some(sleep), timer: self.clone() })
    }

    fn now(&self) -> Instant {
        tokio::time::Instant::now().into()
    }
}

impl Sleep for HeadSleep {}

impl Future for HeadSleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.sleep.as_mut().expect("only dropping takes it").as_mut().poll(cx)
    }
}

impl Drop for HeadSleep {
    fn drop(&mut self) {
        *self.timer.kept() = self.sleep.take();
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;
    use apimachinery::wire::WatchStream;
    use axum::body::Body;
    use pki::Authority;
    use rustls_pki_types::{CertificateDer, pem::PemObject};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    fn echo() -> ApiService {
        ApiService::new(tower::service_fn(|request: http::Request<Body>| async move {
            let known = request.extensions().get::<PeerCertificates>().is_some();
            Ok(http::Response::new(Body::from(format!("{} {known}", request.uri().path()))))
        }))
    }

    #[tokio::test]
    async fn garbage_instead_of_tls_ends_only_its_own_connection() {
        let now = chrono::DateTime::UNIX_EPOCH + chrono::TimeDelta::days(20_000);
        let authority = Authority::generate(now).unwrap();
        let identity = authority.server(&["localhost"], &[], now).unwrap();
        let tls = Tls {
            identity,
            client_authorities: vec![authority.certificate_pem().into()],
            demands_client_certificates: false,
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = Server::start(listener, Some(&tls), echo()).unwrap();
        for _ in 0..2 {
            let mut stream = TcpStream::connect(server.address()).await.unwrap();
            // Of HTTP itself a few methods are recognised, and answered.
            stream.write_all(b"SSH-2.0-OpenSSH_9.2\r\n").await.unwrap();
            let mut answer = Vec::new();
            // Either a TLS alert or a hang-up, never an answer.
            let _ = stream.read_to_end(&mut answer).await;
            assert!(!answer.starts_with(b"HTTP"));
        }
        server.stop().await;
    }

    /// A watch that always has more to tell.
    fn endless_watch() -> ApiService {
        ApiService::new(tower::service_fn(|_: http::Request<Body>| async {
            let piece = || Ok::<_, Infallible>(bytes::Bytes::from(vec![b'x'; 64 * 1024]));
            let mut answer = http::Response::new(Body::from_stream(futures::stream::repeat_with(piece)));
            answer.extensions_mut().insert(WatchStream);
            Ok(answer)
        }))
    }

    #[tokio::test]
    async fn a_connection_ends_when_its_watch_is_not_read_and_all_are_too_much() {
        let (watches, graceful) = (UnreadWatches::at_most(1024 * 1024), GracefulShutdown::new());
        let places = Arc::new(Semaphore::new(4));
        let mut clients = vec![];
        for _ in 0..4 {
            let (near, mut far) = tokio::io::duplex(1024);
            let place = places.clone().acquire_owned().await.unwrap();
            let (service, watches, watcher) = (endless_watch(), watches.clone(), graceful.watcher());
            let from = SocketAddr::from(([127, 0, 0, 1], 1));
            let (clock, place) = (Clock::real(), Arc::new(place));
            let connection = Connection { clock, from, plain: None, tls: None, service, watches, place };
            far.write_all(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n").await.unwrap();
            tokio::spawn(async move {
                let builder = Builder::new(Executor(Clock::real()));
                connection.talk(near, None, builder, watcher).await;
            });
            clients.push(far);
        }
        // Each has some hundred kilobytes on the way: the first to have moved is the first to go.
        let mut last = clients.pop().unwrap();
        let first = clients.remove(0);
        let mut told = Vec::new();
        first.take(8 * 1024 * 1024).read_to_end(&mut told).await.unwrap();
        assert!(told.len() < 8 * 1024 * 1024);
        last.read_exact(&mut vec![0; 8 * 1024 * 1024]).await.unwrap();
    }

    #[tokio::test]
    async fn the_server_chooses_the_cipher_as_upstream_does() {
        let now = clock::Clock::real().now();
        let authority = Authority::generate(now).unwrap();
        let identity = authority.server(&["localhost"], &[], now).unwrap();
        let tls = Tls { identity, client_authorities: vec![], demands_client_certificates: false };
        let acceptor = TlsAcceptor::from(Arc::new(server_config(&tls).unwrap()));
        let mut roots = rustls::RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(authority.certificate_pem().as_bytes()).unwrap()).unwrap();
        // Which prefers the longer key.
        let client =
            rustls::ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
                .with_safe_default_protocol_versions()
                .unwrap()
                .with_root_certificates(roots)
                .with_no_client_auth();
        let (near, far) = tokio::io::duplex(4096);
        let connector = tokio_rustls::TlsConnector::from(Arc::new(client));
        let name = "localhost".try_into().unwrap();
        let (client, server) = tokio::join!(connector.connect(name, near), acceptor.accept(far));
        let suite = server.unwrap().get_ref().1.negotiated_cipher_suite().unwrap().suite();
        assert_eq!(suite, rustls::CipherSuite::TLS13_AES_128_GCM_SHA256);
        drop(client.unwrap());
    }

    #[tokio::test]
    async fn each_head_has_its_own_time() {
        let timer = HeadTimer::default();
        let mut first = timer.sleep(HEADER_TIMEOUT);
        assert!(futures::poll!(&mut first).is_pending() && timer.kept().is_none());
        drop(first);
        assert!(timer.kept().is_some());
        // Not that of the head before it.
        timer.sleep(Duration::ZERO).await;
        let mut third = timer.sleep(HEADER_TIMEOUT);
        assert!(futures::poll!(&mut third).is_pending());
    }

    #[tokio::test]
    async fn without_tls_a_request_is_answered() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = Server::start(listener, None, echo()).unwrap();
        let mut stream = TcpStream::connect(server.address()).await.unwrap();
        stream.write_all(b"GET /x HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n").await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        assert!(answer.ends_with("/x false"), "{answer}");
        server.stop().await;
    }

    /// `echo` reads no body.
    #[tokio::test]
    async fn a_body_that_nobody_reads_does_not_end_the_connection_unless_it_is_long() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = Server::start(listener, None, echo()).unwrap();
        let mut stream = TcpStream::connect(server.address()).await.unwrap();
        stream.write_all(b"POST /x HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\n\r\n").await.unwrap();
        // Comes behind the head, when the answer could long be made.
        tokio::task::yield_now().await;
        stream.write_all(b"hello").await.unwrap();
        let long = 300 * 1024;
        let head = format!("POST /y HTTP/1.1\r\nhost: a\r\ncontent-length: {long}\r\n\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        stream.write_all(&vec![b'x'; long]).await.unwrap();
        let mut answers = String::new();
        let _ = stream.read_to_string(&mut answers).await;
        let [first, second] = ["/x false", "/y false"].map(|path| answers.find(path).expect(path));
        assert!(!answers[..first].contains("connection: close"), "{answers}");
        assert!(answers[first..second].contains("connection: close"), "{answers}");
        server.stop().await;
    }
}
