//! The audit log: who did what, as much of it as the policy says, in a file and at a webhook.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use http_body_util::BodyExt;
use kubarium::apiserver::audit::policy::Policy;
use kubarium::apiserver::audit::{AuditConfig, AuditMode, BatchConfig, LogBackend, LogConfig, WebhookConfig};
use kubarium::apiserver::webhook::{ClientConfig, WebhookTarget};
use kubarium::cluster::Components;
use kubarium::{Cluster, Config};
use serde_json::{Value, json};
use tower::ServiceExt;

use super::{CONFIG_MAPS, config_map, request};
use crate::support::webhook::{Reply, Webhook};

const POLICY: &str = "
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- {level: None, users: ['system:apiserver', 'kubernetes-admin'], verbs: [get, list]}
- {level: Metadata, resources: [{group: '', resources: [secrets, endpoints]}], omitStages: [ResponseStarted]}
- {level: RequestResponse, resources: [{group: '', resources: [configmaps]}], omitManagedFields: true}
- {level: Request, nonResourceURLs: ['/healthz*']}
- {level: None}
";

/// A log in this file, which nothing bounds.
pub(crate) fn log_config(path: PathBuf) -> LogConfig {
    LogConfig {
        path,
        is_legacy: false,
        max_size_bytes: 0,
        max_backups: 0,
        max_age_days: 0,
        compresses: false,
    }
}

/// One that requests wait for.
pub(crate) fn blocking(config: LogConfig) -> LogBackend {
    LogBackend { config, mode: AuditMode::Blocking, max_event_bytes: None }
}

async fn cluster(audit: AuditConfig) -> Cluster {
    let mut config = Config::new().nodes(0).components(Components::NONE);
    config.apiserver.audit.made = Some(audit);
    Cluster::start(config).await.unwrap()
}

async fn call(cluster: &Cluster, line: &str, headers: &[(&str, &str)], body: &Value) -> http::HeaderMap {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let headers = [headers, &[("content-type", "application/json")]].concat();
    let response = cluster.service().oneshot(request(line, &headers, body)).await.unwrap();
    let (parts, body) = response.into_parts();
    body.collect().await.unwrap();
    parts.headers
}

