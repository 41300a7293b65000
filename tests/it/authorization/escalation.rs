//! Nobody gives away what they do not have.

use super::*;

const MISSING: &str = "is attempting to grant RBAC permissions not currently held:\n";

#[tokio::test]
async fn an_admin_of_a_namespace_cannot_make_a_greater_one() {
    let cluster = start().await;
    let client = cluster.client();
    bind(&client, "owner", "admin").await;
    until_allowed(&client, "owner", &[], "list pods team").await;
    let owner = client.acting_as(UserInfo::authenticated("owner", &[]));
    let role = |name: &str, verb: &str, resource: &str| {
        json!({"metadata": {"name": name},
            "rules": [{"verbs": [verb, "list"], "apiGroups": [""], "resources": [resource]}]})
    };
    owner.create(&ROLES, "team", role("pods", "get", "pods")).await.unwrap();
    let refused = owner.create(&ROLES, "team", role("nodes", "get", "nodes")).await;
    assert_eq!(
        message(refused),
        format!(
            "roles.rbac.authorization.k8s.io \"nodes\" is forbidden: user \"owner\" \
             (groups=[\"system:authenticated\"]) {MISSING}{{APIGroups:[\"\"], Resources:[\"nodes\"], \
             Verbs:[\"get\" \"list\"]}}"
        )
    );
    let more = role("pods", "get", "resourcequotas/x");
    assert!(message(owner.update(&ROLES, "team", "pods", more).await).contains(MISSING));
    let binding = |name: &str, kind: &str, role: &str| {
        json!({"metadata": {"name": name}, "roleRef": {"kind": kind, "name": role},
            "subjects": [{"kind": "User", "name": "owner"}]})
    };
    owner.create(&ROLE_BINDINGS, "team", binding("less", "ClusterRole", "view")).await.unwrap();
    let refused =
        message(owner.create(&ROLE_BINDINGS, "team", binding("all", "ClusterRole", "cluster-admin")).await);
    let wanted =
        "{APIGroups:[\"*\"], Resources:[\"*\"], Verbs:[\"*\"]}\n{NonResourceURLs:[\"*\"], Verbs:[\"*\"]}";
    assert!(refused.contains(MISSING) && refused.ends_with(wanted), "{refused}");
    let refused = owner.create(&ROLE_BINDINGS, "team", binding("none", "Role", "none")).await;
    assert!(message(refused).ends_with("\"none\" not found"));
    let everywhere = owner.create(&CLUSTER_ROLE_BINDINGS, "", binding("x", "ClusterRole", "view")).await;
    assert!(message(everywhere).contains("cannot create resource \"clusterrolebindings\""));
    let changed = owner.update(&ROLE_BINDINGS, "team", "less", binding("less", "ClusterRole", "edit")).await;
    assert!(message(changed).contains("cannot change roleRef"));
}

