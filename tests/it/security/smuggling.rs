//! Headers and paths that say one thing and mean another.

use super::*;

/// Jane may read ConfigMaps of `default`, and impersonate whom `may` names.
pub(crate) async fn with_jane(rules: Value) -> Guarded {
    let guarded = Guarded::start(|_, flags| {
        let jane = Arc::new(UserInfo::authenticated("jane", &["dev"]));
        flags.static_tokens.0.push(("t0ken".into(), jane));
    })
    .await;
    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    let reads = json!({"verbs": ["get", "list"], "apiGroups": [""], "resources": ["configmaps"]});
    let role = json!({"metadata": {"name": "r"}, "rules": [reads]});
    guarded.create(&format!("{rbac}/namespaces/default/roles"), role).await;
    guarded.create(&format!("{rbac}/clusterroles"), json!({"metadata": {"name": "r"}, "rules": rules})).await;
    for (path, kind) in [("namespaces/default/rolebindings", "Role"), ("clusterrolebindings", "ClusterRole")]
    {
        let binding = json!({"metadata": {"name": "b"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": "r"},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "jane"}]});
        guarded.create(&format!("{rbac}/{path}"), binding).await;
    }
    guarded.create("/api/v1/namespaces/default/configmaps", json!({"metadata": {"name": "mine"}})).await;
    let secret = json!({"metadata": {"name": "prize"}, "stringData": {"key": "prize-content"}});
    guarded.create("/api/v1/namespaces/kube-system/secrets", secret).await;
    for _ in 0..1000 {
        if guarded.ask("GET /api/v1/namespaces/default/configmaps/mine", JANE, &Value::Null).await.code == 200
        {
            return guarded;
        }
        tokio::task::yield_now().await;
    }
    panic!("the authorizer never heard of jane's role");
}

pub(crate) const JANE: &[(&str, &str)] = &[("authorization", "Bearer t0ken")];

#[tokio::test]
async fn nobody_acts_as_another_without_permission() {
    let rules = json!([
        {"verbs": ["impersonate"], "apiGroups": [""], "resources": ["users"], "resourceNames": ["joe", "system:anonymous"]},
        {"verbs": ["impersonate"], "apiGroups": [""], "resources": ["groups"], "resourceNames": ["ops"]},
        {"verbs": ["impersonate"], "apiGroups": ["authentication.k8s.io"], "resources": ["userextras/scopes"], "resourceNames": ["view"]},
        {"verbs": ["impersonate"], "apiGroups": ["authentication.k8s.io"], "resources": ["uids"], "resourceNames": ["u1"]},
    ]);
    let guarded = with_jane(rules).await;
    let cannot = |what: &str| format!("403 {what}");
    let without_a_name = |rest: &str| {
        format!("400 requested &user.DefaultInfo{{Name:\"\", {rest}}} without impersonating a user name")
    };
    let user = ("impersonate-user", "joe");
    let cases: &[(&[(&str, &str)], String)] = &[
        (&[user], "joe".into()),
        (
            &[
                user,
                ("impersonate-group", "ops"),
                ("impersonate-uid", "u1"),
                ("impersonate-extra-scopes", "view"),
            ],
            "joe".into(),
        ),
        (&[("impersonate-user", "system:anonymous")], "system:anonymous".into()),
        (
            &[("impersonate-user", "admin")],
            cannot(
                "users \"admin\" is forbidden: User \"jane\" cannot impersonate resource \"users\" in API group \"\" at the cluster scope",
            ),
        ),
        (
            &[user, ("impersonate-group", "system:masters")],
            cannot(
                "groups \"system:masters\" is forbidden: User \"jane\" cannot impersonate resource \"groups\" in API group \"\" at the cluster scope",
            ),
        ),
        (
            &[user, ("impersonate-uid", "u2")],
            cannot(
                "uids.authentication.k8s.io \"u2\" is forbidden: User \"jane\" cannot impersonate resource \"uids\" in API group \"authentication.k8s.io\" at the cluster scope",
            ),
        ),
        (
            &[user, ("impersonate-extra-scopes", "admin")],
            cannot(
                "userextras.authentication.k8s.io \"admin\" is forbidden: User \"jane\" cannot impersonate resource \"userextras/scopes\" in API group \"authentication.k8s.io\" at the cluster scope",
            ),
        ),
        (
            &[("impersonate-user", "system:serviceaccount:default:builder")],
            cannot(
                "serviceaccounts \"builder\" is forbidden: User \"jane\" cannot impersonate resource \"serviceaccounts\" in API group \"\" in the namespace \"default\"",
            ),
        ),
        (
            &[("impersonate-group", "system:masters")],
            without_a_name(r#"UID:"", Groups:[]string{"system:masters"}, Extra:map[string][]string(nil)"#),
        ),
        (
            &[("impersonate-uid", "u1")],
            without_a_name(r#"UID:"u1", Groups:[]string(nil), Extra:map[string][]string(nil)"#),
        ),
        (
            &[("impersonate-extra-a%2fb", "c")],
            without_a_name(r#"UID:"", Groups:[]string(nil), Extra:map[string][]string{"a/b":[]string{"c"}}"#),
        ),
    ];
    for (headers, expected) in cases {
        let all: Vec<(&str, &str)> = JANE.iter().chain(*headers).copied().collect();
        let answer = guarded.ask(WHO, &all, &Value::Null).await;
        let (code, _, message) = answer.status();
        let said = if message.starts_with("nodes is forbidden") {
            who(&answer)
        } else {
            format!("{code} {message}")
        };
        assert_eq!(said, *expected, "{headers:?}");
    }
    let stranger = guarded.ask(WHO, &[user], &Value::Null).await;
    let text = "nodes is forbidden: User \"system:anonymous\" cannot impersonate-on:user-info:list resource \"nodes\" in API group \"\" at the cluster scope";
    assert_eq!(stranger.status().2, text);
}

#[tokio::test]
async fn a_twisted_path_leads_nowhere_that_a_straight_one_does_not() {
    let guarded = with_jane(json!([])).await;
    let prize = "kube-system/secrets/prize";
    let paths = [
        format!("/api/v1/namespaces/{prize}"),
        format!("//api/v1/namespaces/{prize}"),
        format!("/api//v1/namespaces/{prize}"),
        format!("/api/v1//namespaces/{prize}"),
        format!("/api/v1/namespaces//{prize}"),
        format!("/api/v1/namespaces/default/configmaps/../../../{prize}"),
        format!("/api/v1/namespaces/default/../{prize}"),
        format!("/api/v1/namespaces/default/configmaps/%2e%2e/%2e%2e/%2e%2e/{prize}"),
        "/api/v1/namespaces/kube-system%2fsecrets%2fprize".into(),
        "/api/v1/namespaces/default%2f..%2fkube-system/secrets/prize".into(),
        "/api/v1/namespaces/kube-system/secrets%2fprize".into(),
        "/api/v1/namespaces/kube-system/secrets/prize%00".into(),
        "/api/v1/namespaces/kube-system/secrets/prize;x=y".into(),
        "/api/v1/namespaces/kube-system;x/secrets/prize".into(),
        "/healthz/../api/v1/namespaces/kube-system/secrets/prize".into(),
        "/healthz%2f..%2fapi/v1/namespaces/kube-system/secrets/prize".into(),
        "/api/v1/namespaces/kube-system/configmaps/../secrets/prize".into(),
        "/API/V1/namespaces/kube-system/secrets/prize".into(),
        "/api/v1/watch/namespaces/kube-system/secrets/prize".into(),
        "/api/v1/secrets?fieldSelector=metadata.name%3Dprize".into(),
        "/apis//v1/namespaces/kube-system/secrets/prize".into(),
    ];
    for path in &paths {
        for headers in [JANE, &[]] {
            for method in ["GET", "HEAD", "DELETE", "OPTIONS"] {
                let answer = guarded.ask(&format!("{method} {path}"), headers, &Value::Null).await;
                assert!(
                    answer.code >= 400 && answer.code < 501,
                    "{method} {path}: {} {}",
                    answer.code,
                    answer.text
                );
                assert!(!answer.text.contains(&encoded("prize-content")), "{path}");
            }
        }
    }
    let there = guarded.admin("GET /api/v1/namespaces/kube-system/secrets/prize", &Value::Null).await;
    assert_eq!(there.code, 200);
    // What is escaped means what it stands for, to authorization as to the handler.
    for (path, code) in [
        ("/api/v1/namespaces/default%2Fconfigmaps/mine", 200),
        ("/api/v1/namespaces/default/configmaps/%6Dine", 200),
        ("/api/v1/namespaces/default/configmaps/mine/%2e%2e", 403),
        ("/api/v1/namespaces/default/configmaps/%2e%2e", 400),
        ("/api/v1/namespaces/default/configmaps/a%2525", 400),
    ] {
        let answer = guarded.ask(&format!("GET {path}"), JANE, &Value::Null).await;
        assert_eq!(answer.code, code, "{path}: {}", answer.text);
        let why = answer.status().2;
        assert!(code != 400 || why.starts_with("Name parameter invalid: "), "{path}: {why}");
    }
    let page = guarded.ask("GET /%3Cscript%3E", JANE, &Value::Null).await;
    assert_eq!(page.status().2, "forbidden: User \"jane\" cannot get path \"/&lt;script&gt;\"");
}

#[tokio::test]
async fn nobody_makes_credentials_for_others() {
    let guarded = with_jane(json!([])).await;
    let cases = [
        ("POST /api/v1/namespaces/default/serviceaccounts/builder/token", json!({})),
        ("POST /apis/certificates.k8s.io/v1/certificatesigningrequests", json!({"metadata": {"name": "x"}})),
        (
            "POST /api/v1/namespaces/kube-system/secrets",
            json!({"metadata": {"name": "bootstrap-token-abcdef"}}),
        ),
        ("POST /apis/authentication.k8s.io/v1/tokenreviews", json!({"spec": {"token": "x"}})),
        ("POST /apis/rbac.authorization.k8s.io/v1/clusterrolebindings", json!({"metadata": {"name": "x"}})),
        (
            "PUT /apis/certificates.k8s.io/v1/certificatesigningrequests/x/approval",
            json!({"metadata": {"name": "x"}}),
        ),
        ("GET /openid/v1/jwks", Value::Null),
    ];
    for (line, body) in cases {
        let answer = guarded.ask(line, JANE, &body).await;
        assert_eq!(answer.code, 403, "{line}: {}", answer.text);
    }
}

#[tokio::test]
async fn who_may_do_all_to_an_object_may_do_nothing_to_its_parts() {
    let guarded = with_jane(json!([
        {"verbs": ["*"], "apiGroups": [""], "resources": ["pods", "nodes", "services", "serviceaccounts"]},
        {"verbs": ["get"], "apiGroups": [""], "resources": ["nodes/proxy"]},
    ]))
    .await;
    let in_system = "/api/v1/namespaces/kube-system";
    let eviction = json!({"metadata": {"name": "x"}});
    for (line, body, code) in [
        (format!("POST {in_system}/pods/x/eviction"), &eviction, 403),
        (format!("POST {in_system}/pods/x/exec?command=sh"), &Value::Null, 403),
        (format!("GET {in_system}/pods/x/exec?command=sh"), &Value::Null, 403),
        (format!("GET {in_system}/pods/x/log"), &Value::Null, 403),
        (format!("GET {in_system}/pods/x/proxy/"), &Value::Null, 403),
        (format!("POST {in_system}/pods/x/binding"), &eviction, 403),
        (format!("PUT {in_system}/pods/x/ephemeralcontainers"), &eviction, 403),
        (format!("GET {in_system}/services/x/proxy/"), &Value::Null, 403),
        (format!("POST {in_system}/serviceaccounts/x/token"), &json!({}), 403),
        // Reading through a kubelet is no running of commands in its pods.
        ("POST /api/v1/nodes/x/proxy/run/kube-system/x/c?cmd=sh".into(), &Value::Null, 403),
        ("DELETE /api/v1/nodes/x/proxy/".into(), &Value::Null, 403),
        ("GET /api/v1/nodes/x".into(), &Value::Null, 404),
    ] {
        let answer = guarded.ask(&line, JANE, body).await;
        assert_eq!(answer.code, code, "{line}: {}", answer.text);
    }
}

#[tokio::test]
async fn what_came_of_credentials_is_counted() {
    let guarded = with_jane(json!([{"verbs": ["get"], "nonResourceURLs": ["/metrics"]}])).await;
    for token in ["wrong", "t0ken"] {
        guarded.whose(token).await;
    }
    let text = guarded.ask("GET /metrics", JANE, &Value::Null).await.text;
    for line in [
        "authentication_attempts{result=\"error\"} 1",
        "authenticated_user_requests{username=\"other\"} ",
        "authentication_duration_seconds_count{result=\"error\"} 1",
        "authentication_token_cache_request_total{status=\"hit\"} ",
        "authentication_token_cache_fetch_total{status=\"error\"} 1",
        "apiserver_authorization_decisions_total{decision=\"allowed\",name=\"rbac\",type=\"RBAC\"} ",
        "authorization_attempts_total{result=\"no-opinion\"} ",
        "authorization_duration_seconds_count{result=\"allowed\"} ",
        "apiserver_admission_controller_admission_duration_seconds_count{name=\"NamespaceLifecycle\",operation=\"CREATE\",rejected=\"false\",type=\"admit\"} ",
        "apiserver_admission_step_admission_duration_seconds_count{operation=\"CREATE\",rejected=\"false\",type=\"validate\"} ",
    ] {
        assert!(text.contains(line), "{line} is not in\n{text}");
    }
}
