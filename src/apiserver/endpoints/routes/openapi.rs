//! `/openapi/v2` and `/openapi/v3` (`kube-openapi/pkg/handler`, `handler3`): which document, in which form.

use std::sync::Arc;

use bytes::Bytes;
use chrono::{DateTime, Months, Utc};
use http::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE, ETAG, EXPIRES, LOCATION};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, StatusCode};
use serde_json::Value;

use super::content::{Content, empty, put, varying};
use super::openapi_documents::EncodedOpenApiDocument;
use crate::aggregator::{Remote, RemoteIndex};
use crate::endpoints::EndpointContext;
use crate::endpoints::query::Query;
use crate::request::RequestContext;
use apimachinery::accept::{Accepted, accepted};
use apimachinery::wire::{ApiRequest, ApiResponse, text_response};

/// The forms in which a document is to be had, the one that the server likes best first: media type as
/// clients name it, as it is answered, and whether it is protobuf.
type Forms = [(&'static str, &'static str, bool); 3];
const V2_FORMS: Forms = [
    ("application/json", "application/json", false),
    ("application/com.github.proto-openapi.spec.v2@v1.0+protobuf", V2_PROTOBUF, true),
    (V2_PROTOBUF, V2_PROTOBUF, true),
];
const V2_PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
const V3_FORMS: Forms = [
    ("application/json", "application/json", false),
    (V3_PROTOBUF, V3_PROTOBUF, true),
    ("application/com.github.proto-openapi.spec.v3@v1.0+protobuf", V3_PROTOBUF, true),
];
const V3_PROTOBUF: &str = "application/com.github.proto-openapi.spec.v3.v1.0+protobuf";

/// Answers at `/openapi/...`; `path` is what stands behind it.
pub(crate) async fn respond(
    server: &Arc<EndpointContext>,
    ctx: &RequestContext,
    path: &[&str],
    request: &Parts,
) -> ApiResponse {
    match path {
        ["v2"] => respond_v2(server, request).await,
        ["v3"] => respond_index(server, request).await,
        ["v3", path @ ..] => respond_v3(server, ctx, request, &path.join("/")).await,
        _ => text_response(StatusCode::NOT_FOUND, "404 page not found\n"),
    }
}

async fn respond_v2(server: &EndpointContext, request: &Parts) -> ApiResponse {
    let documents = server.openapi.current();
    let others = server.aggregator.openapi_v2().await;
    let document = documents.v2(&others);
    let Some((media_type, is_protobuf)) = negotiate(&request.headers, &V2_FORMS) else {
        return varying(empty(StatusCode::NOT_ACCEPTABLE), &["Accept-Encoding", "Accept"]);
    };
    let body = document.body(is_protobuf, openapi::v2_protobuf, || documents.make_v2(&others));
    let content = Content { media_type, body, hash: Some(&document.hash), made: documents.made };
    varying(content.compressed(request), &["Accept-Encoding", "Accept"])
}

/// The documents of other servers are in the index, and are theirs to give. Upstream's aggregator lets the
/// media type be guessed, and nobody guesses JSON.
async fn respond_index(server: &EndpointContext, request: &Parts) -> ApiResponse {
    let documents = server.openapi.current();
    let others = server.aggregator.openapi_v3().await.into_iter().flat_map(|index| index.urls);
    let own =
        documents.v3.iter().map(|(path, document)| (path.clone(), openapi::v3_url(path, &document.hash)));
    let index = Bytes::from(openapi::v3_index(others.chain(own)).to_string());
    let media_type = "text/plain; charset=utf-8";
    Content { media_type, body: index, hash: None, made: server.clock.now() }.plain(request)
}

