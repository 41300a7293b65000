//! Fuzzing: whatever a client sends, the server answers in order and goes on.
//!
//! Each target takes samples that are right and breaks them: pieces are cut, doubled, moved and replaced by
//! what decoders fear. `make test` tries a few hundred, the same each time; `make fuzz` tries others for as
//! long as `KUBARIUM_FUZZ_SECONDS` says, for each target. A failure is shrunk to its smallest form.

mod mutation;

use std::time::{Duration, Instant};

use axum::body::Body;
use http_body_util::BodyExt;
use kubarium::apimachinery::wire::ApiService;
use kubarium::cluster::Components;
use kubarium::{Cluster, Config};
use percent_encoding::{NON_ALPHANUMERIC, percent_encode};
use proptest::test_runner::{Config as Cases, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};
use serde_json::Value;
use tokio::runtime::{Handle, Runtime};
use tower::ServiceExt;

use mutation::mutated;

/// How many of each target `make test` tries.
const CASES: u32 = 150;
/// A request that takes longer hangs.
const PATIENCE: Duration = Duration::from_secs(60);

/// What is made of the bytes of a case.
type Request = fn(&[u8]) -> http::Request<Body>;

#[test]
fn bodies_in_json() {
    fuzz(OBJECTS, |bytes| post("/apis/apps/v1/namespaces/default/deployments", "application/json", bytes));
}

#[test]
fn bodies_in_yaml() {
    fuzz(MANIFESTS, |bytes| post("/apis/apps/v1/namespaces/default/deployments", "application/yaml", bytes));
}

#[test]
fn bodies_in_protobuf() {
    fuzz(PROTOBUF, |bytes| post(MAPS, "application/vnd.kubernetes.protobuf", bytes));
}

#[test]
fn json_patches() {
    fuzz(JSON_PATCHES, |bytes| patch("application/json-patch+json", bytes));
}

#[test]
fn merge_patches() {
    fuzz(MERGE_PATCHES, |bytes| patch("application/merge-patch+json", bytes));
}

#[test]
fn strategic_merge_patches() {
    fuzz(STRATEGIC_PATCHES, |bytes| patch("application/strategic-merge-patch+json", bytes));
}

#[test]
fn applied_configurations() {
    fuzz(APPLIED, |bytes| patch("application/apply-patch+yaml", bytes));
}

#[test]
fn label_selectors() {
    fuzz(LABEL_SELECTORS, |bytes| get(&format!("/api/v1/pods?labelSelector={}", encoded(bytes))));
}

#[test]
fn field_selectors() {
    fuzz(FIELD_SELECTORS, |bytes| get(&format!("/api/v1/pods?fieldSelector={}", encoded(bytes))));
}

#[test]
fn queries() {
    fuzz(QUERIES, |bytes| get(&format!("/api/v1/pods?{}", as_query(bytes))));
}

#[test]
fn paths() {
    fuzz(PATHS, |bytes| get(&format!("/{}", as_query(bytes))));
}

#[test]
fn media_types() {
    fuzz(MEDIA_TYPES, |bytes| {
        let mut request = get("/api/v1/pods");
        if let Ok(value) = http::HeaderValue::from_bytes(bytes) {
            request.headers_mut().insert("accept", value);
        }
        request
    });
}

