//! DaemonSets and StatefulSets: pods per node, pods in order, and the history of both.

mod daemon_sets;
mod stateful_sets;
mod volumes;

use std::collections::BTreeMap;
use std::future::Future;
use std::time::{Duration, Instant};

use kubarium::apimachinery::labels::Selector;
use kubarium::apimachinery::options::{ListOptions, PatchType};
use kubarium::apimachinery::selectable::Predicate;
use kubarium::apis::apps::controller_revision::CONTROLLER_REVISIONS;
use kubarium::apis::core::event::EVENTS;
use kubarium::apis::core::namespace::NAMESPACES;
use kubarium::apis::core::pod::PODS;
use kubarium::apis::kind::Kind;
use kubarium::client_go::Client;
use kubarium::entropy::Entropy;
use kubarium::{Cluster, Config};
use serde_json::{Value, json};

use crate::support::PATIENCE;

const NAMESPACE: &str = "test";

/// A whole cluster, with nodes that run pods.
struct World {
    client: Client,
    cluster: Cluster,
}

impl World {
    async fn start(nodes: u32) -> World {
        World::of(Config::new().nodes(nodes).entropy(Entropy::seeded(11))).await
    }

    async fn of(config: Config) -> World {
        let cluster = Cluster::start(config).await.unwrap();
        let client = cluster.client();
        client.create(&NAMESPACES, "", json!({"metadata": {"name": NAMESPACE}})).await.unwrap();
        World { client, cluster }
    }

    async fn create(&self, kind: &Kind, tree: Value) {
        self.client.create(kind, namespace_of(kind), tree).await.unwrap();
    }

    async fn get(&self, kind: &Kind, name: &str) -> Option<Value> {
        self.client.get(kind, namespace_of(kind), name).await.ok().map(|object| object.to_value())
    }

    async fn patch(&self, kind: &Kind, name: &str, patch: Value) {
        self.client.patch(kind, namespace_of(kind), name, PatchType::Merge, &patch).await.unwrap();
    }

    async fn patch_status(&self, kind: &Kind, name: &str, patch: Value) {
        let namespace = namespace_of(kind);
        self.client.patch_status(kind, namespace, name, PatchType::Merge, &patch).await.unwrap();
    }

    async fn list(&self, kind: &Kind, selector: &str) -> Vec<Value> {
        let labels = Selector::parse(selector).unwrap();
        let predicate = Predicate { labels, ..Predicate::default() };
        let options = ListOptions { predicate, ..ListOptions::default() };
        let list = self.client.list(kind, namespace_of(kind), &options).await.unwrap();
        list.items.iter().map(|object| object.to_value()).collect()
    }

    /// The pods that are not on their way out.
    async fn pods(&self) -> Vec<Value> {
        let mut pods = self.list(&PODS, "").await;
        pods.retain(|pod| pod["metadata"]["deletionTimestamp"].is_null());
        pods
    }

    /// The revisions, the oldest first.
    async fn revisions(&self) -> Vec<Value> {
        let mut revisions = self.list(&CONTROLLER_REVISIONS, "").await;
        revisions.sort_by_key(|revision| revision["revision"].as_i64());
        revisions
    }

    /// The messages of the events with a reason.
    async fn events(&self, reason: &str) -> Vec<String> {
        let mut events = self.list(&EVENTS, "").await;
        events.retain(|event| event["reason"] == reason);
        events.iter().map(|event| event["message"].as_str().unwrap().to_owned()).collect()
    }

    async fn told(&self, reason: &str, part: &str) {
        let told =
            || async { self.events(reason).await.iter().any(|text| text.contains(part)).then_some(()) };
        self.until(&format!("{reason}: {part}"), told).await;
    }

    /// What `look` finds at last.
    async fn until<T, Looked>(&self, what: &str, look: impl Fn() -> Looked) -> T
    where
        Looked: Future<Output = Option<T>>,
    {
        let start = Instant::now();
        loop {
            if let Some(found) = look().await {
                return found;
            }
            assert!(start.elapsed() < PATIENCE, "in vain: {what}");
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    /// The object, once it is as wanted.
    async fn when(&self, kind: &Kind, name: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let start = Instant::now();
        loop {
            let found = self.get(kind, name).await;
            if let Some(found) = found.as_ref().filter(|found| wanted(found)) {
                return found.clone();
            }
            let text = || found.map_or("nothing".to_owned(), |found| format!("{found:#}"));
            assert!(start.elapsed() < PATIENCE, "in vain: {name}; it is {}", text());
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }
}

fn namespace_of(kind: &Kind) -> &'static str {
    if kind.namespaced { NAMESPACE } else { "" }
}

fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap()
}

fn node_of(pod: &Value) -> &str {
    pod["spec"]["nodeName"].as_str().unwrap_or("")
}

fn is_ready(pod: &Value) -> bool {
    let conditions = pod["status"]["conditions"].as_array();
    conditions.into_iter().flatten().any(|it| it["type"] == "Ready" && it["status"] == "True")
}

/// Whether a label of a revision or pod has a value.
fn label<'a>(object: &'a Value, key: &str) -> &'a str {
    object["metadata"]["labels"][key].as_str().unwrap_or("")
}

/// A patch of the image.
fn image(image: &str) -> Value {
    json!({"spec": {"template": {"spec": {"containers": [{"name": "c", "image": image}]}}}})
}

/// The counts of a status that are not 0.
fn counts(object: &Value) -> BTreeMap<String, i64> {
    let members = object["status"].as_object().cloned().unwrap_or_default();
    let count = |(name, value): (String, Value)| Some((name, value.as_i64().filter(|count| *count != 0)?));
    members.into_iter().filter_map(count).filter(|(name, _)| name != "observedGeneration").collect()
}
