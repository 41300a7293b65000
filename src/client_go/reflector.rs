//! `Reflector`: keeps a store in step with a collection by listing it once and watching it from there on
//! (`k8s.io/client-go/tools/cache.Reflector`). The same one fills the apiserver's watch caches from etcd and every
//! informer from the apiserver.
//! Next: src/client_go/delta_fifo.rs

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;

use crate::apimachinery::list::List;
use crate::apimachinery::object::Object;
use crate::apimachinery::options::ListOptions;
use crate::apimachinery::status::Status;
use crate::apimachinery::watch::WatchEvent;
use crate::clock::Clock;
use crate::entropy::Entropy;

/// The first pause after a failure; doubled with each further one, and up to doubled again by jitter.
const BACKOFF_INITIAL: Duration = Duration::from_millis(800);
/// The longest pause.
const BACKOFF_MAX: Duration = Duration::from_secs(30);
/// After so long without a failure the pauses start anew.
const BACKOFF_RESET: Duration = Duration::from_secs(120);
/// A watch lasts between this and twice this, so that the watches of many clients spread over the servers.
const MIN_WATCH: Duration = Duration::from_secs(300);
/// A watch that ends sooner, without any event, counts as a failure.
const VERY_SHORT_WATCH: Duration = Duration::from_secs(1);

/// Where a reflector gets a collection from (`cache.ListerWatcher`). The options that it is given concern the
/// revision; which objects is the lister's own matter.
pub trait ListerWatcher: Send + Sync + 'static {
    /// The events of one watch.
    type Events: Events;

    /// All objects.
    fn list(&self, options: &ListOptions) -> impl Future<Output = Result<List, Status>> + Send;

    /// What happens after `options.resource_version`.
    fn watch(&self, options: &ListOptions) -> impl Future<Output = Result<Self::Events, Status>> + Send;
}

/// The events of one watch, in order (`watch.Interface`).
pub trait Events: Send {
    /// The next event; none when the watch has ended.
    fn next(&mut self) -> impl Future<Output = Option<WatchEvent>> + Send;
}

impl Events for mpsc::Receiver<WatchEvent> {
    async fn next(&mut self) -> Option<WatchEvent> {
        self.recv().await
    }
}

/// What a reflector fills (`cache.ReflectorStore`). Called by one task, in the order of the collection's revisions.
pub trait ReflectorStore: Send + Sync + 'static {
    /// This is all there is, at this revision.
    fn replace(&self, items: Vec<Arc<Object>>, resource_version: u64);
    /// This object has come.
    fn add(&self, object: Arc<Object>);
    /// This object has changed.
    fn update(&self, object: Arc<Object>);
    /// This object has gone; this was its last state, at the revision of its deletion.
    fn delete(&self, object: Arc<Object>);
    /// Nothing else happened up to this revision.
    fn bookmark(&self, resource_version: u64);
}

/// Lists, then watches, and lists anew when the watch has lost its place in history.
pub struct Reflector<L, S> {
    lister_watcher: L,
    store: Arc<S>,
    clock: Clock,
    entropy: Entropy,
    /// The revision up to which the store is in step; empty before the first list.
    last_sync_resource_version: String,
    /// Failures in a row, and when the last one was.
    failures: u32,
    failed_at: Duration,
}

/// Why a watch is over.
enum WatchEnd {
    /// It ended as watches do: go on from where it stood.
    Closed,
    /// It cannot go on from there: list.
    Expired,
    /// Go on from there after a pause.
    Failed(Status),
}

impl<L: ListerWatcher, S: ReflectorStore> Reflector<L, S> {
    /// Nothing happens before [`Reflector::run`].
    pub fn new(lister_watcher: L, store: Arc<S>, clock: Clock, entropy: Entropy) -> Reflector<L, S> {
        let last_sync_resource_version = String::new();
        Reflector {
            lister_watcher,
            store,
            clock,
            entropy,
            last_sync_resource_version,
            failures: 0,
            failed_at: Duration::ZERO,
        }
    }

    /// Keeps the store in step for as long as the future is polled (`Reflector.ListAndWatch`, for ever).
    pub async fn run(mut self) {
        // The first list may be answered from any state: it is about to be watched anyway.
        let mut list_from = "0".to_owned();
        loop {
            match self.list(&list_from).await {
                Ok(()) => list_from = self.watch_until_lost().await,
                Err(status) if status.is_expired() && !list_from.is_empty() => list_from.clear(),
                Err(status) => self.back_off("list", &status).await,
            }
        }
    }

    async fn list(&mut self, resource_version: &str) -> Result<(), Status> {
        let resource_version = Some(resource_version.to_owned()).filter(|text| !text.is_empty());
        let options = ListOptions { resource_version, ..ListOptions::default() };
        let list = self.lister_watcher.list(&options).await?;
        self.last_sync_resource_version = list.resource_version.to_string();
        self.store.replace(list.items.to_vec(), list.resource_version);
        Ok(())
    }

    /// Returns the revision to list from.
    async fn watch_until_lost(&mut self) -> String {
        loop {
            match self.watch().await {
                WatchEnd::Closed => (),
                // From the newest state: what was last seen is gone from history.
                WatchEnd::Expired => return String::new(),
                WatchEnd::Failed(status) => self.back_off("watch", &status).await,
            }
        }
    }

