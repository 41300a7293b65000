//! Bad input: each gets the Status that kube-apiserver sends, word for word, and the cluster goes on.

use std::time::Duration;

use bytes::Bytes;
use http::Method;
use kubarium::clock::Clock;
use kubarium::cluster::Components;
use kubarium::{Cluster, Config};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::support::Up;
use crate::support::wire::{Answer, Target, Wire};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const PODS: &str = "/api/v1/namespaces/default/pods";
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
const JSON: &str = "application/json";
const YAML: &str = "application/yaml";
const JSON_PATCH: &str = "application/json-patch+json";
const MERGE_PATCH: &str = "application/merge-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";

struct Case {
    method: Method,
    path: String,
    content_type: &'static str,
    body: Vec<u8>,
    code: u16,
    reason: &'static str,
    message: String,
    details: Value,
}

/// A request that is refused with 400 `BadRequest`: those have no details.
fn bad(method: Method, path: &str, content_type: &'static str, body: &str, message: &str) -> Case {
    refused(method, path, content_type, body, (400, "BadRequest", message), Value::Null)
}

fn refused(
    method: Method,
    path: &str,
    content_type: &'static str,
    body: &str,
    (code, reason, message): (u16, &'static str, &str),
    details: Value,
) -> Case {
    let (path, body) = (path.to_owned(), body.as_bytes().to_vec());
    Case { method, path, content_type, body, code, reason, message: message.to_owned(), details }
}

/// An object whose one field is invalid: 422 `Invalid`. `shown` is the kind with its group.
fn invalid(path: &str, body: Value, (kind, group): (&str, &str), cause: (&str, &str, &str)) -> Case {
    let name = body["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let (field, reason, text) = cause;
    let shown = if group.is_empty() { kind.to_owned() } else { format!("{kind}.{group}") };
    let mut details = json!({"kind": kind, "causes": [{"reason": reason, "message": text, "field": field}]});
    for (member, value) in [("name", name.as_str()), ("group", group)] {
        if !value.is_empty() {
            details[member] = value.into();
        }
    }
    let message = format!("{shown} {name:?} is invalid: {field}: {text}");
    refused(Method::POST, path, JSON, &body.to_string(), (422, "Invalid", &message), details)
}

fn map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}})
}

fn pod(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
        "spec": {"containers": [{"name": "c", "image": "nginx"}]}})
}

fn deployment(labels: Value) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "template": {
            "metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "nginx"}]}}}})
}

/// The body does not say what it is, or says something else than the path.
fn bodies() -> Vec<Case> {
    let unrecognized = "the object provided is unrecognized (must be of type ConfigMap): ";
    let no_json = format!("{unrecognized}couldn't get version/kind; json parse error: ");
    let post = |content_type, body: &str, message: &str| bad(Method::POST, MAPS, content_type, body, message);
    vec![
        post(JSON, "", &format!("{no_json}unexpected end of JSON input (<empty>)")),
        post(JSON, r#"{"kind":"#, &format!(r#"{no_json}unexpected end of JSON input ({{"kind":)"#)),
        post(
            JSON,
            "hello",
            &format!("{no_json}invalid character 'h' looking for beginning of value (68656c6c6f)"),
        ),
        post(
            YAML,
            "a: [",
            &format!("{unrecognized}yaml: line 1: did not find expected node content (613a205b)"),
        ),
        post(
            JSON,
            r#"{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a"}}"#,
            r#"Secret in version "v1" cannot be handled as a ConfigMap: converting (v1.Secret) to (core.ConfigMap): unknown conversion"#,
        ),
        post(
            YAML,
            "apiVersion: v1\nkind: Mop\n",
            r#"Mop in version "v1" cannot be handled as a ConfigMap: no kind "Mop" is registered for version "v1" in scheme "pkg/api/legacyscheme/scheme.go:30""#,
        ),
        post(
            JSON,
            r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"a":1}}"#,
            r#"ConfigMap in version "v1" cannot be handled as a ConfigMap: json: cannot unmarshal number into Go struct field ConfigMap.data of type string"#,
        ),
        bad(
            Method::POST,
            DEPLOYMENTS,
            JSON,
            r#"{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"a"},"spec":{"replicas":"three"}}"#,
            r#"Deployment in version "v1" cannot be handled as a Deployment: json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32"#,
        ),
        bad(
            Method::POST,
            MAPS,
            JSON,
            r#"{"metadata":{"name":"a","namespace":"other"}}"#,
            "the namespace of the provided object does not match the namespace sent on the request",
        ),
        refused(
            Method::POST,
            MAPS,
            "text/plain",
            "hello",
            (
                415,
                "UnsupportedMediaType",
                "the body of the request was in an unknown format - accepted media types include: application/json, application/yaml, application/vnd.kubernetes.protobuf",
            ),
            Value::Null,
        ),
    ]
}

