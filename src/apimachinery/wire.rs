//! The one service that sockets, components and tests call, and what in-process callers may pass instead of
//! JSON.
//!
//! Everything here travels in `http::Extensions`, which nothing on a socket can fill, so every filter still
//! runs and none can be fooled.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::body::Body;
use serde_json::Value;
use tokio::sync::mpsc;

use super::accept::{MediaType, media_type_of_status};
use super::list::List;
use super::object::Object;
use super::protobuf;
use super::status::Status;
use super::user::UserInfo;
use super::watch::WatchEvent;
use super::yaml;

/// A request to the apiserver.
pub type ApiRequest = http::Request<Body>;
/// Its answer. Errors are answers too.
pub type ApiResponse = http::Response<Body>;
/// The apiserver, whole: every filter and every verb behind one call.
pub type ApiService = tower::util::BoxCloneSyncService<ApiRequest, ApiResponse, Infallible>;

/// On a request: the identity of an in-process component. Authentication takes it as it is.
#[derive(Clone, Debug)]
pub struct InProcessUser(pub Arc<UserInfo>);

/// On a request from outside that is for none of the API and changes something: what showed who asks. Whoever
/// asks again in their name later shows it again, so that it is worth as much as it then is.
#[derive(Clone)]
pub struct ShownCredentials {
    /// Headers with their values: a token, a password, as whom somebody acts.
    pub headers: http::HeaderMap,
    /// What the client proved to have in TLS.
    pub certificates: Option<PeerCertificates>,
}

impl ShownCredentials {
    /// Shows them on another request.
    pub fn show_on<B>(&self, request: &mut http::Request<B>) {
        for (name, value) in &self.headers {
            request.headers_mut().append(name, value.clone());
        }
        if let Some(certificates) = &self.certificates {
            request.extensions_mut().insert(certificates.clone());
        }
    }
}

/// On a request that is for none of the API: says whether who asks may `get` all objects of a resource, by
/// its group, its plural, and the namespace, which may be empty.
#[derive(Clone)]
pub struct MayRead(pub Arc<AsksWhetherReadable>);

/// See [`MayRead`].
pub type AsksWhetherReadable =
    dyn Fn(&str, &str, &str) -> Pin<Box<dyn Future<Output = bool> + Send>> + Send + Sync;

/// On a request: the body, already decoded; the HTTP body is empty then. Shared with the caller, who may have
/// to send it again.
#[derive(Clone, Debug)]
pub struct DecodedBody(pub Arc<Value>);

/// On a request: the caller takes answers as [`ObjectAnswer`], [`ListAnswer`], [`WatchAnswer`] or
/// [`StatusAnswer`] in the response's extensions, with an empty body.
#[derive(Clone, Copy, Debug)]
pub struct WantsObjects;

/// On a request: the flow record's step that made the caller ask (see `flow`).
#[derive(Clone, Copy, Debug)]
pub struct CausedBy(pub u64);

/// On an answer to a write that stored nothing, because it failed or was only to be tried: which object it
/// was about. For those who tell the story of a request.
#[derive(Clone, Debug)]
pub struct Attempted {
    /// The name in the body of a create; empty where nobody could read it, or where it is generated.
    pub name: Arc<str>,
    /// The resource as it is stored: `deployments.apps`, whatever group the path names.
    pub resource: Arc<str>,
}

/// On an answer that refuses a create before its body was read: the body. Taken once.
#[derive(Clone, Debug)]
pub struct UnreadBody(Arc<sync::Mutex<Option<Body>>>);

/// On a response to a caller that [`WantsObjects`]: one object.
#[derive(Clone, Debug)]
pub struct ObjectAnswer(pub Arc<Object>);

/// On a response to a caller that [`WantsObjects`]: a list.
pub type ListAnswer = List;

/// On a response to a caller that [`WantsObjects`]: a failure, or the success that a delete answers.
#[derive(Clone, Debug)]
pub struct StatusAnswer(pub Status);

/// On a response to a caller that [`WantsObjects`]: the events of a watch. Taken once.
#[derive(Clone, Debug)]
pub struct WatchAnswer(pub Arc<sync::Mutex<Option<mpsc::Receiver<WatchEvent>>>>);

