//! Lists the objects of a kind, and hears of each change, for as long as the kind is served.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value as Json;

use super::error::StageError;
use super::names::{GROUP, VERSION};
use super::stagehand::{PAUSE, Stagehand};
use apimachinery::object::Object;
use apimachinery::options::ListOptions;
use apimachinery::status::Status;
use apimachinery::watch::WatchEvent;
use apis::kind::Kind;
use client_go::ComponentContext;

/// Who hears of the objects of a kind.
pub(crate) trait KindFollower: Send {
    /// These are there, and no others.
    fn retain(&mut self, are_there: &[&Object]);

    /// One is new, or has changed, or is told of again.
    fn take(&mut self, kind: &Kind, object: &Object);

    /// One is gone.
    fn remove(&mut self, object: &Object);

    /// All that was there has been heard, or one change.
    fn publish(&mut self);
}

/// Follows a kind of kwok's for as long as it is polled. Where it is not served nothing else is done than to
/// wait until it is.
pub(crate) async fn follow_kind(stagehand: &Stagehand, plural: &str, follower: &mut dyn KindFollower) {
    let mut served = stagehand.scheme.changes();
    loop {
        let Some(kind) = stagehand.scheme.resource(GROUP, VERSION, plural) else {
            follower.retain(&[]);
            follower.publish();
            if served.changed().await.is_err() {
                return;
            }
            continue;
        };
        if let Err(status) = watch(stagehand, &kind, follower).await {
            tracing::debug!(status.message, plural, "objects are not followed just now");
        }
        stagehand.context.clock.sleep(PAUSE).await;
    }
}

async fn watch(
    stagehand: &Stagehand,
    kind: &Arc<Kind>,
    follower: &mut dyn KindFollower,
) -> Result<(), Status> {
    let client = stagehand.context.client.clone();
    let list = client.list(kind, "", &ListOptions::default()).await?;
    follower.retain(&list.items.iter().map(|object| &**object).collect::<Vec<_>>());
    list.items.iter().for_each(|object| follower.take(kind, object));
    follower.publish();
    let revision = Some(list.resource_version.to_string());
    let options = ListOptions { resource_version: revision, ..ListOptions::default() };
    let mut events = client.watch(kind, "", &options).await?;
    while let Some(event) = events.recv().await {
        match &event {
            WatchEvent::Added(object) | WatchEvent::Modified(object) => follower.take(kind, object),
            WatchEvent::Deleted(object) => follower.remove(object),
            WatchEvent::Bookmark(_) => continue,
            WatchEvent::Error(_) => return Ok(()),
        }
        follower.publish();
    }
    Ok(())
}

/// What can be read, by namespace and name.
pub(crate) type ByKey<T> = BTreeMap<(String, String), Arc<T>>;

/// Of objects in no namespace.
pub(crate) fn by_name<T>(read: ByKey<T>) -> BTreeMap<String, Arc<T>> {
    read.into_iter().map(|((_, name), read)| (name, read)).collect()
}

/// Reads a spec, given the name; None where it says nothing.
type ReadSpec<T> = fn(&str, &Json) -> Result<Option<T>, StageError>;

/// The revision of an object, and what was read of it.
type ReadAt<T> = (u64, Option<Arc<T>>);

/// Follows a kind whose objects are read: hands over all that can be read whenever one has changed.
pub(crate) struct KindFollowing<T, P> {
    context: ComponentContext,
    read_spec: ReadSpec<T>,
    /// What becomes of an object that is wrong.
    verdict: &'static str,
    /// By namespace and name, the revision and what was read; nothing of one that says
    /// nothing, or is wrong. Bound: the objects that there are.
    read: BTreeMap<(String, String), ReadAt<T>>,
    publish: P,
    has_changed: bool,
}

impl<T, P> KindFollowing<T, P> {
    pub(crate) fn new(
        context: &ComponentContext,
        read_spec: ReadSpec<T>,
        verdict: &'static str,
        publish: P,
    ) -> KindFollowing<T, P> {
        let (context, read, has_changed) = (context.clone(), BTreeMap::new(), false);
        KindFollowing { context, read_spec, verdict, read, publish, has_changed }
    }
}

impl<T: Send + Sync, P: FnMut(ByKey<T>) + Send> KindFollower for KindFollowing<T, P> {
    fn retain(&mut self, are_there: &[&Object]) {
        let count = self.read.len();
        self.read.retain(|key, _| are_there.iter().any(|object| key_of(object) == *key));
        self.has_changed |= self.read.len() != count;
    }

    fn take(&mut self, kind: &Kind, object: &Object) {
        let (key, revision) = (key_of(object), object.metadata.resource_version);
        if self.read.get(&key).is_some_and(|(known, _)| *known == revision) {
            return;
        }
        let read = (self.read_spec)(&key.1, &object.to_value()["spec"]);
        if let Err(why) = &read {
            let message = format!("This {} {}: spec.{why}", kind.kind, self.verdict);
            let reason = format!("Invalid{}", kind.kind);
            self.context.recorder.event((kind, object), "Warning", &reason, message);
        }
        self.read.insert(key, (revision, read.ok().flatten().map(Arc::new)));
        self.has_changed = true;
    }

    fn remove(&mut self, object: &Object) {
        self.has_changed |= self.read.remove(&key_of(object)).is_some();
    }

    fn publish(&mut self) {
        if std::mem::take(&mut self.has_changed) {
            let read = self.read.iter();
            (self.publish)(read.filter_map(|(key, (_, read))| Some((key.clone(), read.clone()?))).collect());
        }
    }
}

fn key_of(object: &Object) -> (String, String) {
    (object.metadata.namespace.to_string(), object.metadata.name.to_string())
}
