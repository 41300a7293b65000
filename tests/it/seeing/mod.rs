//! What was seen of a user, which role that needs, and why objects are as they are: by Rust, by HTTP, by the
//! command line.

use std::time::Duration;

use kubarium::apimachinery::user::UserInfo;
use kubarium::apis::core::resource_quota::RESOURCE_QUOTAS;
use kubarium::apis::rbac::role::ROLES;
use kubarium::apis::rbac::role_binding::ROLE_BINDINGS;
use kubarium::kinds::{CONFIG_MAPS, DEPLOYMENTS, NODES, PODS};
use kubarium::{Client, Cluster, Components, Config, Fault, PatchType};
use serde_json::{Value, json};
use tower::ServiceExt;

use crate::handles::ask;
use crate::support::{PATIENCE, Up, texts};

const OPERATOR: &str = "system:serviceaccount:default:operator";

async fn bare() -> Cluster {
    Cluster::start(Config::new().nodes(0).components(Components::NONE)).await.unwrap()
}

fn operator(cluster: &Cluster) -> Client {
    cluster.client().acting_as(UserInfo::service_account("default", "operator"))
}

/// What the operator of these tests asks for.
async fn work(client: &Client) {
    let map = json!({"metadata": {"name": "a"}});
    let _ = client.create(&CONFIG_MAPS, "default", map).await;
    let _ = client.get(&CONFIG_MAPS, "default", "a").await;
    let _ = client.list(&NODES, "", &Default::default()).await;
}

#[tokio::test]
async fn requests_are_seen_whatever_the_answer_and_make_the_role_that_would_do() {
    let cluster = bare().await;
    let operator = operator(&cluster);
    work(&operator).await;
    let seen: Vec<(String, String, u16)> = cluster
        .requests_of(OPERATOR)
        .into_iter()
        .map(|request| (request.verb, request.resource, request.code))
        .collect();
    let expected = [("create", "configmaps"), ("get", "configmaps"), ("list", "nodes")];
    assert_eq!(seen, expected.map(|(verb, resource)| (verb.into(), resource.into(), 403)));
    for role in cluster.infer_roles(OPERATOR, false) {
        let folder = if role["metadata"]["namespace"].is_null() { "" } else { "namespaces/default/" };
        let plural = format!("{}s", role["kind"].as_str().unwrap().to_lowercase());
        let path = format!("/apis/rbac.authorization.k8s.io/v1/{folder}{plural}");
        let (code, answer) = ask(&cluster, "", "POST", &path, role).await;
        assert_eq!(code, 201, "{answer}");
    }
    // Roles are heard of a moment after they are written.
    while operator.get(&CONFIG_MAPS, "default", "a").await.is_err_and(|status| status.code == 403) {
        tokio::task::yield_now().await;
    }
    cluster.requests().clear();
    work(&operator).await;
    let codes: Vec<u16> = cluster.requests_of(OPERATOR).iter().map(|request| request.code).collect();
    assert_eq!(codes, [201, 200, 200]);
    assert!(operator.list(&CONFIG_MAPS, "default", &Default::default()).await.is_err(), "it is the least");
    cluster.stop().await;
}

