//! PrioritySort: higher priority first, then who waits longest.

use std::cmp::Reverse;

use super::catalog::points_of;
use crate::framework::plugin::{Plugin, QueueKey};
use crate::framework::pod_info::QueuedPodInfo;
use crate::framework::points::Point;

/// The plugin.
pub struct PrioritySort;

impl Plugin for PrioritySort {
    fn name(&self) -> &'static str {
        "PrioritySort"
    }

    fn points(&self) -> &'static [Point] {
        points_of(self.name()).unwrap_or(Point::ALL)
    }

    fn queue_key(&self, pod: &QueuedPodInfo) -> Option<QueueKey> {
        Some((Reverse(pod.pod.priority), pod.timestamp))
    }
}
