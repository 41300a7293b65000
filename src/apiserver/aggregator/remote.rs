//! A group and version that another server has: whether it can be reached, and requests to it
//! (`kube-aggregator/pkg/apiserver/handler_proxy.go`, `controllers/status`).

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use clap::Args;
use futures::future::BoxFuture;
use http::header::{ACCEPT, AUTHORIZATION, CONNECTION, HOST, HeaderName, HeaderValue, UPGRADE};
use http::uri::{Authority, PathAndQuery, Scheme, Uri};
use http::{HeaderMap, StatusCode};
use hyper::upgrade::OnUpgrade;
use serde_json::{Value, json};
use sync::RwLock;
use tower::ServiceExt;

use super::documents::PublishedDocuments;
use super::in_process::InProcessServers;
use super::passing_on::Reach;
use crate::registry::Registry;
use crate::request::PassedOn;
use crate::webhook::{
    self, CallError, ClientConfig, Reached, ServiceReference, ServiceResolver, Transport, WebhookTarget,
};
use apimachinery::object::Object;
use apimachinery::user::{MASTERS, UserInfo};
use apimachinery::wire::{ApiRequest, ApiResponse, ApiService, text_response};
use apis::apiregistration::api_service::API_SERVICES;
use apis::core::service::SERVICES;
use apis::tree::{at, flag, items, number, text};
use clock::Clock;

golang::text_error! {
    /// Why another server has no answer; in Go's words.
    pub struct RemoteError;
}

golang::text_error! {
    /// A file of `--proxy-client-*` that cannot be read, and why.
    pub struct BadProxyIdentity;
}

/// How long a server may take to say that it is there (upstream's `discoveryTimeout`).
const DISCOVERY_TIMEOUT: Duration = Duration::from_secs(5);

/// One remote APIService, as it stood when it was read.
pub struct Remote {
    /// The APIService's name.
    pub name: String,
    /// The group.
    pub group: String,
    /// The version.
    pub version: String,
    /// As the APIService says: `groupPriorityMinimum`.
    pub group_priority: u32,
    /// As it was read.
    pub(super) spec: Value,
    /// Its `metav1.APIResourceList`, while it is there; none before it was asked.
    resources: RwLock<Option<Option<Arc<Value>>>>,
    /// What it publishes.
    pub(super) documents: Arc<PublishedDocuments>,
    service: ServiceReference,
    /// Whose word is taken for it, in words.
    trust: String,
    transport: Transport,
    /// The server itself, when it is in this process.
    own: Option<ApiService>,
}

/// What this server shows to others so that they believe whom it names: a certificate and its key, PEM
/// (`--proxy-client-cert-file`, `--proxy-client-key-file`). It is a secret, so it is never printed.
#[derive(Clone, Default)]
pub struct ProxyIdentity(pub Option<(Vec<u8>, Vec<u8>)>);

/// Who this server is to aggregated ones (`options.Extra`).
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "APIs")]
pub struct ProxyClientOptions {
    /// The certificate by which aggregated servers know this one, and believe whom it names.
    #[arg(long, value_name = "FILE", requires = "proxy_client_key_file")]
    pub proxy_client_cert_file: Option<PathBuf>,
    /// Its key.
    #[arg(long, value_name = "FILE", requires = "proxy_client_cert_file")]
    pub proxy_client_key_file: Option<PathBuf>,
}

impl ProxyClientOptions {
    /// What the files hold; nothing without them.
    ///
    /// # Errors
    /// Which cannot be read, and why.
    pub fn complete(&self) -> Result<ProxyIdentity, BadProxyIdentity> {
        let (Some(certificate), Some(key)) = (&self.proxy_client_cert_file, &self.proxy_client_key_file)
        else {
            return Ok(ProxyIdentity::default());
        };
        let read = |path: &PathBuf| {
            std::fs::read(path).map_err(|error| format!("proxy client: {}: {error}", path.display()))
        };
        Ok(ProxyIdentity(Some((read(certificate)?, read(key)?))))
    }
}

/// What the `Available` condition should say.
#[derive(Debug, PartialEq, Eq)]
pub struct Availability {
    /// `True` or `False`.
    pub status: &'static str,
    /// As `MissingEndpoints`.
    pub reason: &'static str,
    /// For people.
    pub message: String,
}

