//! Who may do what.

use super::*;

async fn ask(server: &Server, line: &str, headers: &[(&str, &str)]) -> Answer {
    Answer::of(server.send(request(line, headers, String::new())).await).await
}

#[tokio::test]
async fn nobody_may_more_than_the_default_roles_say() {
    let server = Server::start().await;
    assert_eq!(ask(&server, "GET /readyz", &[]).await.code, 200);
    let refused = ask(&server, "GET /metrics", &[]).await;
    let text = "forbidden: User \"system:anonymous\" cannot get path \"/metrics\"";
    assert_eq!(refused.status(), (403, "Forbidden".into(), text.into()));
    let refused = ask(&server, "GET /api/v1/namespaces/default/pods", &[]).await;
    let text = "pods is forbidden: User \"system:anonymous\" cannot list resource \"pods\" in API \
        group \"\" in the \
        namespace \"default\"";
    assert_eq!(refused.status(), (403, "Forbidden".into(), text.into()));
    let refused = ask(&server, "GET /api/v1/nodes", &[("authorization", "Bearer wrong")]).await;
    assert_eq!(refused.status(), (401, "Unauthorized".into(), "Unauthorized".into()));
    assert_eq!(refused.headers["cache-control"].to_str().unwrap(), "no-cache, private");
    assert_eq!(refused.headers["audit-id"].len(), 36);
}

#[tokio::test]
async fn roles_allow() {
    let server = Server::start().await;
    let path = "GET /api/v1/namespaces/default/configmaps";
    let token = [("authorization", "Bearer secret")];
    assert_eq!(ask(&server, path, &token).await.code, 403);
    let role = json!({"metadata": {"name": "reader"},
        "rules": [{"verbs": ["get", "list"], "apiGroups": [""], "resources": ["configmaps"]}]});
    server.create("/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles", role).await;
    let binding = json!({"metadata": {"name": "readers"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "developers"}]});
    server.create("/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings", binding).await;
    let mut code = 403;
    for _ in 0..1000 {
        code = ask(&server, path, &token).await.code;
        if code == 200 {
            break;
        }
        tokio::task::yield_now().await;
    }
    assert_eq!(code, 200);
    assert_eq!(ask(&server, "GET /api/v1/configmaps", &token).await.code, 403);
    assert_eq!(ask(&server, "DELETE /api/v1/namespaces/default/configmaps/a", &token).await.code, 403);
}

#[tokio::test]
async fn an_administrator_may_act_as_another() {
    let server = Server::start().await;
    let refused = server.call_with("GET /api/v1/nodes", &[("impersonate-user", "jane")], "").await;
    let text = "nodes is forbidden: User \"jane\" cannot list resource \"nodes\" in API group \"\" \
        at the cluster scope";
    assert_eq!(refused.status().2, text);
    let headers = [("impersonate-user", "jane"), ("impersonate-group", "system:masters")];
    assert_eq!(server.call_with("GET /api/v1/nodes", &headers, "").await.code, 200);
    let token = [("authorization", "Bearer secret"), ("impersonate-user", "admin")];
    let refused = ask(&server, "GET /api/v1/nodes", &token).await;
    let text = "nodes is forbidden: User \"jane\" cannot impersonate-on:user-info:list resource \"nodes\" \
        in API group \"\" at the cluster scope";
    assert_eq!(refused.status().2, text);
}

#[tokio::test]
async fn a_pod_needs_its_account_and_its_priority_class() {
    let server = Server::start().await;
    let mut lost = pod("p");
    lost["spec"]["serviceAccountName"] = "nobody".into();
    let refused = server.call(&format!("POST {PODS}"), &lost).await;
    let text = "pods \"p\" is forbidden: error looking up service account default/nobody: \
        serviceaccount \"nobody\" \
        not found";
    assert_eq!(refused.status(), (403, "Forbidden".into(), text.into()));
    let mut high = pod("p");
    high["spec"]["priorityClassName"] = "high".into();
    let refused = server.call(&format!("POST {PODS}"), &high).await;
    let text = "pods \"p\" is forbidden: no PriorityClass with name high was found";
    assert_eq!(refused.status(), (403, "Forbidden".into(), text.into()));
    let class = json!({"metadata": {"name": "high"}, "value": 1000});
    server.create("/apis/scheduling.k8s.io/v1/priorityclasses", class).await;
    assert_eq!(server.create(PODS, high).await["spec"]["priority"], 1000);
}

#[tokio::test]
async fn a_namespace_that_goes_away_takes_nothing_new() {
    let server = Server::start().await;
    server.create("/api/v1/namespaces", json!({"metadata": {"name": "gone"}})).await;
    let deleted = server.call("DELETE /api/v1/namespaces/gone", &Value::Null).await;
    assert_eq!(
        (deleted.code, &deleted.json()["status"]["phase"]),
        (200, &json!("Terminating")),
        "{}",
        deleted.text
    );
    let refused = server.call("POST /api/v1/namespaces/gone/configmaps", &config_map("a")).await;
    let text = "configmaps \"a\" is forbidden: unable to create new content in namespace gone \
        because it is being \
        terminated";
    assert_eq!(refused.status(), (403, "Forbidden".into(), text.into()));
    assert_eq!(refused.json()["details"]["causes"][0]["reason"], "NamespaceTerminating");
}

#[tokio::test]
async fn a_new_node_takes_no_pods_yet() {
    let server = Server::start().await;
    let node = server.create("/api/v1/nodes", json!({"metadata": {"name": "n"}})).await;
    let taint = json!({"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"});
    assert_eq!(node["spec"]["taints"], json!([taint]));
}
