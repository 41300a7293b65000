//! What the node of a pod is like now, for pods that name it themselves and say what nodes they are for: the
//! kubelet asks the apiserver, since anybody may have changed its labels.

use std::sync::Arc;

use super::admission::{self, Rejection};
use super::kubelet::Kubelet;
use super::pod_manager::pods::PodManagerState;
use apimachinery::object::Object;
use apis::core::node::NODES;
use apis::views::pod::Pod;

impl Kubelet {
    /// Has it looked up before the pod is taken up; of one that waits for that already the newest is kept.
    pub(crate) fn look_up_node(&self, state: &mut PodManagerState, uid: &Arc<str>, object: Arc<Object>) {
        if state.looked_up.insert(uid.clone(), object).is_some() {
            return;
        }
        let (kubelet, uid) = (self.clone(), uid.clone());
        // With the kubelet it ends, too: the next one looks itself.
        self.shared.context.tasks.spawn("a look at the own node", async move {
            let client = &kubelet.shared.context.client;
            let node = client.get(&NODES, "", kubelet.node_name()).await;
            let refuses = |pod: &Pod| -> Option<Rejection> {
                // Without an answer it is as it was registered.
                node.as_ref().ok().and_then(|node| admission::wrong_node(pod, &node.metadata))
            };
            let mut state = kubelet.pods.state();
            let Some(object) = state.looked_up.remove(&uid) else { return };
            let rejection = refuses(&object.view::<Pod>());
            state.placed.insert(uid, (object, rejection));
            drop(state);
            kubelet.pods.changed.notify_one();
        });
    }
}
