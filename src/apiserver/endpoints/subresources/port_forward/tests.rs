//! What clients that forward ports see, byte by byte, and what those leave behind who hang up.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::streams::{Channels, Message};
use super::*;
use crate::endpoints::response::websocket::{NORMAL, frame};
use crate::kubelet_client::{LogRequest, STREAM_IDLE_TIMEOUT};
use axum::body::Body;
use network::websocket_frames::{BINARY, CLOSE, PING};
use tokio::io::AsyncRead;
use tokio::sync::mpsc;

/// Sends back what it is sent, but at port 81, where nobody is.
struct Echo;

impl KubeletLookup for Echo {
    fn logs(&self, _: LogRequest) -> BoxFuture<'_, Result<Body, Status>> {
        unreachable!("nobody asks for logs")
    }

    fn port_forward(&self, request: PortForwardRequest) -> BoxFuture<'_, Result<Box<dyn Duplex>, Status>> {
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

/// Talks to everybody for ever, and counts to whom.
#[derive(Default)]
struct Talker(Arc<AtomicUsize>);

impl KubeletLookup for Talker {
    fn logs(&self, _: LogRequest) -> BoxFuture<'_, Result<Body, Status>> {
        unreachable!("nobody asks for logs")
    }

    fn port_forward(&self, _: PortForwardRequest) -> BoxFuture<'_, Result<Box<dyn Duplex>, Status>> {
        let (here, mut there) = tokio::io::duplex(64);
        let count = self.0.clone();
        count.fetch_add(1, Ordering::Relaxed);
        tokio::spawn(async move {
            while there.write_all(b"blah").await.is_ok() {}
            count.fetch_sub(1, Ordering::Relaxed);
        });
        async move { Ok(Box::new(here) as Box<dyn Duplex>) }.boxed()
    }
}

fn reset(id: u8) -> Vec<u8> {
    [&[0x80, 3, 0, 3, 0, 0, 0, 8, 0, 0, 0, id, 0, 0, 0][..], &[5]].concat()
}

/// Whoever wants to hear no more of a connection leaves nothing behind, and keeps the others.
#[tokio::test]
async fn a_connection_that_is_reset_ends_in_the_pod() {
    let talker = Talker::default();
    let talking = talker.0.clone();
    let forwarding = Forwarding { kubelets: Arc::new(talker), ..own_forwarding(Clock::real()) };
    let (client, server) = tokio::io::duplex(1 << 16);
    let serving = tokio::spawn(Arc::new(forwarding).serve(Box::new(server)));
    let (mut reader, mut writer) = tokio::io::split(client);
    let hearing = tokio::spawn(async move { tokio::io::copy(&mut reader, &mut tokio::io::sink()).await });
    let of = |kind| [("streamtype", kind), ("port", "80"), ("requestid", "0")];
    let count = async |wanted: usize| {
        while talking.load(Ordering::Relaxed) != wanted {
            tokio::task::yield_now().await;
        }
    };
    for at in 0..20 {
        let (error, data_stream) = (at * 4 + 1, at * 4 + 3);
        writer.write_all(&open(error, at == 0, &of("error"))).await.unwrap();
        writer.write_all(&open(data_stream, false, &of("data"))).await.unwrap();
        count(1 + usize::from(at > 0)).await;
        // The first one stays. Every other one says before that it has nothing to say.
        if at > 0 {
            let last = if at % 2 == 0 { data(data_stream, 1, b"") } else { vec![] };
            writer.write_all(&[last, reset(data_stream)].concat()).await.unwrap();
            count(1).await;
        }
    }
    drop(writer);
    hearing.abort();
    count(0).await;
    serving.await.unwrap();
}

/// Clients open the first streams of many connections before any second.
#[tokio::test]
async fn many_connections_at_once_are_all_served() {
    const CONNECTIONS: u16 = 300;
    let talker = Talker::default();
    let talking = talker.0.clone();
    let forwarding = Forwarding { kubelets: Arc::new(talker), ..own_forwarding(Clock::real()) };
    let (client, server) = tokio::io::duplex(1 << 16);
    let serving = tokio::spawn(Arc::new(forwarding).serve(Box::new(server)));
    let (mut reader, mut writer) = tokio::io::split(client);
    let hearing = tokio::spawn(async move { tokio::io::copy(&mut reader, &mut tokio::io::sink()).await });
    for (kind, first) in [("error", 1), ("data", 1 + 2 * CONNECTIONS)] {
        for at in 0..CONNECTIONS {
            let request = at.to_string();
            let headers = [("streamtype", kind), ("port", "80"), ("requestid", &request)];
            let frame = open_far(first + 2 * at, first == 1 && at == 0, &headers);
            writer.write_all(&frame).await.unwrap();
        }
    }
    let all_talk = async {
        while talking.load(Ordering::Relaxed) != usize::from(CONNECTIONS) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(60), all_talk).await.expect("all of them are served");
    drop(writer);
    hearing.abort();
    serving.await.unwrap();
}

fn open(id: u8, is_first: bool, headers: &[(&str, &str)]) -> Vec<u8> {
    open_far(u16::from(id), is_first, headers)
}

/// A frame of SPDY without compression: stored blocks of deflate, behind zlib's header.
fn open_far(id: u16, is_first: bool, headers: &[(&str, &str)]) -> Vec<u8> {
    let mut block = (headers.len() as u32).to_be_bytes().to_vec();
    for text in headers.iter().flat_map(|(name, value)| [name, value]) {
        block.extend((text.len() as u32).to_be_bytes());
        block.extend(text.as_bytes());
    }
    let length = block.len() as u16;
    let [high, low] = id.to_be_bytes();
    let mut payload = vec![0, 0, high, low, 0, 0, 0, 0, 0, 0];
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
    Arc::new(own_forwarding(clock))
}

fn own_forwarding(clock: Clock) -> Forwarding {
    let request = PortForwardRequest::default();
    Forwarding { kubelets: Arc::new(Echo), clock, idle_timeout: STREAM_IDLE_TIMEOUT, request }
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
