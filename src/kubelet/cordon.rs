//! What others write into a kubelet's Node: whether pods may come, told when that changes
//! (`recordNodeSchedulableEvent`), and what the node has.

use std::sync::atomic::Ordering;

use super::kubelet::Kubelet;
use apimachinery::object::Object;
use apis::views::node::Node;

impl Kubelet {
    /// Its Node as it is now.
    pub fn note_node(&self, object: &Object) {
        let node = object.view::<Node>();
        self.note_cordon(node.spec.unschedulable);
        self.shared.note_amounts(object, &node.status);
    }

    /// Its Node says whether it is cordoned.
    fn note_cordon(&self, is_cordoned: bool) {
        if self.shared.state.is_cordoned.swap(is_cordoned, Ordering::Relaxed) == is_cordoned {
            return;
        }
        let event = if is_cordoned { "NodeNotSchedulable" } else { "NodeSchedulable" };
        let message = format!("Node {} status is now: {event}", self.node_name());
        self.tell_of_node("Normal", event, &message);
    }
}
