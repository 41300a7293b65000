//! Answers: as bytes for clients, as objects for callers in this process
//! (`endpoints/handlers/responsewriters`).

use std::io::Write;
use std::sync::Arc;

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use flate2::Compression;
use flate2::write::GzEncoder;
use http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, VARY, WARNING};
use http::{HeaderMap, HeaderValue, StatusCode};
use serde_json::{Value, json};
use tokio::sync::mpsc::Receiver;

use super::json::indent;
use super::list_body::{ListBody, STRETCH_BYTES};
use super::messages;
use super::negotiation::{Output, Transform};
use super::printer::Printer;
use super::request_scope::Scope;
use super::watch::watch_response;
use crate::audit::AuditContext;
use crate::audit_context::Level;
use apimachinery::accept::{MediaType, media_type_of_status};
use apimachinery::list::List;
use apimachinery::object::Object;
use apimachinery::status::Status;
use apimachinery::watch::WatchEvent;
use apimachinery::wire::{
    ApiResponse, Attempted, ListAnswer, ObjectAnswer, StatusAnswer, WatchAnswer, status_response,
};
use apimachinery::yaml;

/// Answers larger than this are compressed for clients that can read that (upstream's threshold).
const GZIP_THRESHOLD_BYTES: usize = 128 * 1024;

/// What a verb answers.
pub(super) enum Answer {
    /// One object of the path's kind (or a Scale, below `scale`), with the HTTP status.
    Object(u16, Arc<Object>),
    /// A list.
    List(List),
    /// Events until the client or the server has enough.
    Watch(Receiver<WatchEvent>),
    /// A success that is no object; its code is the HTTP status.
    Status(Status),
    /// Something of its own: a log.
    Raw(ApiResponse),
}

/// The whole answer, with the warnings of the request.
pub(super) fn respond(scope: &Scope, answer: Result<Answer, Status>) -> ApiResponse {
    let answer = answer.unwrap_or_else(Answer::Status);
    if let Some(audit) = &scope.ctx.audit {
        tell(scope, audit, &answer);
    }
    let mut response = match answer {
        Answer::Raw(response) => response,
        answer if scope.wants_objects => hand_over(answer),
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
        Answer::Watch(events) => return Ok(watch_response(printer, scope.output.media_type, events)),
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
    if body.bytes_left() <= STRETCH_BYTES
        || body.bytes_left() >= GZIP_THRESHOLD_BYTES && reads_gzip(&scope.headers)
    {
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
        response.headers_mut().insert(http::header::RETRY_AFTER, seconds.into());
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

/// Bytes as the client wants them: JSON as it is, with line breaks or as YAML, and protobuf; compressed.
pub(super) fn write_bytes(headers: &HeaderMap, output: &Output, code: u16, bytes: Bytes) -> ApiResponse {
    let body = match output.media_type {
        MediaType::Yaml => to_yaml(&bytes),
        MediaType::Json if output.pretty => with_newline(indent(&bytes)),
        MediaType::Json => with_newline(bytes.into()),
        MediaType::Protobuf => bytes,
    };
    let media_type = output.media_type.name();
    let mut response = ApiResponse::default();
    *response.status_mut() = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    *response.body_mut() = Body::from(compress(headers, response.headers_mut(), body));
    response
}

fn with_newline(mut bytes: Vec<u8>) -> Bytes {
    bytes.push(b'\n');
    bytes.into()
}

fn to_yaml(json: &[u8]) -> Bytes {
    let tree: Value = serde_json::from_slice(json).expect("we wrote JSON");
    yaml::to_string(&tree).into()
}

/// Compresses what is worth it.
pub(super) fn compress(request: &HeaderMap, answer: &mut HeaderMap, body: Bytes) -> Bytes {
    if body.len() < GZIP_THRESHOLD_BYTES || !reads_gzip(request) {
        return body;
    }
    answer.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    answer.insert(VARY, HeaderValue::from_static("Accept-Encoding"));
    gzip(&body)
}

/// Quickly rather than well.
pub(super) fn gzip(body: &[u8]) -> Bytes {
    let mut encoder = GzEncoder::new(Vec::with_capacity(body.len() / 4), Compression::fast());
    let written = encoder.write_all(body).and_then(|()| encoder.finish());
    written.expect("memory does not refuse").into()
}

fn reads_gzip(request: &HeaderMap) -> bool {
    let accepted = request.get(ACCEPT_ENCODING).and_then(|value| value.to_str().ok()).unwrap_or_default();
    accepted.split(',').any(|part| part.split(';').next().unwrap_or_default().trim() == "gzip")
}

/// `299 - "text"` (`net.NewWarningHeader`). What has control characters is not said.
fn warning_header(text: &str) -> Option<HeaderValue> {
    if text.chars().any(char::is_control) {
        return None;
    }
    let header = format!("299 - \"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""));
    HeaderValue::from_bytes(header.as_bytes()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_are_quoted() {
        let header = warning_header("unknown field \"spec.foo\"").unwrap();
        assert_eq!(header, r#"299 - "unknown field \"spec.foo\"""#);
        assert!(warning_header("two\nlines").is_none());
    }

    #[test]
    fn large_answers_are_compressed_on_request() {
        let mut request = HeaderMap::new();
        let mut answer = HeaderMap::new();
        let body = Bytes::from(vec![b'a'; GZIP_THRESHOLD_BYTES]);
        assert_eq!(compress(&request, &mut answer, body.clone()).len(), body.len());
        request.insert(ACCEPT_ENCODING, HeaderValue::from_static("br, gzip;q=0.9"));
        assert!(compress(&request, &mut answer, body).len() < 2000);
        assert_eq!(answer[CONTENT_ENCODING], "gzip");
    }
}
