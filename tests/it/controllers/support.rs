//! An apiserver and the controllers, and what a test does in place of the other components.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use chrono::DateTime;
use kubarium::apimachinery::labels::Selector;
use kubarium::apimachinery::object::Object;
use kubarium::apimachinery::options::{DeleteOptions, ListOptions, PatchType};
use kubarium::apimachinery::selectable::Predicate;
use kubarium::apimachinery::status::Status;
use kubarium::apis::apps::deployment::DEPLOYMENTS;
use kubarium::apis::core::event::EVENTS;
use kubarium::apis::core::namespace::NAMESPACES;
use kubarium::apis::core::pod::PODS;
use kubarium::apis::core::service_account::SERVICE_ACCOUNTS;
use kubarium::apis::kind::Kind;
use kubarium::client_go::Client;
use kubarium::clock::Clock;
use kubarium::cluster::{Cluster, Components, Config};
use kubarium::entropy::Entropy;
use serde_json::{Value, json};

/// The namespace that tests use.
pub(crate) const NAMESPACE: &str = "test";

/// So often a condition is looked at before it is given up.
const ATTEMPTS: usize = 4000;

/// A cluster, usually without scheduler and kubelets, on a stepped clock.
pub(crate) struct Fixture {
    /// An administrator's.
    pub client: Client,
    /// Stepped by [`Fixture::eventually`], and by tests that wait for a deadline.
    pub clock: Clock,
    /// The cluster itself.
    pub cluster: Cluster,
}

impl Fixture {
    /// With the namespace [`NAMESPACE`], ready for pods.
    pub(crate) async fn start() -> Fixture {
        Fixture::start_with(Components::NONE.controllers(true)).await
    }

    /// The same with other components.
    pub(crate) async fn start_with(components: Components) -> Fixture {
        Fixture::start_configured(Config::new().components(components)).await
    }

    /// The same of a config of the test's own.
    pub(crate) async fn start_configured(config: Config) -> Fixture {
        let clock = Clock::stepped(DateTime::from_timestamp(1_767_225_600, 0).unwrap());
        let entropy = Entropy::seeded(7);
        let config = config.clock(clock.clone()).entropy(entropy);
        let cluster = starting(&clock, Cluster::start(config)).await.unwrap();
        let fixture = Fixture { client: cluster.client(), clock, cluster };
        fixture.create(&NAMESPACES, "", json!({"metadata": {"name": NAMESPACE}})).await;
        fixture.exists(&SERVICE_ACCOUNTS, "default").await;
        fixture
    }

    /// Creates an object; it must be accepted.
    pub(crate) async fn create(&self, kind: &Kind, namespace: &str, tree: Value) -> Arc<Object> {
        self.client.create(kind, namespace, tree).await.unwrap_or_else(|error| panic!("{kind:?}: {error}"))
    }

    /// The object as it is now.
    pub(crate) async fn get(&self, kind: &Kind, name: &str) -> Option<Value> {
        let namespace = if kind.namespaced { NAMESPACE } else { "" };
        match self.client.get(kind, namespace, name).await {
            Ok(object) => Some(object.to_value()),
            Err(error) if error.is_not_found() => None,
            Err(error) => panic!("{error}"),
        }
    }

    /// Changes an object by a merge patch.
    pub(crate) async fn patch(&self, kind: &Kind, name: &str, patch: Value) {
        let namespace = if kind.namespaced { NAMESPACE } else { "" };
        self.client.patch(kind, namespace, name, PatchType::Merge, &patch).await.unwrap();
    }

    /// Deletes an object as a client would that says nothing but the policy.
    pub(crate) async fn delete(&self, kind: &Kind, name: &str, policy: &str) {
        let namespace = if kind.namespaced { NAMESPACE } else { "" };
        let options = DeleteOptions::propagation(policy);
        self.client.delete(kind, namespace, name, &options).await.unwrap();
    }

    /// All objects of a kind in [`NAMESPACE`] whose labels match.
    pub(crate) async fn list(&self, kind: &Kind, selector: &str) -> Vec<Value> {
        let labels = Selector::parse(selector).unwrap();
        let options =
            ListOptions { predicate: Predicate { labels, ..Predicate::default() }, ..ListOptions::default() };
        let list = self.client.list(kind, NAMESPACE, &options).await.unwrap();
        list.items.iter().map(|object| object.to_value()).collect()
    }

    /// The pods that match, without those on their way out.
    pub(crate) async fn pods(&self, selector: &str) -> Vec<Value> {
        let mut pods = self.list(&PODS, selector).await;
        pods.retain(|pod| pod["metadata"]["deletionTimestamp"].is_null());
        pods
    }

    /// The object, once it is there.
    pub(crate) async fn exists(&self, kind: &Kind, name: &str) -> Value {
        self.eventually(&format!("{kind:?} {name} exists"), || self.get(kind, name)).await
    }

    /// Until the object is gone.
    pub(crate) async fn gone(&self, kind: &Kind, name: &str) {
        let look = || async { self.get(kind, name).await.is_none().then_some(()) };
        self.eventually(&format!("{kind:?} {name} is gone"), look).await;
    }

