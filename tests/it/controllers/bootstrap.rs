//! What is there for those who join, and the accounts that controllers ask under.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use chrono::TimeDelta;
use kubarium::apimachinery::options::ListOptions;
use kubarium::apimachinery::time::rfc3339;
use kubarium::apis::apiregistration::api_service::API_SERVICES;
use kubarium::apis::core::config_map::CONFIG_MAPS;
use kubarium::apis::core::namespace::NAMESPACES;
use kubarium::apis::core::secret::SECRETS;
use kubarium::apis::core::service_account::SERVICE_ACCOUNTS;
use kubarium::apis::flowcontrol::flow_schema::FLOW_SCHEMAS;
use kubarium::apis::kind::Kind;
use kubarium::apis::rbac::role::CLUSTER_ROLES;
use kubarium::apis::scheduling::priority_class::PRIORITY_CLASSES;
use serde_json::{Value, json};

use super::support::{Fixture, NAMESPACE};

#[tokio::test]
async fn controllers_have_accounts_to_bind_roles_to() {
    let fixture = Fixture::start().await;
    let names = fixture
        .eventually("the accounts", || async {
            let list = fixture.client.list(&SERVICE_ACCOUNTS, "kube-system", &ListOptions::default()).await;
            let names: Vec<String> =
                list.unwrap().items.iter().map(|account| account.metadata.name.clone()).collect();
            (names.len() >= 37).then_some(names)
        })
        .await;
    for name in ["default", "deployment-controller", "generic-garbage-collector", "token-cleaner"] {
        assert!(names.iter().any(|found| found == name), "{names:?}");
    }
}

#[tokio::test]
async fn what_is_made_when_it_is_first_asked_for_was_there_from_the_start() {
    let fixture = Fixture::start().await;
    fixture.clock.advance(Duration::from_secs(3600));
    let made = |kind: &'static Kind, name: &'static str| {
        let fixture = &fixture;
        async move {
            let found = fixture.client.get(kind, "", name).await.unwrap().to_value();
            found["metadata"]["creationTimestamp"].as_str().unwrap().to_owned()
        }
    };
    let start = made(&NAMESPACES, "default").await;
    assert!(made(&CLUSTER_ROLES, "admin").await <= start);
    assert!(made(&PRIORITY_CLASSES, "system-node-critical").await <= start);
    assert!(made(&FLOW_SCHEMAS, "exempt").await <= start);
    assert!(made(&API_SERVICES, "v1.apps").await <= start);
}

#[tokio::test]
async fn tokens_that_nobody_uses_for_a_year_become_invalid_and_go() {
    let fixture = Fixture::start().await;
    let account = json!({"metadata": {"name": "builder"}, "secrets": [{"name": "by-itself"}]});
    fixture.create(&SERVICE_ACCOUNTS, NAMESPACE, account).await;
    for name in ["by-itself", "by-hand"] {
        let metadata =
            json!({"name": name, "annotations": {"kubernetes.io/service-account.name": "builder"}});
        let secret = json!({"metadata": metadata, "type": "kubernetes.io/service-account-token"});
        fixture.create(&SECRETS, NAMESPACE, secret).await;
    }
    let since = json!({"metadata": {"name": "kube-apiserver-legacy-service-account-token-tracking"},
        "data": {"since": "2026-01-01"}});
    fixture.create(&CONFIG_MAPS, "kube-system", since).await;
    let label = "kubernetes.io/legacy-token-invalid-since";
    let invalid = |name: &'static str| {
        let fixture = &fixture;
        async move { fixture.get(&SECRETS, name).await.map(|it| it["metadata"]["labels"][label].clone()) }
    };
    fixture.settle(20).await;
    assert_eq!(invalid("by-itself").await, Some(Value::Null));
    let year = Duration::from_secs(367 * 24 * 60 * 60);
    fixture.clock.advance(year);
    let marked = || async { invalid("by-itself").await.filter(Value::is_string) };
    assert_eq!(fixture.eventually("it is invalid", marked).await, "2027-01-03");
    // The next look is a day later than this one, which is to end first.
    fixture.settle(20).await;
    fixture.clock.advance(year);
    fixture.gone(&SECRETS, "by-itself").await;
    assert_eq!(invalid("by-hand").await, Some(Value::Null), "nobody knows who has it");
}

#[tokio::test]
async fn what_joining_nodes_are_told_is_signed_as_long_as_a_token_lives() {
    let fixture = Fixture::start().await;
    let info = json!({"metadata": {"name": "cluster-info"}, "data": {"kubeconfig": "apiVersion: v1"}});
    fixture.create(&CONFIG_MAPS, "kube-public", info).await;
    let end = rfc3339(fixture.clock.now() + TimeDelta::seconds(30));
    let data = |pairs: &[(&str, &str)]| -> Value {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), json!(STANDARD.encode(value)))).collect()
    };
    let mut pairs = vec![
        ("token-id", "abcdef"),
        ("token-secret", "0123456789abcdef"),
        ("usage-bootstrap-signing", "true"),
        ("expiration", end.as_str()),
    ];
    let secret = |id: &str, data: Value| {
        json!({"metadata": {"name": format!("bootstrap-token-{id}")}, "type": "bootstrap.kubernetes.io/token",
            "data": data})
    };
    fixture.create(&SECRETS, "kube-system", secret("abcdef", data(&pairs))).await;
    pairs[0].1 = "silent";
    pairs[2].1 = "false";
    fixture.create(&SECRETS, "kube-system", secret("silent", data(&pairs[..3]))).await;
    let signatures = || async {
        let found = fixture.client.get(&CONFIG_MAPS, "kube-public", "cluster-info").await.unwrap();
        let data = found.to_value()["data"].as_object().unwrap().clone();
        data.into_iter().filter(|(key, _)| key.starts_with("jws-")).collect::<Vec<_>>()
    };
    let signed = || async { Some(signatures().await).filter(|signed| !signed.is_empty()) };
    let signed = fixture.eventually("a signature", signed).await;
    let [(key, signature)] = signed.as_slice() else { panic!("{signed:?}") };
    assert_eq!(key, "jws-kubeconfig-abcdef");
    // {"alg":"HS256","kid":"abcdef"}, and nothing of what is signed.
    assert!(signature.as_str().unwrap().starts_with("eyJhbGciOiJIUzI1NiIsImtpZCI6ImFiY2RlZiJ9.."));
    fixture.eventually("its end", || async { signatures().await.is_empty().then_some(()) }).await;
    let gone = fixture.client.get(&SECRETS, "kube-system", "bootstrap-token-abcdef").await;
    assert!(gone.is_err_and(|status| status.is_not_found()), "the token is taken away");
    fixture.client.get(&SECRETS, "kube-system", "bootstrap-token-silent").await.unwrap();
}
