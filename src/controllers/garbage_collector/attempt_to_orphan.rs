//! Lets the dependents of an owner go that is deleted with the policy Orphan (`attemptToOrphanWorker`).

use std::sync::Arc;

use futures::future::try_join_all;

use super::graph::{Graph, ORPHAN};
use super::live;
use crate::apimachinery::status::Status;
use crate::controllers::controller::{Action, Controller, Key, Reconcile, Watches};

/// The worker; its keys are uids of owners.
pub struct AttemptToOrphan {
    graph: Arc<Graph>,
}

impl AttemptToOrphan {
    /// On a graph.
    pub fn new(graph: Arc<Graph>) -> AttemptToOrphan {
        AttemptToOrphan { graph }
    }
}

impl Controller for AttemptToOrphan {
    const NAME: &'static str = "garbage-collector-orphan";
    const EVENT_SOURCE: &'static str = "garbage-collector-controller";
    const SERVICE_ACCOUNT: &'static str = "generic-garbage-collector";
    const WORKERS: usize = 4;

    fn watches(&self) -> Watches {
        Watches::none()
    }

    async fn reconcile(&self, ctx: &Reconcile, owner: &Key) -> Result<Action, Status> {
        let Some(node) = self.graph.get(owner) else { return Ok(Action::Done) };
        let dependents = self.graph.dependents(owner);
        let release = dependents.iter().map(|(uid, dependent)| {
            live::change_owners(ctx, &dependent.identity, uid, |reference| {
                (reference["uid"] != owner.as_str()).then(|| reference.clone())
            })
        });
        try_join_all(release).await?;
        live::remove_finalizer(ctx, &node.identity, owner, ORPHAN).await?;
        Ok(Action::Done)
    }
}
