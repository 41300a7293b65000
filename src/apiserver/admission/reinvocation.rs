//! Reinvocation: mutating plugins that people add are asked a second time when something behind them has
//! changed the object (`admission.ReinvocationContext`). There are two rounds, never more.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use sync::{Mutex, MutexGuard};

/// What is remembered between the rounds of one request.
#[derive(Default)]
pub struct Reinvocation(Mutex<ReinvocationState>);

#[derive(Default)]
struct ReinvocationState {
    is_second: bool,
    is_wanted: bool,
    /// By plugin.
    kept: BTreeMap<&'static str, Kept>,
}

/// What a plugin leaves for its second round.
#[derive(Default)]
pub struct Kept {
    /// Asked, and to be asked again if the object has changed since.
    pub invoked: BTreeSet<String>,
    /// To be asked again.
    pub reinvoked: BTreeSet<String>,
    /// The object as the plugin left it.
    pub output: Option<Value>,
}

impl Reinvocation {
    /// Whether this is the second round.
    pub fn is_second(&self) -> bool {
        self.lock().is_second
    }

    /// Something was changed that others should see.
    pub fn want_second(&self) {
        self.lock().is_wanted = true;
    }

    /// Begins the second round, if somebody wants one.
    pub fn begin_second(&self) -> bool {
        let mut state = self.lock();
        state.is_second = state.is_wanted;
        state.is_second
    }

    /// Leaves something for the second round.
    pub fn keep(
        &self,
        plugin: &'static str,
        invoked: BTreeSet<String>,
        reinvoked: BTreeSet<String>,
        output: Option<Value>,
    ) {
        self.lock().kept.insert(plugin, Kept { invoked, reinvoked, output });
    }

    /// What was left.
    pub fn take(&self, plugin: &'static str) -> Kept {
        self.lock().kept.remove(plugin).unwrap_or_default()
    }

    fn lock(&self) -> MutexGuard<'_, ReinvocationState> {
        self.0.lock()
    }
}
