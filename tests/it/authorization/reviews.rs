//! Access reviews, and what `kubectl auth can-i` makes of them.

use super::*;

async fn asked(client: &Client, kind: &str, namespace: &str, body: Value) -> Result<Value, Status> {
    client.create(review_kind(kind), namespace, body).await.map(|answer| answer.to_value()["status"].clone())
}

#[tokio::test]
async fn questions_are_answered_and_bad_ones_refused() {
    let cluster = start().await;
    let client = cluster.client();
    bind(&client, "jane", "view").await;
    until_allowed(&client, "jane", &[], "list pods team").await;
    let jane = client.acting_as(UserInfo::authenticated("jane", &[]));
    let own = |what: &str| json!({"spec": attributes(what)});
    let kind = "SelfSubjectAccessReview";
    let reason = "RBAC: allowed by RoleBinding \"jane/team\" of ClusterRole \"view\" to User \"jane\"";
    let yes = asked(&jane, kind, "", own("list pods team")).await.unwrap();
    assert_eq!(yes, json!({"allowed": true, "reason": reason}));
    assert_eq!(asked(&jane, kind, "", own("get secrets team")).await.unwrap(), json!({"allowed": false}));
    let local = |namespace: &str| {
        let mut spec = attributes("list pods team");
        spec["user"] = "jane".into();
        json!({"metadata": {"namespace": namespace}, "spec": spec})
    };
    let kind = "LocalSubjectAccessReview";
    assert_eq!(asked(&client, kind, "team", local("team")).await.unwrap()["allowed"], true);
    for (kind, namespace, body, wanted) in [
        (
            "LocalSubjectAccessReview",
            "default",
            local("default"),
            ".authorization.k8s.io \"\" is invalid: spec.resourceAttributes.namespace: Invalid value: \"team\": \
             must match metadata.namespace",
        ),
        (
            "SubjectAccessReview",
            "",
            own("list pods"),
            ".authorization.k8s.io \"\" is invalid: spec.user: Invalid value: \"\": at least one of user or \
             group must be specified",
        ),
        (
            "SelfSubjectAccessReview",
            "",
            json!({"spec": {}}),
            ".authorization.k8s.io \"\" is invalid: spec.resourceAttributes: Invalid value: null: exactly one \
             of nonResourceAttributes or resourceAttributes must be specified",
        ),
        ("SelfSubjectRulesReview", "", json!({"spec": {}}), "no namespace on request"),
    ] {
        assert_eq!(message(asked(&client, kind, namespace, body).await), wanted);
    }
    let refused = asked(&jane, "SubjectAccessReview", "", own("list pods")).await;
    assert!(message(refused).contains("cannot create resource \"subjectaccessreviews\""));
}

#[tokio::test]
async fn who_asks_what_they_may_is_given_their_rules() {
    let cluster = start().await;
    let client = cluster.client();
    let rules = json!([{"verbs": ["get"], "apiGroups": ["apps"], "resources": ["deployments"],
        "resourceNames": ["web"]}]);
    client.create(&ROLES, "team", json!({"metadata": {"name": "one"}, "rules": rules})).await.unwrap();
    let binding = json!({"metadata": {"name": "jane"}, "roleRef": {"kind": "Role", "name": "one"},
        "subjects": [{"kind": "User", "name": "jane"}]});
    client.create(&ROLE_BINDINGS, "team", binding).await.unwrap();
    until_allowed(&client, "jane", &[], "get deployments.apps team web").await;
    let jane = client.acting_as(UserInfo::authenticated("jane", &[]));
    let kind = "SelfSubjectRulesReview";
    let status = asked(&jane, kind, "", json!({"spec": {"namespace": "team"}})).await.unwrap();
    assert_eq!(status["incomplete"], false);
    let resources = status["resourceRules"].as_array().unwrap();
    assert!(resources.contains(&rules[0]), "{status:#}");
    let reviews = json!({"verbs": ["create"], "apiGroups": ["authorization.k8s.io"],
        "resources": ["selfsubjectaccessreviews", "selfsubjectrulesreviews"]});
    assert!(resources.contains(&reviews), "{status:#}");
    let paths = status["nonResourceRules"].as_array().unwrap();
    let health = json!(["/healthz", "/livez", "/readyz", "/version", "/version/"]);
    assert!(paths.iter().any(|rule| rule["nonResourceURLs"] == health), "{status:#}");
    let node = client.acting_as(UserInfo::authenticated("system:node:n", &["system:nodes"]));
    let refused = asked(&node, kind, "", json!({"spec": {"namespace": "team"}})).await;
    // What a node may is not in rules; nor is this among it.
    assert!(message(refused).is_empty());
}