impl Remote {
    /// Of an APIService; nothing when it is local.
    pub fn of(
        object: &Object,
        resolver: &ServiceResolver,
        proxy: &ProxyIdentity,
        in_process: &InProcessServers,
    ) -> Option<Remote> {
        let tree = object.to_value();
        let spec = at(&tree, "spec");
        let reference = at(spec, "service");
        if reference.is_null() || object.is_deleting() {
            return None;
        }
        let service = ServiceReference::from_tree(reference);
        let mut config = ClientConfig::new(WebhookTarget::Service(service.clone()));
        config.server_name = Some(service.server_name());
        config.insecure_skip_tls_verify = flag(spec, "insecureSkipTLSVerify");
        config.ca_bundle = decode(text(spec, "caBundle"));
        config.identity = proxy.0.clone();
        Some(Remote {
            name: object.metadata.name.clone(),
            group: text(spec, "group").into(),
            version: text(spec, "version").into(),
            group_priority: u32::try_from(number(spec, "groupPriorityMinimum")).unwrap_or_default(),
            spec: spec.clone(),
            resources: RwLock::default(),
            documents: Arc::default(),
            transport: Transport::new(&config, resolver),
            trust: config.trust(),
            own: in_process.find(&service),
            service,
        })
    }

    /// The path of its group and version.
    pub fn path(&self) -> String {
        format!("/apis/{}/{}", self.group, self.version)
    }

    pub(super) fn is_in_process(&self) -> bool {
        self.own.is_some()
    }

    /// Whether it was there when it was last asked.
    pub fn is_available(&self) -> bool {
        self.resources().is_some()
    }

    /// What it serves, as it said when it was last asked.
    pub fn resources(&self) -> Option<Arc<Value>> {
        self.resources.read().clone().flatten()
    }

    /// The plural of a resource that it said it has, by that or another of its names.
    pub(super) fn plural_of(&self, name: &str) -> Option<String> {
        let resources = self.resources()?;
        let is_it = |one: &&Value| {
            let names = [text(one, "name"), text(one, "singularName"), text(one, "kind")];
            let mut short = items(one, "shortNames").iter().filter_map(Value::as_str);
            names.iter().any(|own| own.eq_ignore_ascii_case(name)) || short.any(|own| own == name)
        };
        let found = items(&resources, "resources").iter().find(is_it)?;
        Some(text(found, "name").to_owned())
    }

    pub(super) fn has_been_asked(&self) -> bool {
        self.resources.read().is_some()
    }

    fn note(&self, resources: Option<Value>) {
        let mut known = self.resources.write();
        *known = Some(resources.map(Arc::new));
    }

    /// What is told of it where a request is passed on.
    pub(super) fn introduce(&self) -> PassedOn {
        let ServiceReference { namespace, name, port, .. } = &self.service;
        let trust = if self.own.is_some() { "which is in this process" } else { &self.trust };
        PassedOn {
            api_service: self.name.clone(),
            service: format!("{namespace}/{name}:{port}"),
            trust: trust.to_owned(),
            ..PassedOn::default()
        }
    }

