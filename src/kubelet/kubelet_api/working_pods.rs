//! The pods that a kubelet has, by where they are on their way (`HandlePodCleanups`).

use crate::allocation::{DEFERRED, INFEASIBLE};
use crate::kubelet::Kubelet;
use crate::pod_manager::pods::Entry;
use crate::pod_workers::{PodWorker, WorkerState};
use component_base::metrics::{gauge, plain_gauge};

/// How many there are of each; of pods from the apiserver first, then of static ones.
#[derive(Default)]
struct PodNumbers {
    desired: [usize; 2],
    active: [usize; 2],
    /// By [`STATES`].
    working: [[usize; 2]; STATES.len()],
    ephemeral_containers: usize,
    /// That do not have the resources that they want, by [`WAITS`].
    pending_resizes: [usize; WAITS.len()],
    resizes_in_progress: usize,
}

/// Why a pod does not have what it wants, and what metrics say of that.
const WAITS: [(&str, &str); 2] = [(DEFERRED, "deferred"), (INFEASIBLE, "infeasible")];

const STATES: [(WorkerState, &str); 3] = [
    (WorkerState::Sync, "sync"),
    (WorkerState::Terminating, "terminating"),
    (WorkerState::Terminated, "terminated"),
];
/// What metrics say of whether a pod is static.
const STATIC: [&str; 2] = ["", "true"];

impl PodNumbers {
    fn count(&mut self, entry: &Entry) {
        let pod = entry.pod();
        let is_static = usize::from(pod.metadata.annotations.contains_key("kubernetes.io/config.mirror"));
        self.desired[is_static] += 1;
        self.active[is_static] += usize::from(!entry.is_terminated);
        let worker = entry.resting();
        let state = worker.map_or(WorkerState::Sync, PodWorker::state);
        let at = STATES.iter().position(|(known, _)| *known == state).unwrap_or_default();
        self.working[at][is_static] += 1;
        self.ephemeral_containers += pod.spec.ephemeral_containers.len();
        if let Some(resize) = worker.and_then(|worker| worker.resize.as_deref()) {
            let waits = WAITS.iter().position(|(known, _)| resize.pending() == Some(known));
            waits.into_iter().for_each(|at| self.pending_resizes[at] += 1);
            self.resizes_in_progress += usize::from(resize.is_in_progress());
        }
    }

    fn text(&self) -> String {
        let mut out = String::new();
        let by_static = |out: &mut String, name: &str, help: &str, numbers: [usize; 2]| {
            gauge(out, (name, help), ["static"], STATIC.map(|label| [label]).into_iter().zip(numbers));
        };
        let help = "[ALPHA] The number of pods the kubelet considers active and which are being considered when \
            admitting new pods. static is true if the pod is not from the apiserver.";
        by_static(&mut out, "kubelet_active_pods", help, self.active);
        let help = "[ALPHA] The number of pods the kubelet is being instructed to run. static is true if the pod is \
            not from the apiserver.";
        by_static(&mut out, "kubelet_desired_pods", help, self.desired);
        let help = "[ALPHA] Current number of ephemeral containers in pods managed by this kubelet.";
        plain_gauge(&mut out, ("kubelet_managed_ephemeral_containers", help), self.ephemeral_containers);
        let help =
            "[ALPHA] The number of mirror pods the kubelet will try to create (one per admitted static pod)";
        plain_gauge(&mut out, ("kubelet_mirror_pods", help), self.desired[1]);
        let help = "[ALPHA] Number of in-progress resizes for pods.";
        plain_gauge(&mut out, ("kubelet_pod_in_progress_resizes", help), self.resizes_in_progress);
        self.pending(&mut out);
        self.working(&mut out);
        out
    }

    /// Of a reason that no pod has nothing is told.
    fn pending(&self, out: &mut String) {
        let waiting = WAITS.iter().zip(self.pending_resizes).filter(|(_, number)| *number > 0);
        let help = "[ALPHA] Number of pending resizes for pods.";
        let values = waiting.map(|((_, reason), number)| ([*reason], number));
        gauge(out, ("kubelet_pod_pending_resizes", help), ["reason"], values);
    }

    /// No pod is an orphan here: a worker ends with its pod.
    fn working(&self, out: &mut String) {
        let name = "kubelet_working_pods";
        let help = "[ALPHA] Number of pods the kubelet is actually running, broken down by lifecycle phase, whether the \
            pod is desired, orphaned, or runtime only (also orphaned), and whether the pod is static. An orphaned pod \
            has been removed from local configuration or force deleted in the API and consumes resources that are not \
            otherwise visible.";
        let desired = STATES.iter().zip(self.working).flat_map(|((_, state), numbers)| {
            STATIC.into_iter().zip(numbers).map(|(label, number)| (["desired", *state, label], number))
        });
        let orphans = STATES.iter().flat_map(|(_, state)| STATIC.map(|label| (["orphan", *state, label], 0)));
        let unknown = STATES.iter().map(|(_, state)| (["runtime_only", *state, "unknown"], 0));
        let values = desired.chain(orphans).chain(unknown);
        gauge(out, (name, help), ["config", "lifecycle", "static"], values);
    }
}

impl Kubelet {
    /// The gauges of `/metrics` about them.
    pub(super) fn working_pods(&self) -> String {
        let mut numbers = PodNumbers::default();
        self.pods.state().workers.values().for_each(|entry| numbers.count(entry));
        numbers.text()
    }
}
