//! Whether pods may come to a node, told when that changes (`recordNodeSchedulableEvent`).

use std::sync::atomic::Ordering;

use super::kubelet::Kubelet;

impl Kubelet {
    /// Its Node says whether it is cordoned.
    pub fn note_cordon(&self, is_cordoned: bool) {
        if self.shared.state.is_cordoned.swap(is_cordoned, Ordering::Relaxed) == is_cordoned {
            return;
        }
        let event = if is_cordoned { "NodeNotSchedulable" } else { "NodeSchedulable" };
        let message = format!("Node {} status is now: {event}", self.node_name());
        self.tell_of_node("Normal", event, &message);
    }
}
