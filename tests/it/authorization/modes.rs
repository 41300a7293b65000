//! `--authorization-mode`.

use kubarium::apis::core::pod::PODS;
use kubarium::apiserver::authorization::config::{AuthorizationOptions, Mode};
use kubarium::apiserver::options::ServerRunOptions;

use super::*;

async fn with(modes: &[Mode], policy: Option<&str>) -> (Cluster, Option<tempfile::TempDir>) {
    let folder = policy.map(|text| {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("policy"), text).unwrap();
        folder
    });
    let policy_file = folder.as_ref().map(|folder| folder.path().join("policy"));
    let authorization =
        AuthorizationOptions { modes: Some(modes.to_vec()), policy_file, ..AuthorizationOptions::default() };
    let mut apiserver = ServerRunOptions::default();
    apiserver.authorization = authorization;
    (start_with(Config::new().apiserver(apiserver)).await, folder)
}

async fn list_pods(cluster: &Cluster, user: &str) -> String {
    let client = cluster.client().acting_as(UserInfo::authenticated(user, &[]));
    message(client.list(&PODS, "team", &Default::default()).await)
}

#[tokio::test]
async fn the_first_that_allows_decides() {
    let refused = "pods is forbidden: User \"jane\" cannot list resource \"pods\" in API group \"\" in the \
        namespace \"team\"";
    let (cluster, _) = with(&[Mode::AlwaysDeny, Mode::Rbac], None).await;
    assert_eq!(list_pods(&cluster, "jane").await, format!("{refused}: Everything is forbidden."));
    let (cluster, _) = with(&[Mode::AlwaysDeny, Mode::AlwaysAllow], None).await;
    assert_eq!(list_pods(&cluster, "jane").await, "");
    let policy = r#"{"apiVersion": "abac.authorization.kubernetes.io/v1beta1", "kind": "Policy", "spec": {"user": "bob", "namespace": "team", "resource": "pods", "readonly": true}}"#;
    let (cluster, _folder) = with(&[Mode::Abac, Mode::Rbac], Some(policy)).await;
    assert_eq!(list_pods(&cluster, "bob").await, "");
    assert_eq!(list_pods(&cluster, "jane").await, format!("{refused}: No policy matched."));
    let authorization =
        AuthorizationOptions { modes: Some(vec![Mode::Abac]), ..AuthorizationOptions::default() };
    let mut apiserver = ServerRunOptions::default();
    apiserver.authorization = authorization;
    let failed = Cluster::start(Config::new().apiserver(apiserver)).await.err().unwrap();
    assert!(failed.to_string().contains("authorization policy file not passed"), "{failed}");
}

/// One policy a line, as in the teaching texts.
const POLICIES: &str = r#"
{"apiVersion": "abac.authorization.kubernetes.io/v1beta1", "kind": "Policy", "spec": {"user": "alice", "namespace": "*", "resource": "*", "apiGroup": "*"}}
{"apiVersion": "abac.authorization.kubernetes.io/v1beta1", "kind": "Policy", "spec": {"user": "bob", "namespace": "team", "resource": "pods", "readonly": true}}
{"apiVersion": "abac.authorization.kubernetes.io/v1beta1", "kind": "Policy", "spec": {"group": "system:authenticated", "nonResourcePath": "*", "readonly": true}}
{"apiVersion": "abac.authorization.kubernetes.io/v1beta1", "kind": "Policy", "spec": {"group": "system:serviceaccounts:team", "namespace": "team", "resource": "configmaps"}}
"#;

#[tokio::test]
async fn each_mode_decides_as_upstreams() {
    let modes: [&[Mode]; 6] = [
        &[Mode::AlwaysAllow],
        &[Mode::AlwaysDeny],
        &[Mode::Rbac],
        &[Mode::Node, Mode::Rbac],
        &[Mode::Abac],
        &[Mode::Abac, Mode::Rbac],
    ];
    let mut wrong = Vec::new();
    for (column, modes) in modes.into_iter().enumerate() {
        let policies = modes.contains(&Mode::Abac).then_some(POLICIES);
        let (cluster, _folder) = with(modes, policies).await;
        let client = cluster.client();
        for (user, role) in [("viewer", "view"), ("owner", "admin")] {
            bind(&client, user, role).await;
        }
        if modes.contains(&Mode::Rbac) {
            until_allowed(&client, "owner", &[], "list pods team").await;
        }
        for row in include_str!("modes.tsv").lines().filter(|line| !line.starts_with('#')) {
            let [user, groups, what, decisions] = row.split('\t').collect::<Vec<_>>().try_into().unwrap();
            let groups: Vec<&str> = groups.split(',').filter(|group| !group.is_empty()).collect();
            let status = review(&client, user, &groups, what).await;
            let allowed = decisions.split(' ').nth(column).unwrap() == "y";
            if status["allowed"] != allowed {
                wrong.push(format!("{modes:?}: {user}: {what}: {status}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
