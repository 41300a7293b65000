//! What thresholds are about (`pkg/kubelet/eviction/api`).

/// A signal that is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Signal {
    /// First, since it is the most urgent (`byEvictionPriority`).
    Memory,
    /// The disk.
    NodeFs,
    /// Where images are: on that disk, too.
    ImageFs,
    Pids,
}

impl Signal {
    pub(super) const ALL: [Signal; 4] = [Signal::Memory, Signal::NodeFs, Signal::ImageFs, Signal::Pids];

    /// As thresholds name it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Signal::Memory => "memory.available",
            Signal::NodeFs => "nodefs.available",
            Signal::ImageFs => "imagefs.available",
            Signal::Pids => "pid.available",
        }
    }

    /// The condition of a node that is short of it (`signalToNodeCondition`).
    pub(crate) fn condition(self) -> &'static str {
        match self {
            Signal::Memory => "MemoryPressure",
            Signal::NodeFs | Signal::ImageFs => "DiskPressure",
            Signal::Pids => "PIDPressure",
        }
    }

    /// What is short then (`signalToResource`).
    pub(crate) fn resource(self) -> &'static str {
        match self {
            Signal::Memory => "memory",
            Signal::NodeFs | Signal::ImageFs => "ephemeral-storage",
            Signal::Pids => "pids",
        }
    }

    /// The first signal of a condition.
    pub(super) fn of_condition(condition: &str) -> Option<Signal> {
        Signal::ALL.into_iter().find(|signal| signal.condition() == condition)
    }
}