    /// Passes a request on in the name of `user`; says how it was reached, too.
    /// What comes of a connection that both want for something else than HTTP is `run` beside.
    pub(super) async fn proxy(
        &self,
        mut request: ApiRequest,
        user: &UserInfo,
        run: impl FnOnce(BoxFuture<'static, ()>),
    ) -> (ApiResponse, Reach) {
        let protocol = request.headers().get(UPGRADE).cloned();
        let client = request.extensions_mut().remove::<OnUpgrade>();
        let path = request.uri().path_and_query().cloned();
        let Some(uri) = self.uri(path) else { return (unavailable(), Reach::none("invalid URL")) };
        *request.uri_mut() = uri;
        put_identity(request.headers_mut(), user);
        if protocol.is_some() {
            request.headers_mut().insert(CONNECTION, HeaderValue::from_static("Upgrade"));
        }
        if let Some(own) = &self.own {
            let answer = own.clone().oneshot(request).await.unwrap_or_else(|never| match never {});
            return (answer, Reach::default());
        }
        let (parts, body) = request.into_parts();
        let mut passed = http::Request::new(body);
        (*passed.method_mut(), *passed.uri_mut(), *passed.headers_mut()) =
            (parts.method, parts.uri, parts.headers);
        let response = match self.transport.send(passed).await {
            Ok(response) => response,
            Err(error) => return (unavailable(), Reach::none(error.message)),
        };
        let address = response.extensions().get().map(|Reached(address)| *address);
        let reach = Reach { address, why: None };
        if response.status() != StatusCode::SWITCHING_PROTOCOLS {
            return (response.map(Body::new), reach);
        }
        let Some(client) = client else {
            return (
                unavailable(),
                Reach::none("the client's connection cannot go on with another protocol"),
            );
        };
        let (response, carrying) = webhook::go_on(client, response);
        run(Box::pin(carrying));
        (response, reach)
    }

    /// A document of it as JSON.
    ///
    /// # Errors
    /// In Go's words.
    pub async fn fetch(&self, path: &str, accept: &str, clock: &Clock) -> Result<Value, RemoteError> {
        let user = UserInfo::authenticated("system:kube-aggregator", &[MASTERS]);
        let response = self.ask(path, &user, &[(ACCEPT, accept)], clock).await?;
        if !response.status().is_success() {
            let shown = format!("https://{}:{}{path}", self.service.server_name(), self.service.port);
            return Err(format!("bad status from {shown}: {}", response.status().as_u16()).into());
        }
        serde_json::from_slice(response.body()).map_err(|error| error.to_string().into())
    }

    /// Its answer to a GET that is this server's own, read to its end.
    ///
    /// # Errors
    /// In Go's words.
    pub(super) async fn ask(
        &self,
        path: &str,
        user: &UserInfo,
        headers: &[(HeaderName, &str)],
        clock: &Clock,
    ) -> Result<http::Response<Bytes>, RemoteError> {
        let shown = format!("https://{}:{}{path}", self.service.server_name(), self.service.port);
        let uri = self.uri(path.parse().ok()).ok_or("invalid URL")?;
        let mut request = http::Request::new(Body::empty());
        *request.uri_mut() = uri;
        put_identity(request.headers_mut(), user);
        for (name, value) in headers {
            let value = HeaderValue::from_str(value).map_err(|error| error.to_string())?;
            request.headers_mut().insert(name, value);
        }
        let ask = async {
            let (parts, body) = self.send(request).await?.into_parts();
            let body = axum::body::to_bytes(body, MAX_DOCUMENT_BYTES).await;
            let body = body.map_err(|error| error.to_string())?;
            Ok(http::Response::from_parts(parts, body))
        };
        let late = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)";
        clock.timeout_outside(DISCOVERY_TIMEOUT, ask).await.map_err(|_| format!("Get {shown:?}: {late}"))?
    }

    async fn send(&self, request: ApiRequest) -> Result<ApiResponse, String> {
        if let Some(own) = &self.own {
            return Ok(own.clone().oneshot(request).await.unwrap_or_else(|never| match never {}));
        }
        let response = self.transport.send(request).await;
        response.map(|response| response.map(Body::new)).map_err(|error: CallError| error.message)
    }

    /// Asks whether it is there.
    pub async fn check(
        &self,
        registry: &Registry,
        resolver: &ServiceResolver,
        clock: &Clock,
    ) -> Availability {
        if let Err(found) = self.check_service(registry, resolver).await {
            self.note(None);
            return found;
        }
        let path = self.path();
        match self.fetch(&path, "application/json", clock).await {
            Ok(resources) => {
                self.note(Some(resources));
                Availability { status: "True", reason: "Passed", message: "all checks passed".into() }
            }
            Err(why) => {
                self.note(None);
                let shown = format!("https://{}:{}{path}", self.service.server_name(), self.service.port);
                no("FailedDiscoveryCheck", format!("failing or missing response from {shown}: {why}"))
            }
        }
    }