    async fn watch(&mut self) -> WatchEnd {
        let started = self.clock.elapsed();
        let options = ListOptions {
            resource_version: Some(self.last_sync_resource_version.clone()),
            allow_watch_bookmarks: true,
            timeout_seconds: Some(self.entropy.jitter(MIN_WATCH, 1.0).as_secs()),
            ..ListOptions::default()
        };
        let mut events = match self.lister_watcher.watch(&options).await {
            Ok(events) => events,
            Err(status) if status.is_expired() => return WatchEnd::Expired,
            Err(status) => return WatchEnd::Failed(status),
        };
        let mut seen = false;
        while let Some(event) = events.next().await {
            seen = true;
            if let WatchEvent::Error(status) = event {
                return if status.is_expired() { WatchEnd::Expired } else { WatchEnd::Failed(status) };
            }
            self.handle(event);
        }
        if !seen && self.clock.elapsed() - started < VERY_SHORT_WATCH {
            return WatchEnd::Failed(Status::internal("very short watch: it ended without any event"));
        }
        WatchEnd::Closed
    }

    fn handle(&mut self, event: WatchEvent) {
        let revision = match &event {
            WatchEvent::Bookmark(bookmark) => bookmark.resource_version,
            other => other.object().map_or(0, |object| object.metadata.resource_version),
        };
        match event {
            WatchEvent::Added(object) => self.store.add(object),
            WatchEvent::Modified(object) => self.store.update(object),
            WatchEvent::Deleted(object) => self.store.delete(object),
            WatchEvent::Bookmark(bookmark) => self.store.bookmark(bookmark.resource_version),
            WatchEvent::Error(_) => return,
        }
        self.last_sync_resource_version = revision.to_string();
    }

    async fn back_off(&mut self, doing: &str, status: &Status) {
        tracing::warn!("reflector: failed to {doing}: {status}");
        let now = self.clock.elapsed();
        if now - self.failed_at > BACKOFF_RESET {
            self.failures = 0;
        }
        let pause = BACKOFF_INITIAL.saturating_mul(1 << self.failures.min(6)).min(BACKOFF_MAX);
        (self.failures, self.failed_at) = (self.failures + 1, now);
        self.clock.sleep(self.entropy.jitter(pause, 1.0)).await;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::sync::Mutex;

    use chrono::DateTime;
    use serde_json::json;

    use super::*;

    /// Answers with what the test has written down, and notes what was asked.
    #[derive(Default)]
    struct Script {
        lists: Mutex<VecDeque<Result<List, Status>>>,
        watches: Mutex<VecDeque<Vec<WatchEvent>>>,
        asked: Mutex<Vec<String>>,
    }

    impl ListerWatcher for Arc<Script> {
        type Events = mpsc::Receiver<WatchEvent>;

        async fn list(&self, options: &ListOptions) -> Result<List, Status> {
            let from = options.resource_version.clone().unwrap_or_default();
            self.asked.lock().unwrap().push(format!("list {from}"));
            let next = self.lists.lock().unwrap().pop_front();
            match next {
                Some(answer) => answer,
                None => std::future::pending().await,
            }
        }

        async fn watch(&self, options: &ListOptions) -> Result<Self::Events, Status> {
            let from = options.resource_version.clone().unwrap_or_default();
            self.asked.lock().unwrap().push(format!("watch {from}"));
            let Some(events) = self.watches.lock().unwrap().pop_front() else {
                return std::future::pending().await;
            };
            let (sender, receiver) = mpsc::channel(16);
            events.into_iter().for_each(|event| sender.try_send(event).unwrap());
            Ok(receiver)
        }
    }

    #[derive(Default)]
    struct Notes(Mutex<Vec<String>>);

    impl Notes {
        fn note(&self, text: String) {
            self.0.lock().unwrap().push(text);
        }
    }

    impl ReflectorStore for Notes {
        fn replace(&self, items: Vec<Arc<Object>>, resource_version: u64) {
            self.note(format!("replace {items:?} at {resource_version}"));
        }
        fn add(&self, object: Arc<Object>) {
            self.note(format!("add {object:?}"));
        }
        fn update(&self, object: Arc<Object>) {
            self.note(format!("update {object:?}"));
        }
        fn delete(&self, object: Arc<Object>) {
            self.note(format!("delete {object:?}"));
        }
        fn bookmark(&self, resource_version: u64) {
            self.note(format!("bookmark {resource_version}"));
        }
    }

    fn object(name: &str, revision: u64) -> Arc<Object> {
        let tree = json!({"metadata": {"name": name, "resourceVersion": revision.to_string()}});
        Arc::new(Object::from_value(&tree, vec![]).unwrap())
    }

    #[tokio::test]
    async fn lists_then_watches_and_lists_anew_when_history_is_gone() {
        let script = Arc::new(Script::default());
        *script.lists.lock().unwrap() = VecDeque::from([
            Err(Status::internal("down")),
            Ok(List::complete(vec![object("a", 3)], 4)),
            Ok(List::complete(vec![], 20)),
        ]);
        *script.watches.lock().unwrap() = VecDeque::from([
            vec![WatchEvent::Added(object("b", 5)), WatchEvent::Modified(object("a", 6))],
            vec![WatchEvent::Deleted(object("a", 9)), WatchEvent::Error(Status::expired("too old"))],
        ]);
        let (store, clock) = (Arc::new(Notes::default()), Clock::stepped(DateTime::UNIX_EPOCH));
        let reflector = Reflector::new(script.clone(), store.clone(), clock.clone(), Entropy::seeded(1));
        let task = tokio::spawn(reflector.run());
        while script.asked.lock().unwrap().len() < 6 {
            if let Some(wait) = clock.next_wake() {
                clock.advance(wait);
            }
            tokio::task::yield_now().await;
        }
        task.abort();
        let asked = ["list 0", "list 0", "watch 4", "watch 6", "list ", "watch 20"];
        assert_eq!(*script.asked.lock().unwrap(), asked);
        let done = ["replace [a@3] at 4", "add b@5", "update a@6", "delete a@9", "replace [] at 20"];
        assert_eq!(*store.0.lock().unwrap(), done);
    }
}
