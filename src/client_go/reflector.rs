//! `Reflector`: keeps a store equal to a source, by a list and then a watch (client-go's `cache.Reflector`).
//! Next: src/client_go/delta_fifo.rs
//!
//! One reflector serves both ends of the cluster: the apiserver fills its watch cache from etcd with it, and
//! every informer fills its queue from the apiserver. Guarantees, as client-go gives them:
//! - the store sees the changes in the source's order, none twice by one watch;
//! - a watch that closes is opened again after the last revision seen, bookmarks included, and nothing is
//!   missed;
//! - when that revision is too old (410), a new list replaces what the store holds: changes between may be
//!   missed, the final state never is;
//! - after a failure it waits 800 ms, then twice as long each time up to 30 s, each with up to as much again
//!   at random; two minutes without a failure start that anew.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;

use super::backoff::Backoff;
use apimachinery::list::List;
use apimachinery::object::Object;
use apimachinery::options::ListOptions;
use apimachinery::status::Status;
use apimachinery::watch::WatchEvent;
use clock::Clock;
use entropy::Entropy;

/// A watch is asked to last between this and twice this, so that the watches of many clients spread over the
/// servers.
const MIN_WATCH_TIMEOUT: Duration = Duration::from_secs(300);
/// By so much longer a watch lasts on a clock that is stepped: a year.
const WHERE_TIME_IS_STEPPED: Duration = Duration::from_secs(365 * 24 * 3600);
/// A watch that closes sooner than this without having said anything counts as failed.
const VERY_SHORT_WATCH: Duration = Duration::from_secs(1);

/// Where a reflector reads from (client-go's `cache.ListerWatcher`). The options that it is given concern the
/// revision; which objects is the lister's own matter.
pub trait ListerWatcher: Send + Sync + 'static {
    /// An open watch.
    type Events: Events;

    /// Everything there is, at a state that is at least as new as `options.resource_version` (unset: the
    /// newest).
    fn list(&self, options: &ListOptions) -> impl Future<Output = Result<List, Status>> + Send;

    /// Every change after `options.resource_version`, with bookmarks.
    ///
    /// # Errors
    /// 410 `Expired` when that revision is too old.
    fn watch(&self, options: &ListOptions) -> impl Future<Output = Result<Self::Events, Status>> + Send;
}

/// An open watch (apimachinery's `watch.Interface`). Dropping it stops it.
pub trait Events: Send {
    /// The next event; none when the watch is closed.
    fn next(&mut self) -> impl Future<Output = Option<WatchEvent>> + Send;
}

impl Events for mpsc::Receiver<WatchEvent> {
    async fn next(&mut self) -> Option<WatchEvent> {
        self.recv().await
    }
}

/// Where a reflector writes to (client-go's `cache.ReflectorStore`): a delta FIFO, or the apiserver's watch
/// cache. Called by one reflector at a time, in the order of the source's revisions; must not block.
pub trait ReflectorStore: Send + Sync + 'static {
    /// This is all there is, at this revision.
    fn replace(&self, items: Vec<Arc<Object>>, resource_version: u64);
    /// An object came.
    fn add(&self, object: Arc<Object>);
    /// An object changed.
    fn update(&self, object: Arc<Object>);
    /// An object went; this was its last state, at the revision of the deletion.
    fn delete(&self, object: Arc<Object>);
    /// Nothing else happened up to this revision.
    fn bookmark(&self, resource_version: u64);

    /// A list was refused, and is tried again: whoever waits for the first one may want to do without.
    fn list_failed(&self) {}
}

/// Fills `store` from `lister_watcher` for as long as [`Reflector::run`] runs.
pub struct Reflector<L, S> {
    lister_watcher: L,
    store: Arc<S>,
    clock: Clock,
    entropy: Entropy,
    backoff: Backoff,
    /// What the store holds already, up to this revision.
    known: Option<u64>,
}

/// What a reflector does next.
enum ReflectorState<E> {
    /// The store holds nothing, or something too old to watch from: list, at a state not older than `from`.
    List { from: Option<u64> },
    /// The store holds everything up to `from`: open a watch there.
    Watch { from: u64 },
    /// A watch is open, and the store holds everything up to `at`.
    Watching { at: u64, events: E },
    /// Something failed: wait, then go on.
    BackOff { then: After },
}

