//! Components that run while they hold a Lease (`leading`): who waits for it, and whether it is to run then.

use std::collections::BTreeMap;

use sync::Mutex;

/// The components that do not lead just now, each with whether it runs as soon as it leads. Bound: the
/// components.
#[derive(Default)]
pub(super) struct StandingBy(Mutex<BTreeMap<&'static str, bool>>);

impl StandingBy {
    /// These wait, and are to run.
    pub(super) fn of(names: &[&'static str]) -> StandingBy {
        StandingBy(Mutex::new(names.iter().map(|name| (*name, true)).collect()))
    }

    /// Says whether it is to run, if it waits; what it was to do before, else none.
    pub(super) fn note(&self, name: &str, is_wanted: bool) -> Option<bool> {
        self.0.lock().get_mut(name).map(|wanted| std::mem::replace(wanted, is_wanted))
    }

    /// It waits no more; whether it is to run.
    pub(super) fn leave(&self, name: &str) -> bool {
        self.0.lock().remove(name).unwrap_or(false)
    }

    /// It waits from now on.
    pub(super) fn join(&self, name: &'static str) {
        self.0.lock().insert(name, true);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_stopped_while_it_waited_does_not_begin_when_it_leads() {
        let waiting = StandingBy::of(&["a", "b"]);
        assert_eq!(waiting.note("a", false), Some(true));
        assert_eq!(waiting.note("c", false), None, "it waits for nothing");
        assert!(!waiting.leave("a") && waiting.leave("b"));
        assert_eq!(waiting.note("a", true), None, "it leads");
        waiting.join("a");
        assert!(waiting.leave("a"));
    }
}
