//! `proxy`: requests to a port of a pod, or of a pod behind a Service (`registry/core/pod/rest`,
//! `registry/core/service/proxy.go`, `apimachinery/pkg/util/proxy`). What is asked and answered is handed on
//! as it is, but for what concerns one connection alone.

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use futures::{StreamExt, stream};
use http::header::{
    AUTHORIZATION, CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HOST, HeaderName, HeaderValue,
    LOCATION, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
};
use http::{HeaderMap, Method, Request, StatusCode};
use network::tls::{self, PeerTrust, TlsFailure};
use serde_json::Value;

use super::html_links::rewrite_links;
use super::node_proxy;
use crate::endpoints::handlers::body::Input;
use crate::endpoints::handlers::request_scope::Scope;
use crate::endpoints::response::answer::Answer;
use crate::endpoints::response::writers::moved;
use crate::kubelet_client::PortForwardRequest;
use crate::request::is_below;
use crate::webhook::{self, ServiceResolver};
use apimachinery::fields::FieldSelector;
use apimachinery::options::ListOptions;
use apimachinery::selectable::Predicate;
use apimachinery::status::Status;
use apimachinery::wire::ApiResponse;
use apis::core::pod::PODS;
use apis::tree::{items, number, text};

/// The links of a page are rewritten up to this size; those of a larger one stay as they are.
const MAX_PAGE_BYTES: usize = 4 << 20;
/// Headers that are for one connection, and not handed on.
const OF_ONE_CONNECTION: [HeaderName; 9] = [
    CONNECTION,
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
    PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
];
/// Where a page is asked for instead: the address that the user has.
const FORWARDED_URI: HeaderName = HeaderName::from_static("x-forwarded-uri");
const FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");

/// `scheme:name:port`, of which the name alone must be there (`utilnet.SplitSchemeNamePort`).
#[derive(Debug, PartialEq, Eq)]
struct ProxiedName<'a> {
    scheme: &'a str,
    name: &'a str,
    port: &'a str,
}

impl ProxiedName<'_> {
    /// None where it is none.
    fn parse(id: &str) -> Option<ProxiedName<'_>> {
        let parts: Vec<&str> = id.split(':').collect();
        let named = match parts[..] {
            [name] => ProxiedName { scheme: "", name, port: "" },
            [name, port] => ProxiedName { scheme: "", name, port },
            [scheme @ ("" | "http" | "https"), name, port] => ProxiedName { scheme, name, port },
            _ => return None,
        };
        (!named.name.is_empty()).then_some(named)
    }
}

/// The name of the object in a path that may say a scheme and a port, too.
///
/// # Errors
/// 400 where it is none.
pub(super) fn object_name(scope: &Scope) -> Result<&str, Status> {
    ProxiedName::parse(scope.name()).map(|named| named.name).ok_or_else(|| invalid(scope))
}

/// What is asked of the pod, for admission.
pub(super) fn asked_path(scope: &Scope) -> &str {
    split_path(scope.uri.path(), scope.kind.namespaced).1
}

/// Who is to be asked.
struct ProxyBackend {
    pod: Value,
    address: String,
    port: u16,
    /// Whoever shows whatever certificate is believed, as upstream believes pods.
    is_tls: bool,
}

