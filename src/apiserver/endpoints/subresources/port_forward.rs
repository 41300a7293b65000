//! `portforward`: connections to ports of a pod (`k8s.io/kubelet/pkg/cri/streaming/portforward`). For
//! each, the client opens two streams of SPDY, of which one is for what goes wrong. SPDY itself is what
//! the connection was upgraded to, or comes in the messages of a websocket (`tunneling`, as kubectl
//! asks from 1.31 on).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use futures::FutureExt;
use futures::future::BoxFuture;
use http::header::SEC_WEBSOCKET_PROTOCOL;
use hyper::upgrade::OnUpgrade;
use spdy::Stream;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::task::JoinSet;

use super::asked_streams::AskedStreams;
use super::pass_on::pass_on;
use super::port_channels;
use super::spdy_channels::STREAM_TYPE;
use super::streams::{self, ChannelEncoding, UpgradeTo, WebSocket};
use super::tunnel;
use crate::endpoints::handlers::request_scope::Scope;
use crate::endpoints::query::Query;
use crate::endpoints::response::answer::Answer;
use crate::kubelet_client::{Duplex, KubeletLookup, PortForwardRequest};
use apimachinery::status::Status;
use clock::Clock;

const PROTOCOLS: &[&str] = &["portforward.k8s.io"];
const TUNNEL: &str = "SPDY/3.1+portforward.k8s.io";
/// What a websocket carries: SPDY, or a channel for each port.
const OVER_WEBSOCKETS: &[&str] = &[TUNNEL, port_channels::PROTOCOLS[0], port_channels::PROTOCOLS[1]];
/// Which connection a stream belongs to; without it, the one whose other stream was opened just before.
const REQUEST: &str = "requestid";
const PORT: &str = "port";
/// So long a first stream waits for its second (`DefaultStreamCreationTimeout`); then it is given up.
const PAIR_TIMEOUT: Duration = Duration::from_secs(30);
/// So many first streams wait for their second; beyond that the oldest is given up. Clients open the first
/// ones of many connections before any second, so it is as many as a connection of SPDY has.
const MAX_WAITING: usize = 2048;
/// Bytes on their way from a pod, for each connection.
const PIECE_BYTES: usize = 16 << 10;

/// Goes on over a websocket or SPDY.
pub(super) async fn port_forward(
    scope: &Scope,
    upgrade: (OnUpgrade, UpgradeTo),
    node: &str,
) -> Result<Answer, Status> {
    let asked = AskedStreams::of(scope);
    if asked.kubelets.is_elsewhere(node) {
        let ports: Vec<String> = ports_named(asked.query).iter().map(|port| format!("port={port}")).collect();
        let target = format!("/portForward/{}/{}?{}", scope.namespace(), scope.name(), ports.join("&"));
        return pass_on(&asked, Some(upgrade.0), node, &target).await;
    }
    let request = PortForwardRequest {
        node: node.to_owned(),
        namespace: scope.namespace().to_owned(),
        pod: scope.name().to_owned(),
        port: 0,
    };
    port_forward_over(&asked, upgrade, request)
}

