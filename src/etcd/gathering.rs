//! How long the writer waits for more writes to share a sync: not at all, unless that pays.
//!
//! Writers that wait for an answer come back right after it. Without a pause, the first of them would start
//! the next sync alone, and the others wait for two syncs instead of one.

use std::time::Duration;

/// One wait.
pub(super) const PAUSE: Duration = Duration::from_micros(100);
/// At most this part of what a sync takes is waited.
const SHARE: u32 = 6;
/// At most so many waits, however slow the disk.
const MAX_PAUSES: u128 = 20;

/// What the last group was like.
#[derive(Debug, Default)]
pub(super) struct Gathering {
    /// How many were written, or waited when that was done.
    writers: usize,
    /// Waits before the next group.
    left: u128,
}

impl Gathering {
    /// Whether more writes may be expected soon, after so many have come.
    pub(super) fn is_worth_a_pause(&mut self, gathered: usize) -> bool {
        if gathered == 0 || gathered >= self.writers || self.left == 0 {
            return false;
        }
        self.left -= 1;
        true
    }

    /// A group is written, and so many writers were there in all.
    pub(super) fn note(&mut self, writers: usize, taken: Duration) {
        self.writers = writers;
        self.left = ((taken / SHARE).as_micros() / PAUSE.as_micros()).min(MAX_PAUSES);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_who_has_company_and_a_slow_disk_waits() {
        let pauses = |writers, milliseconds, gathered| {
            let mut gathering = Gathering::default();
            gathering.note(writers, Duration::from_millis(milliseconds));
            (0..100).filter(|_| gathering.is_worth_a_pause(gathered)).count()
        };
        assert_eq!(pauses(1, 6, 1), 0, "alone");
        assert_eq!(pauses(32, 0, 1), 0, "a fast disk");
        assert_eq!(pauses(32, 6, 32), 0, "all are here");
        assert_eq!(pauses(32, 6, 16), 10);
        assert_eq!(pauses(32, 6000, 16), 20, "bounded");
        assert_eq!(pauses(32, 6, 0), 0, "nobody is here");
    }
}