fn events(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[tokio::test]
async fn events_tell_what_the_policy_wants() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("logs/audit.log");
    let policy = Some(Policy::parse(POLICY).unwrap());
    let log = Some(blocking(log_config(path.clone())));
    let cluster = cluster(AuditConfig { policy, log, webhook: None }).await;
    let secrets = CONFIG_MAPS.replace("configmaps", "secrets");
    let secret = json!({"metadata": {"name": "s"}, "stringData": {"password": "hunter2"}});
    let agent =
        [("user-agent", "tester/1"), ("x-forwarded-for", "10.1.2.3"), ("authorization", "Bearer t0ken")];
    call(&cluster, &format!("POST {secrets}?fieldManager=me"), &agent, &secret).await;
    call(&cluster, &format!("POST {CONFIG_MAPS}"), &agent, &config_map("c")).await;
    call(&cluster, &format!("POST {CONFIG_MAPS}"), &agent, &config_map("c")).await;
    call(&cluster, &format!("GET {CONFIG_MAPS}/c"), &agent, &Value::Null).await;
    let endpoints = CONFIG_MAPS.replace("configmaps", "endpoints");
    call(&cluster, &format!("GET {endpoints}"), &agent, &Value::Null).await;
    let jane = [("impersonate-user", "jane")];
    call(&cluster, &format!("DELETE {CONFIG_MAPS}/c"), &jane, &Value::Null).await;
    let text = fs::read_to_string(&path).unwrap();
    assert!(
        !text.contains("hunter2") && !text.contains("t0ken") && !text.contains("managedFields"),
        "{text}"
    );
    let events = events(&path);
    let of_secret = events.iter().find(|event| event["objectRef"]["resource"] == "secrets").unwrap();
    for (pointer, wanted) in [
        ("/kind", json!("Event")),
        ("/apiVersion", json!("audit.k8s.io/v1")),
        ("/level", json!("Metadata")),
        ("/stage", json!("ResponseComplete")),
        ("/requestURI", json!(format!("{secrets}?fieldManager=me"))),
        ("/verb", json!("create")),
        ("/user/username", json!("kubernetes-admin")),
        ("/sourceIPs", json!(["10.1.2.3", "127.0.0.1"])),
        ("/userAgent", json!("tester/1")),
        ("/objectRef/namespace", json!("default")),
        ("/objectRef/name", json!("s")),
        ("/objectRef/apiVersion", json!("v1")),
        ("/responseStatus", json!({"metadata": {}, "code": 201})),
        ("/annotations/authorization.k8s.io~1decision", json!("allow")),
    ] {
        assert_eq!(of_secret.pointer(pointer), Some(&wanted), "{pointer}: {of_secret}");
    }
    assert_eq!(of_secret["annotations"]["k8s.io/deprecated"], Value::Null);
    let of_endpoints = events.iter().find(|event| event["objectRef"]["resource"] == "endpoints").unwrap();
    assert_eq!(of_endpoints["annotations"]["k8s.io/deprecated"], "true", "{of_endpoints}");
    assert!(of_secret.get("requestObject").is_none() && of_secret.get("responseObject").is_none());
    let of_maps: Vec<&Value> =
        events.iter().filter(|event| event["objectRef"]["resource"] == "configmaps").collect();
    let codes: Vec<&Value> = of_maps.iter().map(|event| &event["responseStatus"]["code"]).collect();
    assert_eq!(codes, [201, 409, 403], "{events:#?}");
    assert_eq!(of_maps[0]["requestObject"]["data"]["k"], "v");
    assert!(of_maps[0]["responseObject"]["metadata"]["uid"].is_string());
    assert_eq!(of_maps[1]["responseStatus"]["reason"], "AlreadyExists");
    assert_eq!(of_maps[1]["responseObject"]["kind"], "Status");
    assert_eq!(of_maps[2]["impersonatedUser"]["username"], "jane");
    assert_eq!(of_maps[2]["annotations"]["authorization.k8s.io/decision"], "forbid");
}

#[cfg(unix)]
#[tokio::test]
async fn a_full_log_is_renamed_and_old_ones_go() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.log");
    let policy = "{apiVersion: audit.k8s.io/v1, kind: Policy, rules: [{level: Metadata, \
        resources: [{group: '', resources: [configmaps]}]}]}";
    let log = LogConfig { max_size_bytes: 2000, max_backups: 2, ..log_config(path.clone()) };
    let policy = Some(Policy::parse(policy).unwrap());
    let cluster = cluster(AuditConfig { policy, log: Some(blocking(log)), webhook: None }).await;
    for number in 0..12 {
        call(&cluster, &format!("POST {CONFIG_MAPS}"), &[], &config_map(&format!("c-{number}"))).await;
    }
    let names: Vec<String> = fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(names.len(), 3, "{names:?}");
    assert!(names.iter().filter(|name| name.starts_with("audit-20") && name.ends_with(".log")).count() == 2);
    assert!(fs::metadata(&path).unwrap().len() <= 2000);
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
}

