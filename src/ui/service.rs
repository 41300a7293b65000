//! The page's server: its files for anybody on loopback, sessions for whoever is invited, and the API for who
//! has a session.

use std::convert::Infallible;
use std::sync::Arc;

use axum::body::Body;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::header::{
    AUTHORIZATION, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, IF_NONE_MATCH,
    REFERRER_POLICY, SEC_WEBSOCKET_PROTOCOL, X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use http_body_util::{BodyExt, Limited};
use serde_json::json;

use apimachinery::status::Status;
use apimachinery::wire::{ApiRequest, ApiResponse, ApiService, status_response};

use super::files::{self, PageFile};
use super::guests::Guests;
use super::lessons;
use super::manifests;
use super::same_origin;
use super::sources;
use super::visit::{OpenSockets, Visit};

/// Where an invitation is exchanged for a session.
const SESSION: &str = "/session";
/// The course, as JSON.
const LESSONS: &str = "/lessons.json";
/// Where the code is that does a step, as JSON.
const SOURCES: &str = "/sources.json";
/// Where YAML is read, as JSON.
const MANIFESTS: &str = "/manifests";
/// Of an invitation, as it is sent; more is none.
const MAX_INVITATION_BYTES: usize = 256;
/// How a websocket of a browser, which can send no header of its own, says its token; upstream's form.
const BEARER_PROTOCOL: &str = "base64url.bearer.authorization.k8s.io.";

/// What the page may load and ask: its own server.
const PAGE_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
                           connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
/// For what the API answers, which may be a page that a pod serves: nothing of it runs.
const ANSWER_POLICY: &str = "sandbox; default-src 'none'; frame-ancestors 'none'";
const OPENER_POLICY: HeaderName = HeaderName::from_static("cross-origin-opener-policy");
const RESOURCE_POLICY: HeaderName = HeaderName::from_static("cross-origin-resource-policy");

/// The page of the cluster behind `api`, for these guests. To be served on loopback, without TLS.
pub fn service(api: ApiService, guests: Guests) -> ApiService {
    let front = Arc::new(Front { api, guests, sockets: OpenSockets::default() });
    ApiService::new(tower::service_fn(move |request: ApiRequest| {
        let front = front.clone();
        async move { Ok::<_, Infallible>(front.answer(request).await) }
    }))
}

struct Front {
    api: ApiService,
    guests: Guests,
    sockets: OpenSockets,
}

impl Front {
    async fn answer(&self, request: ApiRequest) -> ApiResponse {
        let path = request.uri().path();
        let is_read = is_read(request.method());
        let file = files::named(path).filter(|_| is_read);
        if let Some(why) = same_origin::refusal(&request, file.is_some()) {
            return plain(StatusCode::FORBIDDEN, why);
        }
        match file {
            Some(file) => shown(file, request.headers()),
            None if path == SESSION => self.enter(request).await,
            None if path == LESSONS && is_read => told(lessons::as_json()),
            None if path == SOURCES && is_read => told(sources::as_json()),
            None if path.starts_with(sources::ROOT) => source(path),
            None if path == MANIFESTS => self.read_manifests(request).await,
            None => self.forward(request).await,
        }
    }

    async fn enter(&self, request: ApiRequest) -> ApiResponse {
        if *request.method() != Method::POST {
            return plain(StatusCode::METHOD_NOT_ALLOWED, "POST an invitation");
        }
        let read = Limited::new(request.into_body(), MAX_INVITATION_BYTES).collect().await;
        let invitation = read.map(|read| read.to_bytes()).unwrap_or_default();
        let entered = std::str::from_utf8(&invitation).ok().and_then(|key| self.guests.enter(key.trim()));
        let Some((session, user)) = entered else {
            let text = "the link was used before, is older than ten minutes, or is not this cluster's: \
                        `kubarium ui` gives another";
            return plain(StatusCode::UNAUTHORIZED, text);
        };
        let told = json!({"session": session, "user": &*user.name});
        let mut response = ApiResponse::new(Body::from(told.to_string()));
        set(&mut response, CONTENT_TYPE, "application/json");
        set(&mut response, CACHE_CONTROL, "no-store");
        closed(response, ANSWER_POLICY)
    }

    /// For who has a session, since it takes time.
    async fn read_manifests(&self, mut request: ApiRequest) -> ApiResponse {
        if take_key(request.headers_mut()).and_then(|key| self.guests.visit(&key)).is_none() {
            return closed(status_response(Status::unauthorized(), false), ANSWER_POLICY);
        }
        let Ok(read) = Limited::new(request.into_body(), manifests::MAX_MANIFESTS_BYTES).collect().await
        else {
            let text = format!("no manifest of more than {} bytes is read", manifests::MAX_MANIFESTS_BYTES);
            return plain(StatusCode::PAYLOAD_TOO_LARGE, text);
        };
        match manifests::as_json(&read.to_bytes()) {
            Ok(json) => told(json),
            Err(why) => plain(StatusCode::BAD_REQUEST, why.to_string()),
        }
    }

    /// To the API, in the name of whose session it is.
    async fn forward(&self, mut request: ApiRequest) -> ApiResponse {
        let key = take_key(request.headers_mut());
        let visit = key.and_then(|key| Some((self.guests.visit(&key)?, key)));
        let response = match visit {
            Some((visit, key)) => {
                let (api, guests, sockets) = (self.api.clone(), self.guests.clone(), self.sockets.clone());
                Visit { api, guests, key, visit, sockets }.ask(request).await
            }
            None => status_response(Status::unauthorized(), false),
        };
        closed(response, ANSWER_POLICY)
    }
}

/// Takes the session's key out of the headers.
fn take_key(headers: &mut HeaderMap) -> Option<String> {
    if let Some(given) = headers.remove(AUTHORIZATION) {
        return given.to_str().ok()?.strip_prefix("Bearer ").map(str::to_owned);
    }
    let protocols = headers.get(SEC_WEBSOCKET_PROTOCOL)?.to_str().ok()?.to_owned();
    let (keys, others): (Vec<&str>, Vec<&str>) =
        protocols.split(',').map(str::trim).partition(|one| one.starts_with(BEARER_PROTOCOL));
    let key = URL_SAFE_NO_PAD.decode(keys.first()?.strip_prefix(BEARER_PROTOCOL)?).ok()?;
    headers.insert(SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_str(&others.join(", ")).ok()?);
    String::from_utf8(key).ok()
}

fn is_read(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD)
}

