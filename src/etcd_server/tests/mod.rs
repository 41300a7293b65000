//! The server, asked as clients ask it, without a socket between.

mod bad_input;
mod histories;
mod keys;
mod leases;
mod linearizable;
mod restored;
mod transactions;
mod upkeep;
mod watches;

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use clock::Clock;
use etcd::{Kv, Options};
use futures::channel::mpsc;
use http::{HeaderMap, Request};
use http_body_util::BodyExt;

use crate::frames::{Received, framed};
use crate::messages::*;
use crate::status::EtcdStatus;
use crate::values::AsKept;
use crate::{EtcdServer, ProtoMessage, ServerOptions};

/// A server on a store in memory.
fn server() -> EtcdServer {
    server_on(Kv::open(Options::default(), Clock::real()).unwrap())
}

fn server_on(kv: Kv) -> EtcdServer {
    let source = Arc::new(move || Ok(kv.clone()));
    let progress_interval = Duration::from_millis(100);
    EtcdServer::new(source, Arc::new(AsKept), ServerOptions { progress_interval, ..Default::default() })
}

/// A call with one message each way.
async fn call<Q: ProtoMessage, A: ProtoMessage>(
    server: &EtcdServer,
    method: &str,
    request: &Q,
) -> Result<A, EtcdStatus> {
    send(server, method, Body::from(framed(request))).await
}

async fn send<A: ProtoMessage>(server: &EtcdServer, method: &str, body: Body) -> Result<A, EtcdStatus> {
    let mut answers = answers(server, method, body).await?;
    let message = answers.next().await;
    assert!(answers.next::<A>().await.is_none(), "one message");
    Ok(message.expect("one message"))
}

/// A call whose answers come one by one.
async fn answers(server: &EtcdServer, method: &str, body: Body) -> Result<Answers, EtcdStatus> {
    let request = Request::post(format!("http://etcd/etcdserverpb.{method}"));
    let request = request.header("content-type", "application/grpc").body(body).unwrap();
    let response = server.serve(request).await;
    assert_eq!(
        (response.status().as_u16(), &response.headers()["content-type"] == "application/grpc"),
        (200, true)
    );
    let status = status_in(response.headers());
    status.map_or(Ok(()), Err)?;
    Ok(Answers { body: response.into_body(), unread: Vec::new(), ended: None })
}

/// The pieces of a snapshot, the checksum last.
async fn snapshot(server: &EtcdServer) -> Vec<Bytes> {
    let body = Body::from(framed(&Empty {}));
    let mut pieces = answers(server, "Maintenance/Snapshot", body).await.unwrap();
    let mut blobs = Vec::new();
    while let Some(piece) = pieces.next::<SnapshotResponse>().await {
        blobs.push(piece.blob);
    }
    blobs
}

fn status_in(headers: &HeaderMap) -> Option<EtcdStatus> {
    let code = headers.get("grpc-status")?.to_str().unwrap().parse().unwrap();
    let message = headers.get("grpc-message").map_or("", |message| message.to_str().unwrap()).to_owned();
    Some(EtcdStatus { code, message })
}

/// What comes back.
struct Answers {
    body: Body,
    unread: Vec<u8>,
    /// How it ended.
    ended: Option<EtcdStatus>,
}

impl Answers {
    async fn next<A: ProtoMessage>(&mut self) -> Option<A> {
        loop {
            if self.unread.len() >= 5 {
                let mut received = Received::new(Body::from(std::mem::take(&mut self.unread)));
                return Some(received.only().await.unwrap());
            }
            let frame = self.body.frame().await?.unwrap();
            match frame.into_data() {
                Ok(data) => self.unread.extend(data),
                Err(frame) => {
                    self.ended = status_in(&frame.into_trailers().unwrap());
                    return None;
                }
            }
        }
    }
}

/// A stream both ways: what is sent, and what comes back.
struct Talk {
    requests: mpsc::UnboundedSender<Result<Bytes, std::io::Error>>,
    answers: Answers,
}

impl Talk {
    async fn begin(server: &EtcdServer, method: &str) -> Talk {
        let (requests, body) = mpsc::unbounded();
        let answers = answers(server, method, Body::from_stream(body)).await.unwrap();
        Talk { requests, answers }
    }

    fn say(&self, request: &impl ProtoMessage) {
        self.requests.unbounded_send(Ok(framed(request))).unwrap();
    }

    async fn hear<A: ProtoMessage>(&mut self) -> A {
        let heard = Clock::real().timeout(Duration::from_secs(60), self.answers.next()).await;
        heard.expect("an answer in time").expect("an answer")
    }
}

fn bytes(text: &str) -> Bytes {
    Bytes::copy_from_slice(text.as_bytes())
}

async fn put(server: &EtcdServer, key: &str, value: &str) -> i64 {
    let request = PutRequest { key: bytes(key), value: bytes(value), ..Default::default() };
    let answer: PutResponse = call(server, "KV/Put", &request).await.unwrap();
    answer.header.0.unwrap().revision
}

fn one(key: &str) -> RangeRequest {
    RangeRequest { key: bytes(key), ..Default::default() }
}

fn all() -> RangeRequest {
    RangeRequest { key: bytes("\0"), range_end: bytes("\0"), ..Default::default() }
}

async fn range(server: &EtcdServer, request: &RangeRequest) -> RangeResponse {
    call(server, "KV/Range", request).await.unwrap()
}

fn texts(kvs: &Repeated<KeyValue>) -> Vec<(String, String)> {
    let text = |bytes: &Bytes| String::from_utf8(bytes.to_vec()).unwrap();
    kvs.0.iter().map(|kv| (text(&kv.key), text(&kv.value))).collect()
}

fn keys_of(kvs: &Repeated<KeyValue>) -> Vec<String> {
    texts(kvs).into_iter().map(|(key, _)| key).collect()
}

/// The words and the code of a call that fails.
async fn failure(server: &EtcdServer, method: &str, request: &impl ProtoMessage) -> (u32, String) {
    let failed = call::<_, Empty>(server, method, request).await.unwrap_err();
    (failed.code, failed.message)
}
