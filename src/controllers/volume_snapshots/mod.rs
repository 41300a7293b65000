//! Volume snapshots (`kubernetes-csi/external-snapshotter`): the controller that clusters bring along, and of
//! each driver that is there one that takes snapshots at once.
//!
//! Their kinds are custom ones, which somebody else installs: before they are served nothing is watched. In:
//! VolumeSnapshots, their contents and classes, claims and volumes. Out: contents, and what became of both. A
//! key is `snapshot:namespace/name` or `content:name`.

mod contents;
pub(crate) mod data_source;
mod kinds;
mod snapshots;

use std::sync::Arc;
use std::time::Duration;

pub(crate) use self::kinds::GROUP as SNAPSHOT_GROUP;
use self::kinds::{SnapshotKinds, snapshot_of};
use super::controller::{self, Action, Change, Controller, ControllerRun, Enqueue, Key, Reconcile, Watches};
use apimachinery::object::split_key;
use apimachinery::status::Status;
use apis::core::persistent_volume::PERSISTENT_VOLUMES;
use apis::core::persistent_volume_claim::PERSISTENT_VOLUME_CLAIMS;
use apis::scheme::Scheme;
use apis::storage::csi::CSI_DRIVERS;
use client_go::ComponentContext;
use client_go::lister::Lister;

/// A snapshot that cannot be taken yet is looked at again after so long.
const RETRY: Duration = Duration::from_secs(5);
const OF_SNAPSHOT: &str = "snapshot:";
const OF_CONTENT: &str = "content:";

/// Binds snapshots to contents, and takes them.
pub(crate) struct VolumeSnapshotController {
    scheme: Arc<Scheme>,
    claims: Lister,
    volumes: Lister,
    drivers: Lister,
}

/// Starts it, and the watch for its kinds.
pub(crate) fn spawn(ctx: &ComponentContext, scheme: &Arc<Scheme>) {
    let lister = |kind| ctx.informers.informer(kind).lister();
    let controller = VolumeSnapshotController {
        scheme: scheme.clone(),
        claims: lister(&PERSISTENT_VOLUME_CLAIMS),
        volumes: lister(&PERSISTENT_VOLUMES),
        drivers: lister(&CSI_DRIVERS),
    };
    let running = controller::spawn(ctx, controller);
    ctx.tasks.spawn("volume snapshots: their kinds", follow(running, scheme.clone()));
}

/// Once they are served they are watched for good, as other custom kinds are by the garbage collector.
async fn follow(running: ControllerRun, scheme: Arc<Scheme>) {
    let mut served = scheme.changes();
    let kinds = loop {
        if let Some(kinds) = SnapshotKinds::of(&scheme) {
            break kinds;
        }
        if served.changed().await.is_err() {
            return;
        }
    };
    running.watch(&kinds.snapshots, |change: &Change<'_>, enqueue: &Enqueue| {
        enqueue.now(format!("{OF_SNAPSHOT}{}", change.object().key()));
    });
    running.watch(&kinds.contents, |change: &Change<'_>, enqueue: &Enqueue| {
        enqueue.now(format!("{OF_CONTENT}{}", change.object().metadata.name));
        let snapshot = snapshot_of(&change.object().to_value());
        enqueue.now(format!("{OF_SNAPSHOT}{snapshot}"));
    });
}

impl Controller for VolumeSnapshotController {
    const NAME: &'static str = "volume-snapshot";
    const EVENT_SOURCE: &'static str = "snapshot-controller";
    const SERVICE_ACCOUNT: &'static str = "snapshot-controller";
    const WORKERS: usize = 1;

    fn watches(&self) -> Watches {
        Watches::none()
    }

    async fn reconcile(&self, ctx: &Reconcile, key: &Key) -> Result<Action, Status> {
        let Some(kinds) = SnapshotKinds::of(&self.scheme) else { return Ok(Action::Done) };
        let outcome = match key.strip_prefix(OF_CONTENT) {
            Some(name) => self.sync_content(ctx, &kinds, name).await,
            None => {
                let (namespace, name) = split_key(key.strip_prefix(OF_SNAPSHOT).unwrap_or(key));
                self.sync_snapshot(ctx, &kinds, (namespace, name)).await
            }
        };
        match outcome {
            // Gone meanwhile.
            Err(status) if status.is_not_found() => Ok(Action::Done),
            other => other,
        }
    }
}
