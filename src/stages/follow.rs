//! Hears of Stages, and has a player for each kind of objects that they are for (kwok's
//! `stages_manager.go`).

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::Notify;
use tokio::task::AbortHandle;

use super::following::{KindFollowing, by_name, follow_kind};
use super::manifest::ResourceRef;
use super::player::StagePlayer;
use super::stage::ObjectStage;
use super::stagehand::Stagehand;

/// Follows the Stages for as long as it is polled. Where their kind is not served it waits until it is, and
/// nothing else is done.
pub async fn follow(stagehand: Stagehand) {
    // Who plays. Bound: one for each kind that there is a Stage for.
    let mut players: BTreeMap<ResourceRef, RunningPlayer> = BTreeMap::new();
    let told = stagehand.clone();
    let mut stages =
        KindFollowing::new(&stagehand.context, ObjectStage::read, "is not played", move |read| {
            told.book.set(by_name(read));
            let wanted = told.book.resources();
            players.retain(|resource, _| wanted.contains(resource));
            for resource in wanted {
                match players.get(&resource) {
                    Some(player) => player.changed.notify_one(),
                    None => drop(players.insert(resource.clone(), start(&told, resource))),
                }
            }
        });
    follow_kind(&stagehand, "stages", &mut stages).await;
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

fn start(stagehand: &Stagehand, resource: ResourceRef) -> RunningPlayer {
    let changed = Arc::new(Notify::new());
    let (stagehand, told) = (stagehand.clone(), changed.clone());
    let name = format!("stages of {}", resource.kind);
    let task =
        stagehand.context.tasks.clone().supervise(&name, move || {
            StagePlayer::new(stagehand.clone(), resource.clone(), told.clone()).run()
        });
    RunningPlayer { changed, task }
}
