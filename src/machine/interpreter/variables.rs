//! The variables of a shell: shared until one is changed, so that a subshell costs nothing.

use std::collections::BTreeMap;
use std::sync::Arc;

/// Variables by their names.
#[derive(Clone, Debug, Default)]
pub(crate) struct Variables {
    by_name: Arc<BTreeMap<String, String>>,
    bytes: usize,
}

impl Variables {
    pub(crate) fn new(by_name: BTreeMap<String, String>) -> Variables {
        let bytes = by_name.iter().map(|(name, value)| name.len() + value.len()).sum();
        Variables { by_name: Arc::new(by_name), bytes }
    }

    pub(crate) fn get(&self, name: &str) -> Option<&String> {
        self.by_name.get(name)
    }

    pub(crate) fn set(&mut self, name: &str, value: String) {
        self.remove(name);
        self.bytes += name.len() + value.len();
        Arc::make_mut(&mut self.by_name).insert(name.to_owned(), value);
    }

    pub(crate) fn remove(&mut self, name: &str) {
        if let Some(old) = self.by_name.get(name) {
            self.bytes -= name.len() + old.len();
            Arc::make_mut(&mut self.by_name).remove(name);
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&String, &String)> {
        self.by_name.iter()
    }

    pub(crate) fn count(&self) -> usize {
        self.by_name.len()
    }

    /// Of all names and values.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether a change copies all of them first.
    pub(crate) fn is_shared(&self) -> bool {
        Arc::strong_count(&self.by_name) > 1
    }

    pub(crate) fn into_map(self) -> BTreeMap<String, String> {
        Arc::unwrap_or_clone(self.by_name)
    }
}