/// Who gives roles away, or opens a shell over a websocket, is asked for more than their path says.
#[tokio::test]
async fn rights_that_are_looked_at_behind_the_path_are_in_the_role() {
    let cluster = bare().await;
    let giver = cluster.client().acting_as(UserInfo::authenticated("giver", &["system:masters"]));
    let rules = json!([{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]);
    giver.create(&ROLES, "default", json!({"metadata": {"name": "r"}, "rules": rules})).await.unwrap();
    giver.create(&ROLES, "default", json!({"metadata": {"name": "empty"}})).await.unwrap();
    let reference = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"});
    let binding = json!({"metadata": {"name": "b"}, "roleRef": reference, "subjects": []});
    giver.create(&ROLE_BINDINGS, "default", binding).await.unwrap();
    let exec = http::Request::get("/api/v1/namespaces/default/pods/p/exec?command=ls")
        .header("impersonate-user", "giver")
        .header("impersonate-group", "system:masters")
        .header("upgrade", "websocket")
        .body(axum::body::Body::empty())
        .unwrap();
    let _ = cluster.service().oneshot(exec).await.unwrap();
    let inferred = cluster.infer_roles("giver", true);
    let rule = |group: &str, resource: &str, verbs: &[&str]| json!({"apiGroups": [group], "resources": [resource], "verbs": verbs});
    let named = |mut rule: Value, name: &str| {
        rule["resourceNames"] = json!([name]);
        rule
    };
    let rbac = "rbac.authorization.k8s.io";
    let has = |wanted: Value| {
        let rules = inferred[0]["rules"].as_array().unwrap();
        assert!(rules.contains(&wanted), "{wanted} is not in {rules:?}");
    };
    has(named(rule("", "pods/exec", &["create", "get"]), "p"));
    has(named(rule(rbac, "roles", &["escalate"]), "r"));
    has(named(rule(rbac, "clusterroles", &["bind"]), "view"));
    cluster.stop().await;
}

/// What somebody runs in kube-system with an account of its own is no component of the cluster.
#[tokio::test]
async fn an_operator_in_kube_system_is_seen_and_a_controller_there_is_not() {
    let cluster = bare().await;
    let account = |name: &str| format!("system:serviceaccount:kube-system:{name}");
    cluster.faults().add(Fault::answer(503).verb("list").resource("nodes")).unwrap();
    for (name, is_seen) in [("my-operator", true), ("deployment-controller", false)] {
        let user = UserInfo::authenticated(&account(name), &["system:masters"]);
        let listed = cluster.client().acting_as(user).list(&NODES, "", &Default::default()).await;
        assert_eq!(listed.is_err(), is_seen, "{name}");
        assert_eq!(!cluster.requests_of(&account(name)).is_empty(), is_seen, "{name}");
    }
    cluster.stop().await;
}

#[tokio::test]
async fn over_http_requests_roles_and_what_is_unused_are_the_same() {
    let cluster = bare().await;
    work(&operator(&cluster)).await;
    let get = async |path: &str| ask(&cluster, "", "GET", &format!("/kubarium/v1{path}"), Value::Null).await;
    let (_, seen) = get(&format!("/requests?user={OPERATOR}&limit=1")).await;
    assert_eq!(seen["requests"].as_array().unwrap().len(), 1);
    assert_eq!(seen["requests"][0]["verb"], "list");
    let (_, roles) = get(&format!("/rbac/infer?user={OPERATOR}&resourceNames=true")).await;
    assert_eq!(roles["items"], json!(cluster.infer_roles(OPERATOR, true)));
    assert_eq!(roles["items"][0]["rules"][0]["resources"], json!(["nodes"]));
    let rules = json!([{"apiGroups": [""], "resources": ["nodes", "pods"], "verbs": ["list"]}]);
    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    let role = json!({"metadata": {"name": "wide"}, "rules": rules});
    ask(&cluster, "", "POST", &format!("{rbac}/clusterroles"), role).await;
    let subjects = json!([{"kind": "ServiceAccount", "namespace": "default", "name": "operator"}]);
    let reference = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "wide"});
    let binding = json!({"metadata": {"name": "wide"}, "roleRef": reference, "subjects": subjects});
    ask(&cluster, "", "POST", &format!("{rbac}/clusterrolebindings"), binding).await;
    let (_, found) = get("/rbac/unused").await;
    let expected = json!([{"role": "ClusterRole/wide", "resource": "pods", "verbs": ["list"]}]);
    assert_eq!(found["unused"], expected);
    for (path, words) in [
        ("/rbac/infer", "the parameter user is missing"),
        ("/requests?limit=x", "limit \"x\" is no number"),
        ("/why?resource=nothing&name=a", "doesn't have a resource type \"nothing\""),
    ] {
        let (code, status) = get(path).await;
        assert!(code == 400 && status["message"].as_str().unwrap().contains(words), "{status}");
    }
    assert_eq!(ask(&cluster, "", "DELETE", "/kubarium/v1/requests", Value::Null).await.0, 200);
    let (_, seen) = get(&format!("/requests?user={OPERATOR}")).await;
    assert_eq!(seen["requests"], json!([]));
    cluster.stop().await;
}

fn pod(name: &str, container: Value) -> Value {
    json!({"metadata": {"name": name}, "spec": {"containers": [container]}})
}

