//! Lists the objects of a kind, and hears of each change, for as long as the kind is served.

use std::sync::Arc;

use super::names::{GROUP, VERSION};
use super::stagehand::{PAUSE, Stagehand};
use apimachinery::object::Object;
use apimachinery::options::ListOptions;
use apimachinery::status::Status;
use apimachinery::watch::WatchEvent;
use apis::kind::Kind;

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
