//! The answer to a request, whole: as bytes for clients, as objects for callers in this process
//! (`handlers/response.go`).

use bytes::BytesMut;
use http::header::{CONTENT_TYPE, RETRY_AFTER, WARNING};
use http::{HeaderValue, StatusCode};
use serde_json::{Value, json};

use super::request_scope::Scope;
use crate::audit_context::{AuditContext, Level};
use crate::endpoints::response::answer::Answer;
use crate::endpoints::response::list_body::{ListBody, STRETCH_BYTES};
use crate::endpoints::response::messages;
use crate::endpoints::response::negotiation::{Output, Transform};
use crate::endpoints::response::printer::Printer;
use crate::endpoints::response::watch_server::watch_response;
use crate::endpoints::response::writers::{is_compressed, write_bytes};
use crate::metrics::WatchCounts;
use crate::request::warning_header;
use apimachinery::accept::{MediaType, media_type_of_status};
use apimachinery::list::List;
use apimachinery::status::Status;
use apimachinery::wire::{
    ApiResponse, Attempted, ListAnswer, ObjectAnswer, StatusAnswer, WatchAnswer, status_response,
};

/// The whole answer, with the warnings of the request.
pub(crate) fn respond(scope: &Scope, answer: Result<Answer, Status>) -> ApiResponse {
    let answer = answer.unwrap_or_else(Answer::Status);
    if let Some(audit) = &scope.ctx.audit {
        tell(scope, audit, &answer);
    }
    let mut response = match answer {
        Answer::Raw(response) => response,
        answer if scope.ctx.wants_objects => hand_over(answer),
        answer => write(scope, answer).unwrap_or_else(|status| write_status(scope, &status)),
    };
    if scope.ctx.is_told() && (scope.ctx.dry_run || response.status().as_u16() >= 400) {
        let resource = scope.kind.storage_kind().resource().clone();
        response.extensions_mut().insert(Attempted { name: scope.ctx.attempted().into(), resource });
    }
    for warning in scope.ctx.warnings() {
        if let Some(value) = warning_header(&warning) {
            response.headers_mut().append(WARNING, value);
        }
    }
    response
}

/// For the audit event: a Status always, an object where the policy wants it.
fn tell(scope: &Scope, audit: &AuditContext, answer: &Answer) {
    let form = scope.form();
    let tree = match answer {
        Answer::Status(status) => {
            audit.gather(|gathered| gathered.response_status = Some(status.clone()));
            Some(status.to_value())
        }
        _ if audit.level < Level::RequestResponse => None,
        Answer::Object(_, object) => Some(form.with_type(&object.to_value())),
        Answer::List(list) => {
            let items: Vec<Value> = list.items.iter().map(|object| object.to_value()).collect();
            let (version, kind) = (scope.kind.api_version(), &*scope.kind.list_kind);
            let revision = list.resource_version.to_string();
            Some(json!({"kind": kind, "apiVersion": version, "metadata": {"resourceVersion": revision},
                "items": items}))
        }
        Answer::Watch(_) | Answer::Raw(_) => None,
    };
    audit.gather(|gathered| gathered.response_object = tree);
}

/// For a caller in this process.
fn hand_over(answer: Answer) -> ApiResponse {
    let mut response = ApiResponse::default();
    let extensions = response.extensions_mut();
    match answer {
        Answer::Object(code, object) => {
            extensions.insert(ObjectAnswer(object));
            *response.status_mut() = StatusCode::from_u16(code).unwrap_or_default();
        }
        Answer::List(list) => {
            extensions.insert::<ListAnswer>(list);
        }
        Answer::Watch(events) => {
            extensions.insert(WatchAnswer::new(events));
        }
        Answer::Status(status) => return status_response(status, true),
        Answer::Raw(response) => return response,
    }
    response
}

fn write(scope: &Scope, answer: Answer) -> Result<ApiResponse, Status> {
    let printer = scope.printer()?;
    let (code, out) = match answer {
        Answer::Watch(events) => {
            let counts = WatchCounts::begin(&scope.server.metrics, &scope.ctx);
            return Ok(watch_response(printer, scope.output.media_type, events, counts));
        }
        Answer::Object(code, object) => {
            let mut out = BytesMut::with_capacity(object.written_bytes() + 128);
            printer.object(&mut out, &object);
            (code, out)
        }
        Answer::List(list) => {
            if let Some(response) = send_in_stretches(scope, &printer, &list) {
                return Ok(response);
            }
            let size: usize = list.items.iter().map(|object| object.written_bytes() + 1).sum();
            let mut out = BytesMut::with_capacity(size + 512);
            printer.list(&mut out, &list);
            (200, out)
        }
        Answer::Status(status) => return Ok(write_status(scope, &status)),
        Answer::Raw(response) => return Ok(response),
    };
    Ok(write_bytes(&scope.headers, &scope.output, code, out.freeze()))
}

/// A list that is too long to be written before it is sent, if the client takes it as it is.
fn send_in_stretches(scope: &Scope, printer: &Printer, list: &List) -> Option<ApiResponse> {
    let is_plain = scope.output.media_type == MediaType::Json && !scope.output.pretty;
    let body = ListBody::new(list.clone(), printer.list_in_pieces(list).filter(|_| is_plain)?);
    if body.bytes_left() <= STRETCH_BYTES || is_compressed(&scope.headers, body.bytes_left()) {
        return None;
    }
    let mut response = ApiResponse::new(body.clone().into());
    response.extensions_mut().insert(body);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Some(response)
}

fn write_status(scope: &Scope, status: &Status) -> ApiResponse {
    let code = if status.code == 0 { 200 } else { status.code };
    let output = output_of_status(scope, status);
    let bytes = match output.media_type {
        MediaType::Protobuf => messages::document(&status.to_value()).expect("a status has a message"),
        MediaType::Json | MediaType::Yaml => serde_json::to_vec(status).expect("a status is JSON"),
    };
    let mut response = write_bytes(&scope.headers, &output, code, bytes.into());
    if status.code >= 400 {
        response.extensions_mut().insert(StatusAnswer(status.clone()));
    }
    let seconds = status.details.as_ref().map_or(0, |details| details.retry_after_seconds);
    if seconds > 0 {
        response.headers_mut().insert(RETRY_AFTER, seconds.into());
    }
    response
}

/// What failed is not transformed: the client may have named another form for that, or none; then it is read
/// by people.
fn output_of_status(scope: &Scope, status: &Status) -> Output {
    if status.code < 400 || scope.output.transform == Transform::None {
        return scope.output.clone();
    }
    match media_type_of_status(&scope.headers) {
        Some(media_type) => Output { media_type, transform: Transform::None, ..scope.output },
        None => Output { pretty: true, ..Output::default() },
    }
}
