//! One connection to one member: TCP, TLS, HTTP/2.

use std::time::Duration;

use hyper::client::conn::http2::{Builder, SendRequest};
use hyper::rt::Executor;
use hyper_util::rt::{TokioIo, TokioTimer};
use rustls_pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::body::RequestBody;
use crate::config::{EtcdConfig, EtcdEndpoint};
use clock::Clock;

/// How long a member is waited for until it is spoken to.
pub(crate) const DIAL_TIME: Duration = Duration::from_secs(3);
/// A connection on which nothing comes is asked for a sign of life this often (upstream's `keepaliveTime`),
const KEEPALIVE_TIME: Duration = Duration::from_secs(30);
/// and given up when none has come for so long (`keepaliveTimeout`).
const KEEPALIVE_TIMEOUT: Duration = Duration::from_secs(10);
/// What etcd may send on a stream that nobody reads.
pub const WATCH_WINDOW_BYTES: u32 = 256 << 10;
/// HTTP/2's largest window: streams have bounds of their own, and one that nobody reads holds up no other.
const CONNECTION_WINDOW_BYTES: u32 = (1 << 31) - 1;

/// A connection, to which requests are given.
pub(crate) type HttpSender = SendRequest<RequestBody>;

/// Why a member could not be connected to.
#[derive(Debug, Clone)]
pub(crate) struct EtcdDialFailure {
    pub(crate) why: String,
    pub(crate) hope: Hope,
}

/// Whether it makes sense to try again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Hope {
    /// It stays what it is, as a certificate does.
    None,
    /// Somebody answers, but not as etcd does: it may be on its way up or down.
    Little,
    /// Nobody listens yet.
    Good,
}

/// Runs what HTTP/2 does beside a connection.
#[derive(Clone)]
struct BesideConnection(Clock);

impl<F> Executor<F> for BesideConnection
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    fn execute(&self, future: F) {
        self.0.spawn(future);
    }
}

/// Connects to a member.
pub(crate) async fn dial(
    clock: &Clock,
    config: &EtcdConfig,
    endpoint: &EtcdEndpoint,
) -> Result<HttpSender, EtcdDialFailure> {
    let dialed = clock.timeout_outside(DIAL_TIME, connect(clock, config, endpoint)).await;
    dialed.unwrap_or_else(|_| {
        let why = format!("dial tcp {}: i/o timeout", endpoint.authority());
        Err(EtcdDialFailure { why, hope: Hope::Good })
    })
}

async fn connect(
    clock: &Clock,
    config: &EtcdConfig,
    endpoint: &EtcdEndpoint,
) -> Result<HttpSender, EtcdDialFailure> {
    let failed = |error: std::io::Error| {
        let why = format!("dial tcp {}: {error}", endpoint.authority());
        EtcdDialFailure { why, hope: Hope::Good }
    };
    let tcp = TcpStream::connect((endpoint.bare_host(), endpoint.port)).await.map_err(failed)?;
    tcp.set_nodelay(true).map_err(failed)?;
    if !endpoint.is_secure {
        return speak(clock, tcp).await;
    }
    let never = |why: String| EtcdDialFailure { why, hope: Hope::None };
    let Some(tls) = &config.tls else { return Err(never("https needs --etcd-cafile".into())) };
    let name = ServerName::try_from(endpoint.bare_host().to_owned());
    let name = name.map_err(|error| never(format!("{}: {error}", endpoint.host)))?;
    let shaken = TlsConnector::from(tls.clone()).connect(name, tcp).await;
    // rustls' own errors come as invalid data; others are of the network.
    let refused = |error: std::io::Error| EtcdDialFailure {
        hope: if error.kind() == std::io::ErrorKind::InvalidData { Hope::None } else { Hope::Little },
        why: format!("TLS handshake: {error}"),
    };
    speak(clock, shaken.map_err(refused)?).await
}

async fn speak<Io>(clock: &Clock, io: Io) -> Result<HttpSender, EtcdDialFailure>
where
    Io: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let mut http = Builder::new(BesideConnection(clock.clone()));
    http.timer(TokioTimer::new())
        .keep_alive_interval(KEEPALIVE_TIME)
        .keep_alive_timeout(KEEPALIVE_TIMEOUT)
        .keep_alive_while_idle(true)
        .initial_stream_window_size(WATCH_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES);
    let shaken = http.handshake(TokioIo::new(io)).await;
    let failed = |error: hyper::Error| EtcdDialFailure { why: error.to_string(), hope: Hope::Little };
    let (sender, connection) = shaken.map_err(failed)?;
    clock.spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(%error, "a connection to etcd ended");
        }
    });
    Ok(sender)
}
