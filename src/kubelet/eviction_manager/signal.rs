//! What thresholds are about (`pkg/kubelet/eviction/api`).

use apimachinery::quantity::Format;

/// A signal that is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Signal {
    /// First, since it is the most urgent (`byEvictionPriority`).
    Memory,
    /// The disk.
    NodeFs,
    /// The files that it has room for.
    NodeFsInodes,
    /// Where images are: on that disk, too.
    ImageFs,
    ImageFsInodes,
    Pids,
}

impl Signal {
    pub(super) const ALL: [Signal; 6] = [
        Signal::Memory,
        Signal::NodeFs,
        Signal::NodeFsInodes,
        Signal::ImageFs,
        Signal::ImageFsInodes,
        Signal::Pids,
    ];

    /// As thresholds name it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Signal::Memory => "memory.available",
            Signal::NodeFs => "nodefs.available",
            Signal::NodeFsInodes => "nodefs.inodesFree",
            Signal::ImageFs => "imagefs.available",
            Signal::ImageFsInodes => "imagefs.inodesFree",
            Signal::Pids => "pid.available",
        }
    }

    /// The condition of a node that is short of it (`signalToNodeCondition`).
    pub(crate) fn condition(self) -> &'static str {
        match self {
            Signal::Memory => "MemoryPressure",
            Signal::NodeFs | Signal::NodeFsInodes | Signal::ImageFs | Signal::ImageFsInodes => "DiskPressure",
            Signal::Pids => "PIDPressure",
        }
    }

    /// What is short then (`signalToResource`).
    pub(crate) fn resource(self) -> &'static str {
        match self {
            Signal::Memory => "memory",
            Signal::NodeFs | Signal::ImageFs => "ephemeral-storage",
            Signal::NodeFsInodes | Signal::ImageFsInodes => "inodes",
            Signal::Pids => "pids",
        }
    }

    /// How amounts of it are written.
    pub(super) fn format(self) -> Format {
        match self {
            Signal::Memory | Signal::NodeFs | Signal::ImageFs => Format::BinarySi,
            Signal::NodeFsInodes | Signal::ImageFsInodes | Signal::Pids => Format::DecimalSi,
        }
    }

    /// The first signal of a condition.
    pub(super) fn of_condition(condition: &str) -> Option<Signal> {
        Signal::ALL.into_iter().find(|signal| signal.condition() == condition)
    }
}
