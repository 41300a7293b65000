//! ValidatingAdmissionPolicies: policies in as YAML, the Status of a request out.

use std::time::Duration;

use kubarium::apis::admissionregistration::validating_admission_policy::VALIDATING_ADMISSION_POLICIES;
use kubarium::cluster::Components;
use kubarium::{Cluster, Config};
use serde::Deserialize;
use serde_json::{Value, json};

use super::Server;

const GROUP: &str = "/apis/admissionregistration.k8s.io/v1";

/// A story: what is set up, and what then becomes of requests.
#[derive(Deserialize)]
struct Story {
    name: String,
    /// Objects with `apiVersion` and `kind`; `path` says where an object goes that is no policy.
    given: Vec<Value>,
    requests: Vec<Request>,
}

#[derive(Deserialize)]
struct Request {
    line: String,
    #[serde(default)]
    body: Value,
    #[serde(default = "created")]
    code: u16,
    #[serde(default)]
    reason: String,
    #[serde(default)]
    message: String,
    #[serde(default)]
    warnings: Vec<String>,
    /// What the answer must hold, by JSON pointer.
    #[serde(default)]
    holds: std::collections::BTreeMap<String, Value>,
}

fn created() -> u16 {
    201
}

#[tokio::test]
async fn policies_say_what_upstreams_would() {
    tell(include_str!("admission_policies.yaml")).await;
}

#[tokio::test]
async fn mutating_policies_change_what_upstreams_would() {
    tell(include_str!("mutating_policies.yaml")).await;
}

async fn tell(stories: &str) {
    let stories: Vec<Story> = serde_yaml::from_str(stories).unwrap();
    for story in stories {
        let server = Server::start().await;
        for mut object in story.given {
            let path = match object["path"].take() {
                Value::String(path) => path,
                _ => format!("{GROUP}/{}", plural(object["kind"].as_str().unwrap())),
            };
            object.as_object_mut().unwrap().remove("path");
            server.create(&path, object).await;
        }
        for request in story.requests {
            let answer = server.call(&request.line, &request.body).await;
            let (code, reason, message) = answer.status();
            let shown = format!("{}: {}\n{}", story.name, request.line, answer.text);
            assert_eq!(code, request.code, "{shown}");
            if code >= 400 {
                assert_eq!(message, request.message, "{shown}");
                assert!(request.reason.is_empty() || reason == request.reason, "{shown}");
            }
            assert_eq!(answer.warnings(), request.warnings, "{shown}");
            for (pointer, value) in request.holds {
                assert_eq!(answer.json().pointer(&pointer), Some(&value), "{shown}");
            }
        }
    }
}

#[tokio::test]
async fn expressions_are_checked_against_the_kinds_they_are_about() {
    let components = Components::NONE.controllers(true);
    let cluster = Cluster::start(Config::new().nodes(0).components(components)).await.unwrap();
    let policy = json!({"metadata": {"name": "p"}, "spec": {
        "matchConstraints": {"resourceRules": [{"apiGroups": ["apps"], "apiVersions": ["v1"],
            "operations": ["CREATE"], "resources": ["deployments"]}]},
        "validations": [{"expression": "object.replicas > 1"}]}});
    cluster.client().create(&VALIDATING_ADMISSION_POLICIES, "", policy).await.unwrap();
    let status = loop {
        let policy = cluster.client().get(&VALIDATING_ADMISSION_POLICIES, "", "p").await.unwrap().to_value();
        if policy["status"]["observedGeneration"] == 1 {
            break policy["status"].clone();
        }
        cluster.clock().sleep(Duration::from_millis(5)).await;
    };
    let warning = "apps/v1, Kind=Deployment: ERROR: <input>:1:7: undefined field 'replicas'\n | object.replicas > 1\n \
        | ......^";
    let wanted = json!([{"fieldRef": "spec.validations[0].expression", "warning": warning}]);
    assert_eq!(status["typeChecking"]["expressionWarnings"], wanted);
}

fn plural(kind: &str) -> String {
    match kind.strip_suffix('y') {
        Some(stem) => format!("{}ies", stem.to_lowercase()),
        None => format!("{}s", kind.to_lowercase()),
    }
}
