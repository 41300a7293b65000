//! The apiserver as a client meets it: requests in, codes, reasons and messages out, without a socket.

mod admission;
mod admission_policies;
mod admission_webhooks;
mod aggregation;
mod apply;
pub(crate) mod audit;
mod bounds;
mod browsers;
mod discovery;
mod encryption;
mod errors;
mod fairness;
mod initializers;
mod kinds;
mod limits;
mod metrics;
mod objects;
mod openapi;
mod patches;
mod protobuf;
mod security;
mod stored_counts;
mod versions;
pub(crate) mod watches;
mod webhook_client;

use std::sync::Arc;

use axum::body::Body;
use http::header::{ACCEPT, CONTENT_TYPE, HeaderMap};
use http_body_util::BodyExt;
use kubarium::apimachinery::user::UserInfo;
use kubarium::apimachinery::wire::{ApiRequest, ApiResponse, ApiService, InProcessUser};
use kubarium::apis::scheme::Scheme;
use kubarium::apiserver::authentication::options::TokenList;
use kubarium::apiserver::authentication::{Authentication, AuthenticationOptions, AuthenticatorParts};
use kubarium::apiserver::config::ApiserverConfig;
use kubarium::apiserver::handler_chain::build_handler_chain;
use kubarium::apiserver::registry::Registry;
use kubarium::apiserver::storage::Storage;
use kubarium::clock::Clock;
use kubarium::entropy::Entropy;
use kubarium::etcd::{Kv, Options};
use serde_json::{Value, json};
use tower::ServiceExt;

use crate::support::upstream::{self, ControlPlane};

/// An apiserver over a store in memory, and nothing else of a cluster.
pub(crate) struct Server {
    service: ApiService,
    user: Arc<UserInfo>,
    /// Ends with it.
    _real: Option<ControlPlane>,
}

/// An answer, read to its end.
pub(crate) struct Answer {
    /// The HTTP status.
    pub code: u16,
    /// The headers.
    pub headers: HeaderMap,
    /// The body as text.
    pub text: String,
    /// The body as it is.
    pub bytes: bytes::Bytes,
}

impl Server {
    /// With the namespace `default` and its service account; requests are an administrator's. The real one, if
    /// that is asked for.
    pub(crate) async fn start() -> Server {
        let Some(bin) = upstream::asked() else { return Server::start_with(|_| ()).await };
        let plane = ControlPlane::start(&bin, None).await;
        let service = plane.service();
        let server = Server { _real: Some(plane), ..Server::over(service) };
        server
            .create("/api/v1/namespaces/default/serviceaccounts", json!({"metadata": {"name": "default"}}))
            .await;
        server
    }

    /// The same with another configuration.
    pub(crate) async fn start_with(change: impl FnOnce(&mut ApiserverConfig)) -> Server {
        Server::bare(Arc::new(Scheme::builtin()), change).furnished().await
    }

    /// The same with these kinds.
    pub(crate) async fn serving(scheme: Arc<Scheme>) -> Server {
        Server::bare(scheme, |_| ()).furnished().await
    }

    async fn furnished(self) -> Server {
        self.create("/api/v1/namespaces", json!({"metadata": {"name": "default"}})).await;
        let account = json!({"metadata": {"name": "default"}});
        self.create("/api/v1/namespaces/default/serviceaccounts", account).await;
        self
    }

    /// Without any object.
    pub(crate) fn bare(scheme: Arc<Scheme>, change: impl FnOnce(&mut ApiserverConfig)) -> Server {
        let clock = Clock::real();
        let kv = Kv::open(Options::default(), clock.clone()).expect("memory is there");
        let storage = Storage::new(kv, clock.clone(), Entropy::seeded(1));
        let registry = Registry::new(storage, scheme.clone(), clock.clone(), Entropy::seeded(2));
        let mut config = ApiserverConfig::new(scheme, registry, clock, Entropy::seeded(3));
        let token_user = Arc::new(UserInfo::authenticated("jane", &["developers"]));
        let static_tokens = TokenList(vec![("secret".into(), token_user)]);
        let authentication = AuthenticationOptions { static_tokens, ..AuthenticationOptions::default() };
        let signing_key_pem = kubarium::pki::generate_signing_key().unwrap();
        let parts = AuthenticatorParts {
            registry: &config.registry,
            clock: &config.clock,
            entropy: &config.entropy,
            authority_pem: "",
            signing_key_pem: &signing_key_pem,
        };
        config.authentication = Authentication::new(&authentication, &parts).unwrap();
        change(&mut config);
        let user = Arc::new(UserInfo::authenticated("admin", &["system:masters"]));
        Server { service: build_handler_chain(config).unwrap(), user, _real: None }
    }

    /// The apiserver of a whole cluster.
    pub(crate) fn of(cluster: &kubarium::Cluster) -> Server {
        Server::over(cluster.service())
    }

    /// A service in which the administrator asks.
    pub(crate) fn over(service: ApiService) -> Server {
        let user = Arc::new(UserInfo::authenticated("admin", &["system:masters"]));
        Server { service, user, _real: None }
    }

    /// The service itself, in nobody's name unless it is a whole cluster's.
    pub(crate) fn service(&self) -> ApiService {
        self.service.clone()
    }

