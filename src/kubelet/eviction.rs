//! What a kubelet does to its pods when its node is not well (`pkg/kubelet/eviction`, `nodeshutdown`): it
//! drives them out one after the other, or ends them all in order.

use std::sync::Arc;
use std::time::Duration;

use super::kubelet::Kubelet;
use super::kuberuntime::context::{Happening, PodEvent};
use super::pod_importance::{is_critical, quality};
use super::pod_workers::PodEnding;
use apis::views::pod::Pod;

/// How often a node under pressure drives out a pod (`MonitoringInterval`).
const MONITORING_INTERVAL: Duration = Duration::from_secs(10);
/// The grace of a pod that is driven out at once (`immediateEvictionGracePeriodSeconds`).
const IMMEDIATE_GRACE_SECONDS: i64 = 1;
/// What is short under which condition.
const SHORT: [(&str, &str); 3] =
    [("MemoryPressure", "memory"), ("DiskPressure", "ephemeral-storage"), ("PIDPressure", "pids")];

/// How long the pods of a node have when it is shut down (`shutdownGracePeriod`).
#[derive(Clone, Copy, Debug)]
pub struct ShutdownGrace {
    /// All of them.
    pub total: Duration,
    /// At the end of that, those that are critical.
    pub critical: Duration,
}

impl Kubelet {
    /// Drives out a pod at a time for as long as its node is under pressure.
    pub(crate) async fn evict_under_pressure(self) {
        loop {
            let pressures = self.shared.state.pressures();
            let Some(pressure) = pressures.first() else {
                self.shared.state.pressed.notified().await;
                continue;
            };
            self.evict_one(pressure).await;
            let _ = self
                .shared
                .context
                .clock
                .timeout(MONITORING_INTERVAL, self.shared.state.pressed.notified())
                .await;
        }
    }

    /// The least important first, of those the ones without guarantees (`rankMemoryPressure`).
    async fn evict_one(&self, pressure: &str) {
        let Some((_, short)) = SHORT.iter().find(|(name, _)| *name == pressure) else { return };
        let rank = |pod: &Pod| (pod.spec.priority.unwrap_or(0), quality(pod));
        let chosen = {
            let state = self.pods.state();
            let running = state.workers.iter().filter(|(_, entry)| !entry.is_terminated && !entry.is_ending);
            let others = running.filter(|(_, entry)| !is_critical(&entry.pod));
            let least = others.min_by_key(|(uid, entry)| (rank(&entry.pod), (*uid).clone()));
            least.map(|(_, entry)| (entry.namespace.clone(), entry.name.clone()))
        };
        let Some((namespace, name)) = chosen else { return };
        let message = format!("The node was low on resource: {short}. ");
        self.tell_of_node("Warning", "EvictionThresholdMet", &format!("Attempting to reclaim {short}"));
        let ending = PodEnding {
            reason: "Evicted",
            message,
            grace_seconds: Some(IMMEDIATE_GRACE_SECONDS),
            is_disruption: true,
        };
        self.end_pod(&namespace, &name, ending, Some("Evicted")).await;
    }

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
            self.shared.tell(&loan, &told, Default::default());
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

    async fn end_all(&self, are_critical: bool, within: Duration) {
        let meant: Vec<(String, String)> = {
            let state = self.pods.state();
            let running = state.workers.values().filter(|entry| !entry.is_terminated);
            let meant = running.filter(|entry| is_critical(&entry.pod) == are_critical);
            meant.map(|entry| (entry.namespace.clone(), entry.name.clone())).collect()
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
                        *namespace == entry.namespace && *name == entry.name
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
