//! "Should support ... API operations": discovery and every verb of a kind, as such tests go through them.
//!
//! The kinds are data, in `tests/conformance/operations.yaml`.

use serde_json::json;

use super::*;
use crate::apiserver::Server;
use crate::support::script::matching::at;
use serde_json::Value;

/// A kind and what is sent of it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Operations {
    row: String,
    /// As `networking.k8s.io/v1`.
    version: String,
    resource: String,
    #[serde(default)]
    namespaced: bool,
    body: Value,
    /// Names, where none can be made.
    #[serde(default)]
    names: Vec<String>,
    /// What a merge patch changes beside an annotation.
    #[serde(default)]
    change: Value,
    /// What a merge patch of `/status` puts there.
    #[serde(default)]
    status: Value,
}

fn all() -> Vec<Operations> {
    script::read(&root().join("tests/conformance/operations.yaml")).unwrap()
}

pub(crate) fn rows() -> Vec<String> {
    all().into_iter().map(|operations| operations.row).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kind_supports_its_operations() {
    let Some(cluster) = TestCluster::start(Some(1), "tests/conformance/operations.yaml").await else {
        return;
    };
    let server = Server::over(cluster.service());
    for operations in all() {
        eprintln!("{}", operations.row);
        Walk { server: &server, kind: &operations }.run().await;
    }
    cluster.stop().await;
}

struct Walk<'a> {
    server: &'a Server,
    kind: &'a Operations,
}

const SELECTOR: &str = "labelSelector=special-label%3Dwalk";

