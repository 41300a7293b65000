//! Admission plugins, each by what a client sees of it: the files beside this one hold the requests.

use kubarium::apiserver::admission::AdmissionOptions;

use super::*;
use crate::support::webhook::{Reply, Webhook};

/// Plays the steps of a file on one server. A step is `namespace`, a name with labels and annotations, made
/// with its service account; or `request`, with `as` (a user without rights), `body`, and what is expected:
/// `code` (`eventually`), `message`, `warnings`, and `has`, values at JSON pointers (null: nothing is there).
async fn play(server: &Server, file: &str) {
    let steps: Vec<Value> = serde_yaml::from_str(file).expect("the file is YAML");
    let mut wrong = Vec::new();
    for step in steps {
        match step["namespace"].as_str() {
            Some(name) => make_namespace(server, name, &step).await,
            None => wrong.extend(play_step(server, &step).await),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

async fn make_namespace(server: &Server, name: &str, step: &Value) {
    let metadata = json!({"name": name, "labels": step["labels"], "annotations": step["annotations"]});
    server.create("/api/v1/namespaces", json!({"metadata": metadata})).await;
    let account = json!({"metadata": {"name": "default"}});
    server.create(&format!("/api/v1/namespaces/{name}/serviceaccounts"), account).await;
}

/// What was other than expected.
async fn play_step(server: &Server, step: &Value) -> Vec<String> {
    let request = step["request"].as_str().expect("a step is a namespace or a request");
    let answer = answer_to(server, request, step).await;
    let mut wrong = Vec::new();
    let mut expect = |what: &str, found: Value, expected: Value| {
        if found != expected {
            wrong.push(format!("{request} {}: {what}\n  {found}\n  {expected}", step["body"]));
        }
    };
    expect("code", json!(answer.code), json!(expected_code(request, step)));
    if let Some(message) = step["message"].as_str() {
        expect("message", answer.status().2.into(), message.into());
    }
    let warned = step["warnings"].as_array().cloned().unwrap_or_default();
    expect("warnings", json!(warnings(&answer)), json!(warned));
    for (pointer, value) in step["has"].as_object().into_iter().flatten() {
        let found = answer.json().pointer(pointer).cloned().unwrap_or_default();
        expect(pointer, found, value.clone());
    }
    wrong
}

fn expected_code(request: &str, step: &Value) -> u64 {
    let default = if request.starts_with("POST") { 201 } else { 200 };
    step["code"].as_u64().unwrap_or(default)
}

async fn answer_to(server: &Server, request: &str, step: &Value) -> Answer {
    let is_patch = request.starts_with("PATCH");
    let media_type = if is_patch { "application/strategic-merge-patch+json" } else { "application/json" };
    let mut headers = vec![("content-type", media_type)];
    if let Some(user) = step["as"].as_str() {
        headers.push(("impersonate-user", user));
    }
    let body = if step["body"].is_null() { String::new() } else { step["body"].to_string() };
    let mut answer = server.call_with(request, &headers, body.clone()).await;
    // Roles are read by a watch: a moment after they were written.
    for _ in 0..if step["eventually"] == true { 1000 } else { 0 } {
        if u64::from(answer.code) == expected_code(request, step) {
            break;
        }
        tokio::task::yield_now().await;
        answer = server.call_with(request, &headers, body.clone()).await;
    }
    answer
}

/// The texts of the `Warning` headers.
fn warnings(answer: &Answer) -> Vec<String> {
    let headers = answer.headers.get_all("warning").iter().filter_map(|header| header.to_str().ok());
    let text = |header: &str| {
        let quoted = header.strip_prefix("299 - \"")?.strip_suffix('"')?;
        Some(quoted.replace("\\\"", "\"").replace("\\\\", "\\"))
    };
    headers.filter_map(text).collect()
}

#[tokio::test]
async fn plugins_that_are_on_by_default() {
    play(&Server::start().await, include_str!("default_on.yaml")).await;
}

#[tokio::test]
async fn pods_are_kept_secure() {
    play(&Server::start().await, include_str!("pod_security.yaml")).await;
}

#[tokio::test]
async fn plugins_that_are_off_by_default() {
    let names = [
        "NamespaceAutoProvision",
        "NamespaceExists",
        "LimitPodHardAntiAffinityTopology",
        "InitialResources",
        "AlwaysPullImages",
        "PodNodeSelector",
        "PodTolerationRestriction",
        "EventRateLimit",
        "ExtendedResourceToleration",
        "OwnerReferencesPermissionEnforcement",
        "DenyServiceExternalIPs",
    ];
    let mut admission = AdmissionOptions { enable: names.map(String::from).into(), ..Default::default() };
    admission.read_plugins(include_str!("configuration.yaml"), |path| Err(path.into())).unwrap();
    let server = Server::start_with(|config| config.admission = admission).await;
    play(&server, include_str!("default_off.yaml")).await;
}

#[tokio::test]
async fn a_plugin_that_is_disabled_says_nothing() {
    let disable = vec!["NamespaceLifecycle".to_owned(), "DefaultTolerationSeconds".into()];
    let admission = AdmissionOptions { disable, ..Default::default() };
    let server = Server::start_with(|config| config.admission = admission).await;
    server.create("/api/v1/namespaces/nowhere/configmaps", json!({"metadata": {"name": "a"}})).await;
    let pod = json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let pod = server.create("/api/v1/namespaces/default/pods", pod).await;
    assert_eq!(pod["spec"]["tolerations"], Value::Null);
}

/// The configuration of ImagePolicyWebhook, which names a kubeconfig for `url`.
fn image_policy(folder: &std::path::Path, url: &str, bundle: &str, default_allow: bool) -> AdmissionOptions {
    let kubeconfig = folder.join("kubeconfig");
    let config = json!({"current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": url, "certificate-authority-data": bundle}}],
        "contexts": [{"name": "c", "context": {"cluster": "c"}}]});
    std::fs::write(&kubeconfig, config.to_string()).unwrap();
    let policy = json!({"imagePolicy": {"kubeConfigFile": kubeconfig, "defaultAllow": default_allow}});
    let plugins = json!([{"name": "ImagePolicyWebhook", "configuration": policy}]);
    let file = json!({"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AdmissionConfiguration", "plugins": plugins});
    let mut admission = AdmissionOptions { enable: vec!["ImagePolicyWebhook".into()], ..Default::default() };
    admission.read_plugins(&file.to_string(), |path| Err(path.into())).unwrap();
    admission
}

