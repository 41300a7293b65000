//! Spans, as a collector of OpenTelemetry gets them over HTTP.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use axum::body::Body;
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use kubarium::kinds::DEPLOYMENTS;
use kubarium::{Clock, Cluster, Config, OtlpEndpoint};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{KeyValue, any_value};
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span};
use pki::Authority;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tower::ServiceExt;

use crate::handles::{ask, bare};
use crate::support::PATIENCE;

const ERROR: i32 = StatusCode::Error as i32;

/// Spans with who sent them, as the crate of the protocol reads them.
#[derive(Clone, Debug)]
struct ReceivedSpan {
    resource: BTreeMap<String, String>,
    scope: String,
    span: Span,
}

/// A collector on a port of its own, until it is dropped.
struct Receiver {
    address: SocketAddr,
    got: Got,
    _serving: JoinSet<()>,
}

type Got = Arc<Mutex<Vec<ReceivedSpan>>>;

async fn take(
    got: Got,
    request: http::Request<Incoming>,
) -> Result<http::Response<Full<Bytes>>, hyper::Error> {
    assert_eq!((request.method().as_str(), request.uri().path()), ("POST", "/v1/traces"));
    assert_eq!(request.headers()["content-type"], "application/json");
    let body = request.into_body().collect().await?.to_bytes();
    let sent: Value = serde_json::from_slice(&body).unwrap();
    let request: ExportTraceServiceRequest = serde_json::from_value(sent.clone()).unwrap();
    // What the protocol does not know would be read over.
    assert_eq!(unknown(&sent, &json!(request)), [] as [String; 0]);
    for ResourceSpans { resource, scope_spans, .. } in request.resource_spans {
        let resource = texts_of(&resource.unwrap().attributes);
        for ScopeSpans { scope, spans, .. } in scope_spans {
            let (resource, scope) = (resource.clone(), scope.unwrap().name);
            let received = |span| ReceivedSpan { resource: resource.clone(), scope: scope.clone(), span };
            got.lock().unwrap().extend(spans.into_iter().map(received));
        }
    }
    Ok(http::Response::new(Full::new(Bytes::from_static(b"{}"))))
}

/// The paths of what was sent and is not there when it was read and is written again.
fn unknown(sent: &Value, read: &Value) -> Vec<String> {
    match (sent, read) {
        (Value::Object(sent), Value::Object(read)) => {
            let below = |(name, value): (&String, &Value)| match read.get(name) {
                None => vec![name.clone()],
                Some(read) => unknown(value, read).iter().map(|path| format!("{name}.{path}")).collect(),
            };
            sent.iter().flat_map(below).collect()
        }
        (Value::Array(sent), Value::Array(read)) => {
            sent.iter().zip(read).flat_map(|(sent, read)| unknown(sent, read)).collect()
        }
        _ => vec![],
    }
}

