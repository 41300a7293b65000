//! The handles over HTTP: they go through the same chain as every request.

mod components;
mod exchanges;
mod leases;
mod node_failures;
mod nodes;
mod settle;
mod stepping;
mod system_objects;
mod time;

use axum::body::Body;
use http_body_util::BodyExt;
use kubarium::flow::TracedObject;
use kubarium::{Cluster, Components, Config, Fault};
use serde_json::{Value, json};
use tower::ServiceExt;

/// An apiserver, and nobody else.
pub(crate) fn bare() -> Config {
    Config::new().nodes(0).components(Components::NONE)
}

/// Asks a cluster's handles, as somebody else if a name is given.
pub(crate) async fn ask(
    cluster: &Cluster,
    user: &str,
    method: &str,
    path: &str,
    body: Value,
) -> (u16, Value) {
    let mut request = http::Request::builder().method(method).uri(path);
    if !user.is_empty() {
        request = request.header("impersonate-user", user);
    }
    let body = if body.is_null() { Body::empty() } else { Body::from(body.to_string()) };
    let response = cluster.service().oneshot(request.body(body).unwrap()).await.unwrap();
    let code = response.status().as_u16();
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    let text = || String::from_utf8_lossy(&bytes).into_owned().into();
    (code, serde_json::from_slice(&bytes).unwrap_or_else(|_| text()))
}

async fn create(cluster: &Cluster, path: &str, object: Value) {
    let path = format!("/apis/rbac.authorization.k8s.io/v1/{path}");
    let (code, answer) = ask(cluster, "", "POST", &path, object).await;
    assert_eq!(code, 201, "{answer}");
}

#[tokio::test]
async fn handles_are_for_administrators_and_whom_a_cluster_role_lets_in() {
    let cluster = Cluster::start(bare()).await.unwrap();
    assert_eq!(ask(&cluster, "", "GET", "/kubarium/v1/time", Value::Null).await.0, 200);
    let (code, status) = ask(&cluster, "jane", "GET", "/kubarium/v1/time", Value::Null).await;
    assert_eq!((code, status["reason"].as_str().unwrap()), (403, "Forbidden"));
    let rules = json!([{"nonResourceURLs": ["/kubarium/v1/time"], "verbs": ["get"]}]);
    create(&cluster, "clusterroles", json!({"metadata": {"name": "time"}, "rules": rules})).await;
    let role = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "time"});
    let subjects = json!([{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "jane"}]);
    let binding = json!({"metadata": {"name": "time"}, "roleRef": role, "subjects": subjects});
    create(&cluster, "clusterrolebindings", binding).await;
    // Roles are heard of a moment after they are written.
    while ask(&cluster, "jane", "GET", "/kubarium/v1/time", Value::Null).await.0 != 200 {
        tokio::task::yield_now().await;
    }
    assert_eq!(ask(&cluster, "jane", "GET", "/kubarium/v1/", Value::Null).await.0, 403);
    cluster.stop().await;
}

#[tokio::test]
async fn handles_are_listed_described_and_fail_with_a_status() {
    let cluster = Cluster::start(bare()).await.unwrap();
    let (_, list) = ask(&cluster, "", "GET", "/kubarium/v1/", Value::Null).await;
    let (_, document) = ask(&cluster, "", "GET", "/kubarium/v1/openapi.json", Value::Null).await;
    let listed = list["handles"].as_array().unwrap();
    assert!(listed.iter().any(|handle| handle["path"] == "/kubarium/v1/time"), "{list}");
    for handle in listed {
        let method = handle["method"].as_str().unwrap().to_lowercase();
        let described = &document["paths"][handle["path"].as_str().unwrap()][method];
        assert_eq!(described["summary"], handle["summary"], "{handle}");
    }
    for (method, path, code) in [("GET", "/kubarium/v1/nothing", 404), ("PATCH", "/kubarium/v1/time", 405)] {
        let (answered, status) = ask(&cluster, "", method, path, Value::Null).await;
        assert_eq!((answered, status["kind"].as_str()), (code, Some("Status")), "{status}");
    }
    cluster.stop().await;
}