#[tokio::test]
async fn a_webhook_says_which_images_may_run() {
    let webhook = Webhook::start(|asked| {
        let spec = &asked.body["spec"];
        let is_bad = spec["containers"].as_array().unwrap().iter().any(|it| it["image"] == "bad");
        let may = spec["annotations"]["team.image-policy.k8s.io/break-glass"] == "true";
        let status = match is_bad && !may {
            true => json!({"allowed": false, "reason": "bad is not signed"}),
            false => json!({"allowed": true}),
        };
        Reply::Json(
            json!({"apiVersion": "imagepolicy.k8s.io/v1alpha1", "kind": "ImageReview", "status": status}),
        )
    })
    .await;
    let folder = tempfile::tempdir().unwrap();
    let admission = image_policy(folder.path(), &webhook.url("/images"), &webhook.ca_bundle(), false);
    let server = Server::start_with(|config| config.admission = admission).await;
    let pods = "POST /api/v1/namespaces/default/pods";
    let pod = |name: &str, image: &str, annotations: Value| {
        json!({"metadata": {"name": name, "annotations": annotations},
            "spec": {"containers": [{"name": "c", "image": image}]}})
    };
    assert_eq!(server.call(pods, &pod("a", "good", json!({}))).await.code, 201);
    let refused = server.call(pods, &pod("b", "bad", json!({}))).await;
    let text =
        "pods \"b\" is forbidden: image policy webhook backend denied one or more images: bad is not signed";
    assert_eq!(refused.status(), (403, "Forbidden".into(), text.into()));
    let glass = json!({"team.image-policy.k8s.io/break-glass": "true", "other": "x"});
    assert_eq!(server.call(pods, &pod("c", "bad", glass)).await.code, 201);
    let asked = webhook.asked();
    assert_eq!(asked.len(), 3);
    assert_eq!(
        asked[2].body["spec"],
        json!({"containers": [{"image": "bad"}], "namespace": "default",
            "annotations": {"team.image-policy.k8s.io/break-glass": "true"}})
    );
    assert_eq!(server.call(pods, &pod("d", "good", json!({}))).await.code, 201);
    assert_eq!(webhook.asked().len(), 3, "the answer is remembered");
    for (default_allow, code) in [(false, 403), (true, 201)] {
        let admission = image_policy(folder.path(), "https://127.0.0.1:1/", "", default_allow);
        let server = Server::start_with(|config| config.admission = admission).await;
        assert_eq!(server.call(pods, &pod("a", "good", json!({}))).await.code, code);
    }
    let admission = AdmissionOptions { enable: vec!["ImagePolicyWebhook".into()], ..Default::default() };
    let mut config = kubarium::Config::default();
    config.apiserver.admission = admission;
    let failed = kubarium::Cluster::start(config).await.err().unwrap().to_string();
    assert_eq!(failed, "couldn't init admission plugin \"ImagePolicyWebhook\": no config specified");
}

