//! Finds what handles a request (`endpoints/installer.go`).
//! Next: src/apiserver/endpoints/handlers/create.rs
//!
//! Upstream installs handlers once for every kind; here each request is looked up, because kinds come and go.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::body::Body;
use http::header::ALLOW;
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use hyper::upgrade::OnUpgrade;

use super::EndpointContext;
use super::handlers::body::{BodySource, Input};
use super::handlers::long_work::LongWork;
use super::handlers::request_scope::Scope;
use super::handlers::response::respond;
use super::handlers::{create, delete, deletecollection, get, list, patch, review, update, watch};
use super::query::Query;
use super::response::answer::Answer;
use super::response::list_body::ListBody;
use super::response::negotiation::{Output, Restrictions, negotiate, route};
use super::routes::{debug, index};
use super::subresources::{binding, connect, eviction, log, rollback, token};
use crate::endpoints::response::unread_watches::UnreadWatches;
use crate::metrics::MeasuredRequest;
use crate::request::{RequestContext, RequestInfo, UnknownPath};
use apimachinery::gvk::GroupVersion;
use apimachinery::names::path_segment_name;
use apimachinery::status::{Status, StatusDetails};
use apimachinery::wire::{ApiRequest, ApiResponse, DecodedBody, negotiated_status_response, text_response};
use apis::apiextensions::custom_resource::CustomResource;
use apis::kind::{Kind, Subresource};
use golang::go_text::quote;

/// Answers a request that the filters let through. HEAD is GET without the body.
pub async fn serve(
    server: Arc<EndpointContext>,
    mut request: ApiRequest,
    mut ctx: RequestContext,
) -> ApiResponse {
    let is_head = *request.method() == Method::HEAD;
    if is_head {
        *request.method_mut() = Method::GET;
    }
    let mut response = if may_be_long(&request, &ctx) {
        let long_work = server.long_work.clone();
        let serve = |announced| {
            ctx.announced = announced;
            // Awake on whatever thread it is.
            server.clock.clone().tracked(serve_method(server, request, ctx))
        };
        long_work.run(serve).await
    } else {
        serve_method(server, request, ctx).await
    };
    if is_head {
        *response.body_mut() = Body::empty();
        response.extensions_mut().remove::<ListBody>();
    }
    response
}

/// What writes, and comes from a client.
fn may_be_long(request: &ApiRequest, ctx: &RequestContext) -> bool {
    *request.method() != Method::GET && !ctx.wants_objects && LongWork::is_possible()
}

async fn serve_method(server: Arc<EndpointContext>, request: ApiRequest, ctx: RequestContext) -> ApiResponse {
    let info = ctx.info.clone();
    if info.is_beside() {
        return server.beside.serve(request, &ctx, &server.authorizer).await;
    }
    if !info.is_resource_request && debug::is_of_debug(&info.path) {
        return server.debugging.respond(&info.path, request, &server.clock).await;
    }
    if !info.is_resource_request {
        let (parts, _) = request.into_parts();
        return index::serve(&server, &ctx, &parts).await;
    }
    let Some(kind) = find_kind(&server, &info).await else {
        return match server.aggregator.remote(&info.group, &info.version).await {
            Some(remote) => server.aggregator.proxy(&remote, request, &ctx).await,
            None => not_found(&server, &info, request.headers(), ctx.wants_objects),
        };
    };
    if is_of_other_scope(&kind, &info) {
        return not_found(&server, &info, request.headers(), ctx.wants_objects);
    }
    let subresource = match find_subresource(&kind, &info) {
        Ok(subresource) => subresource,
        Err(status) => return ctx.refuse(request.headers(), status),
    };
    if let Some(response) = refuse_method(&kind, subresource, &ctx, &request) {
        return response;
    }
    if let Err(status) = check_name(&info) {
        return ctx.refuse(request.headers(), status);
    }
    if let Err(status) = prepare(&server, &kind, &ctx).await {
        return ctx.refuse(request.headers(), status);
    }
    let mut measured = MeasuredRequest::begin(&server.metrics, &request, &ctx);
    let (mut scope, input) = match scope(server, kind, subresource, request, ctx) {
        Ok(parts) => parts,
        Err(refused) => return measured.end(*refused),
    };
    let answer = handle(&mut scope, input).await;
    measured.has_waited(scope.ctx.waited());
    measured.end(respond(&scope, answer))
}

