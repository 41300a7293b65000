//! `--authorization-mode=Webhook` and `--authorization-config`: somebody outside decides, over TLS.

use std::path::PathBuf;

use kubarium::apis::core::pod::PODS;
use kubarium::apiserver::authorization::config::{AuthorizationOptions, Mode};
use kubarium::apiserver::options::ServerRunOptions;
use kubarium::clock::Clock;

use super::*;
use crate::support::webhook::{Asked, Reply, Webhook};

/// What the webhook says of each user.
fn decide(asked: &Asked) -> Reply {
    let status = match asked.body["spec"]["user"].as_str().unwrap_or_default() {
        "jane" => json!({"allowed": true, "reason": "she is on duty"}),
        "joe" => json!({"allowed": false, "denied": true, "reason": "he has left"}),
        "two-faced" => json!({"allowed": true, "denied": true}),
        "eve" | "eve-bound" => return Reply::Raw(418, "broken".into()),
        _ => json!({"allowed": false, "reason": "never heard of"}),
    };
    Reply::Json(
        json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "status": status}),
    )
}

/// A kubeconfig that names the webhook.
fn kubeconfig(folder: &tempfile::TempDir, webhook: &Webhook) -> PathBuf {
    let cluster =
        json!({"server": webhook.url("/decide"), "certificate-authority-data": webhook.ca_bundle()});
    let config = json!({"current-context": "c", "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "u", "user": {"token": "ours"}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}]});
    let path = folder.path().join("kubeconfig");
    std::fs::write(&path, config.to_string()).unwrap();
    path
}

async fn list_pods(cluster: &Cluster, user: &str) -> (u16, String) {
    let client = cluster.client().acting_as(UserInfo::authenticated(user, &[]));
    match client.list(&PODS, "team", &Default::default()).await {
        Ok(_) => (200, String::new()),
        Err(status) => (status.code, status.message),
    }
}

const CANNOT: &str = "cannot list resource \"pods\" in API group \"\" in the namespace \"team\"";

#[tokio::test]
async fn a_webhook_is_asked_before_roles_are() {
    let (webhook, folder) = (Webhook::start(decide).await, tempfile::tempdir().unwrap());
    let authorization = AuthorizationOptions {
        modes: Some(vec![Mode::Webhook, Mode::Rbac]),
        webhook_config_file: Some(kubeconfig(&folder, &webhook)),
        webhook_version: "v1".into(),
        ..AuthorizationOptions::default()
    };
    let mut apiserver = ServerRunOptions::default();
    apiserver.authorization = authorization;
    let cluster = start_with(Config::new().apiserver(apiserver)).await;
    let client = cluster.client();
    for user in ["joe", "eve-bound"] {
        bind(&client, user, "view").await;
    }
    until_allowed(&client, "eve-bound", &[], "list pods team").await;
    let broken = "the server responded with the status code 418 but did not return more information";
    for (user, code, words) in [
        ("jane", 200, String::new()),
        ("jane", 200, String::new()),
        ("joe", 403, format!("pods is forbidden: User \"joe\" {CANNOT}: he has left")),
        ("bob", 403, format!("pods is forbidden: User \"bob\" {CANNOT}: never heard of")),
        ("two-faced", 500, "returned both allow and deny response".into()),
        ("eve", 500, format!("Internal Server Error: \"/api/v1/namespaces/team/pods\": {broken}")),
        // A webhook that cannot be asked has no opinion.
        ("eve-bound", 200, String::new()),
    ] {
        let (found, message) = list_pods(&cluster, user).await;
        assert_eq!(found, code, "{user}: {message}");
        assert!(message.contains(&words), "{user}: {message}");
    }
    let asked = webhook.asked();
    let of_jane = asked.iter().filter(|asked| asked.body["spec"]["user"] == "jane").collect::<Vec<_>>();
    assert_eq!(of_jane.len(), 1, "its answer is remembered");
    assert_eq!(of_jane[0].headers["authorization"], "Bearer ours");
    let wanted = json!({"user": "jane", "groups": ["system:authenticated"], "resourceAttributes":
        {"namespace": "team", "verb": "list", "version": "v1", "resource": "pods"}});
    assert_eq!(of_jane[0].body["spec"], wanted);
    let status = review(&client, "eve", &[], "list pods team").await;
    assert_eq!(status, json!({"allowed": false, "evaluationError": broken}));
    let status = review(&client, "joe", &[], "list pods team").await;
    assert_eq!(status, json!({"allowed": false, "denied": true, "reason": "he has left"}));
}

#[tokio::test]
async fn a_file_says_when_it_is_asked_and_that_failing_is_a_no() {
    let (webhook, folder) = (Webhook::start(decide).await, tempfile::tempdir().unwrap());
    let connection = json!({"type": "KubeConfigFile", "kubeConfigFile": kubeconfig(&folder, &webhook)});
    let settings = json!({"timeout": "3s", "subjectAccessReviewVersion": "v1", "failurePolicy": "Deny",
        "matchConditionSubjectAccessReviewVersion": "v1", "connectionInfo": connection,
        "matchConditions": [{"expression": "request.user.startsWith('eve')"}]});
    let file = json!({"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthorizationConfiguration",
        "authorizers": [{"type": "Webhook", "name": "outside", "webhook": settings},
            {"type": "RBAC", "name": "rbac"}]});
    let path = folder.path().join("authorization");
    std::fs::write(&path, file.to_string()).unwrap();
    let clock = Clock::stepped(chrono::DateTime::UNIX_EPOCH + chrono::TimeDelta::days(20_000));
    let config_file = Some(path.clone());
    let authorization = AuthorizationOptions { config_file, ..AuthorizationOptions::default() };
    let mut apiserver = ServerRunOptions::default();
    apiserver.authorization = authorization;
    let cluster = start_with(Config::new().apiserver(apiserver).clock(clock.clone())).await;
    let client = cluster.client();
    for user in ["bob", "eve-bound"] {
        bind(&client, user, "view").await;
    }
    until_allowed(&client, "bob", &[], "list pods team").await;
    assert_eq!(list_pods(&cluster, "bob").await.0, 200);
    assert_eq!(list_pods(&cluster, "jane").await.0, 403, "nobody asked the webhook about her");
    assert_eq!(list_pods(&cluster, "eve-bound").await.0, 500);
    for (text, code) in [("nonsense".to_owned(), 500), (file.to_string().replace("eve", "nobody"), 200)] {
        std::fs::write(&path, text).unwrap();
        clock.advance(std::time::Duration::from_secs(2));
        assert_eq!(list_pods(&cluster, "eve-bound").await.0, code, "a wrong file changes nothing");
    }
}