/// A failure (or a bare success) as an answer: for a caller that [`WantsObjects`] as [`StatusAnswer`], for
/// all others as JSON; a time to try again goes into `Retry-After`.
pub fn status_response(status: Status, wants_objects: bool) -> ApiResponse {
    // What a delete answers names no code.
    let code = if status.code == 0 && status.status == "Success" { 200 } else { status.code };
    let code = http::StatusCode::from_u16(code).unwrap_or(http::StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = http::Response::new(Body::empty());
    *response.status_mut() = code;
    let seconds = status.details.as_ref().map_or(0, |details| details.retry_after_seconds);
    if seconds > 0 {
        response.headers_mut().insert(http::header::RETRY_AFTER, seconds.into());
    }
    // Beside bytes too: for those who tell the story of a request.
    response.extensions_mut().insert(StatusAnswer(status.clone()));
    if wants_objects {
        return response;
    }
    let json = http::HeaderValue::from_static("application/json");
    response.headers_mut().insert(http::header::CONTENT_TYPE, json);
    let mut bytes = serde_json::to_vec(&status).expect("a status is JSON");
    bytes.push(b'\n');
    *response.body_mut() = Body::from(bytes);
    response
}

/// The answer of a failure in the form that these headers of the request ask for
/// (`responsewriters.ErrorNegotiated`).
pub fn negotiated_status_response(
    headers: &http::HeaderMap,
    status: Status,
    wants_objects: bool,
) -> ApiResponse {
    let media_type = if wants_objects {
        MediaType::Json
    } else {
        media_type_of_status(headers).unwrap_or(MediaType::Json)
    };
    let bytes = match media_type {
        MediaType::Json => return status_response(status, wants_objects),
        MediaType::Yaml => yaml::to_string(&status.to_value()).into_bytes(),
        MediaType::Protobuf => protobuf::encode_document(&status.to_value()).unwrap_or_default(),
    };
    let mut response = status_response(status, true);
    let name = http::HeaderValue::from_static(media_type.name());
    response.headers_mut().insert(http::header::CONTENT_TYPE, name);
    *response.body_mut() = Body::from(bytes);
    response
}

/// A few words as plain text: what the server says where upstream uses Go's `http.Error`.
pub fn text_response(code: http::StatusCode, text: impl Into<String>) -> ApiResponse {
    let mut response = http::Response::new(Body::from(text.into()));
    *response.status_mut() = code;
    let headers = response.headers_mut();
    let plain = http::HeaderValue::from_static("text/plain; charset=utf-8");
    headers.insert(http::header::CONTENT_TYPE, plain);
    let nosniff = http::HeaderValue::from_static("nosniff");
    headers.insert(http::header::X_CONTENT_TYPE_OPTIONS, nosniff);
    response
}

/// On a response to a client: its body is a watch, which ends when the client stops reading.
#[derive(Clone, Copy, Debug)]
pub struct WatchStream;

/// On a response: nothing of it is to reach the client, whose connection (in HTTP/2 its stream) ends instead.
#[derive(Clone, Copy, Debug)]
pub struct Severed;

/// On a response: the fault on purpose that made it what it is. For those who tell the story of a request.
#[derive(Clone, Debug)]
pub struct Faulted(pub Arc<str>);

impl UnreadBody {
    /// What is left of a request.
    pub fn new(body: Body) -> UnreadBody {
        UnreadBody(Arc::new(sync::Mutex::new(Some(body))))
    }

    /// The body; none when it was taken before.
    pub fn take(&self) -> Option<Body> {
        self.0.lock().take()
    }
}

impl WatchAnswer {
    /// Wraps the receiving end of a watch.
    pub fn new(events: mpsc::Receiver<WatchEvent>) -> WatchAnswer {
        WatchAnswer(Arc::new(sync::Mutex::new(Some(events))))
    }

    /// The events; none when they were taken before.
    pub fn take(&self) -> Option<mpsc::Receiver<WatchEvent>> {
        self.0.lock().take()
    }
}

/// On a request from a socket: the client's certificate and what leads from it to its authority, in DER. TLS
/// has proven that the client has the certificate's key, and nothing else.
#[derive(Clone, Debug)]
pub struct PeerCertificates(pub Arc<[Vec<u8>]>);

/// On a request from a socket without TLS: where that listens.
#[derive(Clone, Copy, Debug)]
pub struct PlainHttp(pub std::net::SocketAddr);

/// On a request from a socket: where it came from.
#[derive(Clone, Copy, Debug)]
pub struct RemoteAddress(pub std::net::SocketAddr);

/// On requests that come over one connection: the step of the causal record at which its client last asked
/// what is served, until a request that changes something is found to come of it. Cloning shares it.
#[derive(Clone, Debug, Default)]
pub struct AskedBefore(Arc<AtomicU64>);

impl AskedBefore {
    /// The step; none before the first, and when it was taken.
    pub fn step(&self) -> Option<u64> {
        Some(self.0.load(Ordering::Relaxed)).filter(|step| *step != 0)
    }

    /// It has asked once more.
    pub fn note(&self, step: u64) {
        self.0.store(step, Ordering::Relaxed);
    }

    /// The step, which is then no longer there.
    pub fn take(&self) -> Option<u64> {
        Some(self.0.swap(0, Ordering::Relaxed)).filter(|step| *step != 0)
    }
}
