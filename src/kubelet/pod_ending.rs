//! Why a kubelet ends a pod by itself.

/// Why a pod ends that makes room for another.
pub(crate) const PREEMPTING: &str = "Preempting";

/// Why the kubelet itself ended a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodEnding {
    /// As `Evicted`.
    pub reason: &'static str,
    /// For people.
    pub message: String,
    /// How long it has at most, if that is not its own matter.
    pub grace_seconds: Option<i64>,
    /// It is no fault of the pod's: it is said by the condition `DisruptionTarget`.
    pub is_disruption: bool,
}

impl PodEnding {
    /// What the condition says of it.
    pub(crate) fn disruption(&self) -> &str {
        match self.reason {
            PREEMPTING => "Pod was preempted by Kubelet to accommodate a critical pod.",
            _ => &self.message,
        }
    }
}