#[tokio::test]
async fn who_may_escalate_or_bind_may() {
    let cluster = start().await;
    let client = cluster.client();
    let rules = json!([
        {"verbs": ["create", "update", "escalate"], "apiGroups": ["rbac.authorization.k8s.io"],
            "resources": ["roles"]},
        {"verbs": ["create"], "apiGroups": ["rbac.authorization.k8s.io"],
            "resources": ["rolebindings", "clusterroles"]},
        {"verbs": ["bind"], "apiGroups": ["rbac.authorization.k8s.io"], "resources": ["clusterroles"],
            "resourceNames": ["edit"]}]);
    client
        .create(&CLUSTER_ROLES, "", json!({"metadata": {"name": "granter"}, "rules": rules}))
        .await
        .unwrap();
    let binding = json!({"metadata": {"name": "granter"},
        "roleRef": {"kind": "ClusterRole", "name": "granter"}, "subjects": [{"kind": "User", "name": "granter"}]});
    client.create(&CLUSTER_ROLE_BINDINGS, "", binding).await.unwrap();
    until_allowed(&client, "granter", &[], "escalate roles.rbac.authorization.k8s.io team").await;
    let granter = client.acting_as(UserInfo::authenticated("granter", &[]));
    let secrets = json!([{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}]);
    let role = json!({"metadata": {"name": "all"}, "rules": secrets});
    granter.create(&ROLES, "team", role.clone()).await.unwrap();
    assert!(message(granter.create(&CLUSTER_ROLES, "", role).await).contains(MISSING));
    let gathers = json!({"metadata": {"name": "gathers"},
        "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}});
    let refused = message(granter.create(&CLUSTER_ROLES, "", gathers).await);
    assert!(refused.ends_with("must have cluster-admin privileges to use the aggregationRule"), "{refused}");
    let binding = |role: &str| {
        json!({"metadata": {"name": role}, "roleRef": {"kind": "ClusterRole", "name": role},
            "subjects": [{"kind": "User", "name": "granter"}]})
    };
    granter.create(&ROLE_BINDINGS, "team", binding("edit")).await.unwrap();
    assert!(message(granter.create(&ROLE_BINDINGS, "team", binding("admin")).await).contains(MISSING));
}

#[tokio::test]
async fn who_may_not_read_parameters_names_none_in_policies() {
    use kubarium::apis::admissionregistration::validating_admission_policy::{
        VALIDATING_ADMISSION_POLICIES, VALIDATING_ADMISSION_POLICY_BINDINGS,
    };
    let cluster = start().await;
    let client = cluster.client();
    let group = "admissionregistration.k8s.io";
    let rules = json!([{"verbs": ["*"], "apiGroups": [group], "resources": ["*"]},
        {"verbs": ["get"], "apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["limits"]}]);
    let role = json!({"metadata": {"name": "author"}, "rules": rules});
    client.create(&CLUSTER_ROLES, "", role).await.unwrap();
    let binding = json!({"metadata": {"name": "author"}, "roleRef": {"kind": "ClusterRole", "name": "author"},
        "subjects": [{"kind": "User", "name": "author"}]});
    client.create(&CLUSTER_ROLE_BINDINGS, "", binding).await.unwrap();
    until_allowed(&client, "author", &[], "get configmaps team limits").await;
    let author = client.acting_as(UserInfo::authenticated("author", &[]));
    let policy = |name: &str| {
        let rule = json!({"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]});
        json!({"metadata": {"name": name}, "spec": {"paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
            "matchConstraints": {"resourceRules": [rule]}, "validations": [{"expression": "true"}]}})
    };
    let who = "user &{author  [system:authenticated] map[]}";
    let refused = message(author.create(&VALIDATING_ADMISSION_POLICIES, "", policy("mine")).await);
    let wanted = format!(
        "ValidatingAdmissionPolicy.{group} \"mine\" is invalid: spec.paramKind: Forbidden: {who} must have \
         \"get\" permission on all objects of the referenced paramKind (kind=ConfigMap, apiVersion=v1)"
    );
    assert_eq!(refused, wanted);
    client.create(&VALIDATING_ADMISSION_POLICIES, "", policy("given")).await.unwrap();
    let binding = |name: &str, namespace: &str| {
        json!({"metadata": {"name": name}, "spec": {"policyName": "given", "validationActions": ["Deny"],
            "paramRef": {"name": name, "namespace": namespace, "parameterNotFoundAction": "Deny"}}})
    };
    let bindings = &VALIDATING_ADMISSION_POLICY_BINDINGS;
    author.create(bindings, "", binding("limits", "team")).await.unwrap();
    let refused = message(author.create(bindings, "", binding("secret", "team")).await);
    let wanted = format!(
        "ValidatingAdmissionPolicyBinding.{group} \"secret\" is invalid: spec.paramRef: Forbidden: {who} does \
         not have \"get\" permission on the object referenced by paramRef"
    );
    assert_eq!(refused, wanted);
}