    /// What `look` finds at last. Time goes on a little with each look.
    pub(crate) async fn eventually<T, Looked>(&self, what: &str, look: impl Fn() -> Looked) -> T
    where
        Looked: Future<Output = Option<T>>,
    {
        for _ in 0..ATTEMPTS {
            if let Some(found) = look().await {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
            self.clock.advance(Duration::from_millis(20));
        }
        panic!("in vain: {what}");
    }

    /// Lets so much time pass, in steps that everybody can follow.
    pub(crate) async fn pass(&self, time: Duration) {
        let until = self.clock.elapsed() + time;
        while self.clock.elapsed() < until {
            self.clock.advance(Duration::from_millis(500).min(until - self.clock.elapsed()));
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    /// Looks `times` more, with time going on: what should stay as it is has its chance not to.
    pub(crate) async fn settle(&self, times: usize) {
        for _ in 0..times {
            tokio::time::sleep(Duration::from_millis(1)).await;
            self.clock.advance(Duration::from_millis(20));
        }
    }

    /// What a kubelet does in time: pods that wait become ready, pods on their way out go.
    pub(crate) async fn run_pods(&self, selector: &str) {
        for (number, pod) in self.list(&PODS, selector).await.iter().enumerate() {
            let name = pod["metadata"]["name"].as_str().unwrap();
            if !pod["metadata"]["deletionTimestamp"].is_null() {
                let now = DeleteOptions { grace_period_seconds: Some(0), ..DeleteOptions::default() };
                ignore_not_found(self.client.delete(&PODS, NAMESPACE, name, &now).await);
            } else if pod["status"]["phase"] != "Running" {
                self.set_ready(name, "True", &format!("10.0.0.{}", number + 1)).await;
            }
        }
    }

    /// Sets a pod's phase to Running, its address, and its `Ready` condition.
    pub(crate) async fn set_ready(&self, name: &str, ready: &str, ip: &str) {
        let now = kubarium::apimachinery::time::rfc3339(self.clock.now());
        let condition = json!({"type": "Ready", "status": ready, "lastTransitionTime": now});
        let status =
            json!({"phase": "Running", "podIP": ip, "podIPs": [{"ip": ip}], "conditions": [condition]});
        let patch = json!({"status": status});
        let patched =
            self.client.patch_status(&PODS, NAMESPACE, name, PatchType::Merge, &patch).await.map(drop);
        ignore_not_found(patched);
    }

    /// A deployment whose pods are run until it has rolled out.
    pub(crate) async fn rolled_out(&self, name: &str) -> Value {
        self.eventually(&format!("deployment {name} is rolled out"), || async {
            self.run_pods("").await;
            let deployment = self.get(&DEPLOYMENTS, name).await?;
            let (spec, status) = (&deployment["spec"], &deployment["status"]);
            let is_observed = status["observedGeneration"] == deployment["metadata"]["generation"];
            let counts = ["replicas", "updatedReplicas", "availableReplicas"];
            let is_done = counts.iter().all(|count| status[count] == spec["replicas"]) && is_observed;
            is_done.then_some(deployment.clone())
        })
        .await
    }

    /// The messages of all events with a reason, and how often each was told.
    pub(crate) async fn events(&self, reason: &str) -> BTreeMap<String, i64> {
        let events = self.list(&EVENTS, "").await;
        let of_reason = events.iter().filter(|event| event["reason"] == reason);
        let text = |event: &Value| event["message"].as_str().unwrap().to_owned();
        of_reason.map(|event| (text(event), event["count"].as_i64().unwrap_or(1))).collect()
    }

    /// Until there is an event with this message.
    pub(crate) async fn told(&self, reason: &str, message: &str) {
        let look = || async { self.events(reason).await.contains_key(message).then_some(()) };
        self.eventually(&format!("{reason}: {message}"), look).await;
    }
}

/// Lets time go on until `start` is done: starting may wait for it.
async fn starting<T>(clock: &Clock, start: impl Future<Output = T>) -> T {
    let tick = async {
        loop {
            tokio::time::sleep(Duration::from_millis(1)).await;
            clock.advance(Duration::from_millis(20));
        }
    };
    tokio::select! {
        started = start => started,
        () = tick => unreachable!("time goes on"),
    }
}

/// A deployment of pods with the label `app`.
pub(crate) fn deployment(name: &str, replicas: i64, image: &str, change: Value) -> Value {
    let template = json!({
        "metadata": {"labels": {"app": name}},
        "spec": {"containers": [{"name": "c", "image": image}]},
    });
    let mut spec =
        json!({"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template});
    for (key, value) in change.as_object().into_iter().flatten() {
        spec[key] = value.clone();
    }
    json!({"metadata": {"name": name}, "spec": spec})
}

/// A condition in a status.
pub(crate) fn condition<'a>(object: &'a Value, condition_type: &str) -> &'a Value {
    let conditions = object["status"]["conditions"].as_array();
    conditions.into_iter().flatten().find(|it| it["type"] == condition_type).unwrap_or(&Value::Null)
}

/// The name of an object.
pub(crate) fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap()
}

fn ignore_not_found(result: Result<(), Status>) {
    if let Err(error) = result {
        assert!(error.is_not_found(), "{error}");
    }
}
