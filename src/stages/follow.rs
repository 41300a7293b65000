//! Hears of Stages, and has a player for each kind of objects that they are for (kwok's
//! `stages_manager.go`).

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::Notify;
use tokio::task::AbortHandle;

use super::manifest::ResourceRef;
use super::names::{GROUP, VERSION};
use super::player::StagePlayer;
use super::stage::ObjectStage;
use super::stagehand::{PAUSE, Stagehand};
use apimachinery::object::Object;
use apimachinery::options::ListOptions;
use apimachinery::status::Status;
use apimachinery::watch::WatchEvent;
use apis::kind::Kind;

/// Follows the Stages for as long as it is polled. Where their kind is not served it waits until it is, and
/// nothing else is done.
pub async fn follow(stagehand: Stagehand) {
    let mut served = stagehand.scheme.changes();
    let mut follower = StageFollower { stagehand, read: BTreeMap::new(), players: BTreeMap::new() };
    loop {
        let kind = follower.stagehand.scheme.resource(GROUP, VERSION, "stages");
        let Some(kind) = kind else {
            follower.read.clear();
            follower.publish();
            if served.changed().await.is_err() {
                return;
            }
            continue;
        };
        if let Err(status) = follower.watch(&kind).await {
            tracing::debug!(status.message, "stages are not followed just now");
        }
        follower.stagehand.context.clock.sleep(PAUSE).await;
    }
}

struct StageFollower {
    stagehand: Stagehand,
    /// By name, the revision and what was read of it; nothing of one that is for no objects, or is wrong.
    /// Bound: the Stages that there are.
    read: BTreeMap<String, (u64, Option<Arc<ObjectStage>>)>,
    /// Who plays. Bound: one for each kind that there is a Stage for.
    players: BTreeMap<ResourceRef, RunningPlayer>,
}

struct RunningPlayer {
    /// There are other stages than before.
    changed: Arc<Notify>,
    task: Option<AbortHandle>,
}

impl Drop for RunningPlayer {
    fn drop(&mut self) {
        self.task.iter().for_each(AbortHandle::abort);
    }
}

impl StageFollower {
    async fn watch(&mut self, kind: &Kind) -> Result<(), Status> {
        let client = self.stagehand.context.client.clone();
        let list = client.list(kind, "", &ListOptions::default()).await?;
        let there: Vec<&str> = list.items.iter().map(|stage| &*stage.metadata.name).collect();
        self.read.retain(|name, _| there.contains(&name.as_str()));
        list.items.iter().for_each(|stage| self.take(kind, stage));
        self.publish();
        let revision = Some(list.resource_version.to_string());
        let options = ListOptions { resource_version: revision, ..ListOptions::default() };
        let mut events = client.watch(kind, "", &options).await?;
        while let Some(event) = events.recv().await {
            match &event {
                WatchEvent::Added(stage) | WatchEvent::Modified(stage) => self.take(kind, stage),
                WatchEvent::Deleted(stage) => drop(self.read.remove(&*stage.metadata.name)),
                WatchEvent::Bookmark(_) => continue,
                WatchEvent::Error(_) => return Ok(()),
            }
            self.publish();
        }
        Ok(())
    }

    /// Reads one that is new or has changed.
    fn take(&mut self, kind: &Kind, object: &Object) {
        let (name, revision) = (&object.metadata.name, object.metadata.resource_version);
        if self.read.get(&**name).is_some_and(|(known, _)| *known == revision) {
            return;
        }
        let read = ObjectStage::read(name, &object.to_value()["spec"]);
        if let Err(why) = &read {
            let message = format!("This Stage is not played: spec.{why}");
            self.stagehand.context.recorder.event((kind, object), "Warning", "InvalidStage", message);
        }
        self.read.insert(name.to_string(), (revision, read.ok().flatten().map(Arc::new)));
    }

    /// The book and the players are as what was read.
    fn publish(&mut self) {
        let stage = |(name, (_, stage)): (&String, &(u64, Option<Arc<ObjectStage>>))| {
            Some((name.clone(), stage.clone()?))
        };
        self.stagehand.book.set(self.read.iter().filter_map(stage).collect());
        let wanted = self.stagehand.book.resources();
        self.players.retain(|resource, _| wanted.contains(resource));
        for resource in wanted {
            match self.players.get(&resource) {
                Some(player) => player.changed.notify_one(),
                None => drop(self.players.insert(resource.clone(), self.start(resource))),
            }
        }
    }

    fn start(&self, resource: ResourceRef) -> RunningPlayer {
        let changed = Arc::new(Notify::new());
        let (stagehand, told) = (self.stagehand.clone(), changed.clone());
        let name = format!("stages of {}", resource.kind);
        let task = self.stagehand.context.tasks.supervise(&name, move || {
            StagePlayer::new(stagehand.clone(), resource.clone(), told.clone()).run()
        });
        RunningPlayer { changed, task }
    }
}
