//! kwok's objects, as `kwok.x-k8s.io/v1alpha1 Stage`: who plays them and keeps the books of them, once one of
//! their kinds is served.

use std::sync::Arc;

use super::inside::{Inside, MASTERS};
use super::kwok_kinds::KwokKind;
use apimachinery::user::UserInfo;
use client_go::ComponentContext;
use stages::{GROUP, Machines, Stagehand, VERSION};

/// Who plays them, as kwok's Events and managed fields name it.
const NAME: &str = "kwok-controller";

/// [`follow`], which settles with everything else.
pub(super) fn following(inside: Arc<Inside>) -> impl Future<Output = ()> {
    inside.clock.named(NAME).tracked(follow(inside))
}

/// Plays them for as long as it is polled; does nothing before one of their kinds is there.
async fn follow(inside: Arc<Inside>) {
    let mut served = inside.scheme.changes();
    let is_served = |kind: &KwokKind| inside.scheme.resource(GROUP, VERSION, kind.plural()).is_some();
    while !KwokKind::ALL.iter().any(is_served) {
        if served.changed().await.is_err() {
            return;
        }
    }
    let client = inside.client().acting_as(UserInfo::authenticated(NAME, &[MASTERS]));
    let (clock, entropy) = (inside.clock.clone(), inside.config.entropy.clone());
    let context = ComponentContext::new(NAME, (NAME, ""), client, clock, entropy);
    let _tasks = context.tasks.stop_on_drop();
    let (scheme, book) = (inside.scheme.clone(), inside.running.book.clone());
    let measures = inside.running.measures.clone();
    let stagehand = Stagehand { context, scheme, book, machines: Arc::new(SimulatedNodes(inside)) };
    tokio::join!(stages::follow(stagehand.clone()), stages::follow_measures(stagehand, measures));
}

/// The nodes whose kubelets run.
struct SimulatedNodes(Arc<Inside>);

impl Machines for SimulatedNodes {
    fn has_node(&self, name: &str) -> bool {
        self.0.running.kubelet(name).is_some()
    }

    fn node_address(&self, name: &str) -> Option<String> {
        Some(self.0.running.kubelet(name)?.addresses().next()?.to_string())
    }

    fn pod_address(&self, node: &str, pod_uid: &str, current: &str) -> Option<String> {
        self.0.running.kubelet(node)?.address_for(pod_uid, current)
    }
}