/// Makes the objects that every server has when their kind is first asked for. Our own components, as long as
/// they make none themselves, do not count: they hear of them when they are made.
async fn prepare(server: &EndpointContext, kind: &Kind, ctx: &RequestContext) -> Result<(), Status> {
    let makes_one = matches!(&*ctx.info.verb, "create" | "update" | "patch");
    let is_our_own = ctx.wants_objects && ctx.user.name.starts_with("system:");
    if is_our_own && !makes_one {
        return Ok(());
    }
    server.registry.bootstrap(kind).await?;
    server.aggregator.before(kind).await
}

/// After a restart, a kind that is not known may be one of a definition that has not been read yet.
async fn find_kind(server: &EndpointContext, info: &RequestInfo) -> Option<Arc<Kind>> {
    let find = || server.scheme.resource(&info.group, &info.version, &info.resource);
    if let Some(kind) = find() {
        return Some(kind);
    }
    server.crds.wait_until_synced().await;
    find()
}

/// What holds for custom kinds alone, before any verb.
fn check_custom(scope: &Scope) -> Result<(), Status> {
    let Some(custom) = CustomResource::of(&scope.kind) else { return Ok(()) };
    if let Some(warning) = &custom.deprecation_warning {
        scope.ctx.warn(warning.as_str());
    }
    if scope.ctx.info.verb == "create" && custom.terminating.load(Ordering::Relaxed) {
        let resource = scope.kind.group_resource();
        let details = StatusDetails {
            group: resource.group.to_string(),
            kind: resource.resource.to_string(),
            ..StatusDetails::default()
        };
        let text = "create not allowed while custom resource definition is terminating";
        return Err(Status::failure(405, "MethodNotAllowed", text).with_details(details));
    }
    Ok(())
}

/// One line per verb and subresource.
async fn handle(scope: &mut Scope, input: Input) -> Result<Answer, Status> {
    check_custom(scope)?;
    match (scope.subresource, scope.ctx.info.verb.as_str()) {
        (
            Some(Subresource::Exec | Subresource::Attach | Subresource::PortForward | Subresource::Proxy),
            _,
        ) => connect::connect(scope, input).await,
        (Some(Subresource::Token), _) => token::create_token(scope, input).await,
        (Some(Subresource::Log), _) => log::log(scope).await,
        (Some(Subresource::Binding), _) => binding::bind(scope, input).await,
        (None, "create") if binding::is_binding(&scope.kind) => binding::bind(scope, input).await,
        (Some(Subresource::Eviction), _) => eviction::evict(scope, input).await,
        (Some(Subresource::Rollback), _) => rollback::roll_back(scope, input).await,
        (_, "get") => get::get(scope).await,
        (_, "list") => list::list(scope).await,
        (_, "watch") => watch::watch(scope).await,
        (_, "create") => match review::find(scope) {
            Some(which) => review::review(scope, which, input).await,
            None => create::create(scope, input).await,
        },
        (_, "update") => update::update(scope, input).await,
        (_, "patch") => patch::patch(scope, input).await,
        (_, "delete") => delete::delete(scope, input).await,
        (_, "deletecollection") => deletecollection::delete_collection(scope, input).await,
        _ => Err(method_not_allowed()),
    }
}