fn shown(file: &PageFile, headers: &HeaderMap) -> ApiResponse {
    let tag = file.tag();
    let is_known = headers.get(IF_NONE_MATCH).is_some_and(|known| known.as_bytes() == tag.as_bytes());
    let body = if is_known { Body::empty() } else { Body::from(file.text) };
    let mut response = ApiResponse::new(body);
    if is_known {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
    }
    set(&mut response, CONTENT_TYPE, file.content_type);
    set(&mut response, CACHE_CONTROL, "no-cache");
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        response.headers_mut().insert(ETAG, tag);
    }
    closed(response, PAGE_POLICY)
}

/// What is the same for everybody.
fn told(json: String) -> ApiResponse {
    let mut response = ApiResponse::new(Body::from(json));
    set(&mut response, CONTENT_TYPE, "application/json");
    closed(response, ANSWER_POLICY)
}

/// A file of our own code.
fn source(path: &str) -> ApiResponse {
    let Some(page) = sources::page(path) else {
        return plain(StatusCode::NOT_FOUND, "of this code nothing is shown: it does no step itself");
    };
    let mut response = ApiResponse::new(Body::from(page));
    set(&mut response, CONTENT_TYPE, "text/html; charset=utf-8");
    set(&mut response, CACHE_CONTROL, "no-cache");
    closed(response, PAGE_POLICY)
}

