//! Clients of streams that read nothing, reset what they opened, or vanish: the cluster goes on, and nothing
//! of them stays.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use kubarium::apis::core::pod::PODS;
use kubarium::cluster::Listen;
use kubarium::{Cluster, Config};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

use super::upgrades::upgraded;
use super::wire::admin;
use super::*;
use crate::support::PATIENCE;
use crate::support::wire::Target;

const PODS_PATH: &str = "/api/v1/namespaces/default/pods";
const SPDY: &str = "Upgrade: SPDY/3.1\r\nX-Stream-Protocol-Version: v4.channel.k8s.io\r\n\
    X-Stream-Protocol-Version: portforward.k8s.io\r\n";
const WEBSOCKET: &str = "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
    Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: v4.channel.k8s.io\r\n";
/// `RST_STREAM`.
const RESET: u8 = 3;
/// That the server takes a stream.
const REPLY: u8 = 2;
/// Why it takes no further one.
const REFUSED_STREAM: u32 = 3;
/// So many connections one `port-forward` carries.
const CONNECTIONS: usize = 1024;
/// So many pairs of streams on a connection, so many channels, and connections that have these.
const PAIRS: u32 = 500;
const CHANNELS: usize = 125;
const WEBSOCKETS: usize = 4;

/// How many connections a pod has, and what it has said on all.
#[derive(Clone, Default)]
struct Talk {
    open: Arc<AtomicUsize>,
    said: Arc<AtomicUsize>,
}

struct House {
    cluster: Cluster,
    target: Target,
}

/// A client that speaks just enough of SPDY.
struct SpdyClient {
    io: TlsStream<TcpStream>,
    opened: u32,
    /// What was said on each stream, and whether that was all.
    heard: BTreeMap<u32, (Vec<u8>, bool)>,
    /// Streams that the server gave up, and why.
    refused: BTreeMap<u32, u32>,
    /// How many streams it has taken.
    taken: usize,
}

impl SpdyClient {
    async fn connect(target: &Target, path: &str) -> SpdyClient {
        let (head, io) = upgraded(target, path, SPDY).await;
        assert!(head.starts_with("HTTP/1.1 101 "), "{head}");
        SpdyClient { io, opened: 0, heard: BTreeMap::new(), refused: BTreeMap::new(), taken: 0 }
    }

    /// Opens a stream whose headers are not compressed: a stored block of deflate, behind zlib's header.
    async fn open(&mut self, headers: &[(&str, &str)]) -> std::io::Result<u32> {
        let mut block = (headers.len() as u32).to_be_bytes().to_vec();
        for text in headers.iter().flat_map(|(name, value)| [name, value]) {
            block.extend((text.len() as u32).to_be_bytes());
            block.extend(text.as_bytes());
        }
        let length = block.len() as u16;
        let id = self.opened * 2 + 1;
        let head = if self.opened == 0 { &[0x78, 0x01, 0][..] } else { &[0][..] };
        let sizes = [length.to_le_bytes(), (!length).to_le_bytes()].concat();
        self.opened += 1;
        self.control(1, &[&id.to_be_bytes()[..], &[0; 6], head, &sizes, &block].concat()).await?;
        Ok(id)
    }

    async fn control(&mut self, kind: u8, payload: &[u8]) -> std::io::Result<()> {
        let frame = [&[0x80, 3, 0, kind, 0, 0, 0, payload.len() as u8], payload].concat();
        self.io.write_all(&frame).await
    }

    async fn reset(&mut self, stream: u32) {
        let cancel = 5_u32.to_be_bytes();
        self.control(RESET, &[stream.to_be_bytes(), cancel].concat()).await.unwrap();
    }

    async fn say(&mut self, stream: u32, text: &str) {
        let head = [stream.to_be_bytes(), (text.len() as u32).to_be_bytes()].concat();
        self.io.write_all(&[&head, text.as_bytes()].concat()).await.unwrap();
    }