/// `fieldValidation=Strict`: what the other modes let pass.
fn strict() -> Vec<Case> {
    let post = |body: &str, message: &str| {
        let message = format!(
            r#"ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: {message}"#
        );
        bad(Method::POST, &format!("{MAPS}?fieldValidation=Strict"), JSON, body, &message)
    };
    let unsupported = r#"Unsupported value: "Maybe": supported values: "", "Ignore", "Strict", "Warn""#;
    vec![
        post(UNKNOWN_FIELDS, UNKNOWN_FIELD_ERRORS),
        refused(
            Method::POST,
            &format!("{MAPS}?fieldValidation=Maybe"),
            JSON,
            &map("a").to_string(),
            (
                422,
                "Invalid",
                &format!(r#"CreateOptions.meta.k8s.io "" is invalid: fieldValidation: {unsupported}"#),
            ),
            json!({"group": "meta.k8s.io", "kind": "CreateOptions",
                "causes": [{"reason": "FieldValueNotSupported", "message": unsupported, "field": "fieldValidation"}]}),
        ),
    ]
}

const UNKNOWN_FIELDS: &str =
    r#"{"metadata":{"name":"unknown","nome":"a"},"data":{"a":"1","a":"2"},"extra":{"b":1}}"#;
const UNKNOWN_FIELD_ERRORS: &str =
    r#"unknown field "metadata.nome", duplicate field "data.a", unknown field "extra""#;

/// The object is well formed and cannot be.
fn objects() -> Vec<Case> {
    let subdomain = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
    let label = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
    let value = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
    let mut labelled = map("a");
    labelled["metadata"]["labels"] = json!({"app": "-x-"});
    let mut bare = pod("a");
    bare["spec"]["containers"] = json!([]);
    let long = "x".repeat(254);
    vec![
        invalid(
            MAPS,
            map("Bad_Name"),
            ("ConfigMap", ""),
            ("metadata.name", "FieldValueInvalid", &format!(r#"Invalid value: "Bad_Name": {subdomain}"#)),
        ),
        invalid(
            MAPS,
            map(&long),
            ("ConfigMap", ""),
            (
                "metadata.name",
                "FieldValueInvalid",
                &format!(r#"Invalid value: "{long}": must be no more than 253 characters"#),
            ),
        ),
        invalid(
            "/api/v1/namespaces",
            json!({"metadata": {"name": "a_b"}}),
            ("Namespace", ""),
            ("metadata.name", "FieldValueInvalid", &format!(r#"Invalid value: "a_b": {label}"#)),
        ),
        invalid(
            "/api/v1/namespaces",
            json!({"metadata": {"name": "a.b"}}),
            ("Namespace", ""),
            ("metadata.name", "FieldValueInvalid", r#"Invalid value: "a.b": must not contain dots"#),
        ),
        invalid(
            MAPS,
            json!({"metadata": {}}),
            ("ConfigMap", ""),
            ("metadata.name", "FieldValueRequired", "Required value: name or generateName is required"),
        ),
        invalid(
            MAPS,
            labelled,
            ("ConfigMap", ""),
            ("metadata.labels", "FieldValueInvalid", &format!(r#"Invalid value: "-x-": {value}"#)),
        ),
        invalid(PODS, bare, ("Pod", ""), ("spec.containers", "FieldValueRequired", "Required value")),
        invalid(
            DEPLOYMENTS,
            deployment(json!({"app": "other"})),
            ("Deployment", "apps"),
            (
                "spec.template.metadata.labels",
                "FieldValueInvalid",
                r#"Invalid value: {"app":"other"}: `selector` does not match template `labels`"#,
            ),
        ),
    ]
}

/// Selectors, limits, revisions.
fn queries() -> Vec<Case> {
    let get = |query: &str, message: &str| bad(Method::GET, &format!("{MAPS}?{query}"), "", "", message);
    vec![
        get("labelSelector=a%3D%3D%3Db", "unable to parse requirement: found '=', expected: identifier"),
        get("labelSelector=a+in", "unable to parse requirement: found '' expected: '('"),
        get("labelSelector=%21", "unable to parse requirement: found '', expected: identifier"),
        get(
            "fieldSelector=spec.foo%3Dbar",
            r#""spec.foo" is not a known field selector: only "metadata.name", "metadata.namespace""#,
        ),
        get("fieldSelector=foo", "invalid selector: 'foo'; can't understand 'foo'"),
        get("limit=many", r#"strconv.ParseInt: parsing "many": invalid syntax"#),
        get(
            "resourceVersion=new",
            r#"invalid resource version: resourceVersion: Invalid value: "new": strconv.ParseUint: parsing "new": invalid syntax"#,
        ),
        get(
            "continue=%21%21",
            "invalid continue token: continue key is not valid: illegal base64 data at input byte 0",
        ),
        bad(
            Method::GET,
            &format!("{PODS}?fieldSelector=spec.foo%3Dbar"),
            "",
            "",
            "field label not supported: spec.foo",
        ),
    ]
}

/// The path, the name or the state is wrong. `there` is a ConfigMap that exists, `stale` its first revision.
fn paths(stale: &str, uid: &str) -> Vec<Case> {
    let there = format!("{MAPS}/there");
    let put = |path: &str, name: &str, revision: &str, code, reason, message: &str, details| {
        let mut body = map(name);
        if !revision.is_empty() {
            body["metadata"]["resourceVersion"] = revision.into();
        }
        refused(Method::PUT, path, JSON, &body.to_string(), (code, reason, message), details)
    };
    let about = |name: &str, kind: &str| json!({"name": name, "kind": kind});
    vec![
        put(
            &there,
            "there",
            stale,
            409,
            "Conflict",
            r#"Operation cannot be fulfilled on configmaps "there": the object has been modified; please apply your changes to the latest version and try again"#,
            about("there", "configmaps"),
        ),
        put(
            &there,
            "other",
            "",
            400,
            "BadRequest",
            "the name of the object (other) does not match the name on the URL (there)",
            Value::Null,
        ),
        put(
            &format!("{MAPS}/none"),
            "none",
            "",
            404,
            "NotFound",
            r#"configmaps "none" not found"#,
            about("none", "configmaps"),
        ),
        refused(
            Method::POST,
            MAPS,
            JSON,
            &map("there").to_string(),
            (409, "AlreadyExists", r#"configmaps "there" already exists"#),
            about("there", "configmaps"),
        ),
        refused(
            Method::POST,
            "/api/v1/namespaces/none/configmaps",
            JSON,
            &map("a").to_string(),
            (404, "NotFound", r#"namespaces "none" not found"#),
            about("none", "namespaces"),
        ),
        refused(
            Method::DELETE,
            &there,
            JSON,
            r#"{"preconditions":{"uid":"another"}}"#,
            (
                409,
                "Conflict",
                &format!(
                    r#"Operation cannot be fulfilled on ConfigMap "there": the UID in the precondition (another) does not match the UID in record ({uid}). The object might have been deleted and then recreated"#
                ),
            ),
            about("there", "ConfigMap"),
        ),
        refused(
            Method::POST,
            &there,
            JSON,
            &map("there").to_string(),
            (405, "MethodNotAllowed", "the server does not allow this method on the requested resource"),
            json!({}),
        ),
    ]
}

/// Patches that are none, or do not fit.
fn patches() -> Vec<Case> {
    let there = format!("{MAPS}/there");
    let patch =
        |content_type, body: &str, message: &str| bad(Method::PATCH, &there, content_type, body, message);
    vec![
        refused(
            Method::PATCH,
            &there,
            JSON,
            "{}",
            (415, "UnsupportedMediaType", "415: Unsupported Media Type"),
            json!({}),
        ),
        refused(
            Method::PATCH,
            &there,
            JSON_PATCH,
            r#"[{"op":"replace","path":"/none/x","value":"1"}]"#,
            (422, "Invalid", "the server rejected our request due to an error in our request"),
            json!({}),
        ),
        patch(MERGE_PATCH, "{", "error decoding patch: unexpected end of JSON input"),
        patch(STRATEGIC, "{", "unexpected end of JSON input"),
    ]
}

async fn start() -> (Up, Target, Wire) {
    let up = Up::start_with(&["--nodes", "1"]);
    let target = Target::of_kubeconfig(&up.folder().join("kubeconfig"));
    let wire = target.http1().await.unwrap();
    (up, target, wire)
}

#[tokio::test(flavor = "multi_thread")]
async fn each_gets_the_status_that_a_real_apiserver_sends() {
    let (_up, _, mut wire) = start().await;
    let there = wire.send(Method::POST, MAPS, &map("there")).await.unwrap().json();
    let metadata = |name: &str| there["metadata"][name].as_str().unwrap();
    let (stale, uid) = (metadata("resourceVersion"), metadata("uid"));
    let patch = Some((MERGE_PATCH, Bytes::from_static(br#"{"data":{"a":"b"}}"#)));
    assert_eq!(wire.ask(Method::PATCH, &format!("{MAPS}/there"), patch).await.unwrap().code, 200);
    let mut wrong = Vec::new();
    for case in [bodies(), strict(), objects(), queries(), paths(stale, uid), patches()].into_iter().flatten()
    {
        let what = format!("{} {} {}", case.method, case.path, String::from_utf8_lossy(&case.body));
        let body = (!case.content_type.is_empty()).then(|| (case.content_type, Bytes::from(case.body)));
        let answer = wire.ask(case.method, &case.path, body).await.unwrap();
        let mut expected = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": case.message, "reason": case.reason, "code": case.code});
        if !case.details.is_null() {
            expected["details"] = case.details;
        }
        let found = answer.json();
        if found != expected || answer.code != case.code {
            wrong.push(format!("{what}\n  expected {expected}\n  found    {found}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(wire.get("/readyz").await.unwrap().code, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_fields_are_refused_told_or_passed_over_as_asked() {
    let (_up, _, mut wire) = start().await;
    let warnings = |answer: &Answer| -> Vec<String> {
        let headers = answer.headers.get_all("warning").iter();
        headers.map(|header| header.to_str().unwrap().to_owned()).collect()
    };
    let told: Vec<String> =
        UNKNOWN_FIELD_ERRORS.split(", ").map(|error| format!("299 - {:?}", error)).collect();
    for (mode, expected) in
        [("", &told), ("?fieldValidation=Warn", &told), ("?fieldValidation=Ignore", &vec![])]
    {
        let body = Some((JSON, Bytes::from_static(UNKNOWN_FIELDS.as_bytes())));
        let answer = wire.ask(Method::POST, &format!("{MAPS}{mode}"), body).await.unwrap();
        assert_eq!(answer.code, 201, "{mode}: {}", answer.json());
        assert_eq!(warnings(&answer), *expected, "{mode}");
        assert_eq!(answer.json()["data"], json!({"a": "2"}));
        assert_eq!(answer.json()["metadata"]["nome"], Value::Null);
        assert_eq!(wire.get(&format!("{MAPS}/unknown")).await.unwrap().json()["extra"], Value::Null);
        wire.ask(Method::DELETE, &format!("{MAPS}/unknown"), None).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn too_much_too_little_and_too_deep_end_only_their_own_request() {
    let (_up, target, mut wire) = start().await;
    let limit = 3 * 1024 * 1024;
    let mut large = map("large");
    large["data"] = json!({"a": "x".repeat(limit)});
    let answer = wire.send(Method::POST, MAPS, &large).await.unwrap();
    let too_large = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": 413,
        "reason": "RequestEntityTooLarge", "message": "Request entity too large: limit is 3145728"});
    assert_eq!((answer.code, answer.json()), (413, too_large));

    // As large as it may be, but too large for a ConfigMap.
    large["data"] = json!({"a": "x".repeat(limit / 2)});
    let mut wire = target.http1().await.unwrap();
    let answer = wire.send(Method::POST, MAPS, &large).await.unwrap();
    let message = answer.json()["message"].clone();
    assert_eq!(answer.code, 422, "{message}");
    assert_eq!(message, r#"ConfigMap "large" is invalid: []: Too long: may not be more than 1048576 bytes"#);

    let deep = "[".repeat(100_000);
    let bomb = format!(
        "a: &a [x]\n{}",
        (0..30).map(|at| format!("b{at}: &b{at} [{}]\n", refs(at))).collect::<String>()
    );
    for (content_type, body) in [(JSON, deep.clone()), (YAML, deep), (YAML, bomb)] {
        let answer = wire.ask(Method::POST, MAPS, Some((content_type, body.into()))).await.unwrap();
        assert_eq!(answer.code, 400, "{}", answer.json());
    }

    for head in [format!("POST {MAPS} HTTP/1.1\r\ncontent-length: 1000\r\n"), "GET /api HTTP/1.1\r\n".into()]
    {
        let mut stream = target.connect().await.unwrap();
        let head = format!("{head}host: {}\r\n", target.authority);
        stream.write_all(head.as_bytes()).await.unwrap();
        if head.starts_with("POST") {
            stream.write_all(b"content-type: application/json\r\n\r\n{\"metadata\":").await.unwrap();
        }
        stream.shutdown().await.unwrap();
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer).await;
        let answer = String::from_utf8_lossy(&answer);
        assert!(!answer.starts_with("HTTP/1.1 2"), "{answer}");
    }
    assert_eq!(wire.get("/readyz").await.unwrap().code, 200);
    let list = wire.get(MAPS).await.unwrap().json();
    assert_eq!(list["items"].as_array().unwrap().len(), 1, "only kube-root-ca.crt: {list}");
}

/// Ten times the anchor before.
fn refs(at: usize) -> String {
    let before = if at == 0 { "*a".to_owned() } else { format!("*b{}", at - 1) };
    [before.as_str(); 10].join(",")
}

#[tokio::test(flavor = "multi_thread")]
async fn garbage_instead_of_tls_or_http_ends_only_its_own_connection() {
    let (_up, target, mut wire) = start().await;
    let mut random = fastrand::Rng::with_seed(1);
    for round in 0..50 {
        let length = random.usize(1..2000);
        let garbage: Vec<u8> = std::iter::repeat_with(|| random.u8(..)).take(length).collect();
        let mut stream = TcpStream::connect(&target.authority).await.unwrap();
        if round % 2 == 0 {
            let _ = stream.write_all(&garbage).await;
            let _ = stream.shutdown().await;
            let _ = stream.read_to_end(&mut Vec::new()).await;
        } else {
            drop(stream);
            let mut stream = target.connect().await.unwrap();
            let _ = stream.write_all(&garbage).await;
            let _ = stream.shutdown().await;
            let _ = stream.read_to_end(&mut Vec::new()).await;
        }
    }
    // A handshake that never goes on holds nobody up.
    let _silent = TcpStream::connect(&target.authority).await.unwrap();
    assert_eq!(wire.get("/readyz").await.unwrap().code, 200);
    assert_eq!(target.http2().await.unwrap().get("/readyz").await.unwrap().code, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_watches_hear_of_a_change_and_the_cluster_goes_on() {
    const CONNECTIONS: usize = 100;
    const EACH: usize = 100;
    let (_up, target, mut wire) = start().await;
    let list = wire.get(MAPS).await.unwrap().json();
    let path = format!(
        "{MAPS}?watch=true&resourceVersion={}",
        list["metadata"]["resourceVersion"].as_str().unwrap()
    );
    let mut watches = JoinSet::new();
    for _ in 0..CONNECTIONS {
        let (target, path) = (target.clone(), path.clone());
        watches.spawn(async move {
            let mut wire = target.http2().await.unwrap();
            let mut open = Vec::new();
            for _ in 0..EACH {
                open.push(wire.watch(&path).await.unwrap());
            }
            (wire, open)
        });
    }
    let mut connections = watches.join_all().await;
    // The first connection may have been idle for longer than the server waits.
    let mut wire = target.http1().await.unwrap();
    assert_eq!(wire.send(Method::POST, MAPS, &map("news")).await.unwrap().code, 201);
    let mut heard = 0;
    for (_, open) in &mut connections {
        for events in open {
            let event = events.next().await.unwrap().expect("the watch goes on");
            assert_eq!(
                (&event["type"], &event["object"]["metadata"]["name"]),
                (&json!("ADDED"), &json!("news"))
            );
            heard += 1;
        }
    }
    assert_eq!(heard, CONNECTIONS * EACH);
    assert_eq!(
        wire.send(Method::POST, DEPLOYMENTS, &deployment(json!({"app": "web"}))).await.unwrap().code,
        201
    );
    let available = async {
        let mut events = wire.watch(&format!("{DEPLOYMENTS}?watch=true")).await.unwrap();
        while events.next().await.unwrap().unwrap()["object"]["status"]["availableReplicas"] != 1 {}
    };
    tokio::time::timeout(crate::support::PATIENCE, available).await.expect("the cluster goes on");
}

/// Time is stepped over two compactions, so that the first revisions are gone.
#[tokio::test]
async fn a_watch_or_list_at_a_compacted_revision_is_told_to_begin_anew() {
    let clock = Clock::stepped(chrono::DateTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000));
    let config = Config::new().components(Components::NONE).clock(clock.clone());
    let cluster = Cluster::start(config).await.unwrap();
    for _ in 0..40 {
        clock.advance(Duration::from_secs(30));
        for _ in 0..200 {
            tokio::task::yield_now().await;
        }
    }
    let ask = async |query: &str| {
        let request = http::Request::get(format!("{MAPS}?{query}")).body(axum::body::Body::empty()).unwrap();
        let response = tower::ServiceExt::oneshot(cluster.service(), request).await.unwrap();
        let code = response.status().as_u16();
        let body = http_body_util::BodyExt::collect(response.into_body()).await.unwrap().to_bytes();
        (code, serde_json::from_slice::<Value>(&body).unwrap())
    };
    let (code, status) = ask("resourceVersion=1&resourceVersionMatch=Exact").await;
    assert_eq!((code, status["code"].as_u64(), &status["reason"]), (410, Some(410), &json!("Expired")));
    assert_eq!(status["message"], "The resourceVersion for the provided list is too old.");
    // A watch has begun by the time its revision is looked at: the answer is 200, and the error is its only event.
    let (code, event) = ask("watch=true&resourceVersion=1").await;
    assert_eq!((code, &event["type"]), (200, &json!("ERROR")));
    let status = &event["object"];
    assert_eq!((status["code"].as_u64(), &status["reason"]), (Some(410), &json!("Expired")));
    assert!(status["message"].as_str().unwrap().starts_with("too old resource version: 1 ("), "{status}");
}