/// What follows a pause.
#[derive(Clone, Copy)]
enum After {
    List { from: Option<u64> },
    Watch { from: u64 },
}

impl<L: ListerWatcher, S: ReflectorStore> Reflector<L, S> {
    /// Nothing happens before [`Reflector::run`].
    pub fn new(lister_watcher: L, store: Arc<S>, clock: Clock, entropy: Entropy) -> Reflector<L, S> {
        let backoff = Backoff::reflector(clock.clone(), entropy.clone());
        Reflector { lister_watcher, store, clock, entropy, backoff, known: None }
    }

    /// The store holds everything up to this revision: there is nothing to list, unless that has become too
    /// old to watch from.
    pub fn knowing(self, revision: Option<u64>) -> Reflector<L, S> {
        Reflector { known: revision, ..self }
    }

    /// Lists and watches until it is dropped (client-go's `Reflector.Run`, `ListAndWatch`).
    pub async fn run(mut self) {
        // 0: any state will do for the first list, since the watch makes up for what is newer.
        let mut state = match self.known.take() {
            Some(from) => ReflectorState::Watch { from },
            None => ReflectorState::List { from: Some(0) },
        };
        loop {
            state = match state {
                // In boxes, which are gone while it watches: each informer of each component is one of these.
                ReflectorState::List { from } => Box::pin(self.list(from)).await,
                ReflectorState::Watch { from } => Box::pin(self.open(from)).await,
                ReflectorState::Watching { at, events } => self.receive(at, events).await,
                ReflectorState::BackOff { then } => self.back_off(then).await,
            };
        }
    }

    async fn list(&mut self, from: Option<u64>) -> ReflectorState<L::Events> {
        let options =
            ListOptions { resource_version: from.map(|from| from.to_string()), ..ListOptions::default() };
        match self.lister_watcher.list(&options).await {
            Ok(list) => {
                self.store.replace(list.items.to_vec(), list.resource_version);
                ReflectorState::Watch { from: list.resource_version }
            }
            // The revision asked for is too old or lies in the future: the newest state is always to be had.
            Err(status) if from.is_some() && (status.is_expired() || is_too_large(&status)) => {
                ReflectorState::List { from: None }
            }
            Err(status) => {
                warn_of(&status, "failed to list");
                self.store.list_failed();
                if status.is_not_found() {
                    // There is no such resource, so an empty list is the truth; somebody may wait for a list.
                    self.store.replace(vec![], 0);
                }
                ReflectorState::BackOff { then: After::List { from } }
            }
        }
    }

    /// Five to ten minutes. Where time is stepped a month goes by in seconds, and wherever it stops all
    /// watches would be asked for anew.
    fn watch_timeout(&self) -> Duration {
        let timeout = self.entropy.jitter(MIN_WATCH_TIMEOUT, 1.0);
        if self.clock.is_stepped() { timeout + WHERE_TIME_IS_STEPPED } else { timeout }
    }

    async fn open(&mut self, from: u64) -> ReflectorState<L::Events> {
        let options = ListOptions {
            resource_version: Some(from.to_string()),
            allow_watch_bookmarks: true,
            timeout_seconds: Some(self.watch_timeout().as_secs()),
            ..ListOptions::default()
        };
        match self.lister_watcher.watch(&options).await {
            Ok(events) => ReflectorState::Watching { at: from, events },
            Err(status) => ReflectorState::BackOff { then: after_failure(from, &status) },
        }
    }

    /// Hands on what the watch says until it is closed or fails.
    async fn receive(&mut self, from: u64, mut events: L::Events) -> ReflectorState<L::Events> {
        let opened = self.clock.elapsed();
        let mut at = from;
        let mut is_quiet = true;
        while let Some(event) = events.next().await {
            is_quiet = false;
            match self.apply(event) {
                Ok(revision) => at = revision,
                Err(status) => return ReflectorState::BackOff { then: after_failure(at, &status) },
            }
        }
        if is_quiet && self.clock.elapsed().saturating_sub(opened) < VERY_SHORT_WATCH {
            tracing::warn!("reflector: very short watch: it ended within a second without any event");
            return ReflectorState::BackOff { then: After::List { from: Some(at) } };
        }
        ReflectorState::Watch { from: at }
    }