#[test]
fn expressions() {
    fuzz(EXPRESSIONS, |bytes| {
        let expression = String::from_utf8_lossy(bytes);
        let rule = serde_json::json!([{"rule": expression, "messageExpression": expression}]);
        let fields = serde_json::json!({"n": {"type": "integer"}, "s": {"type": "string", "maxLength": 9},
            "l": {"type": "array", "maxItems": 9, "items": {"type": "string", "maxLength": 9}}});
        let spec =
            serde_json::json!({"type": "object", "properties": fields, "x-kubernetes-validations": rule});
        let schema = serde_json::json!({"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}});
        let version = serde_json::json!({"name": "v1", "served": true, "storage": true, "schema": schema});
        let definition = serde_json::json!({"apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition", "metadata": {"name": "things.example.com"},
            "spec": {"group": "example.com", "scope": "Namespaced", "versions": [version],
                "names": {"plural": "things", "singular": "thing", "kind": "Thing"}}});
        let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions?dryRun=All";
        post(path, "application/json", definition.to_string().as_bytes())
    });
}

/// Tries broken forms of the samples.
fn fuzz(samples: &'static [&'static [u8]], request: Request) {
    let runtime = Runtime::new().unwrap();
    let cluster = runtime.block_on(async {
        let config = Config::new().components(Components::NONE);
        let cluster = Cluster::start(config).await.unwrap();
        prepare(&cluster.service()).await;
        cluster
    });
    let (handle, service) = (runtime.handle().clone(), cluster.service());
    let seconds = std::env::var("KUBARIUM_FUZZ_SECONDS").ok().map(|text| text.parse().unwrap());
    let start = Instant::now();
    loop {
        let config = Cases { cases: CASES, failure_persistence: None, ..Cases::default() };
        let mut runner = match seconds {
            Some(_) => TestRunner::new(config),
            None => TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha)),
        };
        let outcome = runner.run(&mutated(samples), |bytes| {
            holds(&handle, &service, request(&bytes))
                .map_err(|why| TestCaseError::fail(format!("{why}\nfor {}", String::from_utf8_lossy(&bytes))))
        });
        if let Err(failure) = outcome {
            let TestError::Fail(why, bytes) = failure else { panic!("{failure}") };
            panic!("{why}\nthe smallest: {:?}", String::from_utf8_lossy(&bytes));
        }
        if seconds.is_none_or(|seconds: u64| start.elapsed().as_secs() >= seconds) {
            break;
        }
    }
    runtime.block_on(cluster.stop());
}

/// An answer comes, is no fault of the server's, and a failure is a whole Status.
fn holds(handle: &Handle, service: &ApiService, request: http::Request<Body>) -> Result<(), String> {
    let (method, uri) = (request.method().clone(), request.uri().clone());
    let answer = handle.block_on(async {
        let response = service.clone().oneshot(request).await.expect("answers are infallible");
        let (head, body) = response.into_parts();
        let is_watch = uri.query().is_some_and(|query| query.contains("watch"));
        let body = async {
            if is_watch && head.status.is_success() { Ok(Default::default()) } else { body.collect().await }
        };
        tokio::time::timeout(PATIENCE, body).await.map(|body| (head.status, body))
    });
    let (status, body) = answer.map_err(|_| format!("{method} {uri} hangs"))?;
    let text = String::from_utf8_lossy(&body.map_err(|error| error.to_string())?.to_bytes()).into_owned();
    // A state that a client asks for and that does not come is 504, upstream's word for it.
    let is_ours = status.is_server_error() && !text.contains("resource version");
    if is_ours && !EXPECTED.iter().any(|expected| text.contains(expected)) {
        return Err(format!("{method} {uri}: {status}: {text}"));
    }
    let is_status = || {
        let answer: Value = serde_json::from_str(&text).unwrap_or_default();
        answer["kind"] == "Status" && answer["code"] == status.as_u16() && answer["message"].is_string()
    };
    // Outside of the API, and where a path cannot be taken apart, answers are plain texts.
    let is_api = uri.path().starts_with("/api/v1/") || uri.path().starts_with("/apis/apps/v1/");
    if status.is_client_error() && is_api && !is_status() && status != http::StatusCode::NOT_FOUND {
        return Err(format!("{method} {uri}: {status} with {text:?}"));
    }
    Ok(())
}

/// Where upstream, too, answers a mistake of the client's with 500.
const EXPECTED: &[&str] = &[
    "resourceVersion should not be set on objects to be created",
    "strconv.ParseUint: parsing",
    "does not contain declared merge key",
    "unknown patch type",
    "unable to parse the patch",
    "unable to find api field",
    "failed to create manager for existing fields",
    "failed to create typed patch object",
    "cannot convert",
    "invalid character",
    "json: cannot unmarshal",
];

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const TARGET: &str = "/apis/apps/v1/namespaces/default/deployments/web";

