//! What listens in a pod and what it says, as a ConfigMap and a Stage have it.

use axum::body::Body;
use http::Request;
use http_body_util::BodyExt;
use kubarium::kinds::{CONFIG_MAPS, PODS};
use kubarium::{Config, PatchType};
use serde_json::{Value, json};

use super::Stages;

impl Stages {
    /// What a path below the pods says.
    async fn asked(&self, path: &str) -> (u16, String) {
        let uri = format!("/api/v1/namespaces/default/pods/{path}");
        let response = self.client.raw(Request::get(uri).body(Body::empty()).unwrap()).await;
        let code = response.status().as_u16();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        (code, String::from_utf8_lossy(&body).into_owned())
    }

    async fn answers(&self, name: &str, data: Value) {
        let map = json!({"metadata": {"name": name}, "data": data});
        self.client.create(&CONFIG_MAPS, "default", map).await.unwrap();
        self.settle().await;
    }

    async fn annotate(&self, pod: &str, annotations: Value) {
        let patch = json!({"metadata": {"annotations": annotations}});
        self.client.patch(&PODS, "default", pod, PatchType::Merge, &patch).await.unwrap();
        self.settle().await;
    }

    async fn phase(&self, pod: &str) -> Value {
        self.pod(pod).await.unwrap()["status"]["phase"].clone()
    }
}

fn says(text: &str) -> (u16, String) {
    (200, text.to_owned())
}

#[tokio::test]
async fn a_config_map_says_what_a_pod_answers() {
    let stages = Stages::with(Config::new()).await;
    let annotations = json!({"kubarium.dev/answers-from": "web", "kubarium.dev/http.8081": "[{body: own}]"});
    stages.create_pod("web", json!({"metadata": {"annotations": annotations}})).await;
    // As of a ConfigMap that is mounted and is not there.
    assert_eq!(stages.phase("web").await, "Pending");
    let told = stages.told("web", "FailedMount").await;
    assert!(told[0].ends_with("names a ConfigMap that is not had: configmap \"web\" not found"), "{told:?}");
    let data = json!({"http.8080": "[{body: given}]", "http.8081": "[{body: given}]", "logs": "one\n",
        "htp.80": "[]", "tcp.9": "nonsense"});
    stages.answers("web", data).await;
    stages.pass(3).await;
    assert_eq!(stages.phase("web").await, "Running");
    assert_eq!(stages.asked("web:8080/proxy/").await, says("given"));
    assert_eq!(stages.asked("web:8081/proxy/").await, says("own"));
    assert_eq!(stages.asked("web/log").await, says("one\n"));
    let told = stages.told("web", "InvalidListener").await;
    assert!(told.iter().any(|why| why.starts_with("the key \"htp.80\" of ConfigMap \"web\"")), "{told:?}");
    let place = "annotation kubarium.dev/tcp.9, or the key tcp.9 of ConfigMap \"web\", is";
    assert!(told.iter().any(|why| why.starts_with(place)), "{told:?}");

    // Whoever looks sees what it says now; else it is looked at once a minute.
    let other =
        json!({"data": {"http.8080": "[{body: new}]", "logs": "two\n", "htp.80": null, "tcp.9": null}});
    stages.client.patch(&CONFIG_MAPS, "default", "web", PatchType::Merge, &other).await.unwrap();
    stages.pass(61).await;
    assert_eq!(stages.asked("web:8080/proxy/").await, says("new"));
    let last = json!({"data": {"logs": "three\n"}});
    stages.client.patch(&CONFIG_MAPS, "default", "web", PatchType::Merge, &last).await.unwrap();
    assert_eq!(stages.asked("web/log").await, says("three\n"));
    // One that is gone stays with whoever has it.
    stages.client.delete(&CONFIG_MAPS, "default", "web", &kubarium::DeleteOptions::default()).await.unwrap();
    stages.pass(61).await;
    assert_eq!(stages.asked("web:8080/proxy/").await, says("new"));
}

