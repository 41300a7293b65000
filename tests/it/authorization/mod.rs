//! Who may do what: the default roles, access reviews, escalation, kubelets.

mod claims;
mod escalation;
mod health;
mod modes;
mod nodes;
mod policy;
mod reviews;
mod story;
mod webhook;

use kubarium::apimachinery::status::Status;
use kubarium::apimachinery::user::UserInfo;
use kubarium::apis::authorization;
use kubarium::apis::core::namespace::NAMESPACES;
use kubarium::apis::kind::Kind;
use kubarium::apis::rbac::role::{CLUSTER_ROLES, ROLES};
use kubarium::apis::rbac::role_binding::{CLUSTER_ROLE_BINDINGS, ROLE_BINDINGS};
use kubarium::client_go::client::Client;
use kubarium::cluster::Components;
use kubarium::{Cluster, Config};
use serde_json::{Value, json};

/// An apiserver with the default roles and a namespace `team`; nobody else is at work.
async fn start() -> Cluster {
    start_with(Config::default()).await
}

async fn start_with(config: Config) -> Cluster {
    let cluster = Cluster::start(config.components(Components::NONE)).await.unwrap();
    cluster.client().create(&NAMESPACES, "", json!({"metadata": {"name": "team"}})).await.unwrap();
    cluster
}

/// The review kinds, by their names.
fn review_kind(name: &str) -> &'static Kind {
    authorization::KINDS.iter().find(|kind| &*kind.kind == name).unwrap()
}

/// The status of a SubjectAccessReview.
async fn review(client: &Client, user: &str, groups: &[&str], what: &str) -> Value {
    let mut spec = attributes(what);
    spec["user"] = user.into();
    let everybody = match user {
        "system:anonymous" => "system:unauthenticated",
        _ => "system:authenticated",
    };
    spec["groups"] = groups.iter().copied().chain([everybody]).collect();
    let asked = client.create(review_kind("SubjectAccessReview"), "", json!({"spec": spec})).await.unwrap();
    asked.to_value()["status"].clone()
}

/// `VERB RESOURCE[.GROUP][/SUBRESOURCE] [NAMESPACE] [NAME]`, or `VERB PATH`.
fn attributes(what: &str) -> Value {
    const CLUSTER_SCOPED: [&str; 12] = [
        "nodes",
        "persistentvolumes",
        "clusterroles",
        "clusterrolebindings",
        "users",
        "groups",
        "volumeattachments",
        "csinodes",
        "resourceslices",
        "signers",
        "certificatesigningrequests",
        "customresourcedefinitions",
    ];
    let words: Vec<&str> = what.split(' ').collect();
    let (verb, target, rest) = (words[0], words[1], &words[2..]);
    if target.starts_with('/') {
        return json!({"nonResourceAttributes": {"verb": verb, "path": target}});
    }
    let (target, subresource) = target.split_once('/').unwrap_or((target, ""));
    let (resource, group) = target.split_once('.').unwrap_or((target, ""));
    let (namespace, name) = match rest {
        [] => ("", ""),
        [name] if CLUSTER_SCOPED.contains(&resource) => ("", *name),
        [namespace] => (*namespace, ""),
        [namespace, name] => (*namespace, *name),
        _ => panic!("{what}"),
    };
    json!({"resourceAttributes": {"verb": verb, "group": group, "resource": resource,
        "subresource": subresource, "namespace": namespace, "name": name}})
}

/// Asks until the authorizer, which learns of roles by a watch, says what it should.
async fn until_allowed(client: &Client, user: &str, groups: &[&str], what: &str) {
    for _ in 0..10_000 {
        if review(client, user, groups, what).await["allowed"] == true {
            return;
        }
        tokio::task::yield_now().await;
    }
    panic!("{user} may never {what}");
}

/// `user` gets the ClusterRole `role` in `team`.
async fn bind(client: &Client, user: &str, role: &str) {
    let binding = json!({"metadata": {"name": user},
        "roleRef": {"kind": "ClusterRole", "name": role}, "subjects": [{"kind": "User", "name": user}]});
    client.create(&ROLE_BINDINGS, "team", binding).await.unwrap();
}

fn message(result: Result<impl Sized, Status>) -> String {
    result.err().map(|status| status.message).unwrap_or_default()
}

