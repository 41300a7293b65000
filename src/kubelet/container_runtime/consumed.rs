//! What containers use because somebody has told their servers to (agnhost's `resource-consumer`).

use std::collections::HashMap;
use std::sync::Arc;

use apimachinery::time::Time;
use machine::consumption::Consumption;
use sync::RwLock;

/// A pod's uid, and a container of it.
type ConsumerKey = (Arc<str>, String);

/// Of the containers of a node; since when each has run, since the next run has been told nothing. Cloning
/// shares it. Bound: the containers of its pods that were told.
#[derive(Clone, Debug, Default)]
pub(super) struct ConsumedBook(Arc<RwLock<HashMap<ConsumerKey, (Time, Consumption)>>>);

impl ConsumedBook {
    /// All that a run was told by now.
    pub(super) fn put(&self, pod: &str, container: &str, started_at: Time, consumption: Consumption) {
        self.0.write().insert((Arc::from(pod), container.to_owned()), (started_at, consumption));
    }

    /// What a run was told; most of them nothing.
    pub(super) fn get(&self, pod: &str, container: &str, started_at: Time) -> Option<Consumption> {
        let book = self.0.read();
        if book.is_empty() {
            return None;
        }
        let (since, consumption) = book.get(&(Arc::from(pod), container.to_owned()))?;
        Some(consumption.clone()).filter(|_| *since == started_at)
    }

    pub(super) fn forget_pod(&self, uid: &str) {
        self.0.write().retain(|(own, _), _| **own != *uid);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_run_was_told_nothing() {
        let (book, later) = (ConsumedBook::default(), Time::UNIX_EPOCH + std::time::Duration::from_secs(9));
        book.put("u", "c", Time::UNIX_EPOCH, Consumption::default());
        assert!(book.get("u", "c", Time::UNIX_EPOCH).is_some());
        assert!(book.get("u", "c", later).is_none() && book.get("u", "d", Time::UNIX_EPOCH).is_none());
        book.forget_pod("u");
        assert!(book.get("u", "c", Time::UNIX_EPOCH).is_none());
    }
}
