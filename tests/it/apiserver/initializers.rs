//! The worked example in `manifests/examples/initializers`, followed step by step.

use kubarium::apimachinery::feature_gates::FeatureGates;

use super::watches::events;
use super::*;

const PODS: &str = "/api/v1/namespaces/default/pods";
const CONFIGURATIONS: &str = "/apis/admissionregistration.k8s.io/v1alpha1/initializerconfigurations";
const JSON_PATCH: &str = "application/json-patch+json";

const CONFIGURATION: &str = include_str!("../../../manifests/examples/initializers/configuration.yaml");
const POD: &str = include_str!("../../../manifests/examples/initializers/pod.yaml");
const SIDECAR: &str = include_str!("../../../manifests/examples/initializers/sidecar.json");
const APPROVAL: &str = include_str!("../../../manifests/examples/initializers/approval.json");
const REFUSAL: &str = include_str!("../../../manifests/examples/initializers/refusal.json");

async fn start() -> Arc<Server> {
    let gates = FeatureGates::parse("Initializers=true").unwrap();
    let server = Server::start_with(|config| config.feature_gates = gates).await;
    server.create(CONFIGURATIONS, serde_yaml::from_str(CONFIGURATION).unwrap()).await;
    Arc::new(server)
}

/// Begins to create the pod, and waits until it is stored.
async fn create_pod(server: &Arc<Server>) -> tokio::task::JoinHandle<Answer> {
    let creator = server.clone();
    let creating = tokio::spawn(async move {
        creator.call(&format!("POST {PODS}"), &serde_yaml::from_str(POD).unwrap()).await
    });
    while server.call(&format!("GET {PODS}/waiting"), &Value::Null).await.code != 200 {
        tokio::task::yield_now().await;
    }
    creating
}

async fn names(server: &Server, query: &str) -> Vec<String> {
    let list = server.get(&format!("{PODS}{query}")).await;
    let items = list["items"].as_array().cloned().unwrap_or_default();
    items.iter().map(|pod| pod["metadata"]["name"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn a_pod_waits_for_its_initializers_unseen() {
    let server = start().await;
    let revision = server.get(PODS).await["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
    let creating = create_pod(&server).await;
    assert!(names(&server, "").await.is_empty());
    assert_eq!(names(&server, "?includeUninitialized=true").await, ["waiting"]);
    let waiting = server.get(&format!("{PODS}/waiting")).await;
    let pending =
        json!([{"name": "sidecar.initializers.example.com"}, {"name": "approval.initializers.example.com"}]);
    assert_eq!(waiting["metadata"]["initializers"]["pending"], pending);
    let path = format!("{PODS}/waiting");
    let too_early = server.patch(&path, JSON_PATCH, APPROVAL).await;
    assert_eq!(too_early.code, 422, "{}", too_early.text);
    assert_eq!(server.patch(&path, JSON_PATCH, SIDECAR).await.code, 200);
    assert!(!creating.is_finished() && names(&server, "").await.is_empty());
    assert_eq!(server.patch(&path, JSON_PATCH, APPROVAL).await.code, 200);
    let created = creating.await.unwrap();
    assert_eq!(created.code, 201, "{}", created.text);
    let pod = created.json();
    assert_eq!(pod["metadata"]["initializers"], Value::Null);
    assert_eq!(pod["spec"]["containers"][1]["name"], "proxy");
    let path_of_watch = format!("{PODS}?watch=true&resourceVersion={revision}");
    let event = &events(&server, &path_of_watch, "application/json", 1).await[0];
    assert_eq!((&event["type"], &event["object"]["metadata"]["name"]), (&json!("ADDED"), &json!("waiting")));
    assert_eq!(event["object"]["metadata"]["initializers"], Value::Null);
    assert_eq!(names(&server, "").await, ["waiting"]);
    let again = json!({"metadata": {"initializers": {"pending": [{"name": "a.example.com"}]}}});
    let refused = server.patch(&path, "application/merge-patch+json", &again.to_string()).await;
    let text = "Pod \"waiting\" is invalid: metadata.initializers: Invalid value: null: field is immutable once \
                initialization has completed";
    assert_eq!(refused.status().2, text);
}

#[tokio::test]
async fn a_pod_that_an_initializer_refuses_is_gone() {
    let server = start().await;
    let creating = create_pod(&server).await;
    let refused = server.patch(&format!("{PODS}/waiting"), JSON_PATCH, REFUSAL).await;
    assert_eq!(refused.code, 200, "{}", refused.text);
    let answer = creating.await.unwrap();
    assert_eq!(answer.status(), (403, "Forbidden".into(), "the sidecar does not fit".into()));
    assert_eq!(server.call(&format!("GET {PODS}/waiting"), &Value::Null).await.code, 404);
}

#[tokio::test]
async fn who_may_initialize_gets_past_the_initializers() {
    let server = start().await;
    let mut pod: Value = serde_yaml::from_str(POD).unwrap();
    pod["metadata"]["initializers"] = json!({"pending": []});
    let created = server.create(PODS, pod).await;
    assert_eq!(created["metadata"]["initializers"], Value::Null);
    let seen =
        server.create("/api/v1/namespaces/default/configmaps", json!({"metadata": {"name": "other"}})).await;
    assert_eq!(seen["metadata"]["initializers"], Value::Null);
}

#[tokio::test]
async fn without_the_gate_there_is_no_such_thing() {
    let server = Server::start().await;
    assert_eq!(server.call(&format!("GET {CONFIGURATIONS}"), &Value::Null).await.code, 404);
    let mut pod: Value = serde_yaml::from_str(POD).unwrap();
    pod["metadata"]["initializers"] = json!({"pending": [{"name": "a.example.com"}]});
    let created = server.create(PODS, pod).await;
    assert_eq!(created["metadata"]["initializers"], Value::Null);
}
