//! Which of the objects that every server has from the start have been made.

use std::collections::BTreeMap;
use std::sync::Arc;

use sync::Mutex;
use tokio::sync::OnceCell;

use apis::kind::StartingObjects;

/// Which sets have been made, by name. Bound: one entry for each [`StartingObjects`] of the source.
#[derive(Default)]
pub(super) struct Bootstrapped(Mutex<BTreeMap<&'static str, Arc<OnceCell<()>>>>);

impl Bootstrapped {
    /// Full once the set is made; who makes it, others wait for.
    pub(super) fn cell(&self, set: &StartingObjects) -> Arc<OnceCell<()>> {
        let mut cells = self.0.lock();
        cells.entry(set.name).or_default().clone()
    }
}
