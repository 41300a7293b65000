//! The eviction manager (`pkg/kubelet/eviction`): what a node has left of memory, disk and processes, the
//! conditions that follow from it, and which pod goes.
//!
//! Comes in: what pods use. Goes out: conditions, and the end of one pod at a time. A node whose pods say
//! nothing of what they use, and of which nobody says that it is under pressure, is not looked at.

mod message;
mod observations;
mod ranking;
mod signal;
mod synchronize;
pub(crate) mod thresholds;

pub(crate) use ranking::PodUse;
pub use thresholds::{EvictionThresholds, SignalPeriods, SignalReclaims};