fn plain(code: StatusCode, text: impl Into<String>) -> ApiResponse {
    closed(apimachinery::wire::text_response(code, text), ANSWER_POLICY)
}

fn closed(mut response: ApiResponse, policy: &'static str) -> ApiResponse {
    set(&mut response, CONTENT_SECURITY_POLICY, policy);
    set(&mut response, X_CONTENT_TYPE_OPTIONS, "nosniff");
    set(&mut response, REFERRER_POLICY, "no-referrer");
    set(&mut response, OPENER_POLICY, "same-origin");
    set(&mut response, RESOURCE_POLICY, "same-origin");
    response
}

fn set(response: &mut ApiResponse, name: HeaderName, value: &'static str) {
    response.headers_mut().insert(name, HeaderValue::from_static(value));
}

#[cfg(test)]
mod tests {
    use apimachinery::user::UserInfo;
    use apimachinery::wire::{InProcessUser, PlainHttp};
    use tower::ServiceExt;

    use super::super::guests::Guest;
    use super::*;

    /// Says who asks, for what, and with which protocols.
    fn api() -> ApiService {
        ApiService::new(tower::service_fn(|request: ApiRequest| async move {
            let user = request.extensions().get::<InProcessUser>().map(|user| user.0.name.to_string());
            let protocols = request.headers().get(SEC_WEBSOCKET_PROTOCOL).map(|all| all.to_str().unwrap());
            let has_key = request.headers().contains_key(AUTHORIZATION);
            let is_plain = request.extensions().get::<PlainHttp>().is_some();
            let said = json!([user, request.uri().path(), protocols, has_key, is_plain]);
            Ok(ApiResponse::new(Body::from(said.to_string())))
        }))
    }

    async fn asked(page: &ApiService, line: &str, headers: &[(&str, &str)], body: &str) -> (u16, String) {
        let (method, path) = line.split_once(' ').unwrap();
        let mut request = http::Request::builder().method(method).uri(path).header("host", "localhost:4000");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.extension(PlainHttp("127.0.0.1:4000".parse().unwrap()));
        let request = request.body(Body::from(body.to_owned())).unwrap();
        let response = page.clone().oneshot(request).await.unwrap();
        assert_eq!(response.headers()[X_CONTENT_TYPE_OPTIONS], "nosniff", "{line}");
        let code = response.status().as_u16();
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        (code, String::from_utf8(bytes.to_vec()).unwrap())
    }

    fn page() -> (ApiService, Guests) {
        let guests = Guests::default();
        (service(api(), guests.clone()), guests)
    }

    fn guest(name: &str) -> Guest {
        Guest { user: Arc::new(UserInfo::authenticated(name, &[])), shown: None }
    }

    async fn session(page: &ApiService, guests: &Guests) -> String {
        let invitation = guests.invite(guest("jane")).unwrap();
        let (code, told) = asked(page, "POST /session", &[], &invitation).await;
        assert_eq!(code, 200, "{told}");
        let told: serde_json::Value = serde_json::from_str(&told).unwrap();
        assert_eq!(told["user"], "jane");
        told["session"].as_str().unwrap().to_owned()
    }