#[tokio::test]
async fn a_pod_that_runs_is_given_answers_and_loses_them() {
    let stages = Stages::with(Config::new()).await;
    let field = json!({"fieldRef": {"fieldPath": "metadata.annotations['kubarium.dev/listens']"}});
    let container = json!({"name": "main", "image": "busybox", "env": [{"name": "SAID", "valueFrom": field}],
        "command": ["sh", "-c", "echo \"[$SAID]\"; sleep 1d"]});
    let optional = json!({"kubarium.dev/answers-from": "later, optional"});
    let extra = json!({"metadata": {"annotations": optional}, "spec": {"containers": [container]}});
    stages.answers("first", json!({"tcp.9": "echo", "listens": "declared"})).await;
    stages.create_pod("optional", extra.clone()).await;
    stages.create_pod("plain", json!({})).await;
    stages.pass(3).await;
    assert_eq!(
        (stages.phase("optional").await, stages.phase("plain").await),
        (json!("Running"), json!("Running"))
    );
    assert_eq!(stages.asked("plain:8080/proxy/").await.0, 503);
    stages.answers("later", json!({"http.8080": "[{body: here}]"})).await;
    for pod in ["optional", "plain"] {
        stages.annotate(pod, json!({"kubarium.dev/answers-from": "later"})).await;
        assert_eq!(stages.asked(&format!("{pod}:8080/proxy/")).await, says("here"), "{pod}");
        stages.annotate(pod, json!({"kubarium.dev/answers-from": null})).await;
        assert_eq!(stages.asked(&format!("{pod}:8080/proxy/")).await.0, 503, "{pod}");
        // It goes on without.
        stages.annotate(pod, json!({"kubarium.dev/answers-from": "nobody"})).await;
        stages.pass(61).await;
        assert_eq!(stages.phase(pod).await, "Running");
        let told = stages.told(pod, "InvalidListener").await;
        assert!(told[0].contains("configmap \"nobody\" not found"), "{told:?}");
    }
    // What a pod says of itself is its own annotations.
    stages.annotate("plain", json!({"kubarium.dev/answers-from": "two names"})).await;
    let told = stages.told("plain", "InvalidListener").await;
    assert!(told.iter().any(|why| why.contains("\"two names\": it may be the name")), "{told:?}");
    let mut own = extra;
    own["metadata"]["annotations"] = json!({"kubarium.dev/answers-from": "first"});
    stages.create_pod("own", own).await;
    stages.pass(3).await;
    assert_eq!(stages.asked("own/log").await, says("[]\n"));
}

#[tokio::test]
async fn a_stage_changes_what_a_pod_answers() {
    let stages = Stages::start().await;
    stages.create_pod("web", json!({})).await;
    let annotations = "annotations: {kubarium.dev/http.8080: '[{body: {{ .metadata.name }}}]'}";
    let spec = "spec: {containers: [{name: main, image: nginx}]}";
    let pod = format!("apiVersion: v1\nkind: Pod\nmetadata: {{name: web, {annotations}}}\n{spec}");
    let more = json!({"delay": {"durationMilliseconds": 10000}, "steps": [{"apply": {"template": pod}}]});
    stages.stage_of_config_maps("listens", more).await;
    stages.create_config_map("green", "listens").await;
    assert_eq!(stages.asked("web:8080/proxy/").await.0, 503);
    stages.pass(11).await;
    assert_eq!(stages.asked("web:8080/proxy/").await, says("green"));
    // And what is in the ConfigMap of its answers.
    let patch = json!({"patch": {"root": "data", "template": "http.9090: '[{body: blue}]'"}});
    let without = json!([{"key": ".data", "operator": "DoesNotExist"}]);
    let more = json!({"selector": {"matchExpressions": without}, "steps": [patch]});
    stages.stage_of_config_maps("fills", more).await;
    stages.create_config_map("answers", "fills").await;
    stages.annotate("web", json!({"kubarium.dev/answers-from": "answers"})).await;
    assert_eq!(stages.asked("web:9090/proxy/").await, says("blue"));
}