/// Hands the request on, and the answer back.
pub(super) async fn proxy(scope: &mut Scope, object: &Value, input: Input) -> Result<Answer, Status> {
    let id = scope.name().to_owned();
    let named = ProxiedName::parse(&id).ok_or_else(|| invalid(scope))?;
    let uri = scope.uri.clone();
    let (prefix, rest) = split_path(uri.path(), scope.kind.namespaced);
    // A path that only reads like ours when it is decoded or trimmed could lead anywhere.
    if prefix.starts_with("//") || !prefix.ends_with("/proxy") {
        return Err(Status::path_not_found());
    }
    let query = scope.uri.query().map(|query| format!("?{query}")).unwrap_or_default();
    if rest.is_empty() && scope.method == Method::GET {
        return Ok(Answer::Raw(moved(&format!("{prefix}/{query}"))));
    }
    let rest = if rest.is_empty() { "/" } else { rest };
    let mut backend = match &*scope.kind.plural {
        "pods" => pod_backend(object, named.port)?,
        "services" => service_backend(scope, object, &named).await?,
        _ => return to_node(scope, object, &named, rest, input).await,
    };
    backend.is_tls = named.scheme == "https";
    let body = input.bytes(&scope.headers).await?;
    let mut request = Request::new(body);
    *request.method_mut() = scope.method.clone();
    *request.uri_mut() = format!("{rest}{query}").parse().map_err(|_| invalid(scope))?;
    *request.headers_mut() = asked_headers(&scope.headers, &backend, &format!("{prefix}{rest}"));
    let goes_on = asked_protocol(&scope.headers).cloned().zip(scope.upgrade.take());
    if let Some((protocol, _)) = &goes_on {
        request.headers_mut().insert(CONNECTION, HeaderValue::from_static("Upgrade"));
        request.headers_mut().insert(UPGRADE, protocol.clone());
    }
    let mut response = ask(scope, &backend, request).await?;
    if response.status() == StatusCode::SWITCHING_PROTOCOLS {
        let (_, ours) = goes_on.ok_or_else(|| unreachable("the answer is no whole one"))?;
        let (response, carrying) = webhook::go_on(ours, response);
        scope.server.clock.spawn(carrying);
        return Ok(Answer::Raw(response));
    }
    strip(response.headers_mut());
    if let Some(location) = response.headers().get(LOCATION).and_then(|value| value.to_str().ok())
        && let Some(moved) = moved_below(location, prefix, &backend)
    {
        response.headers_mut().insert(LOCATION, moved);
    }
    if response.headers().contains_key(LOCATION) || !is_page(response.headers()) {
        return Ok(Answer::Raw(response));
    }
    Ok(Answer::Raw(rewrite_page(response, prefix, &backend).await))
}

/// What the client wants to go on with instead of HTTP, as a websocket.
fn asked_protocol(headers: &HeaderMap) -> Option<&HeaderValue> {
    let connection = headers.get(CONNECTION)?.to_str().ok()?;
    let is_asked = connection.split(',').any(|word| word.trim().eq_ignore_ascii_case("upgrade"));
    headers.get(UPGRADE).filter(|_| is_asked)
}

/// Whether it is a page whose links can be read.
fn is_page(headers: &HeaderMap) -> bool {
    let content = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let is_html = content.split(';').next().is_some_and(|content| content.trim() == "text/html");
    is_html && !headers.contains_key(CONTENT_ENCODING)
}

/// A page whose links lead through the proxy. One that is too large, or no text, stays as it is.
async fn rewrite_page(response: ApiResponse, prefix: &str, backend: &ProxyBackend) -> ApiResponse {
    let (mut head, body) = response.into_parts();
    let mut chunks = body.into_data_stream();
    let mut page = BytesMut::new();
    while page.len() <= MAX_PAGE_BYTES
        && let Some(chunk) = chunks.next().await
    {
        match chunk {
            Ok(chunk) => page.extend_from_slice(&chunk),
            Err(error) => {
                let so_far = stream::iter([Ok(page.freeze()), Err(error)]);
                return ApiResponse::from_parts(head, Body::from_stream(so_far));
            }
        }
    }
    let is_whole = page.len() <= MAX_PAGE_BYTES;
    match str::from_utf8(&page) {
        Ok(text) if is_whole => {
            let moved = |link: &str| moved_below(link, prefix, backend);
            let text = rewrite_links(text, |link| moved(link)?.to_str().ok().map(str::to_owned));
            head.headers.insert(CONTENT_LENGTH, text.len().into());
            ApiResponse::from_parts(head, Body::from(text))
        }
        _ => {
            let all = stream::iter([Ok(page.freeze())]).chain(chunks);
            ApiResponse::from_parts(head, Body::from_stream(all))
        }
    }
}

