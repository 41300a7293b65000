//! What a server remembers of those who asked it, for as long as it runs.

use std::collections::BTreeMap;

/// So many keys a guestbook keeps; what comes beyond is refused.
const MAX_ENTRIES: usize = 1000;
/// So long may a key or a value be; a longer one is refused.
const MAX_ENTRY_BYTES: usize = 16 << 10;
/// So many replicas a guestbook tells; others that register are not told.
const MAX_REPLICAS: usize = 100;

/// What a server was told.
#[derive(Debug, Default)]
pub struct ServerState {
    /// Whether it says of itself that it is well (agnhost's `grpc-health-checking`); nothing while nobody
    /// told it.
    pub(crate) is_serving: Option<bool>,
    /// What a guestbook keeps. Bound: [`MAX_ENTRIES`].
    pub(crate) entries: BTreeMap<String, String>,
    /// The addresses of a guestbook's replicas. Bound: [`MAX_REPLICAS`].
    pub(crate) replicas: Vec<String>,
    /// Whether a replica has what its primary keeps.
    pub(crate) is_registered: bool,
    /// How many files were sent to it.
    pub(crate) uploads: u64,
    /// Whether one that takes a single connection has that.
    is_taken: bool,
}

impl ServerState {
    /// Whether somebody told it to answer otherwise than by itself.
    pub fn is_told(&self) -> bool {
        self.is_serving.is_some()
    }

    /// Takes the only connection that there may be; whether it was free.
    pub fn take(&mut self) -> bool {
        !std::mem::replace(&mut self.is_taken, true)
    }

    /// Whether there was room.
    pub(crate) fn keep(&mut self, key: String, value: String) -> bool {
        let is_new = !self.entries.contains_key(&key);
        let is_full = is_new && self.entries.len() >= MAX_ENTRIES;
        if is_full || key.len().max(value.len()) > MAX_ENTRY_BYTES {
            return false;
        }
        self.entries.insert(key, value);
        true
    }

    pub(crate) fn register(&mut self, replica: String) {
        if !self.replicas.contains(&replica) && self.replicas.len() < MAX_REPLICAS {
            self.replicas.push(replica);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guestbook_is_full_at_its_bounds() {
        let mut state = ServerState::default();
        assert!((0..MAX_ENTRIES).all(|key| state.keep(key.to_string(), String::new())));
        assert!(!state.keep("more".into(), String::new()) && state.keep("1".into(), "again".into()));
        assert!(!state.keep("1".into(), "x".repeat(MAX_ENTRY_BYTES + 1)));
        (0..2 * MAX_REPLICAS).for_each(|number| state.register(number.to_string()));
        assert_eq!(state.replicas.len(), MAX_REPLICAS);
    }
}