    async fn check_service(
        &self,
        registry: &Registry,
        resolver: &ServiceResolver,
    ) -> Result<(), Availability> {
        if self.own.is_some() {
            return Ok(());
        }
        let ServiceReference { namespace, name, port, .. } = &self.service;
        let found = registry.get(&SERVICES, namespace, name, None).await;
        let service = found
            .map_err(|_| no("ServiceNotFound", format!("service/{name} in {namespace:?} is not present")))?;
        let tree = service.to_value();
        if !matches!(text(&tree, "spec.type"), "ClusterIP" | "") {
            return Ok(());
        }
        let of_number = |own: &&Value| number(own, "port") == i64::from(*port);
        let Some(own) = items(&tree, "spec.ports").iter().find(of_number) else {
            let message = format!("service/{name} in {namespace:?} is not listening on port {port}");
            return Err(no("ServicePortError", message));
        };
        resolver.resolve_endpoint(namespace, name, *port).await.map(drop).map_err(|_| {
            let port = text(own, "name");
            let message = format!(
                "endpoints for service/{name} in {namespace:?} have no addresses with port name {port:?}"
            );
            no("MissingEndpoints", message)
        })
    }

    fn uri(&self, path: Option<PathAndQuery>) -> Option<Uri> {
        let authority: Authority =
            format!("{}:{}", self.service.server_name(), self.service.port).parse().ok()?;
        let builder = Uri::builder().scheme(Scheme::HTTPS).authority(authority);
        builder.path_and_query(path?).build().ok()
    }
}

/// A document of a remote server that is larger is not read.
const MAX_DOCUMENT_BYTES: usize = 16 << 20;

fn no(reason: &'static str, message: String) -> Availability {
    Availability { status: "False", reason, message }
}

fn decode(text: &str) -> Vec<u8> {
    use base64::Engine;
    base64::engine::general_purpose::STANDARD.decode(text).unwrap_or_default()
}

/// `proxyError`: who asks is not told more.
pub(super) fn unavailable() -> ApiResponse {
    text_response(StatusCode::SERVICE_UNAVAILABLE, "service unavailable\n")
}

/// Who asks (`transport.SetAuthProxyHeaders`); what the client itself said of that is taken away.
fn put_identity(headers: &mut HeaderMap, user: &UserInfo) {
    for name in [AUTHORIZATION, HOST, CONNECTION] {
        headers.remove(name);
    }
    let said: Vec<HeaderName> =
        headers.keys().filter(|name| name.as_str().starts_with("x-remote-")).cloned().collect();
    said.iter().for_each(|name| drop(headers.remove(name)));
    let mut put = |name: &str, value: &str| {
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::from_str(value)) {
            headers.append(name, value);
        }
    };
    put("x-remote-user", &user.name);
    user.groups.iter().for_each(|group| put("x-remote-group", group));
    if !user.uid.is_empty() {
        put("x-remote-uid", &user.uid);
    }
    for (key, values) in &user.extra {
        let key = percent_encoding::utf8_percent_encode(key, percent_encoding::NON_ALPHANUMERIC).to_string();
        values.iter().for_each(|value| put(&format!("x-remote-extra-{}", key.to_lowercase()), value));
    }
}

/// Writes down what was found, if it is news; says whether one that was there is not any more.
pub(super) async fn write_availability(
    registry: &Registry,
    name: &str,
    found: &Availability,
    now: &str,
) -> bool {
    use crate::registry::{Part, UpdatedObjectInfo};
    use crate::request::RequestContext;
    let has_gone = AtomicBool::new(false);
    let change = |current: Option<&Value>| {
        let mut new = current.cloned().unwrap_or_default();
        let known = items(&new, "status.conditions").iter().find(|one| text(one, "type") == "Available");
        let was_there = known.is_some_and(|one| text(one, "status") == "True");
        has_gone.store(was_there && found.status != "True", Ordering::Relaxed);
        let is_same = |one: &Value| {
            text(one, "status") == found.status
                && text(one, "reason") == found.reason
                && text(one, "message") == found.message
        };
        if known.is_some_and(is_same) {
            return Ok(new);
        }
        let since = known.filter(|one| text(one, "status") == found.status);
        let since = since.map_or(now, |one| text(one, "lastTransitionTime")).to_owned();
        new["status"]["conditions"] = json!([{"type": "Available", "status": found.status,
            "reason": found.reason, "message": found.message, "lastTransitionTime": since}]);
        Ok(new)
    };
    let kind = Arc::clone(&API_SERVICES);
    let (ctx, change): (_, &dyn UpdatedObjectInfo) = (RequestContext::default(), &change);
    // One that is gone needs no word; anything else is said again with the next round.
    let written = registry.update(&ctx, &kind, "", name, Part::Status, change, &(), false).await;
    written.is_ok() && has_gone.into_inner()
}