/// A node's kubelet; whatever else listens on a node is not simulated.
async fn to_node(
    scope: &mut Scope,
    node: &Value,
    named: &ProxiedName<'_>,
    rest: &str,
    input: Input,
) -> Result<Answer, Status> {
    let kubelet = number(node, "status.daemonEndpoints.kubeletEndpoint.Port");
    if named.port.is_empty() || named.port == kubelet.to_string() {
        return node_proxy::proxy(scope, node, rest, input).await;
    }
    let address = items(node, "status.addresses").first().map_or("", |address| text(address, "address"));
    Err(unreachable(&format!("dial tcp {address}:{}: connect: connection refused", named.port)))
}

async fn ask(scope: &Scope, backend: &ProxyBackend, request: Request<Bytes>) -> Result<ApiResponse, Status> {
    let ProxyBackend { pod, address, port, is_tls } = backend;
    let wanted = PortForwardRequest {
        node: text(pod, "spec.nodeName").to_owned(),
        namespace: text(pod, "metadata.namespace").to_owned(),
        pod: text(pod, "metadata.name").to_owned(),
        port: *port,
    };
    let io = scope.server.kubelets.port_forward(wanted).await.map_err(|status| {
        // The kubelet speaks of its pod's loopback, from outside it is the pod's address.
        let why = status
            .message
            .replace(&format!("dial tcp4 127.0.0.1:{port}"), &format!("dial tcp {address}:{port}"));
        unreachable(&why)
    })?;
    let clock = &scope.server.clock;
    let asked = if *is_tls {
        let trust = PeerTrust { everybody: true, ..PeerTrust::default() };
        let io = tls::connect(io, address, &trust).await.map_err(|failure| unreachable(no_tls(failure)))?;
        network::http_client::ask(clock, io, request).await
    } else {
        network::http_client::ask(clock, io, request).await
    };
    let response = asked.map_err(|error| unreachable(&error.to_string()))?;
    let is_upgrade = response.status() == StatusCode::SWITCHING_PROTOCOLS;
    if response.status().is_informational() && !is_upgrade {
        return Err(unreachable("the answer is no whole one"));
    }
    Ok(response.map(Body::new))
}

fn no_tls(failure: TlsFailure) -> &'static str {
    match failure {
        TlsFailure::NoTls => "http: server gave HTTP response to HTTPS client",
        TlsFailure::Untrusted => "tls: failed to verify certificate",
        TlsFailure::Ended => "EOF",
    }
}

/// `/api/v1/namespaces/a/pods/b/proxy`, and what is asked of the pod.
fn split_path(path: &str, is_namespaced: bool) -> (&str, &str) {
    let segments = if is_namespaced { 7 } else { 5 };
    let end = path.match_indices('/').nth(segments).map(|(at, _)| at);
    path.split_at(end.unwrap_or(path.len()))
}

/// The port that is named, else the first that the pod says it has.
fn pod_backend(pod: &Value, port: &str) -> Result<ProxyBackend, Status> {
    let address = text(pod, "status.podIP").to_owned();
    if address.is_empty() {
        return Err(Status::bad_request("address not allowed"));
    }
    let mut declared =
        items(pod, "spec.containers").iter().filter_map(|container| items(container, "ports").first());
    let mut first = || declared.next().map_or(80, |port| number(port, "containerPort"));
    let number = if port.is_empty() { u16::try_from(first()).ok() } else { port.parse().ok() };
    let no_port = || unreachable(&format!("dial tcp: lookup tcp/{port}: unknown port"));
    Ok(ProxyBackend { pod: pod.clone(), address, port: number.ok_or_else(no_port)?, is_tls: false })
}

