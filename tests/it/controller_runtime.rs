//! What controller-runtime's own tests ask of an apiserver: the requests of its `DryRunClient` and of its
//! webhook suite, as envtest sets it up, over the wire.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::Method;
use serde_json::{Value, json};

use crate::security::wire::{admin, listening};
use crate::support::webhook::{Asked, Reply, Webhook};
use crate::support::wire::{Answer, JSON, Wire};

const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";

fn deployment(name: &str) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": name, "namespace": "default", "labels": {"name": name}},
        "spec": {"replicas": 2, "selector": {"matchLabels": {"foo": "bar"}},
            "template": {"metadata": {"labels": {"foo": "bar"}},
                "spec": {"containers": [{"name": "nginx", "image": "nginx"}]}}}})
}

async fn send(wire: &mut Wire, line: &str, content_type: &str, body: &Value) -> Answer {
    let (method, path) = line.split_once(' ').unwrap();
    let body = (!body.is_null()).then(|| (content_type, body.to_string().into()));
    wire.ask(method.parse().unwrap(), path, body).await.unwrap()
}

/// Go's client sends back what it was given, the resourceVersion too.
#[tokio::test(flavor = "multi_thread")]
async fn the_dry_run_client_gets_its_answers_and_changes_nothing() {
    let (cluster, access) = listening().await;
    let mut wire = admin(&access).http2().await.unwrap();
    let made = wire.send(Method::POST, DEPLOYMENTS, &deployment("dry-run")).await.unwrap();
    assert_eq!(made.code, 201, "{made:?}");
    let made = made.json();
    let own = format!("{DEPLOYMENTS}/dry-run");
    let with = |change: fn(&mut Value)| {
        let mut tree = made.clone();
        change(&mut tree);
        tree
    };
    let copy = with(|tree| tree["metadata"]["name"] = "copy".into());
    let bare = with(|tree| tree["spec"]["template"]["spec"]["containers"] = Value::Null);
    let scaled = with(|tree| tree["spec"]["replicas"] = 3.into());
    let told = with(|tree| tree["status"]["replicas"] = 99.into());
    let merge = json!({"spec": {"replicas": 3}});
    let merge_patch = "application/merge-patch+json";
    let (all, none) = ("dryRun=All", Value::Null);
    let cases = [
        (format!("POST {DEPLOYMENTS}?{all}"), JSON, &copy, 201),
        (format!("POST {DEPLOYMENTS}?{all}"), JSON, &bare, 422),
        (format!("POST {DEPLOYMENTS}?{all}"), JSON, &made, 409),
        (format!("PUT {own}?{all}"), JSON, &scaled, 200),
        (format!("PUT {own}?{all}"), JSON, &bare, 422),
        (format!("PATCH {own}?{all}"), merge_patch, &merge, 200),
        (format!("PUT {own}/status?{all}"), JSON, &told, 200),
        (format!("PATCH {own}/status?{all}"), merge_patch, &told, 200),
        (format!("DELETE {own}?{all}"), JSON, &none, 200),
        (format!("DELETE {DEPLOYMENTS}?{all}"), JSON, &none, 200),
    ];
    for (line, content_type, body, code) in cases {
        let answer = send(&mut wire, &line, content_type, body).await;
        assert_eq!(answer.code, code, "{line}: {}", answer.json());
        if code == 201 {
            assert_eq!(answer.json()["metadata"]["resourceVersion"], made["metadata"]["resourceVersion"]);
        }
    }
    assert_eq!(wire.get(&own).await.unwrap().json(), made);
    assert_eq!(wire.get(&format!("{DEPLOYMENTS}/copy")).await.unwrap().code, 404);
    cluster.stop().await;
}

/// As Go's `ServeMux` with one handler: any other path that could be written shorter is sent there.
fn mux(asked: &Asked) -> Reply {
    match asked.path.split('?').next().unwrap() {
        "/failing" => {
            let status = json!({"code": 403, "reason": "Forbidden", "message": "always denied"});
            let response = json!({"uid": asked.body["request"]["uid"], "allowed": false, "status": status});
            Reply::Json(
                json!({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "response": response}),
            )
        }
        "/labelled" => {
            let patch = json!([{"op": "add", "path": "/metadata/labels/seen", "value": "yes"}]).to_string();
            let response = json!({"uid": asked.body["request"]["uid"], "allowed": true,
                "patchType": "JSONPatch", "patch": STANDARD.encode(patch)});
            Reply::Json(
                json!({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "response": response}),
            )
        }
        "/moved" => Reply::Redirect(307, "/failing".into()),
        path if path.starts_with("//") => Reply::Redirect(307, path[1..].into()),
        _ => Reply::Raw(404, "404 page not found\n".into()),
    }
}

fn configuration(kind: &str, webhook: &Webhook, path: &str) -> Value {
    // envtest puts a path that begins with a slash behind one of its own.
    let client_config = json!({"url": webhook.url(path), "caBundle": webhook.ca_bundle()});
    json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": "envtest"},
        "webhooks": [{"name": "deployments.example.com", "clientConfig": client_config,
            "rules": [{"apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"],
                "resources": ["deployments"]}],
            "failurePolicy": "Fail", "matchPolicy": "Equivalent", "sideEffects": "None",
            "admissionReviewVersions": ["v1", "v1beta1"]}]})
}

#[tokio::test(flavor = "multi_thread")]
async fn the_webhook_suites_webhooks_are_reached() {
    let (cluster, access) = listening().await;
    let mut wire = admin(&access).http2().await.unwrap();
    let webhook = Webhook::start(mux).await;
    let group = "/apis/admissionregistration.k8s.io/v1";
    for (kind, path, asked, code) in [
        ("ValidatingWebhookConfiguration", "//failing", &["/failing"][..], 403),
        ("MutatingWebhookConfiguration", "//failing", &["/failing"], 403),
        ("ValidatingWebhookConfiguration", "/moved/", &["/moved", "/failing"], 403),
        ("MutatingWebhookConfiguration", "/x/..//labelled", &["/labelled"], 201),
    ] {
        let configurations = format!("{group}/{}s", kind.to_ascii_lowercase());
        let made =
            wire.send(Method::POST, &configurations, &configuration(kind, &webhook, path)).await.unwrap();
        assert_eq!(made.code, 201, "{made:?}");
        let before = webhook.asked().len();
        let answer = wire.send(Method::POST, DEPLOYMENTS, &deployment("test")).await.unwrap();
        assert_eq!(answer.code, code, "{kind} {path}: {}", answer.json());
        let answer = answer.json();
        match code {
            201 => assert_eq!(answer["metadata"]["labels"]["seen"], "yes"),
            _ => assert_eq!(
                (&answer["reason"], &answer["message"]),
                (
                    &json!("Forbidden"),
                    &json!("admission webhook \"deployments.example.com\" denied the request: always denied")
                )
            ),
        }
        let paths: Vec<String> =
            webhook.asked().split_off(before).into_iter().map(|asked| asked.path).collect();
        let paths: Vec<&str> = paths.iter().map(|path| path.split('?').next().unwrap()).collect();
        assert_eq!(paths, asked, "{kind} {path}");
        assert_eq!(
            wire.ask(Method::DELETE, &format!("{configurations}/envtest"), None).await.unwrap().code,
            200
        );
    }
    cluster.stop().await;
}
