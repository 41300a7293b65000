//! `Changes`: whether somebody who looks again and again would find anything new.

/// How often at most one beat writes: the lease and the status of a node.
const WRITES_OF_A_BEAT: u64 = 2;

/// What has changed since whom.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    /// How often something had, when it was counted last.
    counted: u64,
    /// Up to this count it was beats that wrote.
    expected: u64,
    /// How often it was found that something had.
    pub(crate) times: u64,
}

impl Changes {
    /// Something has changed so often in all.
    pub(crate) fn count(&mut self, changes: u64) {
        if changes > self.counted.max(self.expected) {
            self.times += 1;
        }
        self.counted = changes;
        self.expected = changes;
    }

    /// So many beats are about to write.
    pub(crate) fn expect_of_beats(&mut self, beats: u64) {
        self.expected = self.counted + beats * WRITES_OF_A_BEAT;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_beats_write_is_no_change_and_anything_more_is() {
        let mut changes = Changes::default();
        changes.count(5);
        assert_eq!(changes.times, 1);
        changes.count(5);
        changes.expect_of_beats(2);
        changes.count(9);
        assert_eq!(changes.times, 1);
        changes.expect_of_beats(2);
        changes.count(14);
        assert_eq!(changes.times, 2);
        changes.count(15);
        assert_eq!(changes.times, 3, "what was expected once is not expected again");
    }
}
