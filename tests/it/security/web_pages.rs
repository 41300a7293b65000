//! A listener without TLS and what pages in a browser beside it can do with it, which is nothing.

use std::net::SocketAddr;

use kubarium::cluster::{Components, Listen};
use kubarium::{Cluster, Config};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::wire::{admin, listening};
use super::*;
use crate::support::wire::Target;

const WATCH: &str = "GET /api/v1/secrets?watch=1";
const MAPS: &str = "POST /api/v1/namespaces/default/configmaps";
const WEBSOCKET: &str = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
    Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";

/// The first bytes that are answered: head and, of a short one, body.
async fn said(
    mut stream: impl AsyncReadExt + AsyncWriteExt + Unpin,
    line: &str,
    headers: &str,
    body: &str,
) -> String {
    let length = if body.is_empty() { String::new() } else { format!("Content-Length: {}\r\n", body.len()) };
    let text = format!("{line} HTTP/1.1\r\n{headers}{length}\r\n{body}");
    stream.write_all(text.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\n") {
        answer.push(stream.read_u8().await.unwrap());
    }
    let head = String::from_utf8(answer).unwrap();
    let length = head
        .to_ascii_lowercase()
        .split("content-length: ")
        .nth(1)
        .map_or(0, |rest| rest.split("\r\n").next().unwrap().parse::<usize>().unwrap());
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.unwrap();
    head + &String::from_utf8(body).unwrap()
}

async fn plain() -> (Cluster, SocketAddr) {
    let listen = Listen::insecure_http("127.0.0.1:0".parse().unwrap());
    let config = Config::new().nodes(0).components(Components::NONE).listen(listen);
    let cluster = Cluster::start(config).await.unwrap();
    let server = cluster.access().unwrap().server;
    (cluster, server.strip_prefix("http://").unwrap().parse().unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn without_tls_no_web_page_reads_or_writes() {
    let (cluster, address) = plain().await;
    let own = format!("Host: {address}\r\n");
    let evil = "Origin: http://evil.example\r\n";
    let json = "Content-Type: application/json\r\n";
    let map = |name: &str| json!({"metadata": {"name": name}}).to_string();
    let rebound = "the request is for the host \\\"evil.example\\\"; without TLS this server answers to";
    let foreign = "the request is sent by a web page of \\\"http://evil.example\\\"; without TLS pages of other \
                   servers may neither write nor open websockets";
    let bare = "the body of the request has no Content-Type; without TLS it must have one";
    let cases = [
        ("GET /api/v1/secrets", "Host: evil.example\r\n".to_owned(), String::new(), 403, rebound),
        ("GET /livez", "Host: evil.example\r\n".into(), String::new(), 403, rebound),
        (WATCH, format!("{own}{evil}{WEBSOCKET}"), String::new(), 403, foreign),
        (
            "GET /api/v1/namespaces/default/pods/p/exec?command=sh&stdout=1",
            format!("{own}{evil}{WEBSOCKET}"),
            String::new(),
            403,
            foreign,
        ),
        (MAPS, format!("{own}{evil}{json}"), map("evil"), 403, foreign),
        (
            "DELETE /api/v1/namespaces/default/configmaps/a",
            format!("{own}{evil}"),
            String::new(),
            403,
            foreign,
        ),
        (MAPS, own.clone(), map("evil"), 415, bare),
        (MAPS, format!("{own}Content-Type: text/plain\r\n"), map("evil"), 415, "unknown format"),
        ("GET /api/v1/secrets", format!("{own}{evil}"), String::new(), 200, ""),
        ("GET /api/v1/secrets", format!("Host: localhost:{}\r\n", address.port()), String::new(), 200, ""),
        (MAPS, format!("{own}{json}"), map("good"), 201, ""),
        (MAPS, format!("{own}Origin: http://{address}\r\n{json}"), map("better"), 201, ""),
        (WATCH, format!("{own}Origin: http://{address}\r\n{WEBSOCKET}"), String::new(), 101, ""),
    ];
    for (line, headers, body, code, words) in cases {
        let stream = TcpStream::connect(address).await.unwrap();
        let answer = said(stream, line, &headers, &body).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {code} ")), "{line}\n{headers}\n{answer}");
        assert!(answer.contains(words), "{line}\n{headers}\n{answer}");
        assert!(code != 403 || !answer.to_ascii_lowercase().contains("access-control-"), "{answer}");
    }
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn over_tls_nobody_is_asked_where_they_come_from() {
    let (cluster, access) = listening().await;
    let target: Target = admin(&access);
    let evil = "Host: evil.example\r\nOrigin: http://evil.example\r\n";
    let map = json!({"metadata": {"name": "a"}}).to_string();
    for (line, headers, body, code) in
        [(MAPS, evil.to_owned(), &*map, 201), (WATCH, format!("{evil}{WEBSOCKET}"), "", 101)]
    {
        let answer = said(target.connect().await.unwrap(), line, &headers, body).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {code} ")), "{line}\n{answer}");
    }
    cluster.stop().await;
}