    #[tokio::test]
    async fn the_api_is_asked_in_the_name_of_who_was_invited() {
        let (page, guests) = page();
        let bearer = format!("Bearer {}", session(&page, &guests).await);
        let (code, said) = asked(&page, "GET /api/v1/pods", &[("authorization", &bearer)], "").await;
        assert_eq!((code, said.as_str()), (200, r#"["jane","/api/v1/pods",null,false,false]"#));
    }

    #[tokio::test]
    async fn yaml_is_read_for_who_has_a_session() {
        let (page, guests) = page();
        let bearer = format!("Bearer {}", session(&page, &guests).await);
        let headers = [("authorization", &*bearer)];
        let read = async |text: &str| asked(&page, "POST /manifests", &headers, text).await;
        assert_eq!(read("a: 1\n---\nb: 2\n").await, (200, r#"[{"a":1},{"b":2}]"#.to_owned()));
        let (code, why) = read("foo: [").await;
        assert!(code == 400 && why.starts_with("this is no YAML: "), "{why}");
        let long = "x".repeat(manifests::MAX_MANIFESTS_BYTES + 1);
        assert_eq!(read(&long).await.0, 413);
        assert_eq!(asked(&page, "POST /manifests", &[], "a: 1").await.0, 401);
    }

    #[tokio::test]
    async fn a_websocket_brings_its_key_among_the_protocols_and_it_goes_no_further() {
        let (page, guests) = page();
        let key = URL_SAFE_NO_PAD.encode(session(&page, &guests).await);
        let protocols = format!("v5.channel.k8s.io, {BEARER_PROTOCOL}{key}");
        let (_, said) = asked(&page, "GET /exec", &[("sec-websocket-protocol", &protocols)], "").await;
        assert_eq!(said, r#"["jane","/exec","v5.channel.k8s.io",false,false]"#);
    }

    #[tokio::test]
    async fn who_has_no_session_asks_nothing() {
        let (page, guests) = page();
        let used = guests.invite(guest("joe")).unwrap();
        asked(&page, "POST /session", &[], &used).await;
        for headers in [&[][..], &[("authorization", "Bearer x")], &[("sec-websocket-protocol", "v5")]] {
            assert_eq!(asked(&page, "GET /api/v1/pods", headers, "").await.0, 401, "{headers:?}");
        }
        let (code, why) = asked(&page, "POST /session", &[], &used).await;
        assert!(code == 401 && why.contains("kubarium ui"), "{why}");
        let long = "x".repeat(MAX_INVITATION_BYTES + 1);
        assert_eq!(asked(&page, "POST /session", &[], &long).await.0, 401);
        assert_eq!(asked(&page, "GET /session", &[], "").await.0, 405);
        let evil = [("origin", "http://evil.example")];
        assert_eq!(asked(&page, "POST /session", &evil, &used).await.0, 403);
    }

    #[tokio::test]
    async fn our_code_is_shown_to_whoever_looks_from_the_page() {
        let (page, _) = page();
        let (code, told) = asked(&page, "GET /sources.json", &[], "").await;
        let told: serde_json::Value = serde_json::from_str(&told).unwrap();
        let link = told["Bound"]["link"].as_str().unwrap();
        assert!(
            code == 200 && link.starts_with("/source/src/scheduler/plugins/default_binder.rs#L"),
            "{link}"
        );
        let (code, text) = asked(&page, &format!("GET {}", link.split('#').next().unwrap()), &[], "").await;
        assert!(code == 200 && text.contains("async fn bind("), "{text}");
        assert_eq!(asked(&page, "GET /source/src/main.rs", &[], "").await.0, 404);
        let foreign = [("sec-fetch-site", "cross-site")];
        assert_eq!(asked(&page, "GET /source/src/etcd/writer.rs", &foreign, "").await.0, 403);
    }

    #[tokio::test]
    async fn the_page_is_for_whoever_looks_and_is_sent_once() {
        let (page, _) = page();
        let request = |tag: &str| {
            let request = http::Request::builder().uri("/").header("host", "127.0.0.1:1");
            request.header(IF_NONE_MATCH, tag).body(Body::empty()).unwrap()
        };
        let first = page.clone().oneshot(request("none")).await.unwrap();
        assert_eq!(first.headers()[CONTENT_TYPE], "text/html; charset=utf-8");
        let policy = first.headers()[CONTENT_SECURITY_POLICY].to_str().unwrap();
        assert!(!policy.contains("unsafe") && policy.contains("default-src 'none'"), "{policy}");
        let tag = first.headers()[ETAG].to_str().unwrap().to_owned();
        let again = page.oneshot(request(&tag)).await.unwrap();
        assert_eq!(again.status(), StatusCode::NOT_MODIFIED);
    }
}