#[tokio::test]
async fn the_default_roles_allow_what_upstreams_do() {
    let cluster = start().await;
    let client = cluster.client();
    for (user, role) in [("viewer", "view"), ("editor", "edit"), ("owner", "admin")] {
        bind(&client, user, role).await;
    }
    let rules = json!([
        {"verbs": ["get", "update"], "apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["mine"]},
        {"verbs": ["patch"], "apiGroups": ["apps"], "resources": ["*/scale"]},
        {"verbs": ["get"], "apiGroups": [""], "resources": ["pods/*"]}]);
    client.create(&ROLES, "team", json!({"metadata": {"name": "picky"}, "rules": rules})).await.unwrap();
    for (user, role) in [("picky", "picky"), ("lost", "gone")] {
        let binding = json!({"metadata": {"name": user},
            "roleRef": {"kind": "Role", "name": role}, "subjects": [{"kind": "User", "name": user}]});
        client.create(&ROLE_BINDINGS, "team", binding).await.unwrap();
    }
    let everywhere = json!({"metadata": {"name": "lost"}, "roleRef": {"kind": "ClusterRole", "name": "gone"},
        "subjects": [{"kind": "User", "name": "lost-everywhere"}]});
    client.create(&CLUSTER_ROLE_BINDINGS, "", everywhere).await.unwrap();
    let last = json!({"metadata": {"name": "last"}, "roleRef": {"kind": "ClusterRole", "name": "view"},
        "subjects": [{"kind": "User", "name": "last"}]});
    client.create(&CLUSTER_ROLE_BINDINGS, "", last.clone()).await.unwrap();
    client.create(&ROLE_BINDINGS, "team", last).await.unwrap();
    until_allowed(&client, "last", &[], "list pods").await;
    until_allowed(&client, "picky", &[], "get configmaps team mine").await;
    until_allowed(&client, "owner", &[], "list pods team").await;

    let mut wrong = Vec::new();
    let rows = include_str!("matrix.tsv").lines().filter(|line| !line.starts_with('#'));
    for row in rows {
        let [user, groups, what, allowed, why] = row.split('\t').collect::<Vec<_>>().try_into().unwrap();
        let groups: Vec<&str> = groups.split(',').filter(|group| !group.is_empty()).collect();
        let status = review(&client, user, &groups, what).await;
        let reason = status["reason"].as_str().unwrap_or_default();
        if status["allowed"] != (allowed == "yes") || !reason.contains(why) {
            wrong.push(format!("{user}: {what}: {status}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test]
async fn an_operator_without_a_rule_is_refused() {
    let cluster = start().await;
    let account = UserInfo::service_account("kube-system", "operator");
    let operator = cluster.client().acting_as(account);
    let pods = &kubarium::apis::core::pod::PODS;
    let refused = operator.list(pods, "", &Default::default()).await;
    let text = "pods is forbidden: User \"system:serviceaccount:kube-system:operator\" cannot list resource \
        \"pods\" in API group \"\" at the cluster scope";
    assert_eq!(message(refused), text);
    let refused = operator.get(&NAMESPACES, "", "team").await;
    let text = "namespaces \"team\" is forbidden: User \"system:serviceaccount:kube-system:operator\" cannot \
        get resource \"namespaces\" in API group \"\" in the namespace \"team\"";
    assert_eq!(message(refused), text);
}

#[tokio::test]
async fn a_custom_resource_adds_to_the_aggregated_roles() {
    let components = Components::NONE.controllers(true);
    let cluster = Cluster::start(Config::new().components(components)).await.unwrap();
    let client = cluster.client();
    let label = |to: &str| json!({format!("rbac.authorization.k8s.io/aggregate-to-{to}"): "true"});
    for (role, to, verb) in [("widget-view", "view", "get"), ("widget-edit", "edit", "create")] {
        let rules = json!([{"verbs": [verb], "apiGroups": ["example.com"], "resources": ["widgets"]}]);
        let role = json!({"metadata": {"name": role, "labels": label(to)}, "rules": rules});
        client.create(&CLUSTER_ROLES, "", role).await.unwrap();
    }
    let subjects = |name: &str| json!([{"kind": "User", "name": name}]);
    for (user, role) in [("viewer", "view"), ("owner", "admin")] {
        let binding = json!({"metadata": {"name": user}, "roleRef": {"kind": "ClusterRole", "name": role},
            "subjects": subjects(user)});
        client.create(&CLUSTER_ROLE_BINDINGS, "", binding).await.unwrap();
    }
    until_allowed(&client, "viewer", &[], "get widgets.example.com").await;
    until_allowed(&client, "owner", &[], "create widgets.example.com").await;
    let status = review(&client, "viewer", &[], "create widgets.example.com").await;
    assert_eq!(status, json!({"allowed": false}));
    let view = client.get(&CLUSTER_ROLES, "", "view").await.unwrap().to_value();
    let owners = view["metadata"]["managedFields"].as_array().unwrap();
    let owner = owners.iter().find(|owner| owner["manager"] == "clusterrole-aggregation-controller").unwrap();
    assert_eq!(owner["operation"], "Apply");
    assert_eq!(owner["fieldsV1"], r#"{"f:rules":{}}"#);
}
