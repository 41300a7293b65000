//! Hears of Stages, and has a player for each kind of objects that they are for (kwok's
//! `stages_manager.go`).

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::Notify;
use tokio::task::AbortHandle;

use super::following::{KindFollower, follow_kind};
use super::manifest::ResourceRef;
use super::player::StagePlayer;
use super::stage::ObjectStage;
use super::stagehand::Stagehand;
use apimachinery::object::Object;
use apis::kind::Kind;

/// Follows the Stages for as long as it is polled. Where their kind is not served it waits until it is, and
/// nothing else is done.
pub async fn follow(stagehand: Stagehand) {
    let mut follower =
        StageFollower { stagehand: stagehand.clone(), read: BTreeMap::new(), players: BTreeMap::new() };
    follow_kind(&stagehand, "stages", &mut follower).await;
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

impl KindFollower for StageFollower {
    fn retain(&mut self, are_there: &[&Object]) {
        let is_there = |name: &String| are_there.iter().any(|stage| *stage.metadata.name == **name);
        self.read.retain(|name, _| is_there(name));
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

    fn remove(&mut self, object: &Object) {
        self.read.remove(&*object.metadata.name);
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
}

impl StageFollower {
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
