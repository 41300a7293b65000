//! The Nodes of kubelets in a process of their own, which hear here what others have written into them:
//! whether they are cordoned, and what they have.

use std::sync::Arc;

use crate::cluster::components::RunningComponents;
use apimachinery::fields::FieldSelector;
use apimachinery::object::Object;
use apis::core::node::NODES;
use client_go::component::ComponentContext;
use client_go::shared_informer::{Deleted, ResourceEventHandler};

/// Follows them until the context is stopped: of one that is alone its own Node, of several all Nodes at
/// once, since a watch for each would be as many.
pub(super) fn follow(context: &ComponentContext, running: &Arc<RunningComponents>) {
    let selector = match running.nodes.names().as_slice() {
        [only] => FieldSelector::equal("metadata.name", only),
        _ => FieldSelector::default(),
    };
    let informer = context.informers.informer_for(&NODES, "", selector);
    informer.add_handler(OwnNodes { running: running.clone() });
    context.informers.start(&context.tasks);
}

struct OwnNodes {
    running: Arc<RunningComponents>,
}

impl OwnNodes {
    fn look(&self, node: &Object) {
        if let Some(kubelet) = self.running.kubelet(&node.metadata.name) {
            kubelet.note_node(node);
        }
    }
}

impl ResourceEventHandler for OwnNodes {
    fn on_add(&self, new: &Arc<Object>, _is_initial_list: bool) {
        self.look(new);
    }

    fn on_update(&self, _old: &Arc<Object>, new: &Arc<Object>) {
        self.look(new);
    }

    fn on_delete(&self, _last: &Deleted) {}
}