    /// Hands one event on; returns its revision.
    fn apply(&self, event: WatchEvent) -> Result<u64, Status> {
        let revision = event.object().map_or(0, |object| object.metadata.resource_version);
        match event {
            WatchEvent::Added(object) => self.store.add(object),
            WatchEvent::Modified(object) => self.store.update(object),
            WatchEvent::Deleted(object) => self.store.delete(object),
            WatchEvent::Bookmark(bookmark) => {
                self.store.bookmark(bookmark.resource_version);
                return Ok(bookmark.resource_version);
            }
            WatchEvent::Error(status) => return Err(*status),
        }
        Ok(revision)
    }

    async fn back_off(&mut self, then: After) -> ReflectorState<L::Events> {
        let pause = self.backoff.step();
        self.clock.sleep(pause).await;
        match then {
            After::List { from } => ReflectorState::List { from },
            After::Watch { from } => ReflectorState::Watch { from },
        }
    }
}

/// That a server cannot be reached is said by whoever asks for all; each reflector would say it again.
fn warn_of(status: &Status, what: &str) {
    if status.is_unreachable() {
        tracing::debug!("reflector: {what}: {status}");
    } else {
        tracing::warn!("reflector: {what}: {status}");
    }
}

/// A server that is busy or away is asked again for the same watch; anything else is cured by a list.
fn after_failure(at: u64, status: &Status) -> After {
    if status.is_expired() {
        tracing::debug!("reflector: a watch from {at} is too old: {status}");
        return After::List { from: Some(at) };
    }
    warn_of(status, &format!("the watch from {at} failed"));
    if matches!(status.code, 429 | 503) { After::Watch { from: at } } else { After::List { from: Some(at) } }
}

