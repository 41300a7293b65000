//! How long kubelets may keep ConfigMaps and Secrets before they ask again: longer, the more nodes there are
//! (`pkg/controller/ttl`).

use std::sync::Arc;

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
pub(crate) struct TtlController(Arc<ClusterSize>);

/// How many nodes there are.
struct ClusterSize {
    nodes: Lister,
    /// Which of the boundaries hold.
    step: Mutex<usize>,
}

impl TtlController {
    /// With its informer.
    pub(crate) fn new(ctx: &ComponentContext) -> TtlController {
        let nodes = ctx.informers.informer(&NODES).lister();
        TtlController(Arc::new(ClusterSize { nodes, step: Mutex::default() }))
    }
}

impl ClusterSize {
    fn wanted(&self) -> String {
        BOUNDARIES[*self.step.lock()].2.to_string()
    }

    /// Whether other boundaries hold than before.
    fn has_changed(&self) -> bool {
        let mut step = self.step.lock();
        let before = *step;
        *step = next_step(before, self.nodes.len());
        before != *step
    }

    /// Whose time is to be written after a change: everybody's when there are many more or fewer, which
    /// upstream leaves to the next heartbeat of each.
    fn outdated(&self, change: &Change<'_>) -> Vec<Key> {
        let changed = match (self.has_changed(), change) {
            (true, _) => self.nodes.all(),
            (false, Change::Deleted(_)) => vec![],
            (false, change) => vec![change.object().clone()],
        };
        let wanted = self.wanted();
        let is_outdated = |node: &&Arc<Object>| written(node).as_ref() != Some(&wanted);
        changed.iter().filter(is_outdated).map(|node| node.key()).collect()
    }
}

impl Controller for TtlController {
    const NAME: &'static str = "ttl";
    const EVENT_SOURCE: &'static str = "ttl-controller";
    const SERVICE_ACCOUNT: &'static str = "ttl-controller";

    fn watches(&self) -> Watches {
        let size = self.0.clone();
        Watches::none().maps(&NODES, move |change: &Change<'_>, enqueue: &Enqueue| {
            size.outdated(change).into_iter().for_each(|node| enqueue.now(node));
        })
    }

    async fn reconcile(&self, ctx: &Reconcile, key: &Key) -> Result<Action, Status> {
        let Some(node) = self.0.nodes.get("", key) else { return Ok(Action::Done) };
        let wanted = self.0.wanted();
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
    use client_go::indexer::Indexer;

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

    fn node(number: usize, ttl: &str) -> Arc<Object> {
        let metadata = json!({"name": format!("n{number}"), "annotations": {ANNOTATION: ttl}});
        Arc::new(Object::from_value(&json!({"metadata": metadata}), vec![]).unwrap())
    }

    #[test]
    fn all_nodes_are_told_when_there_are_many_more_and_each_that_somebody_changed() {
        let indexer = Arc::new(Indexer::new());
        let size = ClusterSize { nodes: Lister::new(indexer.clone()), step: Mutex::default() };
        let put = |node: &Arc<Object>| indexer.update(node.clone());
        for number in 1..=100 {
            let node = node(number, "0");
            put(&node);
            assert_eq!(size.outdated(&Change::Added(&node)), [] as [Key; 0]);
        }
        let (last, changed) = (node(101, "0"), node(101, "7"));
        put(&last);
        assert_eq!(size.outdated(&Change::Added(&last)).len(), 101);
        assert_eq!(size.wanted(), "15");
        put(&changed);
        assert_eq!(size.outdated(&Change::Updated { old: &last, new: &changed }), ["n101"]);
        (1..=12).for_each(|number| drop(indexer.delete(&format!("n{number}"))));
        assert_eq!(size.outdated(&Change::Deleted(&node(12, "15"))), ["n101"], "to 0 again");
    }
}
