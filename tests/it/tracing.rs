//! Spans, as a collector of OpenTelemetry gets them over HTTP.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use kubarium::kinds::DEPLOYMENTS;
use kubarium::{Clock, Cluster, Config, OtlpEndpoint};
use pki::Authority;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tower::ServiceExt;

use crate::handles::{ask, bare};

/// The JSON form of OTLP's `ExportTraceServiceRequest`, as far as it is sent; nothing else may be in it.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ExportRequest {
    resource_spans: Vec<ResourceSpans>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ResourceSpans {
    resource: Resource,
    scope_spans: Vec<ScopeSpans>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Resource {
    attributes: Vec<Value>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ScopeSpans {
    #[serde(rename = "scope")]
    _scope: Value,
    spans: Vec<Span>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Span {
    trace_id: String,
    span_id: String,
    parent_span_id: Option<String>,
    name: String,
    #[serde(rename = "kind")]
    _kind: u8,
    start_time_unix_nano: String,
    end_time_unix_nano: String,
    attributes: Vec<Value>,
    #[serde(rename = "events")]
    _events: Vec<Value>,
    #[serde(default)]
    links: Vec<Value>,
    #[serde(rename = "status")]
    _status: Option<Value>,
}

/// A collector on a port of its own, until it is dropped.
struct Receiver {
    address: SocketAddr,
    got: Got,
    _serving: JoinSet<()>,
}

type Got = Arc<Mutex<Vec<(String, Span)>>>;

async fn take(
    got: Got,
    request: http::Request<Incoming>,
) -> Result<http::Response<Full<Bytes>>, hyper::Error> {
    assert_eq!((request.method().as_str(), request.uri().path()), ("POST", "/v1/traces"));
    assert_eq!(request.headers()["content-type"], "application/json");
    let body = request.into_body().collect().await?.to_bytes();
    let request: ExportRequest = serde_json::from_slice(&body).unwrap();
    for resource in request.resource_spans {
        let service = resource.resource.attributes[0]["value"]["stringValue"].as_str().unwrap().to_owned();
        let spans = resource.scope_spans.into_iter().flat_map(|scope| scope.spans);
        got.lock().unwrap().extend(spans.map(|span| (service.clone(), span)));
    }
    Ok(http::Response::new(Full::new(Bytes::from_static(b"{}"))))
}

async fn serve(listener: TcpListener, got: Got, tls: Option<TlsAcceptor>) {
    let mut connections = JoinSet::new();
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        let (got, tls) = (got.clone(), tls.clone());
        let service = service_fn(move |request| take(got.clone(), request));
        connections.spawn(async move {
            // Who breaks off is no fault of the collector, nor is who does not believe it.
            let http = http1::Builder::new();
            match tls {
                None => drop(http.serve_connection(TokioIo::new(stream), service).await),
                Some(tls) => {
                    let Ok(stream) = tls.accept(stream).await else { return };
                    drop(http.serve_connection(TokioIo::new(stream), service).await);
                }
            }
        });
    }
}

impl Receiver {
    async fn start() -> Receiver {
        Receiver::start_with(None).await
    }

    async fn start_with(tls: Option<TlsAcceptor>) -> Receiver {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (address, got) = (listener.local_addr().unwrap(), Got::default());
        let mut serving = JoinSet::new();
        serving.spawn(serve(listener, got.clone(), tls));
        Receiver { address, got, _serving: serving }
    }

    fn got(&self) -> Vec<(String, Span)> {
        self.got.lock().unwrap().clone()
    }
}

fn endpoint(address: SocketAddr) -> OtlpEndpoint {
    format!("http://{address}").parse().unwrap()
}

fn web() -> Value {
    let labels = json!({"app": "web"});
    let pod =
        json!({"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "nginx"}]}});
    let spec = json!({"replicas": 2, "selector": {"matchLabels": labels}, "template": pod});
    json!({"metadata": {"name": "web"}, "spec": spec})
}

#[tokio::test]
async fn a_story_is_one_trace_across_all_components_and_goes_on_with_that_of_its_client() {
    let receiver = Receiver::start().await;
    let config = Config::new().nodes(1).otlp_endpoint(endpoint(receiver.address));
    let cluster = Cluster::start(config).await.unwrap();
    let (trace, parent) = ("4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7");
    let request = http::Request::post("/apis/apps/v1/namespaces/default/deployments")
        .header("content-type", "application/json")
        .header("traceparent", format!("00-{trace}-{parent}-01"))
        .body(web().to_string().into())
        .unwrap();
    assert_eq!(cluster.service().oneshot(request).await.unwrap().status(), 201);
    cluster.settled().await.unwrap();
    assert_eq!(cluster.client().get(&DEPLOYMENTS, "default", "web").await.unwrap().metadata.name, *"web");
    let (_, state) = ask(&cluster, "", "GET", "/kubarium/v1/tracing", Value::Null).await;
    assert_eq!(state["endpoint"], format!("http://{}/v1/traces", receiver.address));
    // What has not been sent yet is sent at the end.
    cluster.stop().await;
    let got = receiver.got();
    let story: Vec<&(String, Span)> = got.iter().filter(|(_, span)| span.trace_id == trace).collect();
    let services: HashSet<&str> = story.iter().map(|(service, _)| service.as_str()).collect();
    for service in [
        "kube-apiserver",
        "deployment-controller",
        "replicaset-controller",
        "kube-scheduler",
        "kubelet/node-1",
    ] {
        assert!(services.contains(service), "{services:?}");
    }
    let ids: HashSet<&str> = story.iter().map(|(_, span)| span.span_id.as_str()).collect();
    assert_eq!(ids.len(), story.len(), "each span is sent once");
    let of_client = |span: &Span| span.parent_span_id.as_deref() == Some(parent);
    let roots: Vec<&Span> = story.iter().map(|(_, span)| span).filter(|span| of_client(span)).collect();
    let name = "POST /apis/apps/v1/namespaces/{:namespace}/deployments";
    assert_eq!((roots.len(), roots[0].name.as_str()), (1, name));
    let path =
        json!({"key": "url.path", "value": {"stringValue": "/apis/apps/v1/namespaces/default/deployments"}});
    assert!(roots[0].attributes.contains(&path), "{:?}", roots[0]);
    for (_, span) in &story {
        let before = span.parent_span_id.as_deref().unwrap();
        assert!(ids.contains(before) || before == parent, "{span:?}");
        let time = |text: &str| text.parse::<u64>().unwrap();
        assert!(time(&span.start_time_unix_nano) <= time(&span.end_time_unix_nano), "{span:?}");
    }
    let linked = story.iter().filter(|(_, span)| span.links.iter().any(|link| link["traceId"] == trace));
    assert!(linked.count() > 5, "causes across watches are links");
    for (_, span) in &got {
        assert_eq!((span.trace_id.len(), span.span_id.len()), (32, 16), "{span:?}");
    }
}

#[tokio::test]
async fn a_collector_is_believed_over_tls_if_its_authority_is_known() {
    let authority = Authority::generate(Clock::real().now()).unwrap();
    let identity = authority.server(&[], &["127.0.0.1".parse().unwrap()], Clock::real().now()).unwrap();
    let (certificate, key) = identity.to_der().unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    let receiver = Receiver::start_with(Some(TlsAcceptor::from(Arc::new(tls)))).await;
    let address: OtlpEndpoint = format!("https://{}", receiver.address).parse().unwrap();
    let maps = "/api/v1/namespaces/default/configmaps";
    let map = json!({"metadata": {"name": "a"}});
    let known = address.clone().trusting(authority.certificate_pem().as_bytes().to_vec()).unwrap();
    let cluster = Cluster::start(bare().otlp_endpoint(known)).await.unwrap();
    assert_eq!(ask(&cluster, "", "POST", maps, map.clone()).await.0, 201);
    cluster.stop().await;
    let sent = receiver.got().len();
    assert!(sent > 0);
    // The system does not believe it.
    let cluster = Cluster::start(bare().otlp_endpoint(address)).await.unwrap();
    assert_eq!(ask(&cluster, "", "POST", maps, map).await.0, 201);
    let state = until_dropped(&cluster).await;
    assert!(state["lastError"].as_str().unwrap().contains("certificate"), "{state}");
    cluster.stop().await;
    assert_eq!(receiver.got().len(), sent);
}

async fn until_dropped(cluster: &Cluster) -> Value {
    loop {
        let (_, state) = ask(cluster, "", "GET", "/kubarium/v1/tracing", Value::Null).await;
        if state["droppedSpans"].as_u64().unwrap() > 0 {
            return state;
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_collector_that_is_away_or_hangs_holds_nobody_up() {
    let hanging = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = hanging.local_addr().unwrap();
    let map = |name: &str| json!({"metadata": {"name": name}});
    let maps = "/api/v1/namespaces/default/configmaps";
    let cluster = Cluster::start(bare().otlp_endpoint(endpoint(address))).await.unwrap();
    assert_eq!(ask(&cluster, "", "POST", maps, map("a")).await.0, 201);
    let connection = hanging.accept().await.unwrap();
    assert_eq!(ask(&cluster, "", "POST", maps, map("b")).await.0, 201);
    cluster.stop().await;
    drop((connection, hanging));
    // Now nobody listens there.
    let cluster = Cluster::start(bare().otlp_endpoint(endpoint(address))).await.unwrap();
    assert_eq!(ask(&cluster, "", "POST", maps, map("a")).await.0, 201);
    let state = until_dropped(&cluster).await;
    assert_eq!(state["sentSpans"], 0);
    assert!(state["lastError"].as_str().unwrap().contains(&address.to_string()), "{state}");
    cluster.stop().await;
}
