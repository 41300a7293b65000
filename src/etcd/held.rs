//! What a store holds, in memory and on disk.

use bytes::Bytes;

use super::{HeldKeys, Kv};

impl Kv {
    /// How much room its files take; 0 in memory.
    pub fn bytes_on_disk(&self) -> u64 {
        self.shared().read().log().map_or(0, |log| log.bytes_on_disk())
    }

    /// Shows each value that it holds in memory, with its key: those of the newest changes, and what was
    /// there before them, which may be one that was shown already. What is older is in files, and in the
    /// caches of those who read it. Nobody waits meanwhile.
    pub fn each_value_in_memory(&self, mut visit: impl FnMut(&str, &Bytes)) {
        // Apart from the lock; cloning shares it.
        let recent = self.shared().read().recent.clone();
        for event in recent.all() {
            visit(&event.kv.key, &event.kv.value);
            event.previous.iter().for_each(|previous| visit(&previous.key, &previous.value));
        }
    }

    /// The keys that it knows.
    pub fn keys_in_memory(&self) -> HeldKeys {
        let index = self.shared().read().index.clone();
        index.held()
    }
}