async fn until_why(cluster: &Cluster, kind: &str, name: &str, words: &[&str]) {
    let asking = async {
        loop {
            let told = cluster.why(kind, "default", name).await.unwrap().render();
            if words.iter().all(|words| told.contains(words)) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    if tokio::time::timeout(PATIENCE, asking).await.is_err() {
        let told = cluster.why(kind, "default", name).await.unwrap().render();
        panic!("{words:?} is not in:\n{told}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn why_tells_of_scheduling_images_crashes_and_deletion() {
    let cluster = Cluster::start(Config::new()).await.unwrap();
    let client = cluster.client();
    let big = json!({"name": "c", "image": "nginx", "resources": {"requests": {"cpu": "1000"}}});
    client.create(&PODS, "default", pod("big", big)).await.unwrap();
    let words = ["pod big in namespace default is Pending", "no node has been chosen", "1 Insufficient cpu"];
    until_why(&cluster, "pod", "big", &words).await;
    let mut crash = pod("crash", json!({"name": "c", "image": "nginx"}));
    crash["metadata"]["annotations"] = json!({"kubarium.dev/stage": "crash-loop"});
    client.create(&PODS, "default", crash).await.unwrap();
    until_why(&cluster, "pods", "crash", &["container c", "it waits: CrashLoopBackOff", "exit code 1"]).await;
    let finalizers = json!({"metadata": {"name": "held", "finalizers": ["example.com/x"]}});
    client.create(&CONFIG_MAPS, "default", finalizers).await.unwrap();
    client.delete(&CONFIG_MAPS, "default", "held", &Default::default()).await.unwrap();
    until_why(&cluster, "cm", "held", &["it is being deleted", "finalizer example.com/x"]).await;
    let freed = json!({"metadata": {"finalizers": null}});
    let patch = client.patch(&CONFIG_MAPS, "default", "held", PatchType::Merge, &freed);
    patch.await.unwrap();
    until_why(&cluster, "cm", "held", &["there is no configmap held", "it was deleted by kubernetes-admin"])
        .await;
    let told = cluster.why("cm", "default", "never").await.unwrap().render();
    assert!(told.contains("nobody has asked for one"), "{told}");
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn why_tells_of_quota_and_who_wrote() {
    let cluster = Cluster::start(Config::new()).await.unwrap();
    let client = cluster.client();
    let quota = json!({"metadata": {"name": "none"}, "spec": {"hard": {"pods": "0"}}});
    client.create(&RESOURCE_QUOTAS, "default", quota).await.unwrap();
    let counted = |quota: Option<&Value>| quota.is_some_and(|quota| quota["status"]["hard"]["pods"] == "0");
    cluster.wait_for(&RESOURCE_QUOTAS, ["default", "none"], PATIENCE, counted).await.unwrap();
    let labels = json!({"app": "web"});
    let template =
        json!({"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let spec = json!({"replicas": 1, "selector": {"matchLabels": labels}, "template": template});
    client.create(&DEPLOYMENTS, "default", json!({"metadata": {"name": "web"}, "spec": spec})).await.unwrap();
    let words = ["condition ReplicaFailure is True", "exceeded quota: none", "it was last written by"];
    until_why(&cluster, "deploy", "web", &words).await;
    let patience = Duration::from_millis(50);
    let never = cluster.wait_for(&DEPLOYMENTS, ["default", "web"], patience, |_| false).await.unwrap_err();
    assert!(never.code == 504 && never.message.contains("exceeded quota: none"), "{}", never.message);
    cluster.faults().add(kubarium::Fault::answer(503)).unwrap();
    cluster.why("deploy", "default", "web").await.expect("no fault hits who asks why");
    assert!(cluster.requests_of("kubarium:handles").is_empty(), "nor is it seen");
    cluster.stop().await;
}

#[test]
fn the_command_line_says_the_same() {
    let up = Up::start_with(&["--nodes", "1"]);
    let run = |line: &str| texts(&up.kubarium(&line.split(' ').collect::<Vec<_>>()));
    let (out, err) = run("why node/node-1");
    assert!(out.starts_with("node node-1"), "{out}{err}");
    let (out, _) = run("why pod never");
    assert!(out.contains("there is no pod never in namespace default"), "{out}");
    let (_, err) = run("why pod");
    assert!(err.contains("kubarium why pod/web"), "{err}");
    let kubectl = crate::support::Kubectl::new(&crate::support::kubectls().pop().unwrap(), &up);
    kubectl.run("run del1 --image nginx");
    kubectl.run("wait --for condition=Ready pod/del1");
    kubectl.run("delete pod del1 --as alice --as-group system:masters");
    let (out, err) = run("why pod/del1");
    assert!(out.contains("it was deleted by system:node:node-1"), "{out}{err}");
    assert!(out.contains("alice asked for that"), "{out}{err}");
    kubectl.run(&format!("get configmaps --as {OPERATOR}"));
    let (out, err) = run(&format!("requests --user {OPERATOR}"));
    assert!(out.contains("403") && out.contains("configmaps"), "{out}{err}");
    let (out, err) = run(&format!("rbac infer --user {OPERATOR}"));
    assert!(out.contains("kind: RoleBinding") && out.contains("- configmaps"), "{out}{err}");
    let roles = up.file("roles.yaml", &out);
    kubectl.ok(&format!("apply -f {roles}"));
    let (out, _) = run("rbac unused");
    assert!(out.contains("Everything that roles allow has been used."), "{out}");
    let (_, err) = run("rbac infer --user nobody");
    assert!(err.contains("nobody has asked for nothing that needs a role"), "{err}");
    let (out, _) = run("requests --forget");
    assert!(out.contains("forgot all requests"), "{out}");
}