    /// Streams of these types, in their order.
    async fn command(&mut self, types: &[&str]) -> Vec<u32> {
        let mut streams = vec![];
        for kind in types {
            streams.push(self.open(&[("streamtype", kind)]).await.unwrap());
        }
        streams
    }

    /// What is said on a stream until its end; what the others say meanwhile is kept for later.
    async fn hear(&mut self, wanted: u32) -> String {
        loop {
            if let Some((said, true)) = self.heard.get(&wanted) {
                return String::from_utf8(said.clone()).unwrap();
            }
            self.receive().await;
        }
    }

    /// Waits until the server has said of all streams whether it takes them.
    async fn is_answered(&mut self) {
        while self.taken + self.refused.len() < self.opened as usize {
            self.receive().await;
        }
    }

    /// One frame.
    async fn receive(&mut self) {
        let mut head = [0; 8];
        self.io.read_exact(&mut head).await.unwrap();
        let length = u32::from_be_bytes([0, head[5], head[6], head[7]]);
        let mut payload = vec![0; length as usize];
        self.io.read_exact(&mut payload).await.unwrap();
        if head[0] == 0 {
            let stream = u32::from_be_bytes(head[..4].try_into().unwrap());
            let (said, is_over) = self.heard.entry(stream).or_default();
            said.extend(payload);
            *is_over |= head[4] == 1;
        } else if head[3] == RESET {
            let number = |at: usize| u32::from_be_bytes(payload[at..at + 4].try_into().unwrap());
            self.refused.insert(number(0), number(4));
        } else if head[3] == REPLY {
            self.taken += 1;
        }
    }

    /// Without a goodbye: what is on its way is lost.
    fn vanish(self) {
        vanish(&self.io);
    }
}

fn vanish(io: &TlsStream<TcpStream>) {
    io.get_ref().0.set_zero_linger().unwrap();
}

/// A message of a websocket that is not masked by anything but zeros.
fn message(channel: u8, text: &str) -> Vec<u8> {
    let payload = [&[channel], text.as_bytes()].concat();
    [&[0x82, 0x80 | payload.len() as u8, 0, 0, 0, 0], &payload[..]].concat()
}

impl House {
    async fn start() -> House {
        let cluster = Cluster::start(Config::new().listen(Listen::loopback())).await.unwrap();
        let target = admin(&cluster.access().unwrap());
        House { cluster, target }
    }

    async fn pod(&self, name: &str, more: Value) {
        let mut container = json!({"name": "main", "image": "nginx"});
        json_patch::merge(&mut container, &more);
        let spec = json!({"restartPolicy": "Never", "containers": [container]});
        let pod = json!({"metadata": {"name": name}, "spec": spec});
        self.cluster.client().create(&PODS, "default", pod).await.unwrap();
        self.phase(name, "Running").await;
    }

    async fn phase(&self, name: &str, wanted: &str) {
        let is_there = async || {
            let pod = self.cluster.client().get(&PODS, "default", name).await.unwrap();
            pod.to_value()["status"]["phase"] == wanted
        };
        until(is_there).await;
    }

    /// A pod that talks to everybody for ever.
    async fn talker(&self) -> Talk {
        let talk = Talk::default();
        let own = talk.clone();
        let serve = move |mut io: tokio::io::DuplexStream, _| {
            let Talk { open, said } = own.clone();
            let talking: futures::future::BoxFuture<'static, ()> = Box::pin(async move {
                open.fetch_add(1, Ordering::Relaxed);
                while io.write_all(&[b'x'; 4 << 10]).await.is_ok() {
                    said.fetch_add(4 << 10, Ordering::Relaxed);
                }
                open.fetch_sub(1, Ordering::Relaxed);
            });
            talking
        };
        self.cluster.serve_at("default", "talker", 80, serve).unwrap();
        self.pod("talker", json!({})).await;
        talk
    }

    /// What nginx says over a new connection.
    async fn welcomed(&self) {
        let mut client = SpdyClient::connect(&self.target, &format!("{PODS_PATH}/web/portforward")).await;
        let of = |kind| [("streamtype", kind), ("port", "80"), ("requestid", "0")];
        client.open(&of("error")).await.unwrap();
        let data = client.open(&of("data")).await.unwrap();
        client.say(data, "GET / HTTP/1.1\r\nHost: web\r\nConnection: close\r\n\r\n").await;
        assert!(client.hear(data).await.contains("Welcome to nginx!"));
    }
}

