//! Paths that are no resources: discovery, versions, health, metrics, OpenAPI (`server/routes`).

use std::sync::Arc;

use http::request::Parts;
use http::{HeaderMap, Method, StatusCode};
use serde_json::{Value, json};

use super::{aggregated_discovery, discovery, flow_control, flowz, groups, metrics, openapi, openid};
use crate::endpoints::EndpointContext;
use crate::endpoints::query::Query;
use crate::endpoints::response::messages;
use crate::endpoints::response::negotiation::{Output, Restrictions, negotiate};
use crate::endpoints::response::writers::write_bytes;
use crate::metrics::{RequestLabels, measured_path};
use crate::request::{RequestContext, UnknownPath};
use apimachinery::accept::MediaType;
use apimachinery::status::Status;
use apimachinery::wire::{ApiResponse, negotiated_status_response, status_response, text_response};

/// Answers at the paths that there are, and counts those that upstream counts: health, OpenAPI, and discovery
/// as a whole.
pub(crate) async fn serve(
    server: &Arc<EndpointContext>,
    ctx: &RequestContext,
    request: &Parts,
) -> ApiResponse {
    let response = answer(server, ctx, request).await;
    let path = ctx.info.path.as_str();
    let measured = match path.trim_end_matches('/') {
        "/healthz" | "/livez" | "/readyz" => Some(("", path.trim_end_matches('/'))),
        "/openapi/v3" => Some(("", "openapi/v3")),
        below if below.starts_with("/openapi/v3/") => Some(("", "openapi/v3/")),
        whole @ ("/api" | "/apis") if aggregated_discovery::wanted(&request.headers).is_some() => {
            Some(("apiserver", &whole[1..]))
        }
        _ => None,
    };
    if let Some((component, path)) = measured {
        measured_path(&server.metrics, ctx, &RequestLabels::of_path(component, path), &response);
    }
    response
}

async fn answer(server: &Arc<EndpointContext>, ctx: &RequestContext, request: &Parts) -> ApiResponse {
    let wants_objects = ctx.wants_objects;
    let query = Query::parse(request.uri.query().unwrap_or_default());
    let (headers, method) = (&request.headers, &request.method);
    let segments: Vec<&str> = ctx.info.path.trim_matches('/').split('/').collect();
    // Health and OpenAPI answer whatever they are asked with.
    if !matches!(*method, Method::GET | Method::HEAD)
        && !matches!(segments[0], "healthz" | "livez" | "readyz" | "openapi")
    {
        return text_response(StatusCode::METHOD_NOT_ALLOWED, "Method Not Allowed\n");
    }
    let scheme = &server.scheme;
    if matches!(segments[0], "apis" | "openapi") {
        server.crds.wait_until_synced().await;
    }
    let all_groups = || async { groups::with_remotes(scheme, server.aggregator.all().await) };
    if let (["api"] | ["apis"], Some(form)) = (&segments[..], aggregated_discovery::wanted(headers)) {
        return aggregated_discovery::respond(&all_groups().await, headers, form, segments == ["api"]);
    }
    let document = match segments[..] {
        ["debug", "api_priority_and_fairness", what] => {
            let dump = flow_control::respond(server, what, &query).await;
            return dump.unwrap_or_else(|| not_found(wants_objects));
        }
        [""] => Some(json!({"paths": paths(server)})),
        ["api"] => Some(discovery::api_versions(host(request))),
        ["apis"] => Some(discovery::api_group_list(&all_groups().await)),
        ["api", version] => discovery::api_resource_list(scheme, "", version),
        ["apis", group] => discovery::api_group(&all_groups().await, group),
        ["apis", group, version] => discovery::api_resource_list(scheme, group, version),
        ["version"] => Some(serde_json::to_value(&server.version).expect("plain fields are JSON")),
        ["flowz"] => return flowz::respond(server, ctx, &query, headers).await,
        [".well-known", "openid-configuration"] => return openid::configuration(server, host(request)),
        ["openid", "v1", "jwks"] => return openid::jwks(server),
        ["metrics"] => return metrics::respond(server).await,
        ["metrics", "slis"] => return metrics::slis(server).await,
        [page @ ("statusz" | "flagz")] => {
            let answer = server.zpages.respond(page, &server.clock, &server.version.git_version);
            return answer.unwrap_or_else(|| not_found(wants_objects));
        }
        ["openapi", ref rest @ ..] => return openapi::respond(server, ctx, rest, request).await,
        [root @ ("healthz" | "livez" | "readyz"), ref rest @ ..] => {
            let check = if rest.is_empty() { None } else { Some(rest.join("/")) };
            let response = server.health.respond(root, check.as_deref(), &query).await;
            return response.unwrap_or_else(|| not_found(wants_objects));
        }
        _ => None,
    };
    // Another server may have it.
    if document.is_none()
        && let ["apis", group, version] = segments[..]
        && let Some(remote) = server.aggregator.remote(group, version).await
    {
        return openapi::pass_on(server, ctx, request, &remote).await;
    }
    match document {
        Some(document) => write_document(headers, &query, &document)
            .unwrap_or_else(|status| negotiated_status_response(headers, status, wants_objects)),
        None => not_found(wants_objects),
    }
}

/// What has no kind is JSON, whatever the client reads (`responsewriters.WriteRawJSON`).
fn write_document(headers: &HeaderMap, query: &Query, document: &Value) -> Result<ApiResponse, Status> {
    let output = if document["kind"].is_string() {
        negotiate(headers, query, Restrictions::Document)?
    } else {
        Output { pretty: true, ..Output::default() }
    };
    let bytes = match output.media_type {
        MediaType::Protobuf => messages::document(document)?,
        MediaType::Json | MediaType::Yaml => discovery::write(document),
    };
    Ok(write_bytes(headers, &output, 200, bytes.into()))
}

fn not_found(wants_objects: bool) -> ApiResponse {
    let mut response = if wants_objects {
        status_response(Status::path_not_found(), true)
    } else {
        text_response(StatusCode::NOT_FOUND, "404 page not found\n")
    };
    response.extensions_mut().insert(UnknownPath);
    response
}

fn host(request: &Parts) -> &str {
    let header = request.headers.get(http::header::HOST).and_then(|value| value.to_str().ok());
    header.or_else(|| request.uri.authority().map(|authority| authority.as_str())).unwrap_or_default()
}

/// What `/` lists.
fn paths(server: &EndpointContext) -> Vec<Value> {
    let mut paths: Vec<String> =
        vec!["/api".into(), "/apis".into(), "/flowz".into(), "/metrics".into(), "/version".into()];
    paths.extend(["/metrics/slis".into(), "/openapi/v2".into(), "/openapi/v3".into()]);
    for group in groups::groups(&server.scheme) {
        let root = if group.name.is_empty() { "/api".to_owned() } else { format!("/apis/{}", group.name) };
        paths.extend(group.versions.iter().map(|(version, _)| format!("{root}/{version}")));
        paths.push(root);
    }
    if server.token_discovery.is_some() {
        paths.extend(openid::PATHS.map(String::from));
    }
    paths.extend(server.health.paths());
    paths.extend(server.zpages.paths());
    paths.sort();
    paths.dedup();
    paths.into_iter().map(Value::from).collect()
}
