//! One object of a kind through all that can be done to it, with watches open on the kind and on its namespace.
//!
//! Create, get, update, the status, then anew for each kind of patch of the object and of its status, and
//! deletecollection. The kinds are data, in `tests/conformance/lifecycle.yaml`.

use serde_json::{Value, json};

use super::*;
use crate::apiserver::{Answer, Server};
use crate::support::script::matching::holds;

/// A kind, an object of it, and what becomes of it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Lifecycle {
    row: String,
    /// As `resource.k8s.io/v1`.
    version: String,
    kind: String,
    resource: String,
    #[serde(default)]
    namespaced: bool,
    object: Value,
    /// What an update and the first three patches change.
    update: Value,
    /// The same as a JSON patch.
    json_patch: Value,
    /// What the status becomes, if there is one.
    #[serde(default)]
    status: Value,
}

fn all() -> Vec<Lifecycle> {
    script::read(&root().join("tests/conformance/lifecycle.yaml")).unwrap()
}

pub(crate) fn rows() -> Vec<String> {
    all().into_iter().map(|lifecycle| lifecycle.row).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_object_lives_through_every_verb() {
    let Some(cluster) = TestCluster::start(Some(1), "tests/conformance/lifecycle.yaml").await else { return };
    let server = Server::over(cluster.service());
    for lifecycle in all() {
        eprintln!("{}", lifecycle.row);
        let walk = Walk { server: &server, kind: &lifecycle };
        let revision = walk.revision().await;
        let events = walk.run().await;
        for collection in [walk.places().everywhere(), walk.places().collection()] {
            let line = format!("GET {collection}?watch=true&resourceVersion={revision}&{SELECTOR}");
            let step = serde_json::from_value(json!({"do": line, "until": events})).unwrap();
            Runner::new(server.service(), &[]).run(&step).await.unwrap();
        }
    }
    cluster.stop().await;
}

const SELECTOR: &str = "labelSelector=e2e-test.kubernetes.io%3Dlifecycle";
const PATCHES: [&str; 4] =
    ["strategic-merge-patch+json", "apply-patch+yaml", "merge-patch+json", "json-patch+json"];

struct Walk<'a> {
    server: &'a Server,
    kind: &'a Lifecycle,
}

impl Walk<'_> {
    /// The types of the events that there must be.
    async fn run(&self) -> Vec<Value> {
        let mut types = vec![];
        let created = self.create().await;
        types.extend(["ADDED", "MODIFIED"]);
        let updated = self.update("", &self.kind.update).await;
        assert!(revision_of(&created) < revision_of(&updated));
        if !self.kind.status.is_null() {
            types.push("MODIFIED");
            self.update("/status", &json!({"status": self.kind.status})).await;
        }
        let has_status = !self.kind.status.is_null();
        for subresource in ["", "/status"].into_iter().filter(|it| it.is_empty() || has_status) {
            for media_type in PATCHES {
                self.delete().await;
                self.create().await;
                self.patch(subresource, media_type).await;
                types.extend(["DELETED", "ADDED", "MODIFIED"]);
            }
        }
        let line = format!("DELETE {}?{SELECTOR}", self.places().collection());
        self.ok(self.server.call(&line, &Value::Null).await);
        self.is_gone().await;
        types.push("DELETED");
        types.into_iter().map(|name| json!({"type": name})).collect()
    }

    async fn revision(&self) -> String {
        let list = self.server.get(&self.places().everywhere()).await;
        list["metadata"]["resourceVersion"].as_str().unwrap().to_owned()
    }

    fn places(&self) -> Places<'_> {
        let Lifecycle { version, resource, namespaced, .. } = self.kind;
        Places { version, resource, namespaced: *namespaced }
    }

    fn path(&self) -> String {
        format!("{}/lifecycle", self.places().collection())
    }

    fn ok(&self, answer: Answer) -> Value {
        assert!((200..300).contains(&answer.code), "{}: {}", self.kind.row, answer.text);
        answer.json()
    }

    async fn create(&self) -> Value {
        let mut object = self.kind.object.clone();
        object["apiVersion"] = self.kind.version.clone().into();
        object["kind"] = self.kind.kind.clone().into();
        object["metadata"] = json!({"name": "lifecycle", "labels": {"e2e-test.kubernetes.io": "lifecycle"}});
        let line = format!("POST {}?fieldValidation=Strict", self.places().collection());
        let created = self.ok(self.server.call(&line, &object).await);
        holds(&object, &created, "").unwrap();
        created
    }

    async fn update(&self, subresource: &str, changes: &Value) -> Value {
        let path = format!("{}{subresource}", self.path());
        let mut object = self.server.get(&path).await;
        json_patch::merge(&mut object, changes);
        let updated = self.ok(self.server.call(&format!("PUT {path}"), &object).await);
        holds(changes, &updated, "").unwrap();
        updated
    }

    async fn patch(&self, subresource: &str, media_type: &str) {
        let path = format!("{}{subresource}", self.path());
        let read = self.server.get(&path).await;
        let status = json!({"status": self.kind.status});
        let wanted = if subresource.is_empty() { &self.kind.update } else { &status };
        let patch = match (media_type, subresource) {
            ("json-patch+json", "") => self.kind.json_patch.clone(),
            ("json-patch+json", _) => json!([{"op": "add", "path": "/status", "value": self.kind.status}]),
            _ => self.complete(wanted, &read),
        };
        let apply = if media_type.starts_with("apply") { "&fieldManager=test-apply&force=true" } else { "" };
        let path = format!("{path}?fieldValidation=Strict{apply}");
        let media_type = format!("application/{media_type}");
        let patched = self.ok(self.server.patch(&path, &media_type, &patch.to_string()).await);
        holds(wanted, &patched, &media_type).unwrap();
    }

    /// With what names the object that is patched.
    fn complete(&self, changes: &Value, object: &Value) -> Value {
        let mut patch = changes.clone();
        patch["apiVersion"] = self.kind.version.clone().into();
        patch["kind"] = self.kind.kind.clone().into();
        for field in ["name", "namespace", "uid"] {
            if !object["metadata"][field].is_null() {
                patch["metadata"][field] = object["metadata"][field].clone();
            }
        }
        patch
    }

    async fn delete(&self) {
        self.ok(self.server.call(&format!("DELETE {}", self.path()), &Value::Null).await);
        self.is_gone().await;
    }

    async fn is_gone(&self) {
        let line = format!("GET {}", self.path());
        let step = serde_json::from_value(json!({"do": line, "code": 404, "eventually": true})).unwrap();
        Runner::new(self.server.service(), &[]).run(&step).await.unwrap();
    }
}

fn revision_of(object: &Value) -> u64 {
    object["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap()
}