/// The pod of one ready endpoint.
async fn service_backend(
    scope: &Scope,
    service: &Value,
    named: &ProxiedName<'_>,
) -> Result<ProxyBackend, Status> {
    let no_endpoints = || unavailable(format!("no endpoints available for service {:?}", named.name));
    let ports = items(service, "spec.ports");
    let port = match named.port.parse::<u16>() {
        Ok(number) => number,
        Err(_) => {
            let found =
                ports.iter().find(|port| text(port, "name") == named.port).ok_or_else(no_endpoints)?;
            u16::try_from(number(found, "port")).map_err(|_| no_endpoints())?
        }
    };
    let resolver = ServiceResolver::new(&scope.server.registry, &scope.server.entropy);
    let (address, port) = resolver.resolve_endpoint(scope.namespace(), named.name, port).await?;
    let fields = FieldSelector::parse(&format!("status.podIP={address}")).map_err(|_| no_endpoints())?;
    let predicate = Predicate { fields, ..Predicate::default() };
    let options = ListOptions { predicate, ..ListOptions::default() };
    if text(service, "spec.type") == "ExternalName" {
        return Err(no_endpoints());
    }
    let pods = scope.server.registry.list(&PODS, scope.namespace(), &options).await?;
    let unknown = || unreachable(&format!("dial tcp {address}:{port}: connect: no route to host"));
    // An address that a pod had before it ended may be another's by now.
    let pods = pods.items.iter().map(|pod| pod.to_value());
    let mut running = pods.filter(|pod| text(pod, "status.phase") == "Running");
    let pod = running.next().ok_or_else(unknown)?;
    Ok(ProxyBackend { pod, address, port, is_tls: false })
}

fn asked_headers(own: &HeaderMap, backend: &ProxyBackend, uri: &str) -> HeaderMap {
    let mut headers = own.clone();
    strip(&mut headers);
    // The body was read, and is sent whole. Who asks is the apiserver's business alone.
    headers.remove(CONTENT_LENGTH);
    headers.remove(AUTHORIZATION);
    let value = |text: &str| HeaderValue::from_str(text).unwrap_or(HeaderValue::from_static(""));
    if let Some(host) = headers.insert(HOST, value(&format!("{}:{}", backend.address, backend.port))) {
        headers.insert(FORWARDED_HOST, host);
    }
    headers.insert(FORWARDED_URI, value(uri));
    headers.insert(FORWARDED_PROTO, HeaderValue::from_static("https"));
    headers
}

/// Takes away what is for one connection, and what its headers say is.
fn strip(headers: &mut HeaderMap) {
    let named: Vec<String> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(',').map(|name| name.trim().to_owned()))
        .collect();
    named.iter().for_each(|name| drop(headers.remove(name.as_str())));
    OF_ONE_CONNECTION.iter().for_each(|name| drop(headers.remove(name)));
}

/// A redirect within the pod, as a path of the apiserver (`proxy.Transport.rewriteURL`).
fn moved_below(location: &str, prefix: &str, backend: &ProxyBackend) -> Option<HeaderValue> {
    let scheme = if backend.is_tls { "https" } else { "http" };
    let own = format!("{scheme}://{}:{}", backend.address, backend.port);
    let path = location.strip_prefix(&own).unwrap_or(location);
    let is_path = path.starts_with('/') && !path.starts_with("//") && !is_below(path, prefix);
    let moved = if path.is_empty() { format!("{prefix}/") } else { format!("{prefix}{path}") };
    (is_path || path.is_empty()).then(|| HeaderValue::from_str(&moved).ok()).flatten()
}

fn invalid(scope: &Scope) -> Status {
    let resource = scope.kind.singular.as_ref();
    Status::bad_request(format!("invalid {resource} request {:?}", scope.name()))
}

fn unavailable(text: String) -> Status {
    Status::failure(503, "ServiceUnavailable", text)
}