#[tokio::test]
async fn a_webhook_gets_lists_of_events() {
    let webhook = Webhook::start(|_| Reply::Raw(200, String::new())).await;
    let mut client = ClientConfig::new(WebhookTarget::Url(webhook.url("/audit")));
    client.ca_bundle = webhook.authority.clone().into_bytes();
    let batch = BatchConfig {
        buffer_size: 100,
        max_batch_size: 3,
        max_batch_wait: Duration::from_secs(30),
        throttle_qps: None,
        throttle_burst: 0,
    };
    let initial_backoff = Duration::from_millis(10);
    let hook =
        WebhookConfig { client, mode: AuditMode::Batch(batch), max_event_bytes: None, initial_backoff };
    let policy = "{apiVersion: audit.k8s.io/v1, kind: Policy, omitStages: [RequestReceived], rules: [{level: \
        Metadata, resources: [{group: '', resources: [configmaps]}]}]}";
    let policy = Some(Policy::parse(policy).unwrap());
    let cluster = cluster(AuditConfig { policy, log: None, webhook: Some(hook) }).await;
    for number in 0..3 {
        call(&cluster, &format!("POST {CONFIG_MAPS}"), &[], &config_map(&format!("c-{number}"))).await;
    }
    while webhook.asked().is_empty() {
        tokio::task::yield_now().await;
    }
    let list = webhook.asked()[0].body.clone();
    assert_eq!((&list["kind"], &list["apiVersion"]), (&json!("EventList"), &json!("audit.k8s.io/v1")));
    let names: Vec<&Value> =
        list["items"].as_array().unwrap().iter().map(|event| &event["objectRef"]["name"]).collect();
    assert_eq!(names, ["c-0", "c-1", "c-2"]);
}

#[tokio::test]
async fn large_events_lose_their_bodies_and_full_logs_are_compressed() {
    use std::io::Read;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.log");
    let policy = "{apiVersion: audit.k8s.io/v1, kind: Policy, omitStages: [RequestReceived], rules: [{level: \
        RequestResponse, resources: [{group: '', resources: [configmaps]}]}]}";
    let config = LogConfig { max_size_bytes: 6000, compresses: true, ..log_config(path.clone()) };
    let log = LogBackend { config, mode: AuditMode::Blocking, max_event_bytes: Some(3000) };
    let policy = Some(Policy::parse(policy).unwrap());
    let cluster = cluster(AuditConfig { policy, log: Some(log), webhook: None }).await;
    let large = json!({"metadata": {"name": "large"}, "data": {"k": "v".repeat(4000)}});
    call(&cluster, &format!("POST {CONFIG_MAPS}"), &[], &config_map("small")).await;
    call(&cluster, &format!("POST {CONFIG_MAPS}"), &[], &large).await;
    let written = events(&path);
    assert!(written[0]["requestObject"].is_object() && written[0]["responseObject"].is_object());
    assert!(written[1].get("requestObject").is_none() && written[1].get("responseObject").is_none());
    assert_eq!(written[1]["annotations"]["audit.k8s.io/truncated"], "true");
    assert_eq!(written[1]["objectRef"]["name"], "large");
    for number in 0..6 {
        call(&cluster, &format!("POST {CONFIG_MAPS}"), &[], &config_map(&format!("c-{number}"))).await;
    }
    let compressed = loop {
        let names = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path());
        let (full, other): (Vec<PathBuf>, Vec<PathBuf>) =
            names.filter(|name| *name != path).partition(|name| name.extension().unwrap() == "gz");
        if !full.is_empty() && other.is_empty() {
            break full;
        }
        tokio::task::yield_now().await;
    };
    let mut text = String::new();
    for file in &compressed {
        flate2::read::GzDecoder::new(fs::File::open(file).unwrap()).read_to_string(&mut text).unwrap();
    }
    let told = text.lines().count() + events(&path).len();
    assert_eq!(told, 8, "nothing is lost");
}