fn scope(
    server: Arc<EndpointContext>,
    kind: Arc<Kind>,
    subresource: Option<Subresource>,
    request: ApiRequest,
    mut ctx: RequestContext,
) -> Result<(Scope, Input), Box<ApiResponse>> {
    let (mut parts, body) = request.into_parts();
    let wants_objects = ctx.wants_objects;
    let query = Query::parse(parts.uri.query().unwrap_or_default());
    let reads_text = matches!(subresource, Some(Subresource::Log | Subresource::Proxy));
    let output = if wants_objects || reads_text {
        Output::default()
    } else {
        let is_routed = if kind.is_custom {
            Ok(())
        } else {
            route(&parts.headers, matches!(&*ctx.info.verb, "list" | "watch"))
        };
        is_routed
            .and_then(|()| {
                let is_streamed = is_streamed_list(&ctx.info.verb, &query);
                negotiate(&parts.headers, &query, restrictions(&kind, is_streamed))
            })
            .map_err(|status| Box::new(negotiated_status_response(&parts.headers, status, wants_objects)))?
    };
    if let Some(warning) = kind.deprecated {
        ctx.annotate("k8s.io/deprecated", "true");
        server.metrics.deprecated_was_asked_for(&ctx.info);
        // Components of this process have nobody to tell.
        if !wants_objects {
            ctx.warn(warning);
        }
    }
    ctx.flow = server.flow.clone();
    // What is read has no body, and components of this process send none.
    let has_none = wants_objects || matches!(parts.method, Method::GET | Method::HEAD);
    let sizes = if has_none { None } else { server.metrics.body_sizes(&ctx.info) };
    let source = BodySource { body, bodies: server.bodies.clone(), announced: ctx.announced.clone(), sizes };
    let input = Input::new(source, parts.extensions.remove::<DecodedBody>());
    let headers = parts.headers;
    let method = parts.method;
    let uri = parts.uri;
    let upgrade = parts.extensions.remove::<OnUpgrade>();
    let unread = parts.extensions.remove::<UnreadWatches>();
    let scope =
        Scope { server, ctx, kind, subresource, query, method, uri, headers, output, upgrade, unread };
    Ok((scope, input))
}

/// Whether it is a watch that begins with what is there and says when that is over (`isListWatchRequest`).
fn is_streamed_list(verb: &str, query: &Query) -> bool {
    let is_set = |name: &str| query.flag(name) == Some(true);
    verb == "watch" && is_set("sendInitialEvents") && is_set("allowWatchBookmarks")
}

/// What streams a list has no rows (`watchListEndpointRestrictions`): informers would not know what to do
/// with them.
fn restrictions(kind: &Kind, is_streamed: bool) -> Restrictions {
    let with_table = !is_streamed && kind.verbs.iter().any(|verb| &**verb == "get");
    Restrictions::Objects { with_table, is_custom: kind.is_custom }
}

/// A namespace in front of a cluster-scoped kind is no path, and neither is an object of a namespaced kind
/// without one. Of custom kinds all namespaces can only be read.
fn is_of_other_scope(kind: &Kind, info: &RequestInfo) -> bool {
    let in_namespace = !info.namespace.is_empty() && info.resource != "namespaces";
    let path_has_name = info.depth > 1;
    let is_across = matches!(&*info.verb, "list" | "watch");
    kind.namespaced != in_namespace && (in_namespace || path_has_name || (kind.is_custom && !is_across))
}

/// A path below a kind that is not served is nothing.
fn find_subresource(kind: &Kind, info: &RequestInfo) -> Result<Option<Subresource>, Status> {
    if info.subresource.is_empty() {
        return Ok(None);
    }
    let found = kind.subresources.iter().find(|subresource| subresource.name() == info.subresource);
    // Of a custom kind's path upstream does not look at what is behind the subresource.
    let is_too_long = info.depth > 3 && found != Some(&Subresource::Proxy) && !kind.is_custom;
    // `/api/v1/watch/...` is an old way to watch objects alone: below it, exec would be asked for as a watch.
    let is_of_old_path = matches!(&*info.verb, "watch" | "proxy");
    match found {
        Some(found) if !is_too_long && !is_of_old_path => Ok(Some(*found)),
        _ if kind.is_custom => Err(Status::not_found(&kind.group_resource(), &info.name)),
        _ => Err(Status::path_not_found()),
    }
}

/// What no object can be called (`NamespaceKeyFunc`): it would lead elsewhere.
fn check_name(info: &RequestInfo) -> Result<(), Status> {
    let name = &info.name;
    if info.depth < 2 || !(name.starts_with('.') || name.contains(['/', '%'])) {
        return Ok(());
    }
    match &*path_segment_name(name) {
        [] => Ok(()),
        why => {
            let text = format!("Name parameter invalid: {}: {}", quote(name), why.join(";"));
            Err(Status::bad_request(text))
        }
    }
}