impl Walk<'_> {
    async fn run(&self) {
        self.discover().await;
        let names = self.create().await;
        let list = self.list().await;
        assert_eq!(list["items"].as_array().unwrap().len(), 3, "{}", self.kind.row);
        let revision = at(&list, "metadata.resourceVersion").unwrap().as_str().unwrap().to_owned();
        self.change(&names[2]).await;
        for collection in [self.places().everywhere(), self.places().collection()] {
            let line = format!("GET {collection}?watch=true&resourceVersion={revision}&{SELECTOR}");
            let object = json!({"metadata": {"name": names[2], "annotations": {"patched": "true"}}});
            let step = json!({"do": line, "until": [{"type": "MODIFIED", "object": object}]});
            let step = serde_json::from_value(step).unwrap();
            Runner::new(self.server.service(), &[]).run(&step).await.unwrap();
        }
        if !self.kind.status.is_null() {
            self.change_status(&names[2]).await;
        }
        self.remove(&names[2]).await;
    }

    fn places(&self) -> Places<'_> {
        let Operations { version, resource, namespaced, .. } = self.kind;
        Places { version, resource, namespaced: *namespaced }
    }

    async fn ok(&self, line: &str, body: Value) -> Value {
        let answer = self.server.call(line, &body).await;
        assert!((200..300).contains(&answer.code), "{}: {line}: {}", self.kind.row, answer.text);
        answer.json()
    }

    async fn discover(&self) {
        let has = |list: &Value, key: &str, value: &str| {
            list.as_array().unwrap().iter().any(|entry| entry[key] == *value)
        };
        let group = self.kind.version.split('/').next().unwrap();
        assert!(has(&self.server.get("/apis").await["groups"], "name", group));
        let versions = self.server.get(&format!("/apis/{group}")).await["versions"].clone();
        assert!(has(&versions, "groupVersion", &self.kind.version));
        let resources = self.server.get(&format!("/apis/{}", self.kind.version)).await["resources"].clone();
        assert!(has(&resources, "name", &self.kind.resource));
        if !self.kind.status.is_null() {
            assert!(has(&resources, "name", &format!("{}/status", self.kind.resource)));
        }
    }

    async fn create(&self) -> Vec<String> {
        let mut names = vec![];
        for number in 0..3 {
            let mut body = self.kind.body.clone();
            body["metadata"]["labels"]["special-label"] = "walk".into();
            match self.kind.names.get(number) {
                Some(name) => body["metadata"]["name"] = name.clone().into(),
                None => body["metadata"]["generateName"] = "e2e-example-".into(),
            }
            let created = self.ok(&format!("POST {}", self.places().collection()), body).await;
            let name = created["metadata"]["name"].as_str().unwrap().to_owned();
            let read = self.server.get(&format!("{}/{name}", self.places().collection())).await;
            assert_eq!(read["metadata"]["uid"], created["metadata"]["uid"]);
            names.push(name);
        }
        names
    }

    async fn list(&self) -> Value {
        let here = self.server.get(&format!("{}?{SELECTOR}", self.places().collection())).await;
        let everywhere = self.server.get(&format!("{}?{SELECTOR}", self.places().everywhere())).await;
        let names = |list: &Value| -> Vec<Value> {
            list["items"].as_array().unwrap().iter().map(|item| item["metadata"]["name"].clone()).collect()
        };
        assert_eq!(names(&everywhere), names(&here), "{}", self.kind.row);
        here
    }

    /// Patches, then updates.
    async fn change(&self, name: &str) {
        let path = format!("{}/{name}", self.places().collection());
        let mut patch = json!({"metadata": {"annotations": {"patched": "true"}}});
        if self.kind.change.is_object() {
            json_patch::merge(&mut patch, &self.kind.change);
        }
        let patched = self.patch(&path, &patch).await;
        assert_eq!(at(&patched, "metadata.annotations.patched"), Some(&json!("true")));
        holds(&self.kind.change, &patched);
        let updated = self.update(&path, json!({"metadata": {"annotations": {"updated": "true"}}})).await;
        assert_eq!(at(&updated, "metadata.annotations.updated"), Some(&json!("true")));
    }

    async fn change_status(&self, name: &str) {
        let path = format!("{}/{name}/status", self.places().collection());
        let read = self.server.get(&path).await;
        assert_eq!(read["metadata"]["name"], name);
        let patch =
            json!({"metadata": {"annotations": {"patchedstatus": "true"}}, "status": self.kind.status});
        let patched = self.patch(&path, &patch).await;
        holds(&self.kind.status, &patched["status"]);
        // Objects whose strategy lets a status write nothing else keep their annotations.
        let updated = self.update(&path, json!({"status": self.kind.status})).await;
        holds(&self.kind.status, &updated["status"]);
    }

    async fn patch(&self, path: &str, patch: &Value) -> Value {
        let answer = self.server.patch(path, "application/merge-patch+json", &patch.to_string()).await;
        assert_eq!(answer.code, 200, "{}: {path}: {}", self.kind.row, answer.text);
        answer.json()
    }

    /// Again after a conflict.
    async fn update(&self, path: &str, changes: Value) -> Value {
        loop {
            let mut object = self.server.get(path).await;
            json_patch::merge(&mut object, &changes);
            let answer = self.server.call(&format!("PUT {path}"), &object).await;
            if answer.code == 200 {
                return answer.json();
            }
            assert_eq!(answer.code, 409, "{}: {}", self.kind.row, answer.text);
        }
    }

    async fn remove(&self, name: &str) {
        let path = format!("{}/{name}", self.places().collection());
        self.ok(&format!("DELETE {path}"), Value::Null).await;
        let gone = async |path: &str| {
            let answer = self.server.call(&format!("GET {path}"), &Value::Null).await;
            match answer.code {
                404 => true,
                _ => answer.json()["items"].as_array().is_some_and(Vec::is_empty),
            }
        };
        // What has finalizers goes when its controller has let go.
        self.until(async || gone(&path).await).await;
        let list = self.list().await;
        assert_eq!(list["items"].as_array().unwrap().len(), 2, "{}", self.kind.row);
        let collection = format!("{}?{SELECTOR}", self.places().collection());
        self.ok(&format!("DELETE {collection}"), Value::Null).await;
        self.until(async || gone(&collection).await).await;
    }

    async fn until(&self, ask: impl AsyncFn() -> bool) {
        let start = std::time::Instant::now();
        while !ask().await {
            assert!(start.elapsed() < crate::support::PATIENCE, "{}: never gone", self.kind.row);
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    }
}

fn holds(wanted: &Value, found: &Value) {
    script::matching::holds(wanted, found, "").unwrap();
}