/// Goes on with connections to a pod that is known; its port is what the client says of each.
pub(super) fn port_forward_over(
    asked: &AskedStreams<'_>,
    (upgrade, wanted): (OnUpgrade, UpgradeTo),
    request: PortForwardRequest,
) -> Result<Answer, Status> {
    let kubelets = asked.kubelets.clone();
    let idle_timeout = kubelets.stream_idle_timeout();
    let clock = asked.clock.clone();
    let forwarding = Arc::new(Forwarding { kubelets, clock, idle_timeout, request });
    let own = forwarding.clone();
    match wanted {
        UpgradeTo::Spdy => streams::accept_spdy(asked, upgrade, PROTOCOLS, |_| {
            Box::new(|io: Box<dyn Duplex>| -> BoxFuture<'static, ()> { own.serve(io).boxed() })
        }),
        UpgradeTo::WebSocket => {
            let offers = asked.headers.get_all(SEC_WEBSOCKET_PROTOCOL);
            let is_tunnel = offers.iter().any(|it| it.to_str().is_ok_and(|it| it.contains(TUNNEL)));
            let ports = if is_tunnel { Vec::new() } else { ports(asked.query)? };
            streams::accept(asked, upgrade, OVER_WEBSOCKETS, |protocol| {
                Box::new(move |io: Box<dyn Duplex>| -> BoxFuture<'static, ()> {
                    if protocol == TUNNEL {
                        return tunnel::tunnel(io, |io| own.serve(io)).boxed();
                    }
                    let channels = Box::new(WebSocket::new(io, ChannelEncoding::of(protocol)));
                    port_channels::serve(channels, own.kubelets.clone(), own.request.clone(), ports).boxed()
                })
            })
        }
    }
}

/// As they stand there.
fn ports_named(query: &Query) -> Vec<&str> {
    // A kubelet is asked for them one by one.
    let named = [query.all("ports"), query.all("port")].concat();
    named.into_iter().flat_map(|ports| ports.split(',')).collect()
}

/// The ports that a client of channels names (`NewV4Options`).
fn ports(query: &Query) -> Result<Vec<u16>, Status> {
    let named = ports_named(query);
    if named.is_empty() {
        return Err(Status::bad_request("query parameter \"port\" is required"));
    }
    if named.len() > port_channels::MAX_PORTS {
        let why = format!("{} ports are too many: at most {}", named.len(), port_channels::MAX_PORTS);
        return Err(Status::bad_request(why));
    }
    let port = |text: &&str| text.parse().ok().filter(|port| *port > 0);
    let wrong = |text: &str| Status::bad_request(format!("unable to parse {text:?} as a port"));
    named.iter().map(|text| port(text).ok_or_else(|| wrong(text))).collect()
}

/// The connections of one client to one pod.
struct Forwarding {
    kubelets: Arc<dyn KubeletLookup>,
    clock: Clock,
    /// After so long without a connection it ends; zero is never.
    idle_timeout: Duration,
    /// Without its port.
    request: PortForwardRequest,
}

/// The streams of a connection, as they come.
#[derive(Default)]
struct Pair {
    data: Option<Stream>,
    error: Option<Stream>,
}

impl Forwarding {
    async fn serve(self: Arc<Forwarding>, io: Box<dyn Duplex>) {
        let (mut incoming, work) = spdy::serve(io);
        let taking = async {
            let mut waiting = HalfPairs::default();
            // Dropped with the client, and what they do with them. Bound: the streams of a connection.
            let mut connections = JoinSet::new();
            loop {
                let wait = waiting.wait(self.clock.elapsed());
                tokio::select! {
                    Some(_) = connections.join_next() => {}
                    () = self.pause(wait) => match wait {
                        Some(_) => waiting.give_up(self.clock.elapsed()).await,
                        None if connections.is_empty() => return incoming.close().await,
                        None => {}
                    },
                    stream = incoming.next() => match stream {
                        None => return,
                        Some(stream) => if let Some((port, data, error)) =
                            waiting.add(stream, self.clock.elapsed())
                        {
                            connections.spawn(self.clone().forward(port, data, error));
                        },
                    }
                }
            }
        };
        let (worked, ()) = tokio::join!(work, taking);
        if let Err(error) = worked {
            tracing::debug!(%error, "forwarding to a pod ended");
        }
    }

    /// Until the oldest stream has waited for long enough, or there has been no connection for so long.
    async fn pause(&self, wait: Option<Duration>) {
        match wait {
            None if self.idle_timeout.is_zero() => std::future::pending().await,
            wait => self.clock.sleep(wait.unwrap_or(self.idle_timeout)).await,
        }
    }

