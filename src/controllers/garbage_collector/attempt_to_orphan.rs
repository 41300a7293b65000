//! Lets the dependents of an owner go that is deleted with the policy Orphan (`attemptToOrphanWorker`).

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::future::try_join_all;

use super::graph::Graph;
use super::graph_builder::collected;
use super::graph_node::{GraphUid, ORPHAN, ObjectIdentity};
use super::live;
use crate::controller::{Action, Controller, Key, Reconcile, Watches};
use apimachinery::status::Status;
use apis::scheme::Scheme;

/// The worker; its keys are uids of owners.
pub(super) struct AttemptToOrphan {
    graph: Arc<Graph>,
    scheme: Arc<Scheme>,
}

impl AttemptToOrphan {
    /// On a graph.
    pub(super) fn new(graph: Arc<Graph>, scheme: Arc<Scheme>) -> AttemptToOrphan {
        AttemptToOrphan { graph, scheme }
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
        let mut dependents: BTreeMap<GraphUid, ObjectIdentity> =
            self.graph.dependents(owner).into_iter().map(|(uid, node)| (uid, node.identity)).collect();
        let live = live::dependents(ctx, &collected(&self.scheme), &node.identity, owner).await?;
        dependents.extend(live.into_iter().map(|(identity, it)| (it.metadata.uid.clone(), identity)));
        let release = dependents.iter().map(|(uid, identity)| {
            live::change_owners(ctx, identity, uid, |reference| {
                (reference["uid"] != owner.as_str()).then(|| reference.clone())
            })
        });
        try_join_all(release).await?;
        live::remove_finalizer(ctx, &node.identity, owner, ORPHAN).await?;
        Ok(Action::Done)
    }
}
