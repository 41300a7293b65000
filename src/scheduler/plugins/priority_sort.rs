//! PrioritySort: higher priority first, then who waits longest.

use std::cmp::Reverse;

use crate::framework::plugin::{ActiveQueueKey, Plugin};
use crate::framework::pod_info::QueuedPodInfo;

/// The plugin.
pub struct PrioritySort;

impl Plugin for PrioritySort {
    fn name(&self) -> &'static str {
        "PrioritySort"
    }

    fn queue_key(&self, pod: &QueuedPodInfo) -> Option<ActiveQueueKey> {
        Some((Reverse(pod.pod.priority), pod.timestamp))
    }
}