    /// One connection, until its end. What keeps it from beginning is told on the other stream.
    async fn forward(self: Arc<Forwarding>, port: u16, mut data: Stream, error: Stream) {
        // Nobody says anything on it to us; what is said all the same is not kept.
        let (_, mut error) = error.split();
        let request = PortForwardRequest { port, ..self.request.clone() };
        let pod = request.pod.clone();
        match self.kubelets.port_forward(request).await {
            Ok(io) => carry(data, io).await,
            Err(why) => {
                let text = format!("error forwarding port {port} to pod {pod}, uid : {}", why.message);
                drop(error.write(text.into()).await);
                drop(data.finish().await);
            }
        }
        drop(error.finish().await);
    }
}

/// Both ways, until the pod's side has said all, or the client wants to hear no more of it.
async fn carry(data: Stream, io: Box<dyn Duplex>) {
    let (mut received, mut sender) = data.split();
    let reset = sender.reset();
    let (mut from, mut to) = tokio::io::split(io);
    let up = async {
        while let Some(bytes) = received.recv().await {
            to.write_all(&bytes).await?;
            to.flush().await?;
        }
        to.shutdown().await
    };
    let down = async {
        let mut piece = BytesMut::with_capacity(PIECE_BYTES);
        while from.read_buf(&mut piece).await? > 0 {
            sender.write(piece.split().freeze()).await?;
            piece.reserve(PIECE_BYTES);
        }
        sender.finish().await
    };
    tokio::select! {
        // A client that has said all still wants to hear the answer.
        () = async { drop(up.await); std::future::pending().await } => {}
        said = down => drop::<std::io::Result<()>>(said),
        // As kubectl does it when its own client hangs up: the pod sees that at once.
        () = reset.happens() => {}
    }
}

/// Streams whose other is not there yet, by connection, in their order.
#[derive(Default)]
struct HalfPairs {
    pairs: BTreeMap<u64, (String, Duration, Pair)>,
    next: u64,
}

impl HalfPairs {
    /// How long the oldest still waits.
    fn wait(&self, now: Duration) -> Option<Duration> {
        let (_, (_, since, _)) = self.pairs.first_key_value()?;
        Some((*since + PAIR_TIMEOUT).saturating_sub(now))
    }

    /// Gives up those that have waited for too long, and says why.
    async fn give_up(&mut self, now: Duration) {
        let is_over = |since: Duration| since + PAIR_TIMEOUT <= now;
        while let Some(first) = self.pairs.first_entry().filter(|first| is_over(first.get().1)) {
            let (request, _, pair) = first.remove();
            if let Some(mut error) = pair.error {
                let text = format!("(request={request}) timed out waiting for streams");
                drop(error.write(text.into()).await);
                drop(error.finish().await);
            }
        }
    }

    /// The pair, when this was its second; streams that do not say what they are are given up.
    fn add(&mut self, stream: Stream, now: Duration) -> Option<(u16, Stream, Stream)> {
        let header = |name: &str| stream.headers.get(name).map(String::as_str);
        let is_error = match header(STREAM_TYPE)? {
            "error" => true,
            "data" => false,
            _ => return None,
        };
        let port = header(PORT)?.parse().ok().filter(|port| *port > 0)?;
        // Clients that do not count their connections open one after the other.
        let request = header(REQUEST).unwrap_or_default().to_owned();
        let known = self.pairs.iter().find(|(_, (name, ..))| *name == request).map(|(at, _)| *at);
        let (_, _, mut pair) = known.and_then(|at| self.pairs.remove(&at)).unwrap_or_default();
        let place = if is_error { &mut pair.error } else { &mut pair.data };
        *place = Some(stream);
        match pair {
            Pair { data: Some(data), error: Some(error) } => Some((port, data, error)),
            one => {
                if self.pairs.len() >= MAX_WAITING {
                    self.pairs.pop_first();
                }
                self.pairs.insert(self.next, (request, now, one));
                self.next += 1;
                None
            }
        }
    }
}

#[cfg(test)]
mod tests;
