//! The loss of what was acknowledged, in words for people.

use std::ops::RangeInclusive;
use std::path::PathBuf;

use super::Revision;

/// What a store has lost of what it acknowledged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loss {
    /// The store's folder.
    pub data_dir: PathBuf,
    /// The newest revision that was acknowledged.
    pub promised: Revision,
    /// All up to here can be read, what compaction left of it.
    pub reached: Revision,
    /// The revisions since the last compaction that cannot be read, beyond the promised one none.
    pub gone: Vec<RangeInclusive<Revision>>,
    /// How many older changes cannot be read, of those that make up the objects.
    pub older: u64,
}

impl Loss {
    /// What is gone, in words.
    pub fn gone(&self) -> String {
        let named = |range: &RangeInclusive<Revision>| {
            if range.start() == range.end() {
                range.start().to_string()
            } else {
                format!("{} to {}", range.start(), range.end())
            }
        };
        let revisions: Vec<String> = self.gone.iter().map(named).collect();
        match (revisions.is_empty(), self.older) {
            (true, 0) => "what was written is not what is read".to_owned(),
            (true, older) => format!("gone: {older} older changes"),
            (false, 0) => format!("gone: revisions {}", revisions.join(", ")),
            (false, older) => format!("gone: revisions {}, and {older} older changes", revisions.join(", ")),
        }
    }
}

impl std::fmt::Display for Loss {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Loss { promised, reached, .. } = self;
        let data_dir = self.data_dir.display();
        let gone = self.gone();
        write!(
            f,
            "the data dir {data_dir} has lost what was acknowledged: all up to revision {promised} was \
             promised, all up to {reached} is there ({gone})"
        )
    }
}