/// 405 with what would have been allowed, if the path knows other methods.
fn refuse_method(
    kind: &Kind,
    subresource: Option<Subresource>,
    ctx: &RequestContext,
    request: &ApiRequest,
) -> Option<ApiResponse> {
    let info = &ctx.info;
    if kind.is_custom && subresource.is_none() {
        return Some(ctx.refuse(request.headers(), refuse_verb(kind, info)?));
    }
    let allowed = allowed_methods(kind, subresource, info);
    if allowed.contains(&request.method().as_str()) {
        return None;
    }
    let status = match subresource {
        // Their handler looks at verbs itself.
        Some(_) if kind.is_custom => Status::method_not_supported(&kind.group_resource(), &info.verb),
        _ => method_not_allowed(),
    };
    let mut response = ctx.refuse(request.headers(), status);
    if let Ok(value) = HeaderValue::from_str(&allowed.join(", ")) {
        response.headers_mut().insert(ALLOW, value);
    }
    Some(response)
}

/// Custom kinds have one handler for all paths, which looks at the verb (`crdHandler.serveResource`).
fn refuse_verb(kind: &Kind, info: &RequestInfo) -> Option<Status> {
    match &*info.verb {
        "update" | "patch" if info.name.is_empty() => Some(Status::bad_request("name must be provided")),
        "get" | "list" | "watch" | "create" | "update" | "patch" | "delete" | "deletecollection" => None,
        verb => Some(Status::method_not_supported(&kind.group_resource(), verb)),
    }
}

fn allowed_methods(kind: &Kind, subresource: Option<Subresource>, info: &RequestInfo) -> Vec<&'static str> {
    let of_verbs = |table: &[(&str, &'static str)], has: &dyn Fn(&str) -> bool| -> Vec<&'static str> {
        let found = table.iter().filter(|(verb, _)| has(verb)).map(|(_, method)| *method);
        let mut methods: Vec<&str> = found.collect();
        methods.dedup();
        methods
    };
    const OBJECT: &[(&str, &str)] =
        &[("get", "GET"), ("update", "PUT"), ("patch", "PATCH"), ("delete", "DELETE"), ("create", "POST")];
    const COLLECTION: &[(&str, &str)] =
        &[("list", "GET"), ("watch", "GET"), ("create", "POST"), ("deletecollection", "DELETE")];
    let has = |verb: &str| kind.verbs.iter().any(|own| &**own == verb);
    let across_namespaces = kind.namespaced && info.namespace.is_empty();
    match subresource {
        Some(subresource) => {
            let mut methods = of_verbs(OBJECT, &|verb| subresource.verbs().contains(&verb));
            // What is handed on may be asked in any way but TRACE.
            if subresource == Subresource::Proxy {
                methods.extend(["HEAD", "OPTIONS"]);
            }
            methods
        }
        None if info.path.split('/').nth(if info.group.is_empty() { 3 } else { 4 }) == Some("watch") => {
            vec!["GET"]
        }
        None if info.depth > 1 => of_verbs(OBJECT, &|verb| verb != "create" && has(verb)),
        None if across_namespaces => of_verbs(&COLLECTION[..2], &has),
        None => of_verbs(COLLECTION, &has),
    }
}

fn method_not_allowed() -> Status {
    let text = "the server does not allow this method on the requested resource";
    Status::failure(405, "MethodNotAllowed", text).with_details(StatusDetails::default())
}

/// Below a built-in group upstream answers with a Status, elsewhere with plain words.
fn not_found(
    server: &EndpointContext,
    info: &RequestInfo,
    headers: &HeaderMap,
    wants_objects: bool,
) -> ApiResponse {
    let group_version = GroupVersion::new(&info.group, &info.version);
    let is_built_in = |kind: &Arc<Kind>| !kind.is_custom && kind.group_version == group_version;
    let is_served = server.scheme.all().iter().any(is_built_in);
    let mut response = if is_served || wants_objects {
        negotiated_status_response(headers, Status::path_not_found(), wants_objects)
    } else {
        text_response(StatusCode::NOT_FOUND, "404 page not found\n")
    };
    response.extensions_mut().insert(UnknownPath);
    response
}
