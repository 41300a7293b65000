//! Protobuf, as typed clients send and read it: bodies, answers, and what is said of broken ones. (Every kind in
//! every verb is walked through in `kinds`.)

use super::*;
use kubarium::apimachinery::protobuf;
use kubarium::apimachinery::schema::{Schemas, complete};

pub(crate) const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
pub(crate) const ACCEPT_PROTOBUF: (&str, &str) = ("accept", PROTOBUF);
const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1";
const HEADERS: [(&str, &str); 2] =
    [("content-type", PROTOBUF), ("accept", "application/vnd.kubernetes.protobuf,application/json")];

/// What is in an envelope, as JSON has it; without `apiVersion` and `kind`.
pub(crate) fn message(definition: &str, bytes: &[u8]) -> Value {
    let envelope = protobuf::open(bytes).unwrap_or_else(|error| panic!("{definition}: {error}"));
    let schema = Schemas::builtin().get(definition).unwrap_or_else(|| panic!("{definition} is not there"));
    let mut value = protobuf::decode(&schema, envelope.raw).unwrap();
    complete(&schema, &mut value);
    for item in value.get_mut("items").and_then(Value::as_array_mut).into_iter().flatten() {
        strip_type(item);
    }
    strip_type(&mut value);
    value
}

/// The same with the type on the envelope.
pub(crate) fn object(definition: &str, bytes: &[u8]) -> Value {
    let envelope = protobuf::open(bytes).unwrap();
    let mut value = message(definition, bytes);
    for (name, text) in [("apiVersion", &envelope.api_version), ("kind", &envelope.kind)] {
        if !text.is_empty() {
            value[name] = text.as_str().into();
        }
    }
    value
}

/// The type and the object of the event that a watch sent first.
pub(crate) fn event(definition: &str, sent: &[u8]) -> (String, Value) {
    let length = u32::from_be_bytes(sent[..4].try_into().unwrap()) as usize;
    let frame = &sent[4..][..length];
    let event_type = String::from_utf8_lossy(&frame[2..][..usize::from(frame[1])]).into_owned();
    let start = frame.windows(4).position(|bytes| bytes == b"k8s\0").expect("an envelope");
    (event_type, object(definition, &frame[start..]))
}

fn strip_type(value: &mut Value) {
    if let Some(members) = value.as_object_mut() {
        members.retain(|name, text| !matches!(name.as_str(), "apiVersion" | "kind") || *text != "");
    }
}

/// A text or message of less than 128 bytes.
fn field(number: u8, content: &str) -> String {
    format!("{}{}{content}", char::from(number << 3 | 2), char::from(content.len() as u8))
}

fn body(api_version: &str, kind: &str, message: &str) -> String {
    format!("k8s\0{}{}", field(1, &(field(1, api_version) + &field(2, kind))), field(2, message))
}

#[tokio::test]
async fn an_object_in_protobuf_is_answered_in_what_is_asked_for() {
    let server = Server::start().await;
    let entry = field(1, "k") + &field(2, "v");
    let config_map = body("v1", "ConfigMap", &(field(1, &field(1, "a")) + &field(2, &entry)));
    let created = server.call_with(&format!("POST {CONFIG_MAPS}"), &HEADERS, config_map.clone()).await;
    let read = object("io.k8s.api.core.v1.ConfigMap", &created.bytes);
    assert_eq!((created.code, &created.headers["content-type"]), (201, &PROTOBUF.parse().unwrap()));
    assert_eq!((&read["data"], &read), (&json!({"k": "v"}), &server.get(&format!("{CONFIG_MAPS}/a")).await));
    let json = [("content-type", PROTOBUF), ("accept", "application/json")];
    let body = config_map.replacen("\x0a\x03\x0a\x01a", "\x0a\x03\x0a\x01b", 1);
    let created = server.call_with(&format!("POST {CONFIG_MAPS}"), &json, body).await;
    assert_eq!((created.code, &created.json()["data"]), (201, &json!({"k": "v"})));
}

#[tokio::test]
async fn statuses_are_protobuf_too() {
    let server = Server::start().await;
    let status = |answer: &Answer| object(&format!("{META}.Status"), &answer.bytes);
    let call = async |line: String| server.call_with(&line, &[ACCEPT_PROTOBUF], "").await;
    for (line, code, reason) in [
        (format!("GET {CONFIG_MAPS}/none"), 404, "NotFound"),
        ("GET /api/v1/nothing".into(), 404, "NotFound"),
        (format!("PUT {CONFIG_MAPS}"), 405, "MethodNotAllowed"),
        (format!("POST {CONFIG_MAPS}"), 400, "BadRequest"),
        (format!("GET {CONFIG_MAPS}?timeout=x"), 400, "BadRequest"),
    ] {
        let answer = call(line.clone()).await;
        let read = status(&answer);
        assert_eq!(
            (answer.code, &read["reason"], &read["kind"]),
            (code, &json!(reason), &json!("Status")),
            "{line}"
        );
        assert_eq!((&read["status"], &read["code"]), (&json!("Failure"), &json!(code)));
    }
    let request = request(&format!("GET {CONFIG_MAPS}"), &[ACCEPT_PROTOBUF], String::new());
    let refused = Answer::of(server.send(request).await).await;
    assert_eq!((refused.code, &status(&refused)["reason"]), (403, &json!("Forbidden")));
    server.create(CONFIG_MAPS, config_map("a")).await;
    let deleted = status(&call(format!("DELETE {CONFIG_MAPS}/a")).await);
    assert_eq!((&deleted["status"], &deleted["details"]["name"]), (&json!("Success"), &json!("a")));
}

