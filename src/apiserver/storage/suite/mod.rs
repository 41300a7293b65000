//! The storage suite: the same cases on the bare store and on the cacher, each on our own store and on etcds.

mod etcds;
mod hammer;
mod lists;
mod watches;

use std::sync::Arc;
use std::time::Duration;

use chrono::DateTime;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::Written;
use super::byte_store::ByteStore;
use super::cacher::Cacher;
use super::request::{At, ListRequest, WatchRequest};
use super::store::Store;
use super::watcher;
use apimachinery::fields::FieldSelector;
use apimachinery::labels::Selector;
use apimachinery::list::List;
use apimachinery::object::Object;
use apimachinery::options::ListOptions;
use apimachinery::selectable::Predicate;
use apimachinery::status::Status;
use apimachinery::watch::WatchEvent;
use apis::kind::Kind;
use clock::Clock;
use entropy::Entropy;
use etcd::{Expect, Kv, Op, Options};
use etcds::TestEtcd;

/// A store of pods, read directly or through a cacher.
struct StoreSubject {
    clock: Clock,
    store: Store,
    kind: Arc<Kind>,
    cacher: Option<Cacher>,
    _etcd: Option<Arc<TestEtcd>>,
}

type Receiver = mpsc::Receiver<WatchEvent>;

impl StoreSubject {
    fn new(cached: bool) -> StoreSubject {
        let kind = Kind::builtin("", "v1", "Pod", "pods", "io.k8s.api.core.v1");
        StoreSubject::of(kind.selectable_by(&["spec.nodeName"]), cached)
    }

    /// On an etcd, below a prefix of its own.
    async fn on(etcd: &Arc<TestEtcd>, prefix: &str, cached: bool) -> StoreSubject {
        let clock = Clock::stepped(DateTime::UNIX_EPOCH);
        let kv = etcd.client(prefix, &clock).await.into();
        let kind = Kind::builtin("", "v1", "Pod", "pods", "io.k8s.api.core.v1");
        let subject = StoreSubject::over(kv, clock, kind.selectable_by(&["spec.nodeName"]), cached);
        StoreSubject { _etcd: Some(etcd.clone()), ..subject }
    }

    fn of(kind: Kind, cached: bool) -> StoreSubject {
        let clock = Clock::stepped(DateTime::UNIX_EPOCH);
        let kv = Kv::open(Options::default(), clock.clone()).unwrap();
        StoreSubject::over(kv.into(), clock, kind, cached)
    }

    fn over(kv: ByteStore, clock: Clock, kind: Kind, cached: bool) -> StoreSubject {
        let kind = Arc::new(kind);
        let store = Store::new(kv, clock.clone());
        let cacher = cached.then(|| Cacher::new(store.clone(), kind.clone(), Entropy::seeded(1)));
        StoreSubject { clock, store, kind, cacher, _etcd: None }
    }

    /// Bare and cached, on our own store, on Debian's etcd and on ours.
    async fn all() -> [StoreSubject; 6] {
        let (debians, own) = (Arc::new(TestEtcd::debians().await), Arc::new(TestEtcd::own().await));
        [
            StoreSubject::new(false),
            StoreSubject::new(true),
            StoreSubject::on(&debians, "/registry", false).await,
            StoreSubject::on(&debians, "/elsewhere", true).await,
            StoreSubject::on(&own, "/registry", false).await,
            StoreSubject::on(&own, "/elsewhere", true).await,
        ]
    }

    async fn get(&self, key: &str, at: At) -> Result<Option<Arc<Object>>, Status> {
        match &self.cacher {
            Some(cacher) => cacher.get(key, at).await,
            None => self.store.get(&self.kind, key).await,
        }
    }

    async fn list(&self, namespace: &str, options: &ListOptions) -> Result<List, Status> {
        let request = ListRequest::new(&self.kind, namespace, options)?;
        match &self.cacher {
            Some(cacher) => self.stepping(cacher.list(&request)).await,
            None => self.store.list(&self.kind, &request).await,
        }
    }

