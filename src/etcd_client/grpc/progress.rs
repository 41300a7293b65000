//! Who wants to know how far watches are (`RequestProgress`): asked for by prefix, told to the watches of it.

use std::collections::HashMap;
use std::sync::Arc;

use sync::Mutex;
use tokio::sync::Notify;

/// The watches that are open, by what they watch. Bound: the watches.
#[derive(Debug, Default)]
pub(crate) struct ProgressAsked(Mutex<HashMap<String, Vec<Arc<Notify>>>>);

impl ProgressAsked {
    /// A watch of a prefix, which is told when somebody asks.
    pub(crate) fn add(&self, prefix: &str) -> Arc<Notify> {
        let asked = Arc::new(Notify::new());
        self.0.lock().entry(prefix.to_owned()).or_default().push(asked.clone());
        asked
    }

    /// The watch is over.
    pub(crate) fn remove(&self, prefix: &str, asked: &Arc<Notify>) {
        let mut all = self.0.lock();
        if let Some(of_prefix) = all.get_mut(prefix) {
            of_prefix.retain(|other| !Arc::ptr_eq(other, asked));
            if of_prefix.is_empty() {
                all.remove(prefix);
            }
        }
    }

    /// Somebody asks.
    pub(crate) fn ask(&self, prefix: &str) {
        self.0.lock().get(prefix).into_iter().flatten().for_each(|asked| asked.notify_one());
    }
}
