//! The garbage collector: what nothing owns any more goes (`pkg/controller/garbagecollector`).
//!
//! In: the metadata of every object of every kind, custom ones included. Out: deletions of objects whose
//! owners are all gone; and the two finalizers with which an owner waits: `foregroundDeletion` until its
//! dependents are deleted, `orphan` until they are let go. It must not know any kind: a kind is a path, an
//! object its owners and finalizers.
//!
//! The graph is what the informers tell; before anything is deleted, the apiserver itself is asked. So an
//! owner that the cache does not have (yet) costs a request and never an object. It is asked, too, who names
//! an owner that is about to go: informers of several kinds are not equally quick. (Upstream trusts its graph
//! there, and on a busy machine may delete what was to be orphaned.)

mod attempt_to_delete;
mod attempt_to_orphan;
mod graph;
mod graph_builder;
mod graph_node;
mod graph_nodes;
mod live;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use attempt_to_delete::AttemptToDelete;
use attempt_to_orphan::AttemptToOrphan;
use graph::Graph;
use graph_builder::{collected, mapping};

use super::controller::{self, ControllerRun};
use apis::scheme::Scheme;
use client_go::ComponentContext;
use component_base::metrics::{Render, plain_counter};

/// How long after there are new kinds they are looked for (upstream's 30 s cost a discovery; this costs a
/// comparison).
const SYNC_PERIOD: Duration = Duration::from_secs(5);

/// Starts both workers of the collector, and the watch for kinds that come up later.
pub(crate) fn spawn(ctx: &ComponentContext, scheme: Arc<Scheme>, workers: usize) {
    // Kinds are known as soon as they are served, so that looking for them cannot fail.
    ctx.metrics.add("garbage-collector", Arc::new(SyncErrors));
    let graph = Arc::new(Graph::default());
    let orphan = controller::spawn(ctx, AttemptToOrphan::new(graph.clone(), scheme.clone()));
    let generation = scheme.generation();
    let kinds = collected(&scheme);
    let seen: BTreeSet<Arc<str>> = kinds.iter().map(|kind| kind.storage_prefix().clone()).collect();
    let controller = AttemptToDelete::new(graph.clone(), scheme.clone(), orphan.clone(), kinds);
    let delete = controller::spawn_workers(ctx, controller, workers);
    let follow = FollowKind { graph, scheme, orphan, delete };
    let clock = ctx.clock.clone();
    ctx.tasks.spawn("garbage collector: new kinds", async move { follow.run(clock, generation, seen).await });
}

/// `garbagecollector_controller_resources_sync_error_total`
struct SyncErrors;

impl Render for SyncErrors {
    fn render(&self, out: &mut String) {
        let name = "garbagecollector_controller_resources_sync_error_total";
        let help = "[ALPHA] Number of garbage collector resources sync errors";
        plain_counter(out, (name, help), 0);
    }
}

struct FollowKind {
    graph: Arc<Graph>,
    scheme: Arc<Scheme>,
    orphan: ControllerRun,
    delete: ControllerRun,
}

impl FollowKind {
    async fn run(&self, clock: clock::Clock, generation: u64, mut seen: BTreeSet<Arc<str>>) {
        let mut generations = self.scheme.changes();
        if *generations.borrow_and_update() != generation {
            generations.mark_changed();
        }
        while generations.changed().await.is_ok() {
            clock.sleep(SYNC_PERIOD).await;
            let _ = generations.borrow_and_update();
            for kind in collected(&self.scheme) {
                if seen.insert(kind.storage_prefix().clone()) {
                    let mapping =
                        mapping(self.graph.clone(), self.scheme.clone(), kind.clone(), self.orphan.clone());
                    self.delete.watch(&kind, mapping);
                }
            }
        }
    }
}