async fn until(is_so: impl AsyncFn() -> bool) {
    let waiting = async {
        while !is_so().await {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(PATIENCE, waiting).await.expect("it comes in time");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_port_forwards_that_nobody_reads_are_held_and_let_go() {
    let house = House::start().await;
    let talk = house.talker().await;
    house.pod("web", json!({})).await;
    let path = format!("{PODS_PATH}/talker/portforward");
    let mut spdy = SpdyClient::connect(&house.target, &path).await;
    let opening = tokio::spawn(async move {
        for pair in 0..PAIRS {
            let request = pair.to_string();
            for kind in ["error", "data"] {
                let headers = [("streamtype", kind), ("port", "80"), ("requestid", &request)];
                if spdy.open(&headers).await.is_err() {
                    return spdy;
                }
            }
        }
        // It is held open.
        std::future::pending().await
    });
    let mut websockets = vec![];
    let ports = vec!["80"; CHANNELS].join(",");
    for _ in 0..WEBSOCKETS {
        websockets.push(upgraded(&house.target, &format!("{path}?ports={ports}"), WEBSOCKET).await.1);
    }
    until(async || talk.open.load(Ordering::Relaxed) > WEBSOCKETS * CHANNELS).await;
    // At last nothing moves any more.
    until(async || {
        let before = talk.said.load(Ordering::Relaxed);
        tokio::time::sleep(Duration::from_millis(100)).await;
        talk.said.load(Ordering::Relaxed) == before
    })
    .await;
    let (open, said) = (talk.open.load(Ordering::Relaxed), talk.said.load(Ordering::Relaxed));
    // What a connection holds, and what the sockets of all clients do.
    let held = open * (128 << 10) + (1 + WEBSOCKETS) * (16 << 20);
    assert!(open <= WEBSOCKETS * CHANNELS + PAIRS as usize && said <= held, "{said} bytes to {open}");
    house.welcomed().await;
    opening.abort();
    websockets.iter().for_each(vanish);
    drop(websockets);
    drop(opening.await);
    until(async || talk.open.load(Ordering::Relaxed) == 0).await;
    house.welcomed().await;
    house.cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_port_forward_carries_a_thousand_connections_and_refuses_more() {
    let house = House::start().await;
    house.pod("web", json!({})).await;
    let mut client = SpdyClient::connect(&house.target, &format!("{PODS_PATH}/web/portforward")).await;
    let open = async |client: &mut SpdyClient, request: usize| {
        let request = request.to_string();
        let of = |kind| [("streamtype", kind), ("port", "80"), ("requestid", &*request)];
        client.open(&of("error")).await.unwrap();
        let data = client.open(&of("data")).await.unwrap();
        client.is_answered().await;
        data
    };
    let mut streams = vec![];
    for request in 0..CONNECTIONS {
        streams.push(open(&mut client, request).await);
    }
    let beyond = open(&mut client, CONNECTIONS).await;
    let asks = "GET / HTTP/1.1\r\nHost: web\r\nConnection: close\r\n\r\n";
    let ask = async |client: &mut SpdyClient, stream: u32| {
        client.say(stream, asks).await;
        assert!(client.hear(stream).await.contains("Welcome to nginx!"));
    };
    ask(&mut client, streams[7]).await;
    ask(&mut client, streams[CONNECTIONS - 1]).await;
    // kubectl says so of that connection: "error creating error stream for port ...", and goes on.
    let refused: Vec<_> = client.refused.clone().into_iter().collect();
    assert_eq!(refused, [(beyond - 2, REFUSED_STREAM), (beyond, REFUSED_STREAM)]);
    // With two that are over there is room again.
    let again = open(&mut client, CONNECTIONS + 1).await;
    ask(&mut client, again).await;
    house.cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_of_a_command_that_are_reset_do_not_end_it() {
    let house = House::start().await;
    house.pod("web", json!({})).await;
    let exec = |words: &str| {
        let words: String = words.split(' ').map(|word| format!("&command={word}")).collect();
        format!("{PODS_PATH}/web/exec?stdin=true&stdout=true{words}")
    };
    let types = ["error", "stdin", "stdout"];
    // Of standard input it is the end.
    let mut client = SpdyClient::connect(&house.target, &exec("cat")).await;
    let streams = client.command(&types).await;
    client.say(streams[1], "said").await;
    client.reset(streams[1]).await;
    assert_eq!(client.hear(streams[2]).await, "said");
    assert!(client.hear(streams[0]).await.contains("\"Success\""));
    // Of what it says, nobody hears it; how it ended is told.
    let mut client = SpdyClient::connect(&house.target, &exec("cat")).await;
    let streams = client.command(&types).await;
    client.reset(streams[2]).await;
    client.say(streams[1], "unheard").await;
    client.reset(streams[1]).await;
    assert!(client.hear(streams[0]).await.contains("\"Success\""));
    // Who vanishes keeps nobody from the next one.
    for is_spdy in [true, false] {
        if is_spdy {
            let mut client = SpdyClient::connect(&house.target, &exec("cat")).await;
            let streams = client.command(&types).await;
            client.say(streams[1], "lost").await;
            client.vanish();
        } else {
            let (_, mut io) = upgraded(&house.target, &exec("cat"), WEBSOCKET).await;
            io.write_all(&message(0, "lost")).await.unwrap();
            vanish(&io);
        }
        let mut client = SpdyClient::connect(&house.target, &exec("echo on")).await;
        let streams = client.command(&types).await;
        assert_eq!(client.hear(streams[2]).await, "on\n");
    }
    house.cluster.stop().await;
}

/// Reads until what came ends so.
async fn hear_until(io: &mut TlsStream<TcpStream>, end: &[u8]) {
    let mut heard = vec![];
    while !heard.ends_with(end) {
        heard.push(io.read_u8().await.unwrap());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_hears_the_end_of_who_vanishes_if_it_hears_one_client_alone() {
    let house = House::start().await;
    for (name, is_spdy, once) in
        [("a", true, true), ("b", false, true), ("c", true, false), ("d", false, false)]
    {
        let reads = json!({"image": "busybox", "command": ["cat"], "stdin": true, "stdinOnce": once});
        house.pod(name, reads).await;
        let path = format!("{PODS_PATH}/{name}/attach?stdin=true&stdout=true");
        // What it says back was heard by it.
        if is_spdy {
            let mut client = SpdyClient::connect(&house.target, &path).await;
            let streams = client.command(&["error", "stdin", "stdout"]).await;
            client.say(streams[1], "hello\n").await;
            hear_until(&mut client.io, b"hello\n").await;
            client.vanish();
        } else {
            let (_, mut io) = upgraded(&house.target, &path, WEBSOCKET).await;
            io.write_all(&message(0, "hello\n")).await.unwrap();
            hear_until(&mut io, b"hello\n").await;
            vanish(&io);
        }
    }
    for name in ["a", "b"] {
        house.phase(name, "Succeeded").await;
    }
    for name in ["c", "d"] {
        house.phase(name, "Running").await;
        let path = format!("{PODS_PATH}/{name}/attach?stdin=true&stdout=true");
        let mut client = SpdyClient::connect(&house.target, &path).await;
        let streams = client.command(&["error", "stdin", "stdout"]).await;
        client.say(streams[1], "again\n").await;
        hear_until(&mut client.io, b"again\n").await;
    }
    house.cluster.stop().await;
}