async fn respond_v3(
    server: &Arc<EndpointContext>,
    ctx: &RequestContext,
    request: &Parts,
    path: &str,
) -> ApiResponse {
    let documents = server.openapi.current();
    if let Some(document) = documents.v3.get(path) {
        return write_v3(server, request, path, document, documents.made, || documents.make_v3(path));
    }
    let others = server.aggregator.openapi_v3().await;
    match others.into_iter().find(|index| index.urls.contains_key(path)) {
        Some(RemoteIndex { legacy: Some(v2), .. }) => {
            let document = EncodedOpenApiDocument::new(v2.hash.clone());
            let convert = || openapi::v2_to_v3(&serde_json::from_slice(&v2.body).unwrap_or_default());
            write_v3(server, request, path, &document, documents.made, convert)
        }
        Some(RemoteIndex { remote, .. }) => pass_on(server, ctx, request, &remote).await,
        None => empty(StatusCode::NOT_FOUND),
    }
}

/// With the right hash the answer may be kept for ever; with a wrong one the client is sent to the right one.
fn write_v3(
    server: &EndpointContext,
    request: &Parts,
    path: &str,
    document: &EncodedOpenApiDocument,
    made: DateTime<Utc>,
    make: impl FnOnce() -> Value,
) -> ApiResponse {
    let query = Query::parse(request.uri.query().unwrap_or_default());
    let Some((media_type, is_protobuf)) = negotiate(&request.headers, &V3_FORMS) else {
        // Of what is no media type at all nothing is said.
        let is_nothing = clauses(&request.headers).is_empty();
        let code = if is_nothing { StatusCode::OK } else { StatusCode::NOT_ACCEPTABLE };
        return varying(empty(code), &["Accept"]);
    };
    let hash = &document.hash;
    let given = query.text("hash").filter(|given| !given.is_empty());
    if given.is_some_and(|given| given != hash) {
        let mut response = varying(empty(StatusCode::MOVED_PERMANENTLY), &["Accept"]);
        put(&mut response, LOCATION, &openapi::v3_url(path, hash));
        put(&mut response, CONTENT_TYPE, media_type);
        put(&mut response, ETAG, &format!("\"{hash}\""));
        return response;
    }
    let body = document.body(is_protobuf, openapi::v3_protobuf, make);
    let content = Content { media_type, body, hash: Some(hash), made };
    let mut response = varying(content.plain(request), &["Accept"]);
    if given.is_some() {
        let now = server.clock.now();
        let in_a_year = now.checked_add_months(Months::new(12)).unwrap_or(now);
        put(&mut response, CACHE_CONTROL, "public, immutable");
        put(&mut response, EXPIRES, &in_a_year.format("%a, %d %b %Y %H:%M:%S UTC").to_string());
    }
    response
}

/// goautoneg's clauses; a client that says nothing reads anything.
fn clauses(headers: &HeaderMap) -> Vec<Accepted> {
    let says_nothing = headers.get(ACCEPT).is_none_or(HeaderValue::is_empty);
    if says_nothing { vec![Accepted::of("*/*")] } else { accepted(headers) }
}

/// The media type of the first form that the best clause takes, and whether it is protobuf.
fn negotiate(headers: &HeaderMap, forms: &Forms) -> Option<(&'static str, bool)> {
    let takes = |clause: &Accepted, form: &str| {
        let (clause, form) = (clause.media_type.split_once('/'), form.split_once('/'));
        let (Some((main, sub)), Some((of_form, name))) = (clause, form) else { return false };
        (main == "*" || main == of_form) && (sub == "*" || sub == name)
    };
    clauses(headers).iter().find_map(|clause| {
        let found = forms.iter().find(|(name, ..)| takes(clause, name));
        found.map(|(_, media_type, is_protobuf)| (*media_type, *is_protobuf))
    })
}

/// Asks another server in the user's name.
pub(crate) async fn pass_on(
    server: &EndpointContext,
    ctx: &RequestContext,
    request: &Parts,
    remote: &Arc<Remote>,
) -> ApiResponse {
    let mut passed = ApiRequest::default();
    (*passed.method_mut(), *passed.uri_mut()) = (request.method.clone(), request.uri.clone());
    *passed.headers_mut() = request.headers.clone();
    server.aggregator.proxy(remote, passed, ctx).await
}
