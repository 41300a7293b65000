//! The filters: what every request passes before a verb handles it (`server/filters`, `endpoints/filters`).
//! Next: src/apiserver/endpoints/installer.rs
//!
//! One file each; `handler_chain` lists them in the order in which a request meets them.
//!
//! In comes a request and the rest of the chain; out goes an answer, the chain's or one that refuses. What
//! a filter finds out travels on in the request's extensions: `Arc<RequestInfo>`, `AuditId`,
//! `Arc<UserInfo>`. A filter must not know what a verb does or which kinds there are.

pub mod chain;

pub mod panic_recovery;

pub mod metrics;
pub mod request_info;
mod request_log;
pub mod timeout;

pub mod browsers;
pub mod cors;
pub mod hsts;
pub mod web_pages;

pub mod authentication;

pub mod audit;
pub mod audit_init;
pub mod impersonation;
pub mod priority_and_fairness;

pub mod authorization;

pub mod flow_record;

mod until_sent;

use std::sync::Arc;

use http::HeaderValue;
use http::header::EXPECT;

use crate::audit::AuditContext;
use crate::request::RequestInfo;
use apimachinery::status::Status;
use apimachinery::user::UserInfo;
use apimachinery::wire::{
    ApiRequest, ApiResponse, DecodedBody, StatusAnswer, UnreadBody, WantsObjects, negotiated_status_response,
    text_response,
};

pub use chain::{Next, Passing};

/// Of an answer: the server did not let the request run to its end, to keep itself from harm.
#[derive(Clone)]
struct Terminated;

/// No browser is to make a page of an answer that quotes what was asked.
const NOSNIFF: HeaderValue = HeaderValue::from_static("nosniff");

/// What an earlier filter read from the path.
fn info_of(request: &ApiRequest) -> Arc<RequestInfo> {
    request.extensions().get::<Arc<RequestInfo>>().cloned().unwrap_or_default()
}

/// Who an earlier filter found to be asking.
fn user_of(request: &ApiRequest) -> Arc<UserInfo> {
    let user = request.extensions().get::<Arc<UserInfo>>().cloned();
    user.unwrap_or_else(|| Arc::new(UserInfo::anonymous()))
}

/// Whether a component of this process asks, and no client: it takes objects, not bytes.
fn is_component(request: &ApiRequest) -> bool {
    request.extensions().get::<WantsObjects>().is_some()
}

/// The answer to a request that nobody can say yes or no to (`responsewriters.InternalError`).
fn fail(request: &mut ApiRequest, error: &str) -> ApiResponse {
    let uri = request.uri();
    let uri = uri.path_and_query().map_or(uri.path(), |all| all.as_str());
    let text = format!("Internal Server Error: {uri:?}: {error}");
    if request.extensions().get::<WantsObjects>().is_some() {
        return refuse(request, Status::internal(text));
    }
    let escaped = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let mut response = text_response(http::StatusCode::INTERNAL_SERVER_ERROR, format!("{escaped}\n"));
    response.extensions_mut().insert(StatusAnswer(Status::internal(text)));
    keep_body(request, &mut response);
    response
}

/// The answer to a request that goes no further.
fn refuse(request: &mut ApiRequest, status: Status) -> ApiResponse {
    if let Some(audit) = request.extensions().get::<Arc<AuditContext>>() {
        audit.gather(|gathered| gathered.response_status = Some(status.clone()));
    }
    let wants_objects = request.extensions().get::<WantsObjects>().is_some();
    let mut response = negotiated_status_response(request.headers(), status, wants_objects);
    keep_body(request, &mut response);
    response
}

/// Of a create only the body says which object it is about; whoever tells the story of the request takes it
/// from the answer. A client that waits to be asked for its body (`Expect`) is not asked.
fn keep_body(request: &mut ApiRequest, response: &mut ApiResponse) {
    let info = request.extensions().get::<Arc<RequestInfo>>();
    let is_nameless = info.is_some_and(|info| info.verb == "create" && info.name.is_empty());
    if !is_nameless || request.headers().contains_key(EXPECT) {
        return;
    }
    let extensions = response.extensions_mut();
    match request.extensions_mut().remove::<DecodedBody>() {
        Some(tree) => drop(extensions.insert(tree)),
        None => drop(extensions.insert(UnreadBody::new(std::mem::take(request.body_mut())))),
    }
}
