//! Who must come again later: priority levels whose seats are taken, and bounds of reads and writes without
//! them.

use std::sync::Arc;

use http_body_util::BodyExt;
use kubarium::apiserver::flow_control::config::FlowControlOptions;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::{Answer, CONFIG_MAPS, Server, config_map};
use crate::support::PATIENCE;
use crate::support::webhook::{Reply, Webhook};

pub(crate) const FLOW_CONTROL: &str = "/apis/flowcontrol.apiserver.k8s.io/v1";
pub(crate) const LEVEL_UID: &str = "x-kubernetes-pf-prioritylevel-uid";
const JANE: [(&str, &str); 3] = [
    ("content-type", "application/json"),
    ("impersonate-user", "jane"),
    ("impersonate-group", "system:authenticated"),
];

/// What jane asks for.
pub(crate) async fn as_jane(server: &Server, line: &str, body: &Value) -> Answer {
    let text = if body.is_null() { String::new() } else { body.to_string() };
    server.call_with(line, &JANE, text).await
}

/// A server where jane may do everything, and creating a ConfigMap takes for ever.
async fn start(flow_control: FlowControlOptions) -> (Arc<Server>, Webhook) {
    let server = Server::start_with(|config| config.flow_control = flow_control).await;
    let webhook = never_create_config_maps(&server).await;
    let_jane_do_everything(&server).await;
    (Arc::new(server), webhook)
}

/// Creating a ConfigMap takes for ever.
pub(crate) async fn never_create_config_maps(server: &Server) -> Webhook {
    let webhook = Webhook::start(|_| Reply::Never).await;
    let hook = json!({
        "name": "never.example.com", "sideEffects": "None", "admissionReviewVersions": ["v1"],
        "clientConfig": {"url": webhook.url("/"), "caBundle": webhook.ca_bundle()}, "timeoutSeconds": 30,
        "rules": [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}],
    });
    let hooks = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
    server.create(hooks, json!({"metadata": {"name": "never"}, "webhooks": [hook]})).await;
    webhook
}

/// Jane may do everything.
pub(crate) async fn let_jane_do_everything(server: &Server) {
    let roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
    let rule = json!({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]});
    server.create(roles, json!({"metadata": {"name": "everything"}, "rules": [rule]})).await;
    let bindings = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";
    let role = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "everything"});
    let jane = json!([{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "jane"}]);
    server.create(bindings, json!({"metadata": {"name": "jane"}, "roleRef": role, "subjects": jane})).await;
}

/// Jane creates a ConfigMap; comes back when the server is at it. Where the one seat is taken for a moment by
/// what the server does itself, or her role or the webhook is not heard of yet, she comes again.
async fn begin_to_create(server: &Arc<Server>, webhook: &Webhook) -> JoinHandle<()> {
    let worker = server.clone();
    let creating = tokio::spawn(async move {
        loop {
            as_jane(&worker, &format!("POST {CONFIG_MAPS}"), &config_map("slow")).await;
            tokio::task::yield_now().await;
        }
    });
    let is_asked = async {
        while webhook.asked().is_empty() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, is_asked).await.expect("her request is judged");
    creating
}

fn assert_refused(answer: &Answer) {
    assert_eq!(retry_after(answer), 1);
}

/// When one that was refused may come again: the later, the more were refused in the seconds before.
fn retry_after(answer: &Answer) -> u64 {
    assert_eq!((answer.code, &*answer.text), (429, "Too many requests, please try again later.\n"));
    answer.headers["retry-after"].to_str().unwrap().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_level_that_is_full_refuses_until_a_seat_is_free() {
    let one_seat_each =
        FlowControlOptions { max_requests: 1, max_mutating_requests: 0, ..Default::default() };
    let (server, webhook) = start(one_seat_each).await;
    let limited = json!({"nominalConcurrencyShares": 1, "borrowingLimitPercent": 0,
        "limitResponse": {"type": "Reject"}});
    let level = json!({"metadata": {"name": "narrow"}, "spec": {"type": "Limited", "limited": limited}});
    let level = server.create(&format!("{FLOW_CONTROL}/prioritylevelconfigurations"), level).await;
    let uid = level["metadata"]["uid"].as_str().unwrap();
    let rule = json!({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "namespaces": ["*"]});
    let rules = json!([{"subjects": [{"kind": "User", "user": {"name": "jane"}}], "resourceRules": [rule]}]);
    let schema = json!({"metadata": {"name": "narrow"}, "spec": {"matchingPrecedence": 50,
        "priorityLevelConfiguration": {"name": "narrow"}, "rules": rules}});
    server.create(&format!("{FLOW_CONTROL}/flowschemas"), schema).await;
    let read = format!("GET {CONFIG_MAPS}");
    loop {
        let answer = as_jane(&server, &read, &Value::Null).await;
        if answer.headers.get(LEVEL_UID).is_some_and(|level| level == uid) {
            break;
        }
    }
    let creating = begin_to_create(&server, &webhook).await;
    let refused = as_jane(&server, &read, &Value::Null).await;
    assert_refused(&refused);
    assert_eq!(refused.headers[LEVEL_UID], uid);
    // Administrators are exempt, and others have a level of their own.
    assert_eq!(server.call(&read, &Value::Null).await.code, 200);
    creating.abort();
    while as_jane(&server, &read, &Value::Null).await.code != 200 {
        tokio::task::yield_now().await;
    }
    a_watch_has_its_seat_until_its_state_is_sent(&server, &read).await;
}

/// There are more objects than may wait for a reader.
async fn a_watch_has_its_seat_until_its_state_is_sent(server: &Server, read: &str) {
    let secrets = "/api/v1/namespaces/default/secrets";
    for name in 0..150 {
        server.create(secrets, json!({"metadata": {"name": format!("s{name}")}})).await;
    }
    let mut watch = server.begin(&format!("GET {secrets}?watch=1"), &JANE).await;
    let after = retry_after(&as_jane(server, read, &Value::Null).await);
    assert!((1..=32).contains(&after), "{after}");
    let mut seen = 0;
    while seen < 150 {
        let chunk = watch.frame().await.unwrap().unwrap().into_data().unwrap();
        seen += chunk.iter().filter(|byte| **byte == b'\n').count();
    }
    while as_jane(server, read, &Value::Null).await.code != 200 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_levels_reads_and_writes_are_bounded_apart() {
    let bounds =
        FlowControlOptions { priority_and_fairness: false, max_requests: 1, max_mutating_requests: 1 };
    let (server, webhook) = start(bounds).await;
    let creating = begin_to_create(&server, &webhook).await;
    assert_refused(&as_jane(&server, &format!("POST {CONFIG_MAPS}"), &config_map("more")).await);
    let read = as_jane(&server, &format!("GET {CONFIG_MAPS}"), &Value::Null).await;
    assert_eq!((read.code, read.headers.get(LEVEL_UID)), (200, None));
    server.create("/api/v1/namespaces", json!({"metadata": {"name": "by-an-administrator"}})).await;
    creating.abort();
}