fn texts_of(attributes: &[KeyValue]) -> BTreeMap<String, String> {
    let text = |attribute: &KeyValue| match attribute.value.as_ref()?.value.as_ref()? {
        any_value::Value::StringValue(text) => Some((attribute.key.clone(), text.clone())),
        _ => None,
    };
    attributes.iter().filter_map(text).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl ReceivedSpan {
    fn service(&self) -> &str {
        &self.resource["service.name"]
    }

    fn trace(&self) -> String {
        hex(&self.span.trace_id)
    }
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

    fn got(&self) -> Vec<ReceivedSpan> {
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
    let story: Vec<&ReceivedSpan> = got.iter().filter(|one| one.trace() == trace).collect();
    let places: BTreeSet<(&str, &str)> =
        story.iter().map(|one| (one.service(), one.scope.as_str())).collect();
    for place in [
        ("apiserver", "kube-apiserver"),
        ("kube-controller-manager", "deployment-controller"),
        ("kube-controller-manager", "replicaset-controller"),
        ("kube-scheduler", "kube-scheduler"),
        ("kubelet", "kubelet"),
    ] {
        assert!(places.contains(&place), "{place:?} is not among {places:?}");
    }
    for kubelet in got.iter().filter(|one| one.service() == "kubelet") {
        let node = |name: &str| kubelet.resource.get(name).map(String::as_str);
        assert_eq!([node("host.name"), node("service.instance.id")], [Some("node-1"); 2], "{kubelet:?}");
    }
    let ids: HashSet<&[u8]> = story.iter().map(|one| &one.span.span_id[..]).collect();
    assert_eq!(ids.len(), story.len(), "each span is sent once");
    let roots: Vec<&Span> =
        story.iter().map(|one| &one.span).filter(|span| hex(&span.parent_span_id) == parent).collect();
    let name = "POST /apis/apps/v1/namespaces/{:namespace}/deployments";
    assert_eq!((roots.len(), roots[0].name.as_str()), (1, name));
    let path = "/apis/apps/v1/namespaces/default/deployments";
    assert_eq!(texts_of(&roots[0].attributes).get("url.path").map(String::as_str), Some(path));
    for ReceivedSpan { span, .. } in &story {
        assert!(ids.contains(&span.parent_span_id[..]) || hex(&span.parent_span_id) == parent, "{span:?}");
        assert!(span.start_time_unix_nano <= span.end_time_unix_nano, "{span:?}");
    }
    let linked = story.iter().filter(|one| one.span.links.iter().any(|link| hex(&link.trace_id) == trace));
    assert!(linked.count() > 5, "causes across watches are links");
    for ReceivedSpan { span, .. } in &got {
        assert_eq!((span.trace_id.len(), span.span_id.len()), (16, 8), "{span:?}");
    }
}

/// What a client reads is a span in its trace, too: one that sends its own spans wants to see it there.
#[tokio::test]
async fn a_read_of_a_client_that_traces_it_is_a_span() {
    let receiver = Receiver::start().await;
    let cluster = Cluster::start(bare().otlp_endpoint(endpoint(receiver.address))).await.unwrap();
    let parent = "00f067aa0ba902b7";
    let read = async |trace: &str, flags: &str, path: &str| {
        let header = format!("00-{trace}-{parent}-{flags}");
        let request = http::Request::get(path).header("traceparent", header);
        cluster.service().oneshot(request.body(Body::empty()).unwrap()).await.unwrap().status()
    };
    let [listed, missed, silent] = ["1", "2", "3"].map(|digit| digit.repeat(32));
    let maps = "/api/v1/namespaces/default/configmaps";
    // Until somebody collects spans reads are no steps.
    let collected = async {
        while !cluster.flow().all().contains(&listed) {
            assert_eq!(read(&listed, "01", maps).await, 200);
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, collected).await.expect("reads are spans once somebody collects them");
    assert_eq!(read(&missed, "01", &format!("{maps}/none")).await, 404);
    assert_eq!(read(&silent, "00", maps).await, 200);
    assert!(!cluster.flow().all().contains(&silent), "its client sends nothing");
    cluster.stop().await;
    let got = receiver.got();
    let of = |trace: &str| got.iter().filter(|one| one.trace() == trace).collect::<Vec<_>>();
    assert!(of(&silent).is_empty());
    for (trace, name, code, failed) in [
        (&listed, "GET /api/v1/namespaces/{:namespace}/configmaps", Some(200), false),
        (&missed, "GET /api/v1/namespaces/{:namespace}/configmaps/{:name}", Some(404), false),
    ] {
        let [one, ..] = &of(trace)[..] else { panic!("no span of {name}") };
        assert_eq!((one.service(), one.span.name.as_str()), ("apiserver", name));
        assert_eq!(hex(&one.span.parent_span_id), parent);
        let answered = one.span.attributes.iter().find(|one| one.key == "http.response.status_code");
        let answered = answered.and_then(|one| one.value.as_ref()?.value.as_ref());
        assert_eq!(answered, code.map(any_value::Value::IntValue).as_ref(), "{one:?}");
        let is_error = one.span.status.as_ref().is_some_and(|status| status.code == ERROR);
        assert_eq!(is_error, failed, "{one:?}");
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