#[tokio::test]
async fn always_deny_denies() {
    let admission = AdmissionOptions { enable: vec!["AlwaysDeny".into()], ..Default::default() };
    let server = Server::bare(Arc::new(Scheme::builtin()), |config| config.admission = admission);
    let answer = server.call("POST /api/v1/namespaces", &json!({"metadata": {"name": "a"}})).await;
    let text = "namespaces \"a\" is forbidden: admission control is denying all modifications";
    assert_eq!(answer.status(), (403, "Forbidden".into(), text.into()));
}

/// What 64 clients ask for at once is never more than the quota has; a dry run takes nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn quotas_are_never_overshot() {
    let server = Arc::new(Server::start().await);
    let quota = json!({"metadata": {"name": "q"}, "spec": {"hard": {"configmaps": "10"}}});
    let quotas = "/api/v1/namespaces/default/resourcequotas";
    server.create(quotas, quota).await;
    let status = json!({"status": {"hard": {"configmaps": "10"}, "used": {"configmaps": "0"}}}).to_string();
    let status = server.patch(&format!("{quotas}/q/status"), "application/merge-patch+json", &status).await;
    assert_eq!(status.code, 200);
    let path = "POST /api/v1/namespaces/default/configmaps";
    let dry_run = server.call(&format!("{path}?dryRun=All"), &json!({"metadata": {"name": "dry"}})).await;
    assert_eq!(dry_run.code, 201);
    let creates = (0..64).map(|number| {
        let server = server.clone();
        let body = json!({"metadata": {"name": format!("c-{number}")}});
        tokio::spawn(async move { server.call(path, &body).await.status() })
    });
    let answers = futures::future::join_all(creates).await;
    let codes: Vec<u16> = answers.iter().map(|answer| answer.as_ref().unwrap().0).collect();
    assert_eq!(codes.iter().filter(|code| **code == 201).count(), 10, "{codes:?}");
    assert_eq!(codes.iter().filter(|code| **code == 403).count(), 54, "{codes:?}");
    let refused = answers.iter().map(|answer| &answer.as_ref().unwrap().2).find(|text| !text.is_empty());
    let words = "is forbidden: exceeded quota: q, requested: configmaps=1, used: configmaps=10, limited: \
                 configmaps=10";
    assert!(refused.unwrap().ends_with(words), "{refused:?}");
    let list = server.get("/api/v1/namespaces/default/configmaps").await;
    assert_eq!(list["items"].as_array().unwrap().len(), 10);
    assert_eq!(server.get(&format!("{quotas}/q")).await["status"]["used"]["configmaps"], "10");
}
