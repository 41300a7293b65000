//! Forks: a store that begins with the past of another and has a future of its own. The state is shared as it
//! is, and costs nothing to take over.

use std::sync::{Arc, Weak};

use super::log::Log;
use super::opening::Opened;
use super::past::{self, SharedPast};
use super::state::{Shared, State};
use super::watchers::Watchers;
use super::{Revision, StoreError};
use clock::Clock;

impl State {
    /// The log is another from now on, for forks as well.
    pub(super) fn replace_log(&mut self, log: Arc<dyn Log>) -> Option<Arc<dyn Log>> {
        if let Some(past) = self.past.upgrade() {
            past.replace(log.clone());
        }
        self.log.replace(log)
    }

    /// A state with this past, of a store in memory.
    fn fork(&mut self) -> Result<State, StoreError> {
        let log = self.log()?;
        let past = self.past.upgrade().unwrap_or_else(|| {
            let past = Arc::new(SharedPast::new(log));
            self.past = Arc::downgrade(&past);
            past
        });
        Ok(State {
            revision: self.revision,
            compact_revision: self.compact_revision,
            index: self.index.clone(),
            recent: self.recent.clone(),
            leases: self.leases.clone(),
            watchers: Watchers::default(),
            log: Some(past::forked(past, self.revision)),
            failed: None,
            past: Weak::new(),
        })
    }
}

impl Shared {
    /// A state that nobody else has, as all is now.
    pub(super) fn fork(&self) -> Result<Shared, StoreError> {
        Ok(Shared::new(self.write().fork()?))
    }

    /// What a store begins with that has this past, up to a revision (None: to now).
    pub(super) fn open_fork(&self, at: Option<Revision>, clock: &Clock) -> Result<Opened, StoreError> {
        let forked = self.fork()?;
        if let Some(to) = at {
            forked.rewind(to, clock)?;
        }
        let state = forked.into_state();
        let newest_lease = state.leases.newest();
        Ok(Opened { state, sled: None, newest_lease, home: None, recovery: None })
    }

    /// Forgets what happened after `to`. A lease that has ended since then is there for a moment, for what
    /// hung on it.
    fn rewind(&self, to: Revision, clock: &Clock) -> Result<(), StoreError> {
        let rewound = {
            let mut state = self.write();
            state.readable(Some(to))?;
            state.revision = to;
            state.recent.rewind(to);
            state.index.rewind(to)
        };
        for key in rewound {
            let lease = self.get(&key, None)?.0.and_then(|kv| kv.lease);
            let mut state = self.write();
            if let Some(lease) = lease {
                state.leases.insert_expired(lease, clock.elapsed());
            }
            state.leases.attach(&key, lease);
        }
        Ok(())
    }
}
