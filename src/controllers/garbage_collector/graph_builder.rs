//! What goes into the graph: which kinds, and what a change of an object does to it (`GraphBuilder`).

use std::sync::Arc;

use super::graph::{Graph, Todo};
use crate::controller::{Change, ControllerRun, Enqueue};
use apis::kind::Kind;
use apis::scheme::Scheme;

/// The kinds whose objects can own and be owned. Events are too many, and live only for an hour.
pub(super) fn collected(scheme: &Scheme) -> Vec<Arc<Kind>> {
    let has = |kind: &Kind, verb: &str| kind.verbs.iter().any(|it| **it == *verb);
    let mut kinds = scheme.storage_kinds();
    kinds.retain(|kind| {
        ["delete", "list", "watch"].iter().all(|verb| has(kind, verb)) && &*kind.kind != "Event"
    });
    kinds
}

/// What a change of an object of `kind` does to the graph, and whom it makes look.
pub(super) fn mapping(
    graph: Arc<Graph>,
    scheme: Arc<Scheme>,
    kind: Arc<Kind>,
    orphan: ControllerRun,
) -> impl Fn(&Change<'_>, &Enqueue) + Send + Sync + 'static {
    move |change, enqueue| {
        let Todo { attempt_to_delete, attempt_to_orphan } = match change {
            Change::Deleted(object) => graph.remove(&object.metadata.uid),
            Change::Added(object) | Change::Updated { new: object, .. } => {
                graph.observe(&kind, object, &scheme)
            }
        };
        attempt_to_delete.into_iter().for_each(|uid| enqueue.now(uid));
        if !attempt_to_orphan.is_empty() {
            let enqueue = orphan.because_of(change.object());
            attempt_to_orphan.into_iter().for_each(|uid| enqueue.now(uid));
        }
    }
}
