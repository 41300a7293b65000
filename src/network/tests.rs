//! What servers and clients see of each other.

use std::future::ready;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::BodyExt;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::http_server::{MAX_BODY_BYTES, serve};
use crate::{connection, http_client};
use clock::Clock;

fn echo(request: Request<Bytes>) -> std::future::Ready<Response<Bytes>> {
    let said = format!("{} {} {}", request.method(), request.uri(), request.body().len());
    ready(Response::new(said.into()))
}

async fn ask(request: Request<Bytes>) -> (u16, String) {
    let (client, server) = connection();
    tokio::spawn(async move { serve(server, echo).await });
    let response = http_client::ask(&Clock::real(), client, request).await.unwrap();
    let code = response.status().as_u16();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (code, String::from_utf8(body.to_vec()).unwrap())
}

#[tokio::test]
async fn a_request_is_answered_by_the_handler() {
    let get = Request::get("/a?b=c").header("host", "pod").body(Bytes::new()).unwrap();
    assert_eq!(ask(get).await, (200, "GET /a?b=c 0".into()));
    let post = Request::post("/").header("host", "pod").body(Bytes::from_static(b"four")).unwrap();
    assert_eq!(ask(post).await, (200, "POST / 4".into()));
}

#[tokio::test]
async fn a_body_is_read_up_to_its_bound() {
    let post = |bytes| Request::post("/").header("host", "pod").body(vec![b'x'; bytes].into()).unwrap();
    assert_eq!(ask(post(MAX_BODY_BYTES)).await, (200, format!("POST / {MAX_BODY_BYTES}")));
    assert_eq!(ask(post(MAX_BODY_BYTES + 1)).await.0, 413);
}

#[tokio::test]
async fn who_has_said_all_is_still_answered() {
    let (mut client, server) = connection();
    client.write_all(b"GET / HTTP/1.0\r\n\r\n").await.unwrap();
    client.shutdown().await.unwrap();
    tokio::spawn(async move { serve(server, echo).await });
    let mut said = String::new();
    client.read_to_string(&mut said).await.unwrap();
    assert!(said.ends_with("GET / 0"), "{said}");
}

#[tokio::test]
async fn headers_are_written_as_servers_write_them() {
    let (mut client, server) = connection();
    let answer =
        |_| ready(Response::builder().header("content-type", "text/plain").body(Bytes::new()).unwrap());
    tokio::spawn(async move { serve(server, answer).await });
    client.write_all(b"GET / HTTP/1.1\r\nhost: pod\r\nconnection: close\r\n\r\n").await.unwrap();
    let mut said = String::new();
    client.read_to_string(&mut said).await.unwrap();
    assert!(said.contains("\r\nContent-Type: text/plain\r\n"), "{said}");
    assert!(said.contains("\r\nContent-Length: 0\r\n"), "{said}");
}

#[tokio::test]
async fn what_is_no_http_ends_its_own_connection() {
    let (mut client, server) = connection();
    let serving = tokio::spawn(async move { serve(server, echo).await });
    client.write_all(b"\x16\x03\x01 this is TLS\r\n\r\n").await.unwrap();
    let mut said = String::new();
    client.read_to_string(&mut said).await.unwrap();
    assert!(said.starts_with("HTTP/1.1 400 Bad Request"), "{said}");
    serving.await.unwrap();
}
