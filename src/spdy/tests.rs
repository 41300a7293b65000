//! What a client sees, byte by byte; the headers of one are those that another library compressed.

use bytes::Bytes;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

use super::compression::{Compressor, Decompressor};
use super::dictionary::DICTIONARY;
use super::frame::{self, FIN, Head};
use super::session::{MAX_STREAMS, PIECE_BYTES};
use super::*;

/// `streamtype: error, port: 80, requestid: 0` and the same of `data`, by zlib with the dictionary.
const BLOCKS: [&str; 2] = [
    "78f9e3c6a7c202253a703a2b294a4dcc851625aca9a0808614cb45a024cc64610024398b209198094adc8c0600000000ffff",
    "c2aa15540a2512d209000000ffff",
];

fn bytes(hexadecimal: &str) -> Vec<u8> {
    let digits: Vec<u8> =
        hexadecimal.bytes().map(|digit| (digit as char).to_digit(16).unwrap() as u8).collect();
    digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

fn headers(pairs: &[(&str, &str)]) -> Headers {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

/// A client, and what serves it.
struct Client {
    io: DuplexStream,
    compressor: Compressor,
    decompressor: Decompressor,
}

fn connect() -> (Client, Incoming) {
    let (client, server) = tokio::io::duplex(1 << 16);
    let (incoming, work) = serve(server);
    tokio::spawn(work);
    (Client { io: client, compressor: Compressor::new(), decompressor: Decompressor::new() }, incoming)
}

impl Client {
    async fn open(&mut self, id: u32, flags: u8, asked: &Headers) {
        let block = self.compressor.write(asked);
        let payload = [&id.to_be_bytes()[..], &[0; 6], &block].concat();
        self.send(&frame::control(frame::SYN_STREAM, flags, &payload)).await;
    }

    async fn data(&mut self, id: u32, flags: u8, data: &[u8]) {
        self.send(&frame::data_head(id, flags, data.len())).await;
        self.send(data).await;
    }

    async fn send(&mut self, bytes: &[u8]) {
        self.io.write_all(bytes).await.unwrap();
    }

    /// The next frame, as a text.
    async fn receive(&mut self) -> String {
        let head = match frame::read_head(&mut self.io).await {
            Ok(Some(head)) => head,
            Ok(None) | Err(_) => return "end".into(),
        };
        let (Head::Control { length, .. } | Head::Data { length, .. }) = head;
        let mut payload = vec![0; length];
        self.io.read_exact(&mut payload).await.unwrap();
        match head {
            Head::Data { stream, flags, .. } => {
                let end = if flags & FIN == 0 { "" } else { " and ends" };
                format!("{stream} says {}{end}", String::from_utf8_lossy(&payload))
            }
            Head::Control { kind: frame::SYN_REPLY, .. } => {
                let told = self.decompressor.read(&payload[4..]).unwrap();
                format!("{} is open {told:?}", frame::id(&payload).unwrap())
            }
            Head::Control { kind: frame::RST_STREAM, .. } => {
                format!("{} is reset {}", frame::id(&payload).unwrap(), frame::id(&payload[4..]).unwrap())
            }
            Head::Control { kind, .. } => format!("{kind} {payload:?}"),
        }
    }
}

#[test]
fn the_dictionary_is_the_one_that_everybody_has() {
    assert_eq!(DICTIONARY.len(), 1423);
    assert_eq!(&bytes(BLOCKS[0])[2..6], 0xe3c6_a7c2_u32.to_be_bytes());
    let sum =
        |(a, b): (u32, u32), byte: &u8| ((a + u32::from(*byte)) % 65521, (a + b + u32::from(*byte)) % 65521);
    let (a, b) = DICTIONARY.iter().fold((1, 0), sum);
    assert_eq!(b << 16 | a, 0xe3c6_a7c2);
}

#[test]
fn headers_are_read_with_the_dictionary_and_without() {
    let mut reader = Decompressor::new();
    let asked = |kind| headers(&[("port", "80"), ("requestid", "0"), ("streamtype", kind)]);
    assert_eq!(reader.read(&bytes(BLOCKS[0])).unwrap(), asked("error"));
    assert_eq!(reader.read(&bytes(BLOCKS[1])).unwrap(), asked("data"));
    let mut writer = Compressor::new();
    let mut reader = Decompressor::new();
    for at in 0..1000 {
        let told = headers(&[("number", &at.to_string()), ("text", &"x".repeat(at * 7 % 500))]);
        assert_eq!(reader.read(&writer.write(&told)).unwrap(), told, "{at}");
    }
}

#[test]
fn headers_that_lie_or_grow_too_large_are_refused() {
    let refused = |block: &[u8]| Decompressor::new().read(block).unwrap_err().to_string();
    assert!(refused(&[]).ends_with("headers without a beginning"));
    assert!(refused(&[0x78, 0x9c, 0xff, 0xff]).ends_with("headers cannot be decompressed"));
    let large = headers(&[("x", &"x".repeat(compression::MAX_BLOCK_BYTES))]);
    assert!(refused(&Compressor::new().write(&large)).ends_with("headers are too large"));
    for cut in 0..12 {
        let mut block = Decompressor::new();
        assert!(block.read(&bytes(BLOCKS[0])[..cut]).is_err(), "{cut}");
    }
}

#[tokio::test]
async fn streams_are_opened_answered_and_ended_from_either_side() {
    let (mut client, mut incoming) = connect();
    client.open(1, 0, &headers(&[("StreamType", "data")])).await;
    client.data(1, 0, b"hel").await;
    client.data(1, FIN, b"lo").await;
    let mut stream = incoming.next().await.unwrap();
    assert_eq!(stream.headers, headers(&[("streamtype", "data")]));
    assert_eq!(stream.read().await.unwrap(), "hel");
    assert_eq!(stream.read().await.unwrap(), "lo");
    assert_eq!(stream.read().await, None);
    stream.write(Bytes::from_static(b"hi")).await.unwrap();
    stream.finish().await.unwrap();
    drop(stream);
    client.send(&frame::control(frame::PING, 0, &7_u32.to_be_bytes())).await;
    let mut told = Vec::new();
    for _ in 0..4 {
        told.push(client.receive().await);
    }
    assert_eq!(told, ["1 is open {}", "1 says hi", "1 says  and ends", "6 [0, 0, 0, 7]"]);
}

#[tokio::test]
async fn a_stream_that_nobody_wants_is_reset_and_the_others_go_on() {
    let (mut client, mut incoming) = connect();
    client.open(1, 0, &Headers::new()).await;
    drop(incoming.next().await.unwrap());
    assert_eq!(client.receive().await, "1 is open {}");
    assert_eq!(client.receive().await, "1 is reset 5");
    client.data(1, FIN, b"too late").await;
    client.data(99, 0, b"never there").await;
    client.open(2, 0, &Headers::new()).await;
    assert_eq!(client.receive().await, "2 is reset 1");
    client.open(3, FIN, &Headers::new()).await;
    assert_eq!(client.receive().await, "3 is open {}");
    let mut stream = incoming.next().await.unwrap();
    assert_eq!(stream.read().await, None);
    client.open(5, 0, &Headers::new()).await;
    let mut other = incoming.next().await.unwrap();
    client.send(&frame::reset(5, frame::CANCEL)).await;
    assert_eq!(other.read().await, None);
    assert_eq!(client.receive().await, "5 is open {}");
}

/// As kubectl ends a connection: it says its last, and then wants to hear no more.
#[tokio::test]
async fn whoever_writes_hears_that_a_stream_is_reset() {
    let (mut client, mut incoming) = connect();
    for (id, flags) in [(1, FIN), (3, 0)] {
        client.open(id, flags, &Headers::new()).await;
        let mut stream = incoming.next().await.unwrap();
        let reset = stream.reset();
        client.send(&frame::reset(id, frame::CANCEL)).await;
        reset.happens().await;
        let error = stream.write(Bytes::from_static(b"x")).await.unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
        assert!(stream.finish().await.is_err());
        drop(stream);
        assert_eq!(client.receive().await, format!("{id} is open {{}}"));
    }
    // Neither is answered with another reset, and the end of the connection is one of its streams, too.
    client.open(5, 0, &Headers::new()).await;
    let stream = incoming.next().await.unwrap();
    assert_eq!(client.receive().await, "5 is open {}");
    let reset = stream.reset();
    drop(client);
    reset.happens().await;
}

#[tokio::test]
async fn streams_on_which_only_the_server_speaks_are_counted() {
    let (mut client, mut incoming) = connect();
    let mut kept = vec![];
    for at in 0..MAX_STREAMS as u32 {
        client.open(at * 2 + 1, FIN, &Headers::new()).await;
        assert_eq!(client.receive().await, format!("{} is open {{}}", at * 2 + 1));
        kept.push(incoming.next().await.unwrap().split().1);
    }
    client.open(9999, FIN, &Headers::new()).await;
    assert_eq!(client.receive().await, "9999 is reset 3");
    kept[7].finish().await.unwrap();
    assert_eq!(client.receive().await, "15 says  and ends");
    drop(kept.remove(7));
    client.open(10001, FIN, &Headers::new()).await;
    assert_eq!(client.receive().await, "10001 is open {}");
}

#[tokio::test]
async fn a_farewell_comes_behind_what_was_said() {
    let (mut client, mut incoming) = connect();
    client.open(1, 0, &Headers::new()).await;
    let mut stream = incoming.next().await.unwrap();
    stream.write(Bytes::from_static(b"last")).await.unwrap();
    stream.finish().await.unwrap();
    incoming.close().await;
    let mut told = Vec::new();
    for _ in 0..5 {
        told.push(client.receive().await);
    }
    let farewell = "7 [0, 0, 0, 0, 0, 0, 0, 0]";
    assert_eq!(told, ["1 is open {}", "1 says last", "1 says  and ends", farewell, "end"]);
}

#[tokio::test]
async fn what_is_large_is_cut_and_what_is_too_much_is_refused() {
    let (mut client, mut incoming) = connect();
    client.open(1, 0, &Headers::new()).await;
    let mut stream = incoming.next().await.unwrap();
    assert_eq!(client.receive().await, "1 is open {}");
    let writing = tokio::spawn(async move {
        stream.write(vec![b'x'; PIECE_BYTES + 1].into()).await.unwrap();
        stream
    });
    assert_eq!(client.receive().await.len(), "1 says ".len() + PIECE_BYTES);
    assert_eq!(client.receive().await, "1 says x");
    let mut kept = vec![writing.await.unwrap()];
    for at in 1..MAX_STREAMS as u32 {
        client.open(at * 2 + 1, 0, &Headers::new()).await;
        assert_eq!(client.receive().await, format!("{} is open {{}}", at * 2 + 1));
        kept.push(incoming.next().await.unwrap());
    }
    client.open(9999, 0, &Headers::new()).await;
    assert_eq!(client.receive().await, "9999 is reset 3");
    // There is room again when one has gone.
    drop(kept.pop());
    assert!(client.receive().await.ends_with("is reset 5"));
    client.open(10001, 0, &Headers::new()).await;
    assert_eq!(client.receive().await, "10001 is open {}");
}

#[tokio::test]
async fn what_is_not_spdy_ends_the_connection_and_its_streams() {
    let tried: [&[u8]; 4] = [
        b"GET / HTTP/1.1\r\n\r\n",
        // Of version 2; a control frame of 16 MiB; a stream without headers.
        &[0x80, 2, 0, 1, 0, 0, 0, 0],
        &[0x80, 3, 0, 1, 0, 0xff, 0xff, 0xff],
        &[0x80, 3, 0, 1, 0, 0, 0, 2, 0, 0],
    ];
    for (at, garbage) in tried.into_iter().enumerate() {
        let (mut client, mut incoming) = connect();
        client.open(1, 0, &Headers::new()).await;
        let mut stream = incoming.next().await.unwrap();
        assert_eq!(client.receive().await, "1 is open {}");
        client.send(garbage).await;
        // The first reads as data for a stream that is not there, and ends in the middle of it.
        client.io.shutdown().await.unwrap();
        assert_eq!(stream.read().await, None, "{at}");
        assert!(incoming.next().await.is_none(), "{at}");
        assert!(stream.write(Bytes::from_static(b"x")).await.is_err(), "{at}");
    }
}

#[tokio::test]
async fn a_stream_that_is_not_read_stops_the_client_and_not_the_memory() {
    let (mut client, mut incoming) = connect();
    client.open(1, 0, &Headers::new()).await;
    let mut stream = incoming.next().await.unwrap();
    let mut sent = 0;
    let flood = async {
        loop {
            client.data(1, 0, &[0; PIECE_BYTES]).await;
            sent += PIECE_BYTES;
            if sent > 100 * PIECE_BYTES {
                return;
            }
        }
    };
    // Without anybody who reads, all that can be said is said, and then nothing moves.
    tokio::select! {
        biased;
        () = flood => panic!("all of it was taken"),
        () = async { for _ in 0..10_000 { tokio::task::yield_now().await } } => {}
    }
    assert!(sent < 20 * PIECE_BYTES, "{sent} bytes are held");
    assert_eq!(stream.read().await.unwrap().len(), PIECE_BYTES);
}
