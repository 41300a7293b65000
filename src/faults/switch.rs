//! `ComponentSwitch`: what faults need of a cluster.

/// Who can stop and start components by their names.
pub trait ComponentSwitch: Send + Sync {
    /// Whether there is one of that name.
    ///
    /// # Errors
    /// A name that no component has, in words.
    fn check(&self, name: &str) -> Result<(), String>;
    /// Stops one; says whether it ran.
    ///
    /// # Errors
    /// A name that no component has, in words.
    fn stop(&self, name: &str) -> Result<bool, String>;
    /// Starts one again, unless all are about to end.
    fn start(&self, name: &str);
    /// Ends the watches in this process that were cut.
    fn end_cut_watches(&self);
    /// The newest revision of the store.
    fn revision(&self) -> u64;
    /// The oldest revision that the store can still be read at.
    fn compact_revision(&self) -> u64;
}
