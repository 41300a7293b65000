//! The pods that a kubelet has, by where they are on their way (`HandlePodCleanups`).

use std::fmt::Write;

use crate::allocation::{DEFERRED, INFEASIBLE};
use crate::kubelet::Kubelet;
use crate::pod_manager::pods::Entry;
use crate::pod_workers::WorkerState;
use component_base::metrics::heading;

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
        let is_static =
            usize::from(entry.pod.metadata.annotations.contains_key("kubernetes.io/config.mirror"));
        self.desired[is_static] += 1;
        self.active[is_static] += usize::from(!entry.is_terminated);
        let state = entry.worker.as_ref().map_or(WorkerState::Sync, |worker| worker.state());
        let at = STATES.iter().position(|(known, _)| *known == state).unwrap_or_default();
        self.working[at][is_static] += 1;
        self.ephemeral_containers += entry.pod.spec.ephemeral_containers.len();
        if let Some(resize) = entry.worker.as_ref().and_then(|worker| worker.resize.as_deref()) {
            let waits = WAITS.iter().position(|(known, _)| resize.pending() == Some(known));
            waits.into_iter().for_each(|at| self.pending_resizes[at] += 1);
            self.resizes_in_progress += usize::from(resize.is_in_progress());
        }
    }

    fn text(&self) -> String {
        let mut out = String::new();
        let by_static = |out: &mut String, name: &str, help: &str, numbers: [usize; 2]| {
            heading(out, name, "gauge", help);
            for (label, number) in STATIC.iter().zip(numbers) {
                // Writing into a text cannot fail.
                let _ = writeln!(out, "{name}{{static={label:?}}} {number}");
            }
        };
        let help = "[ALPHA] The number of pods the kubelet considers active and which are being considered when \
            admitting new pods. static is true if the pod is not from the apiserver.";
        by_static(&mut out, "kubelet_active_pods", help, self.active);
        let help = "[ALPHA] The number of pods the kubelet is being instructed to run. static is true if the pod is \
            not from the apiserver.";
        by_static(&mut out, "kubelet_desired_pods", help, self.desired);
        let plain = |out: &mut String, name: &str, help: &str, number: usize| {
            heading(out, name, "gauge", help);
            let _ = writeln!(out, "{name} {number}");
        };
        let help = "[ALPHA] Current number of ephemeral containers in pods managed by this kubelet.";
        plain(&mut out, "kubelet_managed_ephemeral_containers", help, self.ephemeral_containers);
        let help =
            "[ALPHA] The number of mirror pods the kubelet will try to create (one per admitted static pod)";
        plain(&mut out, "kubelet_mirror_pods", help, self.desired[1]);
        let help = "[ALPHA] Number of in-progress resizes for pods.";
        plain(&mut out, "kubelet_pod_in_progress_resizes", help, self.resizes_in_progress);
        self.pending(&mut out);
        self.working(&mut out);
        out
    }

    /// Of a reason that no pod has nothing is told.
    fn pending(&self, out: &mut String) {
        let waiting = WAITS.iter().zip(self.pending_resizes).filter(|(_, number)| *number > 0);
        let name = "kubelet_pod_pending_resizes";
        if waiting.clone().next().is_some() {
            heading(out, name, "gauge", "[ALPHA] Number of pending resizes for pods.");
        }
        for ((_, reason), number) in waiting {
            let _ = writeln!(out, "{name}{{reason={reason:?}}} {number}");
        }
    }

    /// No pod is an orphan here: a worker ends with its pod.
    fn working(&self, out: &mut String) {
        let name = "kubelet_working_pods";
        let help = "[ALPHA] Number of pods the kubelet is actually running, broken down by lifecycle phase, whether the \
            pod is desired, orphaned, or runtime only (also orphaned), and whether the pod is static. An orphaned pod \
            has been removed from local configuration or force deleted in the API and consumes resources that are not \
            otherwise visible.";
        heading(out, name, "gauge", help);
        let mut sample = |config: &str, state: &str, is_static: &str, number: usize| {
            let labels = format!("config={config:?},lifecycle={state:?},static={is_static:?}");
            let _ = writeln!(out, "{name}{{{labels}}} {number}");
        };
        for ((_, state), numbers) in STATES.iter().zip(self.working) {
            STATIC.iter().zip(numbers).for_each(|(label, number)| sample("desired", state, label, number));
        }
        for (_, state) in STATES {
            STATIC.iter().for_each(|label| sample("orphan", state, label, 0));
        }
        STATES.iter().for_each(|(_, state)| sample("runtime_only", state, "unknown", 0));
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
