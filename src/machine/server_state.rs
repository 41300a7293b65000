//! What a server remembers of those who asked it, for as long as it runs.

use std::collections::BTreeMap;

use crate::agnhost::forward_tester::ForwardTester;
use crate::consumption::{BumpedMetrics, Consumption};
use crate::wardle::WardleStore;

/// So many keys a guestbook keeps, and so much of anything else a server; what comes beyond is refused.
const MAX_ENTRIES: usize = 1000;
/// So many servers run within a server; one more finds no port.
pub(crate) const MAX_RUNNERS: usize = 100;
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
    /// What whoami was told to say of its health.
    pub(crate) health_code: Option<u16>,
    /// What a guestbook keeps. Bound: [`MAX_ENTRIES`].
    pub(crate) entries: BTreeMap<String, String>,
    /// The addresses of a guestbook's replicas. Bound: [`MAX_REPLICAS`].
    pub(crate) replicas: Vec<String>,
    /// Whether a replica has what its primary keeps.
    pub(crate) is_registered: bool,
    /// Who told it of himself, and how often (agnhost's `nettest`). Bound: [`MAX_ENTRIES`].
    pub(crate) received: BTreeMap<String, u64>,
    /// What was wrong with what it was told. Bound: [`MAX_ENTRIES`].
    pub(crate) errors: Vec<String>,
    /// What its metrics are; nothing before somebody asked. Bound: [`MAX_ENTRIES`].
    metrics: Vec<ExternalMetric>,
    /// What it uses because it was told to.
    pub consumption: Consumption,
    /// Metrics that it was told to raise for a while.
    pub(crate) bumped: BumpedMetrics,
    /// How many files were sent to it.
    pub(crate) uploads: u64,
    /// What the sample apiserver keeps.
    pub(crate) wardle: WardleStore,
    /// Whether one that takes a single connection has that.
    is_taken: bool,
    /// Servers that it has begun for who asked (agnhost's `net --serve`), by their ports, each until it is
    /// done with its client. Bound: [`MAX_RUNNERS`].
    runners: BTreeMap<i64, RunningServer>,
}

/// A server within a server.
#[derive(Clone, Debug)]
struct RunningServer {
    tester: ForwardTester,
    is_taken: bool,
}

/// A metric of agnhost's `external-metrics`.
#[derive(Clone, Debug)]
pub(crate) struct ExternalMetric {
    pub(crate) name: String,
    pub(crate) labels: BTreeMap<String, String>,
    /// Of those that are there from the start nobody said labels.
    pub(crate) is_bare: bool,
    pub(crate) value: i64,
    /// Whether who asks for it is told that it failed.
    pub(crate) fails: bool,
}

impl ServerState {
    /// All metrics; some are there from the start.
    pub(crate) fn metrics(&mut self) -> &mut Vec<ExternalMetric> {
        if self.metrics.is_empty() {
            let first = [("queue_messages_ready", 100), ("http_requests_total", 500)];
            let metric = |(name, value): (&str, i64)| ExternalMetric {
                name: name.to_owned(),
                labels: BTreeMap::new(),
                is_bare: true,
                value,
                fails: false,
            };
            self.metrics.extend(first.map(metric));
        }
        &mut self.metrics
    }

    /// In the place of that with the same name and labels. Whether there was room.
    pub(crate) fn keep_metric(&mut self, metric: ExternalMetric) -> bool {
        let metrics = self.metrics();
        let at = metrics.iter().position(|old| old.name == metric.name && old.labels == metric.labels);
        match at {
            Some(at) => metrics[at] = metric,
            None if metrics.len() >= MAX_ENTRIES => return false,
            None => metrics.push(metric),
        }
        true
    }

    /// Somebody told of himself.
    pub(crate) fn receive(&mut self, name: String) {
        if self.received.contains_key(&name) || self.received.len() < MAX_ENTRIES {
            *self.received.entry(name).or_default() += 1;
        }
    }

    pub(crate) fn note_error(&mut self, error: String) {
        if self.errors.len() < MAX_ENTRIES {
            self.errors.push(error);
        }
    }

    /// Whether somebody told it to answer otherwise than by itself.
    pub fn is_told(&self) -> bool {
        self.is_serving.is_some() || self.health_code.is_some()
    }

    /// Takes the only connection that there may be; whether it was free.
    pub fn take(&mut self) -> bool {
        !std::mem::replace(&mut self.is_taken, true)
    }

    /// Begins a server at a port; whether that was free.
    pub(crate) fn run_at(&mut self, port: i64, tester: ForwardTester) -> bool {
        let is_free = !self.runners.contains_key(&port) && self.runners.len() < MAX_RUNNERS;
        if is_free {
            self.runners.insert(port, RunningServer { tester, is_taken: false });
        }
        is_free
    }

    /// The server that it has begun at a port, and is not done.
    pub fn runner(&self, port: i64) -> Option<&ForwardTester> {
        self.runners.get(&port).map(|running| &running.tester)
    }

    /// Takes the only connection of a server that it has begun; whether it was free.
    pub fn take_runner(&mut self, port: i64) -> bool {
        let running = self.runners.get_mut(&port);
        running.is_some_and(|running| !std::mem::replace(&mut running.is_taken, true))
    }

    /// A server that it has begun is done.
    pub fn end_runner(&mut self, port: i64) {
        self.runners.remove(&port);
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

    fn state_metric() -> ExternalMetric {
        ServerState::default().metrics().remove(0)
    }

    #[test]
    fn a_guestbook_is_full_at_its_bounds() {
        let mut state = ServerState::default();
        assert!((0..MAX_ENTRIES).all(|key| state.keep(key.to_string(), String::new())));
        assert!(!state.keep("more".into(), String::new()) && state.keep("1".into(), "again".into()));
        assert!(!state.keep("1".into(), "x".repeat(MAX_ENTRY_BYTES + 1)));
        (0..2 * MAX_REPLICAS).for_each(|number| state.register(number.to_string()));
        assert_eq!(state.replicas.len(), MAX_REPLICAS);
        for number in 0..2 * MAX_ENTRIES {
            state.receive(number.to_string());
            state.note_error(number.to_string());
        }
        assert_eq!((state.received.len(), state.errors.len()), (MAX_ENTRIES, MAX_ENTRIES));
        let metric = |name: &str| ExternalMetric { name: name.to_owned(), ..state_metric() };
        let kept =
            (0..2 * MAX_ENTRIES).filter(|number| state.keep_metric(metric(&number.to_string()))).count();
        assert_eq!((kept, state.metrics().len()), (MAX_ENTRIES - 2, MAX_ENTRIES));
    }
}
