//! How a kubelet ends pods since its node is not well: one of them, or all in order when it is shut down
//! (`nodeshutdown`).

use std::sync::Arc;
use std::time::Duration;

use super::kubelet::Kubelet;
use super::kuberuntime::context::{Happening, PodEvent};
use super::pod_ending::PodEnding;
use super::pod_manager::pods::Entry;
use super::qos::is_critical;

/// The grace of a pod that is driven out at once (`immediateEvictionGracePeriodSeconds`).
pub(crate) const IMMEDIATE_GRACE_SECONDS: i64 = 1;

/// How often it is looked whether the last statuses are written, and for how long at most.
const LAST_LOOK: Duration = Duration::from_millis(100);
const MAX_LAST_WRITES: Duration = Duration::from_secs(2);

/// How long the pods of a node have when it is shut down (`shutdownGracePeriod`).
#[derive(Clone, Copy, Debug)]
pub struct ShutdownGrace {
    /// All of them.
    pub total: Duration,
    /// At the end of that, those that are critical.
    pub critical: Duration,
}

impl Kubelet {
    /// Ends a pod for a reason of the node's, which an Event of this reason tells.
    pub(crate) async fn end_pod(
        &self,
        namespace: &str,
        name: &str,
        ending: PodEnding,
        event: Option<&'static str>,
    ) {
        let Some(mut loan) = self.pods.borrow(namespace, name).await else { return };
        if let Some(reason) = event {
            let told = Happening::Event(PodEvent::warning(reason, ending.message.clone()));
            let context = &self.shared.context;
            let revision = loan.object.metadata.resource_version;
            let seen = context.client.flow().informed(&context.component, revision);
            self.shared.tell(&loan, &told, seen.unwrap_or_default());
        }
        loan.end(ending);
        let uid = loan.uid.clone();
        drop(loan);
        if let Some(entry) = self.pods.state().workers.get_mut(&uid) {
            entry.is_ending = true;
        }
        self.pods.wake(&uid);
    }

    /// The node is being shut down: no pod is taken any more, those that are here end, the critical ones
    /// last. Comes back when all have ended, or their time is over.
    pub async fn shut_down(&self, grace: ShutdownGrace) {
        self.tell_of_node("Normal", "Shutdown", "Shutdown manager detected shutdown event");
        self.shared.state.shut_down();
        self.end_all(false, grace.total.saturating_sub(grace.critical)).await;
        self.end_all(true, grace.critical).await;
        self.see_out().await;
    }

    /// [`Kubelet::shut_down`] beside whoever asks, and `then` what comes when it is over. Both end with the
    /// kubelet, whoever ends it.
    pub fn shut_down_beside(&self, grace: ShutdownGrace, then: impl FnOnce(&Kubelet) + Send + 'static) {
        let kubelet = self.clone();
        let name = format!("kubelet/{}: shutdown manager", self.node_name());
        self.shared.context.tasks.spawn(&name, async move {
            kubelet.shut_down(grace).await;
            then(&kubelet);
        });
    }

    /// Whether its node is being shut down.
    pub fn is_shutting_down(&self) -> bool {
        self.shared.state.is_shutting_down()
    }

    /// Whether this is that kubelet, and not a later one of the same node.
    pub fn is(&self, other: &Kubelet) -> bool {
        Arc::ptr_eq(&self.pods, &other.pods)
    }

    /// Whoever is killed at the end of the time has ended, and that is written, before the kubelet stops.
    async fn see_out(&self) {
        let clock = &self.shared.context.clock;
        let is_left = || {
            let state = self.pods.state();
            let is_seen = |uid: &Arc<str>| state.statuses.has_written(uid);
            state.workers.iter().any(|(uid, entry)| entry.is_ending && !(entry.is_terminated && is_seen(uid)))
        };
        let all_seen = async {
            while is_left() {
                clock.sleep(LAST_LOOK).await;
            }
        };
        let _ = clock.timeout(MAX_LAST_WRITES, all_seen).await;
    }

    async fn end_all(&self, are_critical: bool, within: Duration) {
        let meant: Vec<(String, String)> = {
            let state = self.pods.state();
            let running = state.workers.values().filter(|entry| !entry.is_terminated);
            let meant = running.filter(|entry| is_critical(&entry.pod()) == are_critical);
            meant.map(Entry::namespace_and_name).collect()
        };
        let seconds = i64::try_from(within.as_secs()).unwrap_or(i64::MAX);
        for (namespace, name) in &meant {
            let ending = PodEnding {
                reason: "Terminated",
                message: "Pod was terminated in response to imminent node shutdown.".into(),
                grace_seconds: Some(seconds),
                is_disruption: true,
            };
            self.end_pod(namespace, name, ending, None).await;
        }
        let all_ended = async {
            let is_left = |kubelet: &Kubelet| {
                let state = kubelet.pods.state();
                state.workers.values().any(|entry| {
                    let is_meant = |(namespace, name): &(String, String)| {
                        *namespace == entry.namespace() && *name == entry.name()
                    };
                    !entry.is_terminated && meant.iter().any(is_meant)
                })
            };
            while is_left(self) {
                self.shared.context.clock.sleep(Duration::from_secs(1)).await;
            }
        };
        let _ = self.shared.context.clock.timeout(within, all_ended).await;
    }
}