async fn prepare(service: &ApiService) {
    let deployment = post("/apis/apps/v1/namespaces/default/deployments", "application/json", OBJECTS[0]);
    let response = service.clone().oneshot(deployment).await.unwrap();
    assert_eq!(response.status(), 201);
}

fn get(path: &str) -> http::Request<Body> {
    request("GET", path, None, Body::empty())
}

fn post(path: &str, media_type: &str, bytes: &[u8]) -> http::Request<Body> {
    request("POST", path, Some(media_type), Body::from(bytes.to_vec()))
}

fn patch(media_type: &str, bytes: &[u8]) -> http::Request<Body> {
    let path = format!("{TARGET}?fieldManager=fuzz&dryRun=All");
    request("PATCH", &path, Some(media_type), Body::from(bytes.to_vec()))
}

/// A path that is no path is asked for as the root: that must be answered as well.
fn request(method: &str, path: &str, media_type: Option<&str>, body: Body) -> http::Request<Body> {
    let uri: http::Uri = path.parse().unwrap_or_else(|_| http::Uri::from_static("/"));
    let mut builder = http::Request::builder().method(method).uri(uri);
    if let Some(media_type) = media_type {
        builder = builder.header("content-type", media_type);
    }
    builder.body(body).unwrap()
}

fn encoded(bytes: &[u8]) -> String {
    percent_encode(bytes, NON_ALPHANUMERIC).to_string()
}

/// Bytes that may stand in a URI stay; the rest is encoded.
fn as_query(bytes: &[u8]) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"=&%/.-_~+,;:@!*()".contains(&byte);
    bytes.iter().fold(String::new(), |mut text, byte| {
        if is_plain(*byte) {
            text.push(char::from(*byte))
        } else {
            text.push_str(&format!("%{byte:02X}"))
        }
        text
    })
}

const OBJECTS: &[&[u8]] = &[
    br#"{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","labels":{"app":"web"}},"spec":{"replicas":2,"selector":{"matchLabels":{"app":"web"}},"strategy":{"rollingUpdate":{"maxSurge":"25%"}},"template":{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"name":"c","image":"nginx","ports":[{"containerPort":80}],"resources":{"limits":{"cpu":"100m","memory":"1Gi"}},"env":[{"name":"A","value":"b"}]}]}}}}"#,
    br#"{"kind":"Deployment","metadata":{"generateName":"web-","creationTimestamp":"2026-01-02T03:04:05Z","annotations":{"a":"b"},"ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"p","uid":"1"}]},"spec":{"selector":{"matchExpressions":[{"key":"app","operator":"In","values":["web"]}]},"template":{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"name":"c","image":"nginx","livenessProbe":{"httpGet":{"path":"/","port":"http"}}}],"volumes":[{"name":"v","emptyDir":{"sizeLimit":"1e3"}}],"tolerations":[{"operator":"Exists"}]}}}}"#,
];

const MANIFESTS: &[&[u8]] = &[
    b"apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\n  labels: {app: web}\nspec:\n  replicas: 2\n  selector:\n    matchLabels:\n      app: web\n  template:\n    metadata:\n      labels:\n        app: web\n    spec:\n      containers:\n      - name: c\n        image: nginx:1.2\n        args: [\"-v\", 'x', !!str 1, ~, 0x1f, 1e3, .inf]\n",
    b"{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, annotations: {a: |-\n two\n lines\n}}}",
    b"a: &x [1, 2]\nb: *x\n<<: {c: d}\n---\nkind: List\n...\n",
];

const PROTOBUF: &[&[u8]] = &[
    b"k8s\0\n\x0f\n\x02v1\x12\tConfigMap\x12\x1a\n\x10\n\x01m\x12\0\x1a\0\"\0*\0R\x07\n\x01a\x12\x02bc\x12\x06\n\x01k\x12\x01v\x1a\0\"\0",
    b"k8s\0\n\x0f\n\x02v1\x12\tConfigMap\x12\x05\n\x03\n\x01m\x1a\0\"\0",
];