    /// Sends a request as it is, in nobody's name.
    pub(crate) async fn send(&self, request: ApiRequest) -> ApiResponse {
        self.service.clone().oneshot(request).await.expect("answers are infallible")
    }

    /// A request of the administrator: `POST /path`, with a body unless it is null.
    pub(crate) async fn call(&self, line: &str, body: &Value) -> Answer {
        let text = if body.is_null() { String::new() } else { body.to_string() };
        self.call_with(line, &[("content-type", "application/json")], text).await
    }

    /// The same with headers and a body as text.
    pub(crate) async fn call_with(
        &self,
        line: &str,
        headers: &[(&str, &str)],
        body: impl Into<String>,
    ) -> Answer {
        let mut request = request(line, headers, body.into());
        request.extensions_mut().insert(InProcessUser(self.user.clone()));
        Answer::of(self.send(request).await).await
    }

    /// The first event of a watch; its end is not waited for.
    pub(crate) async fn first_event(&self, line: &str) -> Value {
        let text = String::from_utf8_lossy(&self.first_bytes(line, &[]).await).into_owned();
        serde_json::from_str(text.lines().next().unwrap_or_default()).unwrap_or_default()
    }

    /// What a watch sends first.
    pub(crate) async fn first_bytes(&self, line: &str, headers: &[(&str, &str)]) -> bytes::Bytes {
        let mut body = self.begin(line, headers).await;
        let frame = body.frame().await.and_then(Result::ok).and_then(|frame| frame.into_data().ok());
        frame.unwrap_or_default()
    }

    /// An answer of which nothing is read yet.
    pub(crate) async fn begin(&self, line: &str, headers: &[(&str, &str)]) -> Body {
        let mut request = request(line, headers, String::new());
        request.extensions_mut().insert(InProcessUser(self.user.clone()));
        self.send(request).await.into_body()
    }

    /// GET, which must succeed.
    pub(crate) async fn get(&self, path: &str) -> Value {
        let answer = self.call(&format!("GET {path}"), &Value::Null).await;
        assert_eq!(answer.code, 200, "{}", answer.text);
        answer.json()
    }

    /// POST, which must succeed.
    pub(crate) async fn create(&self, path: &str, body: Value) -> Value {
        let answer = self.call(&format!("POST {path}"), &body).await;
        assert_eq!(answer.code, 201, "{}", answer.text);
        answer.json()
    }

    /// PUT of bytes that need not be text.
    pub(crate) async fn put_bytes(&self, path: &str, headers: &[(&str, &str)], body: bytes::Bytes) -> Answer {
        let mut request = request(&format!("PUT {path}"), headers, String::new());
        *request.body_mut() = Body::from(body);
        request.extensions_mut().insert(InProcessUser(self.user.clone()));
        Answer::of(self.send(request).await).await
    }

    /// PATCH with a media type.
    pub(crate) async fn patch(&self, path: &str, media_type: &str, body: &str) -> Answer {
        self.call_with(&format!("PATCH {path}"), &[(CONTENT_TYPE.as_str(), media_type)], body).await
    }

    /// GET in a form.
    pub(crate) async fn get_as(&self, path: &str, accept: &str) -> Answer {
        self.call_with(&format!("GET {path}"), &[(ACCEPT.as_str(), accept)], "").await
    }
}

impl Answer {
    /// Reads an answer to its end.
    pub(crate) async fn of(response: ApiResponse) -> Answer {
        let (parts, body) = response.into_parts();
        let bytes = body.collect().await.expect("bodies are in memory").to_bytes();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        Answer { code: parts.status.as_u16(), headers: parts.headers, text, bytes }
    }

    /// The body as a tree; null when it is no JSON.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_default()
    }

    /// Code, reason and message of a Status.
    pub(crate) fn status(&self) -> (u16, String, String) {
        let json = self.json();
        let text = |field: &str| json[field].as_str().unwrap_or_default().to_owned();
        (self.code, text("reason"), text("message"))
    }

    /// The warnings.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let values = self.headers.get_all("warning").into_iter();
        values.filter_map(|value| value.to_str().ok().map(String::from)).collect()
    }
}

/// A request from its first line.
pub(crate) fn request(line: &str, headers: &[(&str, &str)], body: String) -> ApiRequest {
    let (method, path) = line.split_once(' ').expect("METHOD PATH");
    let mut builder = http::Request::builder().method(method).uri(path);
    for (name, value) in headers {
        builder = builder.header(*name, *value);
    }
    builder.body(Body::from(body)).expect("a valid request")
}

/// A ConfigMap.
pub(crate) fn config_map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"k": "v"}})
}

/// A Pod that leaves everything out that may be left out.
pub(crate) fn pod(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": name}},
        "spec": {"containers": [{"name": "c", "image": "nginx"}]}})
}

/// A Deployment of one replica.
pub(crate) fn deployment(name: &str) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": {
        "selector": {"matchLabels": {"app": name}},
        "template": {"metadata": {"labels": {"app": name}},
            "spec": {"containers": [{"name": "c", "image": "nginx"}]}}}})
}

/// Where the tests keep their ConfigMaps, Pods and Deployments.
pub(crate) const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
pub(crate) const PODS: &str = "/api/v1/namespaces/default/pods";
pub(crate) const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
