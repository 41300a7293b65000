//! One call over one connection: what is sent, what comes back, and how it ended.

use bytes::Bytes;
use etcd_api::ProtoMessage;
use etcd_api::frames::ReceivedMessages;
use etcd_api::status::{EtcdStatus, INTERNAL, UNAVAILABLE, UNKNOWN};
use http::header::{CONTENT_TYPE, TE, USER_AGENT};
use http::{HeaderMap, HeaderValue, Request, StatusCode};
use hyper::body::Incoming;
use percent_encoding::percent_decode_str;

use super::body::RequestBody;
use super::connection::{EtcdDialFailure, Hope, HttpSender};
use crate::config::EtcdEndpoint;

/// The longest answer that is read, as upstream's client has it: a page of a range.
const MAX_ANSWER_BYTES: usize = i32::MAX as usize;

/// What a member answers that has no leader, before it begins with what was asked (`ErrGRPCNoLeader`).
const NO_LEADER: &str = "etcdserver: no leader";

/// Whether a call may be made twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Repeat {
    /// It changes nothing.
    Harmless,
    /// It may have been done though nobody said so.
    Uncertain,
}

/// Why there is no answer.
#[derive(Debug)]
pub(crate) enum CallFailure {
    /// Nobody was reached.
    Dial(EtcdDialFailure),
    /// It has not left this process.
    NotSent(String),
    /// It was sent, and may have been done.
    Broken(String),
    /// etcd says so.
    Told(EtcdStatus),
}

impl CallFailure {
    /// Whether the same call may succeed soon.
    pub(crate) fn may_pass(&self, repeat: Repeat) -> bool {
        match self {
            CallFailure::Dial(failure) => failure.hope > Hope::None,
            CallFailure::NotSent(_) => true,
            CallFailure::Broken(_) => repeat == Repeat::Harmless,
            CallFailure::Told(status) if status.message == NO_LEADER => true,
            CallFailure::Told(status) => repeat == Repeat::Harmless && status.code == UNAVAILABLE,
        }
    }

    /// Whether another member may do better.
    pub(crate) fn is_of_member(&self) -> bool {
        match self {
            CallFailure::Dial(_) => false,
            CallFailure::NotSent(_) | CallFailure::Broken(_) => true,
            CallFailure::Told(status) => status.code == UNAVAILABLE,
        }
    }

    pub(crate) fn status(self) -> EtcdStatus {
        match self {
            CallFailure::Dial(EtcdDialFailure { why, .. })
            | CallFailure::NotSent(why)
            | CallFailure::Broken(why) => EtcdStatus::new(UNAVAILABLE, why),
            CallFailure::Told(status) => status,
        }
    }
}

/// Sends one message over a connection and reads one.
pub(crate) async fn ask<A: ProtoMessage>(
    sender: &mut HttpSender,
    endpoint: &EtcdEndpoint,
    method: &str,
    message: Bytes,
) -> Result<A, CallFailure> {
    let mut received = send(sender, endpoint, method, RequestBody::Once(Some(message))).await?;
    let broken = |status: EtcdStatus| CallFailure::Broken(status.message);
    let answer = received.next().await.map_err(broken)?;
    if let Some(status) = end_of(&mut received).await.map_err(broken)? {
        return Err(CallFailure::Told(status));
    }
    answer.ok_or_else(|| CallFailure::Broken("server closed the stream without sending a message".into()))
}

/// Sends a request; what comes back are the messages behind the answer's head.
pub(crate) async fn send(
    sender: &mut HttpSender,
    endpoint: &EtcdEndpoint,
    method: &str,
    body: RequestBody,
) -> Result<ReceivedMessages<Incoming>, CallFailure> {
    let request = request(endpoint, method, body).map_err(|error| CallFailure::NotSent(error.to_string()))?;
    sender.ready().await.map_err(|error| CallFailure::NotSent(error.to_string()))?;
    let response = sender.try_send_request(request).await.map_err(|mut failed| {
        let was_sent = failed.take_message().is_none();
        let why = failed.into_error().to_string();
        if was_sent { CallFailure::Broken(why) } else { CallFailure::NotSent(why) }
    })?;
    let (head, body) = response.into_parts();
    if head.status != StatusCode::OK {
        let why = format!("unexpected HTTP status code received from server: {}", head.status);
        return Err(CallFailure::Told(EtcdStatus::new(UNKNOWN, why)));
    }
    match status_in(&head.headers) {
        Some(status) => Err(CallFailure::Told(status)),
        None => Ok(ReceivedMessages::up_to(MAX_ANSWER_BYTES, body)),
    }
}

fn request(
    endpoint: &EtcdEndpoint,
    method: &str,
    body: RequestBody,
) -> Result<Request<RequestBody>, http::Error> {
    Request::post(format!("{endpoint}/etcdserverpb.{method}"))
        .header(CONTENT_TYPE, HeaderValue::from_static("application/grpc"))
        .header(TE, HeaderValue::from_static("trailers"))
        .header(USER_AGENT, HeaderValue::from_static("kubarium"))
        // A member that has lost its leader says so, and does not let its watches wait (`WithRequireLeader`).
        .header("hasleader", HeaderValue::from_static("true"))
        .body(body)
}

/// The status in a head or behind messages; None for one that says that all is well, or where there is none.
pub(crate) fn status_in(headers: &HeaderMap) -> Option<EtcdStatus> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let code = text("grpc-status")?.parse().unwrap_or(INTERNAL);
    let message = percent_decode_str(text("grpc-message").unwrap_or_default()).decode_utf8_lossy();
    (code != 0).then(|| EtcdStatus::new(code, message))
}

/// How a call ended that has one more message at most.
async fn end_of(received: &mut ReceivedMessages<Incoming>) -> Result<Option<EtcdStatus>, EtcdStatus> {
    while received.next::<etcd_api::messages::Empty>().await?.is_some() {}
    Ok(status_in(received.trailers()))
}
