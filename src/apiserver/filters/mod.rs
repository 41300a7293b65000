//! The filters: what every request passes before a verb handles it (`server/filters`, `endpoints/filters`).
//! Next: src/apiserver/endpoints/installer.rs
//!
//! One file each; `handler_chain` lists them in the order in which a request meets them.
//!
//! In comes a request and the rest of the chain; out goes an answer, the chain's or one that refuses. What
//! a filter finds out travels on with the request, in the fields of [`passed::Passed`]. A filter must not
//! know what a verb does or which kinds there are.

pub mod chain;
pub mod passed;

pub mod panic_recovery;

pub mod metrics;
pub mod request_info;
mod request_log;
pub mod stepping;
pub mod timeout;

pub mod browsers;
pub mod cors;
pub mod hsts;
pub mod retry_after;
pub mod web_pages;

pub mod authentication;

pub mod audit;
pub mod audit_init;
pub mod impersonation;
pub mod priority_and_fairness;

pub mod authorization;

pub mod interceptor;

mod exchange;
mod flow_asked;
pub mod flow_record;
pub mod traffic;

use http::HeaderValue;
use http::header::EXPECT;

use apimachinery::status::Status;
use apimachinery::wire::{ApiResponse, DecodedBody, StatusAnswer, UnreadBody, text_response};

pub use chain::{Next, Passing};
use passed::Passed;

/// Of an answer: the server did not let the request run to its end, to keep itself from harm.
#[derive(Clone)]
struct RequestTerminated;

/// No browser is to make a page of an answer that quotes what was asked.
const NOSNIFF: HeaderValue = HeaderValue::from_static("nosniff");

/// The answer to a request that nobody can say yes or no to (`responsewriters.InternalError`).
fn fail(request: &mut Passed, error: &str) -> ApiResponse {
    let uri = request.uri();
    let uri = uri.path_and_query().map_or(uri.path(), |all| all.as_str());
    let text = format!("Internal Server Error: {uri:?}: {error}");
    if request.ctx.wants_objects {
        return refuse(request, Status::internal(text));
    }
    let escaped = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let mut response = text_response(http::StatusCode::INTERNAL_SERVER_ERROR, format!("{escaped}\n"));
    response.extensions_mut().insert(StatusAnswer(Status::internal(text)));
    keep_body(request, &mut response);
    response
}

/// The answer to a request that goes no further.
fn refuse(request: &mut Passed, status: Status) -> ApiResponse {
    let mut response = request.ctx.refuse(request.headers(), status);
    keep_body(request, &mut response);
    response
}

/// Of a create only the body says which object it is about; whoever tells the story of the request takes it
/// from the answer. A client that waits to be asked for its body (`Expect`) is not asked.
fn keep_body(request: &mut Passed, response: &mut ApiResponse) {
    let info = &request.ctx.info;
    let is_nameless = info.verb == "create" && info.name.is_empty();
    if !is_nameless || request.headers().contains_key(EXPECT) {
        return;
    }
    let extensions = response.extensions_mut();
    match request.extensions_mut().remove::<DecodedBody>() {
        Some(tree) => drop(extensions.insert(tree)),
        None => drop(extensions.insert(UnreadBody::new(std::mem::take(request.body_mut())))),
    }
}