#[tokio::test]
async fn what_hangs_below_an_object_is_protobuf() {
    let server = Server::start().await;
    server.create(DEPLOYMENTS, deployment("web")).await;
    server.create(PODS, pod("a")).await;
    let form = async |path: String, kind: &str, body: Value| {
        let headers = [ACCEPT_PROTOBUF, ("content-type", "application/json")];
        let method = if body.is_null() { "GET" } else { "POST" };
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let answer = server.call_with(&format!("{method} {path}"), &headers, body).await;
        assert!(matches!(answer.code, 200 | 201), "{path}: {}", answer.text);
        object(kind, &answer.bytes)
    };
    let scale =
        form(format!("{DEPLOYMENTS}/web/scale"), "io.k8s.api.autoscaling.v1.Scale", Value::Null).await;
    assert_eq!(scale, server.get(&format!("{DEPLOYMENTS}/web/scale")).await);
    let token = form(
        "/api/v1/namespaces/default/serviceaccounts/default/token".into(),
        "io.k8s.api.authentication.v1.TokenRequest",
        json!({"kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1", "spec": {}}),
    )
    .await;
    assert!(token["status"]["token"].as_str().is_some_and(|token| token.starts_with("ey")), "{token}");
    let review = form(
        "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews".into(),
        "io.k8s.api.authorization.v1.SelfSubjectAccessReview",
        json!({"spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}}),
    )
    .await;
    assert_eq!(review["status"]["allowed"], true);
    let eviction = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "a"}});
    let evicted = form(format!("{PODS}/a/eviction"), &format!("{META}.Status"), eviction).await;
    assert_eq!(evicted["status"], "Success");
}

#[tokio::test]
async fn discovery_is_protobuf_too() {
    let server = Server::start().await;
    for (path, kind) in [
        ("/api", "APIVersions"),
        ("/apis", "APIGroupList"),
        ("/apis/apps", "APIGroup"),
        ("/api/v1", "APIResourceList"),
        ("/apis/apps/v1", "APIResourceList"),
    ] {
        let answer = server.get_as(path, PROTOBUF).await;
        assert_eq!((answer.code, &answer.headers["content-type"]), (200, &PROTOBUF.parse().unwrap()));
        assert_eq!(
            object(&format!("{META}.{kind}"), &answer.bytes),
            complete_as(kind, server.get(path).await)
        );
    }
    let form = ";g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    let whole = server.get_as("/apis", &format!("{PROTOBUF}{form}")).await;
    assert_eq!(whole.headers["content-type"], format!("{PROTOBUF}{form}"));
    let read = object("io.k8s.api.apidiscovery.v2.APIGroupDiscoveryList", &whole.bytes);
    let json = server.get_as("/apis", &format!("application/json{form}")).await.json();
    assert_eq!(read["items"][0]["versions"], json["items"][0]["versions"]);
    assert_eq!(server.get_as("/version", PROTOBUF).await.json()["major"], "1");
    assert_eq!(server.get_as("/apis", "text/plain").await.code, 406);
}

/// JSON of discovery leaves out what is empty.
fn complete_as(kind: &str, mut document: Value) -> Value {
    complete(&Schemas::builtin().get(&format!("{META}.{kind}")).unwrap(), &mut document);
    strip_type(&mut document);
    document
}

#[tokio::test]
async fn the_end_of_the_initial_events_is_a_bookmark() {
    let server = Server::start().await;
    let query = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let first = server.first_bytes(&format!("GET {CONFIG_MAPS}?{query}"), &[ACCEPT_PROTOBUF]).await;
    let (event_type, bookmark) = event("io.k8s.api.core.v1.ConfigMap", &first);
    assert_eq!((event_type.as_str(), &bookmark["kind"]), ("BOOKMARK", &json!("ConfigMap")));
    assert_eq!(bookmark["metadata"]["annotations"], json!({"k8s.io/initial-events-end": "true"}));
    let yaml = server.get_as(&format!("{CONFIG_MAPS}?watch=1"), "application/yaml").await;
    let streams = "application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch";
    assert_eq!(yaml.code, 406);
    let status: Value = serde_yaml::from_str(&yaml.text).unwrap();
    assert!(status["message"].as_str().unwrap().contains(streams), "{}", yaml.text);
}

#[tokio::test]
async fn options_of_a_delete_may_be_protobuf() {
    let server = Server::start().await;
    let uid = server.create(CONFIG_MAPS, config_map("a")).await["metadata"]["uid"].clone();
    let delete = async |uid: &str| {
        let options = body("v1", "DeleteOptions", &field(2, &field(1, uid)));
        server.call_with(&format!("DELETE {CONFIG_MAPS}/a"), &HEADERS, options).await.code
    };
    assert_eq!(delete("other").await, 409);
    assert_eq!(delete(uid.as_str().unwrap()).await, 200);
}

#[tokio::test]
async fn what_is_broken_is_a_bad_request() {
    let server = Server::start().await;
    let refused = async |body: &str| {
        let (code, reason, text) =
            server.call_with(&format!("POST {CONFIG_MAPS}"), &HEADERS[..1], body).await.status();
        assert_eq!((code, reason.as_str()), (400, "BadRequest"));
        text
    };
    let prefix = "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]";
    assert_eq!(
        refused("{}").await,
        format!("the object provided is unrecognized (must be of type ConfigMap): {prefix} ({{}})")
    );
    assert_eq!(
        refused(&body("v1", "ConfigMap", "\x0a\x05")).await,
        "ConfigMap in version \"v1\" cannot be handled as a ConfigMap: unexpected EOF"
    );
    assert_eq!(
        refused(&body("v1", "Nothing", "")).await,
        "Nothing in version \"v1\" cannot be handled as a ConfigMap: no kind \"Nothing\" is registered for \
         version \"v1\" in scheme \"pkg/api/legacyscheme/scheme.go:30\""
    );
}
