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
/// So many first streams wait for their second; beyond that the oldest is given up.
const MAX_WAITING: usize = 128;
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

/// Both ways, until the pod's side has said all.
async fn carry(data: Stream, io: Box<dyn Duplex>) {
    let (mut received, mut sender) = data.split();
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
mod tests {
    use super::streams::{Channels, Message};
    use super::*;
    use crate::endpoints::response::websocket::{BINARY, CLOSE, NORMAL, PING, frame};
    use crate::kubelet_client::{LogRequest, STREAM_IDLE_TIMEOUT};
    use axum::body::Body;
    use tokio::io::AsyncRead;
    use tokio::sync::mpsc;

    /// Sends back what it is sent, but at port 81, where nobody is.
    struct Echo;

    impl KubeletLookup for Echo {
        fn logs(&self, _: LogRequest) -> BoxFuture<'_, Result<Body, Status>> {
            unreachable!("nobody asks for logs")
        }

        fn port_forward(
            &self,
            request: PortForwardRequest,
        ) -> BoxFuture<'_, Result<Box<dyn Duplex>, Status>> {
            async move {
                if request.port == 81 {
                    return Err(Status::failure(500, "InternalError", "connection refused"));
                }
                let (here, there) = tokio::io::duplex(64);
                tokio::spawn(async move {
                    let (mut from, mut to) = tokio::io::split(there);
                    tokio::io::copy(&mut from, &mut to).await.unwrap();
                    to.shutdown().await.unwrap();
                });
                Ok(Box::new(here) as Box<dyn Duplex>)
            }
            .boxed()
        }
    }

    /// A frame of SPDY without compression: stored blocks of deflate, behind zlib's header.
    fn open(id: u8, is_first: bool, headers: &[(&str, &str)]) -> Vec<u8> {
        let mut block = (headers.len() as u32).to_be_bytes().to_vec();
        for text in headers.iter().flat_map(|(name, value)| [name, value]) {
            block.extend((text.len() as u32).to_be_bytes());
            block.extend(text.as_bytes());
        }
        let length = block.len() as u16;
        let mut payload = vec![0, 0, 0, id, 0, 0, 0, 0, 0, 0];
        payload.extend(is_first.then_some([0x78, 0x01]).into_iter().flatten());
        payload.push(0);
        payload.extend(length.to_le_bytes());
        payload.extend((!length).to_le_bytes());
        payload.extend(block);
        [vec![0x80, 3, 0, 1, 0, 0, 0, payload.len() as u8], payload].concat()
    }

    fn data(id: u8, flags: u8, bytes: &[u8]) -> Vec<u8> {
        [&[0, 0, 0, id, flags, 0, 0, bytes.len() as u8], bytes].concat()
    }

    fn conversation() -> Vec<u8> {
        let of = |kind, port, request| [("streamtype", kind), ("port", port), ("requestid", request)];
        [
            open(1, true, &of("error", "80", "0")),
            open(3, false, &of("data", "80", "0")),
            open(5, false, &of("error", "81", "1")),
            open(7, false, &of("data", "81", "1")),
            open(9, false, &of("what", "80", "2")),
            open(11, false, &of("data", "none", "2")),
            data(3, 0, b"hello "),
            data(3, 1, b"pod"),
        ]
        .concat()
    }

    /// What was said on each stream, until nothing more can come on those of both connections.
    async fn heard(io: &mut (impl AsyncRead + Unpin)) -> BTreeMap<u8, String> {
        let (mut said, mut ended) = (BTreeMap::<u8, String>::new(), 0);
        while ended < 4 {
            let mut head = [0; 8];
            io.read_exact(&mut head).await.unwrap();
            let mut payload = vec![0; usize::from(head[6]) << 8 | usize::from(head[7])];
            io.read_exact(&mut payload).await.unwrap();
            match head {
                [0x80, 3, 0, 3, ..] => drop(said.insert(payload[3], "reset".into())),
                [0, 0, 0, stream, flags, ..] => {
                    said.entry(stream).or_default().push_str(&String::from_utf8_lossy(&payload));
                    ended += usize::from(flags);
                }
                _ => {}
            }
        }
        said
    }

    fn forwarding() -> Arc<Forwarding> {
        forwarding_at(Clock::real())
    }

    fn forwarding_at(clock: Clock) -> Arc<Forwarding> {
        let request = PortForwardRequest::default();
        Arc::new(Forwarding { kubelets: Arc::new(Echo), clock, idle_timeout: STREAM_IDLE_TIMEOUT, request })
    }

    #[tokio::test]
    async fn half_a_connection_is_given_up_and_an_idle_client_is_left() {
        let clock = Clock::stepped(chrono::DateTime::UNIX_EPOCH);
        let (mut client, server) = tokio::io::duplex(1 << 16);
        let serving = tokio::spawn(forwarding_at(clock.clone()).serve(Box::new(server)));
        let half = [("streamtype", "error"), ("port", "80"), ("requestid", "7")];
        client.write_all(&open(1, true, &half)).await.unwrap();
        // It is waited for from when it was answered.
        let mut reply = [0; 8];
        client.read_exact(&mut reply).await.unwrap();
        let mut said = Vec::new();
        while !serving.is_finished() {
            match clock.next_wake() {
                Some(wake) => clock.advance(wake),
                None => tokio::task::yield_now().await,
            }
        }
        client.read_to_end(&mut said).await.unwrap();
        let said = String::from_utf8_lossy(&said);
        assert!(said.contains("(request=7) timed out waiting for streams"), "{said:?}");
        assert!(clock.elapsed() >= STREAM_IDLE_TIMEOUT);
    }

    fn wanted() -> BTreeMap<u8, String> {
        let refused = "error forwarding port 81 to pod , uid : connection refused";
        let all = [(1, ""), (3, "hello pod"), (5, refused), (7, ""), (9, "reset"), (11, "reset")];
        all.into_iter().map(|(stream, said)| (stream, said.to_owned())).collect()
    }

    #[tokio::test]
    async fn each_pair_of_streams_is_a_connection() {
        let (mut client, server) = tokio::io::duplex(1 << 16);
        let serving = tokio::spawn(forwarding().serve(Box::new(server)));
        client.write_all(&conversation()).await.unwrap();
        assert_eq!(heard(&mut client).await, wanted());
        drop(client);
        serving.await.unwrap();
    }

    #[tokio::test]
    async fn each_port_has_two_channels() {
        let (client, server) = tokio::io::duplex(1 << 16);
        let socket = |io| WebSocket::new(Box::new(io), ChannelEncoding::Base64);
        let request = PortForwardRequest::default();
        let io: Box<dyn Channels> = Box::new(socket(server));
        let serving = tokio::spawn(port_channels::serve(io, Arc::new(Echo), request, vec![80, 81]));
        let mut client = socket(client);
        client.send(0, b"hello").await.unwrap();
        let mut heard = BTreeMap::<u8, Vec<u8>>::new();
        while heard.get(&0).is_none_or(|bytes| bytes.len() < 7) {
            let Message::Data(channel, bytes) = client.receive().await.unwrap() else { panic!("it ended") };
            heard.entry(channel).or_default().extend(bytes);
        }
        assert_eq!(heard[&0], b"\x50\0hello");
        assert_eq!(heard[&1], b"\x50\0");
        assert_eq!(heard[&2], b"\x51\0");
        assert!(String::from_utf8_lossy(&heard[&3]).ends_with("connection refused"), "{heard:?}");
        client.close().await.unwrap();
        serving.await.unwrap();
    }

    #[tokio::test]
    async fn a_client_that_vanishes_without_a_word_ends_it() {
        for bytes in [&[][..], &[0x82]] {
            let (mut client, server) = tokio::io::duplex(1 << 16);
            let serving = tokio::spawn(tunnel::tunnel(Box::new(server), |io| forwarding().serve(io)));
            client.write_all(bytes).await.unwrap();
            drop(client);
            serving.await.unwrap();
        }
    }

    #[tokio::test]
    async fn a_websocket_carries_the_same_bytes_in_pieces() {
        let (client, server) = tokio::io::duplex(1 << 16);
        let serving = tokio::spawn(tunnel::tunnel(Box::new(server), |io| forwarding().serve(io)));
        let (reader, mut writer) = tokio::io::split(client);
        for piece in conversation().chunks(7) {
            writer.write_all(&frame(BINARY, piece)).await.unwrap();
        }
        writer.write_all(&frame(PING, b"there?")).await.unwrap();
        let (mut plain, unwrapped) = tokio::io::duplex(1 << 16);
        let (pings, _) = mpsc::channel(1);
        let unwrapping = tokio::spawn(tunnel::unwrap(reader, unwrapped, pings));
        assert_eq!(heard(&mut plain).await, wanted());
        writer.write_all(&frame(CLOSE, &NORMAL)).await.unwrap();
        serving.await.unwrap();
        drop(unwrapping.await.unwrap());
    }
}