const JSON_PATCHES: &[&[u8]] = &[
    br#"[{"op":"test","path":"/metadata/name","value":"web"},{"op":"replace","path":"/spec/replicas","value":3},{"op":"add","path":"/spec/template/spec/containers/-","value":{"name":"d","image":"e"}},{"op":"remove","path":"/metadata/labels/app"}]"#,
    br#"[{"op":"copy","from":"/metadata/labels","path":"/metadata/annotations"},{"op":"move","from":"/spec/template/spec/containers/0","path":"/spec/template/spec/containers/0"},{"op":"add","path":"/metadata/labels/a~1b~0c","value":null}]"#,
];

const MERGE_PATCHES: &[&[u8]] = &[
    br#"{"metadata":{"labels":{"app":null,"b":"c"}},"spec":{"replicas":5,"template":{"spec":{"containers":[{"name":"c","image":"x"}]}}}}"#,
];

const STRATEGIC_PATCHES: &[&[u8]] = &[
    br#"{"metadata":{"finalizers":["a/b"],"$deleteFromPrimitiveList/finalizers":["c/d"]},"spec":{"template":{"spec":{"$setElementOrder/containers":[{"name":"d"},{"name":"c"}],"containers":[{"name":"d","image":"x"},{"$patch":"delete","name":"c"}],"$retainKeys":["containers"]}},"strategy":{"$patch":"replace","type":"Recreate"}}}"#,
    br#"{"spec":{"template":{"spec":{"containers":[{"name":"c","ports":[{"containerPort":80,"$patch":"delete"}],"env":[{"$patch":"replace"},{"name":"N","value":"v"}]}]}}}}"#,
];

const APPLIED: &[&[u8]] = &[
    b"apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\n  labels: {app: web, more: x}\nspec:\n  replicas: 4\n  template:\n    spec:\n      containers:\n      - {name: c, image: y, ports: [{containerPort: 80, protocol: UDP}, {containerPort: 80}]}\n",
    br#"{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","managedFields":[]},"spec":{"template":{"spec":{"containers":[{"name":"c","env":[{"name":"A","value":"1"}]}]}}}}"#,
];

const LABEL_SELECTORS: &[&[u8]] =
    &[b"app=web,tier!=x", b"app in (a,b),!c,d notin (e)", b"a==b,c", b"x>1,y<2", b"example.com/a in ()"];

const FIELD_SELECTORS: &[&[u8]] =
    &[b"metadata.name=a,spec.nodeName!=b", b"status.phase==Running", b"metadata.namespace=a\\,b\\=c", b"="];

const QUERIES: &[&[u8]] = &[
    b"limit=5&continue=eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MSwic3RhcnQiOiJhXHUwMDAwIn0&pretty=true",
    b"watch=1&resourceVersion=0&timeoutSeconds=1&allowWatchBookmarks=true",
    b"watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=1",
    b"resourceVersion=1&resourceVersionMatch=Exact&labelSelector=a&fieldSelector=metadata.name=b",
];

const PATHS: &[&[u8]] = &[
    b"api/v1/namespaces/default/pods/x/log?container=c&tailLines=5",
    b"apis/apps/v1/namespaces/default/deployments/web/scale",
    b"apis/apps/v1/watch/namespaces/default/deployments?timeoutSeconds=1",
    b"api/v1/namespaces/default/services/https:x:80/proxy/a/../b",
    b"openapi/v3/apis/apps/v1?hash=1",
    b"readyz/ping?verbose&exclude=etcd",
];

const MEDIA_TYPES: &[&[u8]] = &[
    b"application/json;as=Table;v=v1;g=meta.k8s.io,application/json;q=0.5,*/*",
    b"application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
    b"application/yaml;charset=\"utf-8\", text/*;q=1.0",
];

const EXPRESSIONS: &[&[u8]] = &[
    b"self.n > 0 && self.s.matches('^a+$') || has(self.l)",
    b"self.l.all(x, x.startsWith('a')) ? 'yes' + string(self.n) : \"no\"",
    b"size(self.l) <= 3 && self.l.exists_one(i, i == 'x') && !(self.s in ['a', 'b'])",
    b"quantity('1Gi').isGreaterThan(quantity('5M')) && duration('1h') < duration('2h')",
    b"oldSelf.n <= self.n && [1, 2, 3].map(x, x * 2).sum() == 12 && {'a': 1}['a'] == 1",
];
