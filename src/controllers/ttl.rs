//! How long kubelets may keep ConfigMaps and Secrets before they ask again: longer, the more nodes there are
//! (`pkg/controller/ttl`).

use serde_json::json;
use sync::Mutex;

use super::controller::{Action, Change, Controller, Enqueue, Key, Reconcile, Watches};
use apimachinery::object::Object;
use apimachinery::options::PatchType;
use apimachinery::status::Status;
use apis::core::node::NODES;
use apis::views::node::Node;
use client_go::ComponentContext;
use client_go::lister::Lister;

const ANNOTATION: &str = "node.alpha.kubernetes.io/ttl";
/// From so many nodes, to so many, so many seconds. They overlap, so that a node that comes and goes changes
/// nothing.
const BOUNDARIES: [(usize, usize, u32); 5] =
    [(0, 100, 0), (90, 500, 15), (450, 1000, 30), (900, 2000, 60), (1800, usize::MAX, 300)];

/// Writes the time on each node.
pub(crate) struct TtlController {
    nodes: Lister,
    /// Which of the boundaries hold.
    step: Mutex<usize>,
}

impl TtlController {
    /// With its informer.
    pub(crate) fn new(ctx: &ComponentContext) -> TtlController {
        TtlController { nodes: ctx.informers.informer(&NODES).lister(), step: Mutex::default() }
    }

    fn seconds(&self) -> u32 {
        let mut step = self.step.lock();
        *step = next_step(*step, self.nodes.len());
        BOUNDARIES[*step].2
    }
}

impl Controller for TtlController {
    const NAME: &'static str = "ttl";
    const EVENT_SOURCE: &'static str = "ttl-controller";
    const SERVICE_ACCOUNT: &'static str = "ttl-controller";

    fn watches(&self) -> Watches {
        // A node that has its annotation is looked at again when somebody has changed it.
        Watches::none().maps(&NODES, |change: &Change<'_>, enqueue: &Enqueue| {
            let is_gone = matches!(change, Change::Deleted(_));
            let is_same = change.old().is_some_and(|old| written(old) == written(change.object()));
            if !is_gone && !is_same {
                enqueue.now(change.object().key());
            }
        })
    }

    async fn reconcile(&self, ctx: &Reconcile, key: &Key) -> Result<Action, Status> {
        let Some(node) = self.nodes.get("", key) else { return Ok(Action::Done) };
        let wanted = self.seconds().to_string();
        if written(&node).as_deref() == Some(&wanted) {
            return Ok(Action::Done);
        }
        let patch = json!({"metadata": {"annotations": {ANNOTATION: wanted}}});
        match ctx.client.patch(&NODES, "", key, PatchType::StrategicMerge, &patch).await {
            Err(status) if !status.is_not_found() => Err(status),
            _ => Ok(Action::Done),
        }
    }
}

fn written(node: &Object) -> Option<String> {
    node.view::<Node>().metadata.annotations.get(ANNOTATION).cloned()
}

fn next_step(mut step: usize, nodes: usize) -> usize {
    while nodes > BOUNDARIES[step].1 {
        step += 1;
    }
    while nodes < BOUNDARIES[step].0 {
        step -= 1;
    }
    step
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_nodes_ask_less_often_and_a_few_more_change_nothing() {
        let walk = [1, 100, 101, 95, 89, 501, 5000, 1700, 0];
        let mut step = 0;
        let seconds = walk.map(|nodes| {
            step = next_step(step, nodes);
            BOUNDARIES[step].2
        });
        assert_eq!(seconds, [0, 0, 15, 15, 0, 30, 300, 60, 0]);
    }
}
