//! Heads that Go's server would not take: what is said to them, word for word.

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::wire::{admin, listening};
use crate::support::wire::Target;

/// All that is answered to this text.
async fn said(target: &Target, text: &str) -> String {
    let mut stream = target.connect().await.unwrap();
    stream.write_all(text.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    String::from_utf8(answer).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn who_speaks_http_where_tls_is_spoken_is_told_so() {
    let (cluster, _) = listening().await;
    let address = cluster.address().unwrap();
    for head in [
        "GET /api HTTP/1.1",
        "HEAD / HTTP/1.1",
        "POST /api HTTP/1.1",
        "PUT /api HTTP/1.1",
        "OPTIONS * HTTP/1.1",
    ] {
        let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
        stream.write_all(format!("{head}\r\nHost: a\r\n\r\n").as_bytes()).await.unwrap();
        let mut answer = String::new();
        // What it has not read may reset the connection behind its answer, as Go's does.
        let _ = stream.read_to_string(&mut answer).await;
        let said = "Client sent an HTTP request to an HTTPS server.\n";
        assert_eq!(answer, format!("HTTP/1.0 400 Bad Request\r\n\r\n{said}"), "{head}");
    }
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn heads_are_refused_as_gos_server_refuses_them() {
    let (cluster, access) = listening().await;
    let target = admin(&access);
    let livez = "GET /livez HTTP/1.1\r\n";
    let end = "connection: close\r\n\r\n";
    let uri = "a".repeat(70_000);
    let cases = [
        (format!("{livez}\r\n"), "400 Bad Request: missing required Host header"),
        (format!("{livez}host: a\r\nhost: a\r\n\r\n"), "400 Bad Request: too many Host headers"),
        (format!("{livez}host: a b\r\n\r\n"), "400 Bad Request: malformed Host header"),
        ("nonsense\r\n\r\n".into(), "400 Bad Request"),
        (format!("GET /{uri} HTTP/1.1\r\nhost: a\r\n\r\n"), "414 Request URI Too Long"),
        (format!("{livez}host: a\r\nx: {}", "y".repeat(500_000)), "431 Request Header Fields Too Large"),
        (format!("{livez}host: a\r\n{}\r\n", "x: y\r\n".repeat(500)), "431 Request Header Fields Too Large"),
        (format!("{livez}host: a\r\n\r\nnonsense\r\n\r\n"), "400 Bad Request"),
    ];
    for (text, words) in cases {
        let answer = said(&target, &text).await;
        let case = &text[..text.len().min(60)];
        let refusal = answer.rfind("HTTP/1.1 ").map(|at| &answer[at..]).unwrap_or_default();
        assert!(refusal.starts_with(&format!("HTTP/1.1 {words}\r\n")), "{case:?}: {answer}");
        assert!(refusal.ends_with(&format!("\r\n\r\n{words}")), "{case:?}: {answer}");
        let head = refusal.to_ascii_lowercase();
        assert!(head.contains("\r\ncontent-type: text/plain; charset=utf-8\r\n"), "{case:?}: {answer}");
        assert!(head.contains("\r\nconnection: close\r\n"), "{case:?}: {answer}");
    }
    for text in ["GET /livez HTTP/1.0\r\n\r\n".to_owned(), format!("{livez}host:\r\n{end}")] {
        let answer = said(&target, &text).await;
        assert!(answer.contains(" 200 OK\r\n") && answer.ends_with("\r\n\r\nok"), "{text:?}: {answer}");
    }
    cluster.stop().await;
}
