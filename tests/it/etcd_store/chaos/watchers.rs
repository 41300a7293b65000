//! Clients that watch: each adds up what it is told, and goes on through another server where a watch ends.

use std::collections::BTreeMap;

use tokio::sync::watch;
use tokio::task::JoinSet;

use super::servers::{Targets, ask};
use super::*;
use crate::support::wire::Target;

const WATCHERS: usize = 4;

/// An object as it was told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    revision: u64,
    /// Of a counter, how far it is.
    pub(super) count: Option<u64>,
}

/// By name.
pub(super) type SeenState = BTreeMap<String, Seen>;

/// What is in a list, and its revision.
pub(super) fn seen_states(list: &Value) -> (SeenState, u64) {
    let items = list["items"].as_array().unwrap();
    (items.iter().map(|item| (name_of(item), seen(item))).collect(), revision_of(list))
}

fn seen(object: &Value) -> Seen {
    let count = object["data"]["count"].as_str().and_then(|count| count.parse().ok());
    Seen { revision: revision_of(object), count }
}

fn name_of(object: &Value) -> String {
    object["metadata"]["name"].as_str().unwrap().to_owned()
}

fn revision_of(object: &Value) -> u64 {
    object["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap()
}

pub(super) struct Watchers {
    tasks: JoinSet<SeenState>,
    last: watch::Sender<u64>,
}

impl Watchers {
    pub(super) fn start(servers: &Servers) -> Watchers {
        let (last, mut tasks) = (watch::Sender::new(u64::MAX), JoinSet::new());
        for number in 0..WATCHERS {
            tasks.spawn(Watcher::new(number, servers.targets()).run(last.subscribe()));
        }
        Watchers { tasks, last }
    }

    /// What each has added up to that revision.
    pub(super) async fn stop_at(self, revision: u64) -> Vec<SeenState> {
        self.last.send_replace(revision);
        let all = tokio::time::timeout(PATIENCE, self.tasks.join_all()).await;
        all.unwrap_or_else(|_| panic!("a watcher never comes to {revision}"))
    }
}

struct Watcher {
    targets: Targets,
    /// Where it tries next.
    at: usize,
    state: SeenState,
    /// All up to here was told.
    position: u64,
}

/// How a watch ended.
enum End {
    /// It goes on from its position.
    Broken,
    /// What it would be told is gone: it begins anew, as a reflector does.
    Expired,
}

impl Watcher {
    fn new(at: usize, targets: Targets) -> Watcher {
        Watcher { targets, at, state: SeenState::new(), position: 0 }
    }

    async fn run(mut self, mut last: watch::Receiver<u64>) -> SeenState {
        let mut is_new = true;
        while self.position < *last.borrow() {
            let Some(target) = self.next_target() else { continue };
            if is_new && !self.list(&target).await {
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
            is_new = tokio::select! {
                end = self.follow(&target, last.clone()) => matches!(end, End::Expired),
                // One that is told nothing may have to be asked whether it is there yet.
                _ = last.changed() => false,
            };
        }
        self.state
    }

    fn next_target(&mut self) -> Option<Target> {
        let targets = self.targets.lock();
        self.at += 1;
        targets[self.at % targets.len()].clone()
    }

    async fn list(&mut self, target: &Target) -> bool {
        let listed = ask(target, Method::GET, &format!("{NAMESPACE}/configmaps"), None).await;
        let Some(list) = listed.ok().filter(|answer| answer.code == 200) else { return false };
        let (state, revision) = seen_states(&list.json());
        assert!(revision >= self.position, "a list of {revision} after {}", self.position);
        (self.state, self.position) = (state, revision);
        true
    }

    async fn follow(&mut self, target: &Target, last: watch::Receiver<u64>) -> End {
        let path = format!(
            "{NAMESPACE}/configmaps?watch=1&allowWatchBookmarks=true&timeoutSeconds=20&resourceVersion={}",
            self.position
        );
        let opened = async { target.http1().await?.watch(&path).await };
        let Ok(Ok(mut events)) = tokio::time::timeout(Duration::from_secs(6), opened).await else {
            tokio::time::sleep(Duration::from_millis(50)).await;
            return End::Broken;
        };
        while self.position < *last.borrow() {
            let Ok(Some(event)) = events.next().await else { return End::Broken };
            if event["type"] == "ERROR" {
                let is_expired = event["object"]["code"] == 410;
                return if is_expired { End::Expired } else { End::Broken };
            }
            self.take(&event);
        }
        End::Broken
    }

    fn take(&mut self, event: &Value) {
        let (object, position) = (&event["object"], self.position);
        let revision = revision_of(object);
        if event["type"] == "BOOKMARK" {
            assert!(revision >= position, "a bookmark of {revision} after {position}");
            self.position = revision;
            return;
        }
        assert!(revision > position, "twice, or out of order: after {position}: {event}");
        self.position = revision;
        let (name, now) = (name_of(object), seen(object));
        let before = match event["type"].as_str().unwrap() {
            "DELETED" => self.state.remove(&name),
            _ => self.state.insert(name, now.clone()),
        };
        assert_eq!(before.is_none(), event["type"] == "ADDED", "something was missed: {event}");
        if let Some((before, now)) = before.and_then(|before| before.count).zip(now.count) {
            assert_eq!(now, before + 1, "something was missed: {event}");
        }
    }
}
