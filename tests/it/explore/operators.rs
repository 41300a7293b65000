//! Small operators, each with a place for a bug that real ones have.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use kubarium::apimachinery::user::UserInfo;
use kubarium::apimachinery::watch::WatchEvent;
use kubarium::kinds::{CONFIG_MAPS, SECRETS};
use kubarium::{Client, Clock, Cluster, ListOptions, Object, PatchType, Status};
use serde_json::{Value, json};

pub(crate) const NAMESPACE: &str = "default";
pub(crate) const FINALIZER: &str = "example.com/cleanup";
/// How long an operator waits before it tries again.
const PAUSE: Duration = Duration::from_secs(1);

/// Which bugs it has.
#[derive(Clone, Copy)]
pub(crate) struct Bugs {
    /// Makes a child whenever its cache shows none, under a name that the server chooses.
    pub generates_names: bool,
    /// Does not try again what has failed.
    pub forgets_finalizer: bool,
    /// Watches again from where it was when it is told that this is too old.
    pub ignores_expiry: bool,
}

impl Bugs {
    pub(crate) const NONE: Bugs =
        Bugs { generates_names: false, forgets_finalizer: false, ignores_expiry: false };
}

struct Operator {
    client: Client,
    clock: Clock,
    bugs: Bugs,
    cache: BTreeMap<String, Arc<Object>>,
}

/// Starts one that makes a child for each parent, and keeps a finalizer on it; it ends with its runtime.
pub(crate) fn operator(cluster: &Cluster, bugs: Bugs) {
    let client = client(cluster, "operator");
    let operator = Operator { client, clock: cluster.clock().clone(), bugs, cache: BTreeMap::new() };
    tokio::spawn(operator.run());
}

fn client(cluster: &Cluster, name: &str) -> Client {
    cluster.client().acting_as(UserInfo::authenticated(name, &["system:masters"]))
}

impl Operator {
    async fn run(mut self) {
        let mut from: Option<u64> = None;
        loop {
            let start = match from.filter(|_| self.bugs.ignores_expiry) {
                Some(revision) => revision,
                None => match self.list().await {
                    Ok(revision) => revision,
                    Err(_) => {
                        self.clock.sleep(PAUSE).await;
                        continue;
                    }
                },
            };
            from = Some(self.watch(start).await);
            self.clock.sleep(PAUSE).await;
        }
    }

    async fn list(&mut self) -> Result<u64, Status> {
        let list = self.client.list(&CONFIG_MAPS, NAMESPACE, &ListOptions::default()).await?;
        self.cache = list.items.iter().map(|map| (map.metadata.name.to_string(), map.clone())).collect();
        for name in self.cache.keys().cloned().collect::<Vec<_>>() {
            self.reconcile(&name).await;
        }
        Ok(list.resource_version)
    }

    /// Until the watch ends; how far it came.
    async fn watch(&mut self, mut revision: u64) -> u64 {
        let options = ListOptions { resource_version: Some(revision.to_string()), ..ListOptions::default() };
        let Ok(mut events) = self.client.watch(&CONFIG_MAPS, NAMESPACE, &options).await else {
            return revision;
        };
        while let Some(event) = events.recv().await {
            let Some(object) = event.object() else { continue };
            revision = object.metadata.resource_version;
            let name = object.metadata.name.to_string();
            if matches!(event, WatchEvent::Deleted(_)) {
                self.cache.remove(&name);
            } else {
                self.cache.insert(name.clone(), object.clone());
                self.reconcile(&name).await;
            }
        }
        revision
    }

    async fn reconcile(&mut self, name: &str) {
        let Some(map) = self.cache.get(name).map(|map| map.to_value()) else { return };
        if map["metadata"]["labels"]["role"] != "parent" {
            return;
        }
        while let Err(status) = self.bring_about(name, &map).await {
            if self.bugs.forgets_finalizer || status.is_not_found() {
                return;
            }
            self.clock.sleep(PAUSE).await;
        }
    }

    async fn bring_about(&self, name: &str, map: &Value) -> Result<(), Status> {
        let is_going = map["metadata"]["deletionTimestamp"].is_string();
        let has_finalizer = map["metadata"]["finalizers"] == json!([FINALIZER]);
        if is_going == has_finalizer {
            let finalizers = if is_going { json!(null) } else { json!([FINALIZER]) };
            let patch = json!({"metadata": {"finalizers": finalizers}});
            self.client.patch(&CONFIG_MAPS, NAMESPACE, name, PatchType::Merge, &patch).await?;
        }
        if is_going { Ok(()) } else { self.child(name).await }
    }

    async fn child(&self, parent: &str) -> Result<(), Status> {
        let is_child = |map: &Arc<Object>| map.to_value()["metadata"]["labels"]["of"] == *parent;
        if self.cache.values().any(is_child) {
            return Ok(());
        }
        let mut metadata = json!({"labels": {"of": parent}});
        let field = if self.bugs.generates_names { "generateName" } else { "name" };
        metadata[field] = json!(format!("{parent}-child"));
        let child = json!({"metadata": metadata});
        match self.client.create(&CONFIG_MAPS, NAMESPACE, child).await {
            Err(status) if !status.is_already_exists() => Err(status),
            _ => Ok(()),
        }
    }
}

/// Starts a controller that keeps its name in a field of each parent.
pub(crate) fn keeps(cluster: &Cluster, name: &str, field: &str) {
    let client = client(cluster, name);
    let clock = cluster.clock().clone();
    let (name, field) = (name.to_owned(), field.to_owned());
    tokio::spawn(async move {
        loop {
            let maps = client.list(&CONFIG_MAPS, NAMESPACE, &ListOptions::default()).await;
            let maps = maps.map(|list| list.items.iter().map(|map| map.to_value()).collect::<Vec<_>>());
            for map in maps.unwrap_or_default() {
                let is_wrong = map["data"][&field] != *name && map["metadata"]["labels"]["role"] == "parent";
                let patch = json!({"data": {&*field: name}});
                let parent = map["metadata"]["name"].as_str().unwrap();
                if is_wrong {
                    let _ = client.patch(&CONFIG_MAPS, NAMESPACE, parent, PatchType::Merge, &patch).await;
                }
            }
            clock.sleep(PAUSE).await;
        }
    });
}

/// Removes each Secret whose ConfigMap it has not seen: right only if the ConfigMap, which was there before, is
/// told of before it. Two watches, each in its own time, promise nothing of the kind.
pub(crate) fn trusts_order(cluster: &Cluster, looks_again: bool) {
    let (client, clock) = (client(cluster, "operator"), cluster.clock().clone());
    let seen: Arc<Mutex<BTreeSet<String>>> = Arc::default();
    let (maps, told) = (client.clone(), seen.clone());
    cluster.clock().spawn(async move {
        let mut events = maps.watch(&CONFIG_MAPS, NAMESPACE, &ListOptions::default()).await.unwrap();
        while let Some(event) = events.recv().await {
            let name = event.object().map(|map| map.metadata.name.clone());
            told.lock().unwrap().extend(name);
        }
    });
    cluster.clock().spawn(async move {
        let mut events = client.watch(&SECRETS, NAMESPACE, &ListOptions::default()).await.unwrap();
        while let Some(event) = events.recv().await {
            let WatchEvent::Added(secret) = &event else { continue };
            let name = &secret.metadata.name;
            if looks_again {
                clock.sleep(PAUSE).await;
            }
            if !seen.lock().unwrap().contains(name) {
                let _ = client.delete(&SECRETS, NAMESPACE, name, &Default::default()).await;
            }
        }
    });
}