fn unreachable(why: &str) -> Status {
    unavailable(format!("error trying to reach service: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_name_may_have_a_scheme_and_a_port() {
        let parts = |id| ProxiedName::parse(id).map(|named| (named.scheme, named.name, named.port));
        assert_eq!(parts("web"), Some(("", "web", "")));
        assert_eq!(parts("web:80"), Some(("", "web", "80")));
        assert_eq!(parts("https:web:http"), Some(("https", "web", "http")));
        assert_eq!(parts("https:web:"), Some(("https", "web", "")));
        assert_eq!([parts("ftp:web:80"), parts(":80"), parts(""), parts("a:b:c:d")], [None; 4]);
    }

    #[test]
    fn what_is_asked_stands_behind_the_verb() {
        let path = "/api/v1/namespaces/a/pods/proxy/proxy/b/proxy/";
        assert_eq!(split_path(path, true), ("/api/v1/namespaces/a/pods/proxy/proxy", "/b/proxy/"));
        assert_eq!(split_path("/api/v1/namespaces/a/pods/b/proxy", true).1, "");
        assert_eq!(split_path("/api/v1/nodes/b/proxy/pods", false).1, "/pods");
    }

    #[test]
    fn the_port_is_the_first_that_is_declared() {
        let pod =
            |ports| json!({"spec": {"containers": [{}, {"ports": ports}]}, "status": {"podIP": "10.0.0.1"}});
        let port = |pod: Value, port: &str| pod_backend(&pod, port).map(|backend| backend.port).ok();
        assert_eq!(port(pod(json!([{"containerPort": 8080}])), ""), Some(8080));
        assert_eq!(port(pod(json!([])), ""), Some(80));
        assert_eq!(port(pod(json!([])), "90"), Some(90));
        assert_eq!(port(pod(json!([])), "none"), None);
        assert_eq!(port(json!({}), "80"), None);
    }

    #[tokio::test]
    async fn links_of_pages_lead_through_the_proxy_up_to_a_size() {
        let backend = ProxyBackend { pod: Value::Null, address: "10.0.0.1".into(), port: 80, is_tls: false };
        let page = |body: String| {
            let mut response = ApiResponse::new(Body::from(body));
            let html = HeaderValue::from_static("text/html; charset=utf-8");
            response.headers_mut().insert(CONTENT_TYPE, html);
            assert!(is_page(response.headers()));
            rewrite_page(response, "/p/proxy", &backend)
        };
        let read = async |response: ApiResponse| {
            axum::body::to_bytes(response.into_body(), usize::MAX).await.unwrap()
        };
        let link = r#"<a href="/x">"#;
        assert_eq!(read(page(link.into()).await).await, r#"<a href="/p/proxy/x">"#);
        let huge = link.repeat(MAX_PAGE_BYTES / link.len() + 1);
        assert!(read(page(huge.clone()).await).await == huge);
    }

    #[test]
    fn redirects_stay_below_the_path_of_the_apiserver() {
        let backend = ProxyBackend { pod: Value::Null, address: "10.0.0.1".into(), port: 80, is_tls: false };
        let moved = |location| moved_below(location, "/p/proxy", &backend);
        assert_eq!(moved("/a?b"), HeaderValue::from_str("/p/proxy/a?b").ok());
        assert_eq!(moved("http://10.0.0.1:80/a"), HeaderValue::from_str("/p/proxy/a").ok());
        assert_eq!(
            [moved("http://example.com/"), moved("//example.com/"), moved("/p/proxy/a")],
            [None, None, None]
        );
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("connection", "keep-alive, x-mine"),
            ("x-mine", "1"),
            ("proxy-connection", "1"),
            ("accept", "a"),
        ] {
            headers.insert(name, HeaderValue::from_static(value));
        }
        strip(&mut headers);
        assert_eq!(headers.keys().map(HeaderName::as_str).collect::<Vec<_>>(), ["accept"]);
    }
}