#[tokio::test]
async fn handles_are_audited_and_in_the_record() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("audit.log");
    let policy = folder.path().join("policy.yaml");
    let text = "{apiVersion: audit.k8s.io/v1, kind: Policy, rules: [{level: Metadata}]}";
    std::fs::write(&policy, text).unwrap();
    let mut config = bare();
    config.apiserver.audit.audit_log_path = Some(log.clone());
    config.apiserver.audit.audit_policy_file = Some(policy);
    let cluster = Cluster::start(config).await.unwrap();
    ask(&cluster, "", "POST", "/kubarium/v1/time", Value::Null).await;
    let subject = TracedObject { resource: "", namespace: "", name: "", uid: "" };
    let trace = cluster.flow().trace_of(&subject);
    cluster.stop().await;
    let told = std::fs::read_to_string(&log).unwrap();
    let is_told = |line: &&str| line.contains("\"requestURI\":\"/kubarium/v1/time\"");
    let stages = told.lines().filter(is_told).count();
    assert_eq!(stages, 3, "received, started and complete: {told}");
    let recorded = serde_json::to_string(&trace).unwrap();
    assert!(recorded.contains("/kubarium/v1/time") && recorded.contains("405"), "{recorded}");
}

/// What a handle gives is no more than who asks may read.
#[tokio::test]
async fn a_grant_of_all_handles_is_none_of_secrets_keys_and_forks() {
    let cluster = Cluster::start(bare()).await.unwrap();
    let rules = json!([{"nonResourceURLs": ["/kubarium/*"], "verbs": ["*"]}]);
    create(&cluster, "clusterroles", json!({"metadata": {"name": "all"}, "rules": rules})).await;
    let role = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "all"});
    let subjects = json!([{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "jane"}]);
    let binding = json!({"metadata": {"name": "all"}, "roleRef": role, "subjects": subjects});
    create(&cluster, "clusterrolebindings", binding).await;
    while ask(&cluster, "jane", "GET", "/kubarium/v1/time", Value::Null).await.0 != 200 {
        tokio::task::yield_now().await;
    }
    let secret = json!({"metadata": {"name": "x"}, "stringData": {"key": "value"}});
    assert_eq!(ask(&cluster, "", "POST", "/api/v1/namespaces/default/secrets", secret).await.0, 201);
    let until = json!({"object": "secret/x", "for": "jsonpath={.data.key}"});
    // What a fault does to administrators hinders no handle.
    cluster.faults().add(Fault::answer(503).verb("get").resource("secrets").user("*")).unwrap();
    for (method, path, body) in [
        ("GET", "/snapshot", Value::Null),
        ("GET", "/export", Value::Null),
        ("POST", "/diff", Value::Null),
        ("GET", "/forks", Value::Null),
        ("POST", "/forks", json!({})),
        ("DELETE", "/forks/a", Value::Null),
        ("POST", "/time/until", until.clone()),
        ("GET", "/why?resource=secret&name=x", Value::Null),
        ("GET", "/rbac/unused", Value::Null),
        ("GET", "/requests", Value::Null),
        ("GET", "/requests?user=joe", Value::Null),
        ("GET", "/rbac/infer?user=joe", Value::Null),
    ] {
        let path = format!("/kubarium/v1{path}");
        let (code, status) = ask(&cluster, "jane", method, &path, body).await;
        assert_eq!((code, &status["reason"]), (403, &json!("Forbidden")), "{path}: {status}");
    }
    assert!(cluster.requests_of("jane").is_empty(), "what handles ask is not seen");
    for own in ["/requests?user=jane", "/rbac/infer?user=jane"] {
        assert_eq!(ask(&cluster, "jane", "GET", &format!("/kubarium/v1{own}"), Value::Null).await.0, 200);
    }
    assert_eq!(ask(&cluster, "", "POST", "/kubarium/v1/time/until", until).await.0, 200);
    cluster.stop().await;
}
