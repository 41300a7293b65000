//! What stands in a queue.

use std::fmt;
use std::hash::Hash;

/// What most queues hold: `namespace/name`, or `name` for cluster-scoped objects.
pub type Key = String;

/// What can stand in a queue. It prints as the key that flow and logs show.
pub trait QueueKey: Clone + Eq + Hash + fmt::Display + Send + Sync + 'static {}

impl<K: Clone + Eq + Hash + fmt::Display + Send + Sync + 'static> QueueKey for K {}