    async fn watch(&self, namespace: &str, options: &ListOptions) -> Result<Receiver, Status> {
        let request = WatchRequest::new(&self.kind, namespace, options)?;
        match &self.cacher {
            Some(cacher) => cacher.watch(request).await,
            None => watcher::watch(&self.store, &self.kind, request, None).await,
        }
    }

    /// Lets time pass while `future` waits for nothing else.
    async fn stepping<F: Future>(&self, future: F) -> F::Output {
        let mut future = std::pin::pin!(future);
        for round in 0.. {
            if let std::task::Poll::Ready(output) = futures::poll!(&mut future) {
                return output;
            }
            // An etcd takes real time for its answers.
            let is_time = if self.store.kv().is_shared() {
                tokio::time::sleep(Duration::from_millis(2)).await;
                round % 10 == 9
            } else {
                tokio::task::yield_now().await;
                // On a busy machine a watch may not have had its turn yet: to time it would have stalled.
                round > 1000 && self.clock.work().count() == 0
            };
            if is_time {
                self.clock.advance(Duration::from_secs(1));
            }
        }
        unreachable!("the range has no end")
    }

    async fn write(&self, key: &str, expected: u64, tree: &Value) -> Written {
        self.store.put(&self.kind, key, expected, tree, None).await.unwrap()
    }

    /// Creates or replaces a pod; returns its revision.
    async fn put(&self, key: &str, node: &str, label: &str) -> u64 {
        let current = self.store.get(&self.kind, key).await.unwrap();
        let expected = current.map_or(0, |object| object.metadata.resource_version);
        match self.write(key, expected, &pod(key, node, label)).await {
            Written::Committed(object) => object.metadata.resource_version,
            Written::Conflict(_) => panic!("nobody else writes {key}"),
        }
    }

    async fn delete(&self, key: &str) -> u64 {
        let current = self.store.get(&self.kind, key).await.unwrap().unwrap();
        match self.store.delete(&self.kind, key, current.metadata.resource_version, None).await.unwrap() {
            Written::Committed(object) => object.metadata.resource_version,
            Written::Conflict(_) => panic!("nobody else writes {key}"),
        }
    }
}

fn pod(key: &str, node: &str, label: &str) -> Value {
    let (namespace, name) = key.split_once('/').unwrap();
    let metadata = json!({"name": name, "namespace": namespace, "labels": {"app": label}});
    json!({"metadata": metadata, "spec": {"nodeName": node}})
}

fn from(revision: u64) -> ListOptions {
    ListOptions { resource_version: Some(revision.to_string()), ..ListOptions::default() }
}

fn page(limit: usize, token: &str) -> ListOptions {
    ListOptions { limit: Some(limit), continue_token: Some(token.into()), ..ListOptions::default() }
}

fn labelled(selector: &str) -> Predicate {
    Predicate { labels: Selector::parse(selector).unwrap(), ..Predicate::default() }
}

fn on_node(node: &str) -> Predicate {
    Predicate { fields: FieldSelector::equal("spec.nodeName", node), ..Predicate::default() }
}

fn names(list: &List) -> Vec<String> {
    list.items.iter().map(|object| object.key()).collect()
}

/// An event as text: `ADDED a/b@3`, `BOOKMARK 7`.
fn show(event: &WatchEvent) -> String {
    match event {
        WatchEvent::Bookmark(bookmark) => {
            let end = if bookmark.initial_events_end { " end" } else { "" };
            format!("BOOKMARK {}{end}", bookmark.resource_version)
        }
        WatchEvent::Error(status) => format!("ERROR {} {}", status.code, status.message),
        other => format!("{} {:?}", other.type_name(), other.object().unwrap()),
    }
}

async fn take(receiver: &mut Receiver, count: usize) -> Vec<String> {
    let mut events = Vec::new();
    while events.len() < count {
        let Some(event) = receiver.recv().await else { break };
        events.push(show(&event));
    }
    events
}