/// `errors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge)`
fn is_too_large(status: &Status) -> bool {
    let causes = status.details.iter().flat_map(|details| &details.causes);
    causes.into_iter().any(|cause| cause.reason == "ResourceVersionTooLarge")
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use chrono::DateTime;
    use serde_json::json;
    use sync::Mutex;

    use super::*;
    use apimachinery::status::{StatusCause, StatusDetails};
    use apimachinery::watch::Bookmark;

    /// Answers with what the test has written down, notes what was asked and what was stored, and when the
    /// script ends says nothing any more.
    #[derive(Default)]
    struct Script {
        lists: Mutex<VecDeque<Result<List, Status>>>,
        watches: Mutex<VecDeque<Result<Vec<WatchEvent>, Status>>>,
        log: Mutex<Vec<String>>,
    }

    impl Script {
        fn note(&self, text: String) {
            self.log.lock().push(text);
        }
    }

    impl ListerWatcher for Arc<Script> {
        type Events = mpsc::Receiver<WatchEvent>;

        async fn list(&self, options: &ListOptions) -> Result<List, Status> {
            let next = self.lists.lock().pop_front();
            let Some(answer) = next else { return std::future::pending().await };
            self.note(format!("list {}", options.resource_version.as_deref().unwrap_or("newest")));
            answer
        }

        async fn watch(&self, options: &ListOptions) -> Result<Self::Events, Status> {
            let next = self.watches.lock().pop_front();
            let Some(answer) = next else { return std::future::pending().await };
            self.note(format!("watch {}", options.resource_version.as_deref().unwrap_or_default()));
            let (sender, receiver) = mpsc::channel(16);
            answer?.into_iter().for_each(|event| sender.try_send(event).unwrap());
            Ok(receiver)
        }
    }

    impl ReflectorStore for Script {
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

    fn bookmark(resource_version: u64) -> WatchEvent {
        WatchEvent::Bookmark(Bookmark { resource_version, initial_events_end: false })
    }

    fn too_large() -> Status {
        let cause = StatusCause {
            reason: "ResourceVersionTooLarge".into(),
            message: "Too large resource version".into(),
            field: String::new(),
        };
        Status::timeout("Too large resource version")
            .with_details(StatusDetails { causes: vec![cause], ..StatusDetails::default() })
    }

    /// Plays a script to its end; returns what was asked and stored, with the pauses between.
    async fn play(
        lists: Vec<Result<List, Status>>,
        watches: Vec<Result<Vec<WatchEvent>, Status>>,
    ) -> Vec<String> {
        let script = Arc::new(Script::default());
        *script.lists.lock() = lists.into();
        *script.watches.lock() = watches.into();
        let clock = Clock::stepped(DateTime::UNIX_EPOCH);
        let reflector = Reflector::new(script.clone(), script.clone(), clock.clone(), Entropy::seeded(1));
        let task = tokio::spawn(reflector.run());
        // On this runtime of one thread the reflector has gone as far as it can when it yields.
        tokio::task::yield_now().await;
        while let Some(pause) = clock.next_wake() {
            assert!(pause >= Duration::from_millis(800) && pause <= Duration::from_secs(60), "{pause:?}");
            script.note("pause".into());
            clock.advance(pause);
            tokio::task::yield_now().await;
        }
        task.abort();
        script.log.lock().clone()
    }

    #[tokio::test]
    async fn a_closed_watch_goes_on_after_the_last_revision_bookmarks_included() {
        let log = play(
            vec![Ok(List::complete(vec![object("a", 3)], 4))],
            vec![
                Ok(vec![WatchEvent::Added(object("b", 5)), WatchEvent::Modified(object("a", 6))]),
                Ok(vec![WatchEvent::Deleted(object("a", 9)), bookmark(12)]),
                Ok(vec![bookmark(13)]),
            ],
        );
        let expected = [
            "list 0",
            "replace [a@3] at 4",
            "watch 4",
            "add b@5",
            "update a@6",
            "watch 6",
            "delete a@9",
            "bookmark 12",
            "watch 12",
            "bookmark 13",
        ];
        assert_eq!(log.await, expected);
    }

    #[tokio::test]
    async fn a_watch_that_is_too_old_is_cured_by_a_list() {
        let lists = vec![
            Ok(List::complete(vec![], 4)),
            Err(Status::expired("compacted")),
            Ok(List::complete(vec![object("a", 18)], 20)),
            Err(too_large()),
            Ok(List::complete(vec![], 30)),
        ];
        let expired = || Status::expired("too old resource version");
        let log = play(
            lists,
            vec![
                Ok(vec![WatchEvent::Added(object("b", 5)), WatchEvent::error(expired())]),
                Err(expired()),
                Ok(vec![bookmark(31)]),
            ],
        );
        let expected = [
            "list 0",
            "replace [] at 4",
            "watch 4",
            "add b@5",
            "pause",
            "list 5",
            "list newest",
            "replace [a@18] at 20",
            "watch 20",
            "pause",
            "list 20",
            "list newest",
            "replace [] at 30",
            "watch 30",
            "bookmark 31",
        ];
        assert_eq!(log.await, expected);
    }

    #[tokio::test]
    async fn a_busy_server_is_asked_again_and_other_failures_lead_to_a_list() {
        let lists = vec![
            Err(Status::internal("down")),
            Ok(List::complete(vec![], 4)),
            Ok(List::complete(vec![], 6)),
            Ok(List::complete(vec![], 8)),
        ];
        let log = play(
            lists,
            vec![
                Err(Status::too_many_requests("busy", 0)),
                Ok(vec![WatchEvent::error(Status::internal("oh"))]),
                Ok(vec![]),
                Ok(vec![bookmark(9)]),
            ],
        );
        let expected = [
            "list 0",
            "pause",
            "list 0",
            "replace [] at 4",
            "watch 4",
            "pause",
            "watch 4",
            "pause",
            "list 4",
            "replace [] at 6",
            "watch 6",
            "pause",
            "list 6",
            "replace [] at 8",
            "watch 8",
            "bookmark 9",
        ];
        assert_eq!(log.await, expected);
    }
}
