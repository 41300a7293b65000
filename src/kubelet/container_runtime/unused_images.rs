//! `UnusedImages`: what a runtime may take away to make room.

use std::collections::BTreeSet;
use std::time::Duration;

/// Which images may go.
pub struct UnusedImages<'a> {
    /// Those that containers are of stay, by the names that pods have for them.
    pub in_use: &'a BTreeSet<String>,
    /// Younger ones stay, too.
    pub min_age: Duration,
    /// So many bytes are enough.
    pub bytes: i64,
    /// Those alone that nobody was seen to use for longer, where that is said.
    pub unused_for: Option<Duration>,
}

/// What a runtime has taken away.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RemovedImages {
    /// How many.
    pub count: u64,
    /// What they took, in bytes.
    pub bytes: i64,
}
