//! Connections that stop being HTTP: websockets, and what is handed on to aggregated servers.

use hyper_util::rt::TokioIo;
use kubarium::apimachinery::wire::{ApiRequest, ApiResponse};
use kubarium::apiserver::server as tls;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

use super::wire::{admin, listening};
use super::*;
use crate::apiserver::Server;
use crate::support::wire::Target;

/// What a server says first on a connection that is to be no HTTP any more; then the connection.
pub(super) async fn upgraded(target: &Target, path: &str, headers: &str) -> (String, TlsStream<TcpStream>) {
    let mut stream = target.connect().await.unwrap();
    let host = &target.authority;
    let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: Upgrade\r\n{headers}\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    (String::from_utf8(head).unwrap(), stream)
}

const WEBSOCKET: &str = "Upgrade: websocket\r\nOrigin: http://localhost\r\nSec-WebSocket-Version: 13\r\n\
    Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";

/// The opcode and the payload of the next frame.
pub(super) async fn next_frame(stream: &mut TlsStream<TcpStream>) -> (u8, Vec<u8>) {
    let first = stream.read_u8().await.unwrap();
    let length = match stream.read_u8().await.unwrap() {
        126 => stream.read_u16().await.unwrap().into(),
        short => usize::from(short),
    };
    let mut payload = vec![0; length];
    stream.read_exact(&mut payload).await.unwrap();
    (first & 0x0f, payload)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_may_be_a_websocket() {
    let (cluster, access) = listening().await;
    let target = admin(&access);
    let path = "/api/v1/namespaces?watch=true&fieldSelector=metadata.name%3Ddefault";
    let (head, mut stream) = upgraded(&target, path, WEBSOCKET).await;
    assert!(head.starts_with("HTTP/1.1 101 Switching Protocols\r\n"), "{head}");
    assert!(head.to_lowercase().contains("sec-websocket-accept: s3pplmbitxaq9kygzzhzrbk+xoo="), "{head}");
    let (opcode, event) = next_frame(&mut stream).await;
    let event: Value = serde_json::from_slice(&event).unwrap();
    assert_eq!((opcode, &event["type"]), (1, &"ADDED".into()));
    assert_eq!(event["object"]["metadata"]["name"], "default");
    stream.write_all(b"\x89\x81\0\0\0\0p\x88\x80\0\0\0\0").await.unwrap();
    assert_eq!(next_frame(&mut stream).await, (10, b"p".to_vec()));
    assert_eq!(next_frame(&mut stream).await.0, 8);
    let protobuf = format!("Accept: application/vnd.kubernetes.protobuf\r\n{WEBSOCKET}");
    let (_, mut stream) = upgraded(&target, path, &protobuf).await;
    let (opcode, event) = next_frame(&mut stream).await;
    assert_eq!((opcode, &event[..7]), (2, &b"\x0a\x05ADDED"[..]));
    let (head, _) = upgraded(&target, path, &WEBSOCKET.replace("Origin", "X-Origin")).await;
    assert!(head.starts_with("HTTP/1.1 403 Forbidden\r\n"), "{head}");
    cluster.stop().await;
}

/// An aggregated server that says back what it hears, once its protocol is agreed upon.
async fn echo(mut request: ApiRequest) -> ApiResponse {
    let mut response = ApiResponse::new(Body::from(r#"{"kind":"APIResourceList","resources":[]}"#));
    if request.headers().get("upgrade").is_some_and(|protocol| protocol == "echo") {
        let upgrade = hyper::upgrade::on(&mut request);
        *response.status_mut() = http::StatusCode::SWITCHING_PROTOCOLS;
        *response.body_mut() = Body::empty();
        response.headers_mut().insert("upgrade", "echo".parse().unwrap());
        response.headers_mut().insert("connection", "Upgrade".parse().unwrap());
        tokio::spawn(async move {
            let (mut reader, mut writer) = tokio::io::split(TokioIo::new(upgrade.await.unwrap()));
            let _ = tokio::io::copy(&mut reader, &mut writer).await;
        });
    }
    response
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_is_handed_on_to_an_aggregated_server() {
    let now = Clock::real().now();
    let authority = Authority::generate(now).unwrap();
    let tls = tls::Tls {
        identity: authority.server(&["echo.default.svc"], &[], now).unwrap(),
        client_authorities: vec![],
        demands_client_certificates: false,
    };
    let service = ApiService::new(tower::service_fn(|request| async { Ok(echo(request).await) }));
    let listener = tls::bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let other = tls::Server::start(listener, Some(&tls), service).unwrap();
    let port = other.address().port();
    let (cluster, access) = listening().await;
    let server = Server::of(&cluster);
    let named = json!({"metadata": {"name": "echo"}, "spec": {
        "type": "ExternalName", "externalName": "localhost", "ports": [{"port": port}]}});
    server.create("/api/v1/namespaces/default/services", named).await;
    let api_service = json!({"metadata": {"name": "v1.echo.example.com"}, "spec": {
        "group": "echo.example.com", "version": "v1", "groupPriorityMinimum": 2000, "versionPriority": 15,
        "insecureSkipTLSVerify": true, "service": {"namespace": "default", "name": "echo", "port": port}}});
    server.create("/apis/apiregistration.k8s.io/v1/apiservices", api_service).await;
    let target = admin(&access);
    let path = "/apis/echo.example.com/v1/things/a/stream";
    let (head, mut stream) = upgraded(&target, path, "Upgrade: echo\r\n").await;
    assert!(head.starts_with("HTTP/1.1 101 Switching Protocols\r\n"), "{head}");
    stream.write_all(b"hello").await.unwrap();
    let mut said = [0; 5];
    stream.read_exact(&mut said).await.unwrap();
    assert_eq!(&said, b"hello");
    drop(stream);
    cluster.stop().await;
    other.stop().await;
}