#[tokio::test]
async fn a_strict_log_that_cannot_be_written_fails_requests() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("file"), "").unwrap();
    let config = log_config(folder.path().join("file/audit.log"));
    let policy = "{apiVersion: audit.k8s.io/v1, kind: Policy, rules: [{level: Metadata, \
        resources: [{group: '', resources: [configmaps]}]}]}";
    for (mode, wanted) in [(AuditMode::Blocking, 201), (AuditMode::BlockingStrict, 500)] {
        let log = LogBackend { config: config.clone(), mode, max_event_bytes: None };
        let policy = Some(Policy::parse(policy).unwrap());
        let cluster = cluster(AuditConfig { policy, log: Some(log), webhook: None }).await;
        let headers = [("content-type", "application/json")];
        let asked = request(&format!("POST {CONFIG_MAPS}"), &headers, config_map("c").to_string());
        let response = cluster.service().oneshot(asked).await.unwrap();
        assert_eq!(response.status(), wanted);
        let text = response.into_body().collect().await.unwrap().to_bytes();
        let text = String::from_utf8_lossy(&text).into_owned();
        assert!(wanted == 201 || text.ends_with(": failed to store audit event\n"), "{text}");
    }
}

#[tokio::test]
async fn lines_are_written_as_upstream_writes_them() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.log");
    let policy = "{apiVersion: audit.k8s.io/v1, kind: Policy, rules: [{level: RequestResponse, resources: \
        [{group: '', resources: [configmaps]}]}]}";
    let policy = Some(Policy::parse(policy).unwrap());
    let log = Some(blocking(log_config(path.clone())));
    let cluster = cluster(AuditConfig { policy, log, webhook: None }).await;
    let headers = [
        ("impersonate-user", "admin"),
        ("impersonate-group", "system:masters"),
        ("impersonate-uid", "u"),
        ("user-agent", "tester/1"),
    ];
    call(&cluster, &format!("POST {CONFIG_MAPS}"), &headers, &config_map("c")).await;
    call(&cluster, &format!("DELETE {CONFIG_MAPS}/c?timeout=x"), &headers, &Value::Null).await;
    let text = fs::read_to_string(&path).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let in_order = |line: &str, fields: &[&str]| {
        let mut rest = line;
        for field in fields {
            let at =
                rest.find(field).unwrap_or_else(|| panic!("{field} is not where it should be in\n{line}"));
            rest = &rest[at..];
        }
    };
    let head = r#"{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"RequestResponse","auditID":""#;
    assert!(lines[1].starts_with(head), "{}", lines[1]);
    in_order(
        lines[1],
        &[
            r#""stage":"ResponseComplete","requestURI":"/api/v1/namespaces/default/configmaps","verb":"create""#,
            r#""user":{"username":"kubernetes-admin","groups":["system:masters","system:authenticated"]}"#,
            r#""impersonatedUser":{"username":"admin","uid":"u","groups":["system:masters","system:authenticated"]}"#,
            r#""sourceIPs":["127.0.0.1"],"userAgent":"tester/1","objectRef":{"resource":"configmaps","namespace":"default","name":"c","apiVersion":"v1"}"#,
            r#""responseStatus":{"metadata":{},"code":201},"requestObject":{"#,
            r#""responseObject":{"#,
            r#""fieldsV1":{"#,
            r#""requestReceivedTimestamp":"#,
            r#""stageTimestamp":"#,
            r#""annotations":{"authorization.k8s.io/decision":"allow""#,
        ],
    );
    let refused = lines.last().unwrap();
    let status = r#""responseStatus":{"metadata":{},"status":"Failure","message":"invalid timeout specified in the request URL - time: invalid duration \"x\"","reason":"BadRequest","code":400}"#;
    in_order(refused, &[r#""stage":"ResponseStarted""#, r#""user":{}"#, status]);
    assert_eq!(lines.len(), 3);
    let metrics = request("GET /metrics", &[], String::new());
    let metrics = cluster.service().oneshot(metrics).await.unwrap().into_body().collect().await.unwrap();
    let metrics = String::from_utf8(metrics.to_bytes().to_vec()).unwrap();
    for line in ["apiserver_audit_event_total 3", "apiserver_audit_level_total{level=\"RequestResponse\"} 2"]
    {
        assert!(metrics.lines().any(|found| found == line), "{line} is not in\n{metrics}");
    }
}
