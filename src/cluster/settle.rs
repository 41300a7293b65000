//! To wait until nothing moves: counted, and not guessed. What does not come to rest is told of.

use std::fmt;
use std::time::Duration;

use super::inside::Inside;
use flow::{StepId, Writings};

/// How long a cluster may take to come to rest, if nobody says otherwise; real time.
pub(crate) const WITHIN: Duration = Duration::from_secs(30);
/// Of how many objects it is told that they are still written.
const MAX_TOLD: usize = 5;

/// What is waited for.
#[derive(Clone, Debug)]
pub struct Settle {
    quiet: Duration,
    ignore: Vec<String>,
    within: Duration,
}

impl Default for Settle {
    fn default() -> Settle {
        Settle::new()
    }
}

impl Settle {
    /// That nothing moves inside: no request in the chain, no undelivered event, no queue with work that is
    /// due, no busy worker, nothing of a pod that is due.
    pub fn new() -> Settle {
        Settle { quiet: Duration::ZERO, ignore: vec![], within: WITHIN }
    }

    /// And that for so long, in real time, nobody outside has asked for anything, and nobody has written
    /// anything. Leases that somebody looks at by name or renews do not count: leader election does that
    /// every two seconds. For clients in other processes: whether they are done, nobody can see.
    #[must_use]
    pub fn quiet(self, quiet: Duration) -> Settle {
        Settle { quiet, ..self }
    }

    /// What this user does is no reason to wait, as one that polls.
    #[must_use]
    pub fn ignore(mut self, user: impl Into<String>) -> Settle {
        self.ignore.push(user.into());
        self
    }

    /// How long to wait at most, in real time.
    #[must_use]
    pub fn within(self, within: Duration) -> Settle {
        Settle { within, ..self }
    }
}

/// The cluster did not come to rest; what keeps moving.
#[derive(Clone, Debug, thiserror::Error)]
pub struct Unsettled {
    /// How long was waited.
    pub within: Duration,
    /// What was written meanwhile, most often first. Empty when nothing was, or when the flow record is off.
    pub written: Vec<Writings>,
    /// Who has requests under way, or asked last.
    pub asking: Vec<String>,
    /// How many tasks are awake.
    pub awake: usize,
}

impl fmt::Display for Unsettled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the cluster did not settle within {:?}", self.within)?;
        let written = self.written.iter().take(MAX_TOLD).map(Writings::to_string);
        for line in written.chain(self.asking.iter().cloned()) {
            write!(f, "; {line}")?;
        }
        if self.written.len() > MAX_TOLD {
            write!(f, "; and {} more objects are written", self.written.len() - MAX_TOLD)?;
        }
        match self.awake {
            0 => Ok(()),
            awake => write!(f, "; {awake} tasks are at work"),
        }
    }
}

impl Inside {
    /// Waits until nothing moves. Not to be called from a task of the cluster itself.
    pub(crate) async fn settle(&self, settle: &Settle) -> Result<(), Unsettled> {
        let since = self.flow.newest();
        let settled = async {
            loop {
                self.clock.work().idle().await;
                match self.left_of_quiet(settle) {
                    Some(left) => self.for_handles.time.real.sleep(left).await,
                    None => return,
                }
            }
        };
        let outcome = self.for_handles.time.real.timeout(settle.within, settled).await;
        outcome.map_err(|_| self.unsettled(settle, since))
    }

    /// How much longer nobody may do anything; none when it has been long enough.
    fn left_of_quiet(&self, settle: &Settle) -> Option<Duration> {
        if settle.quiet.is_zero() {
            return None;
        }
        let Some(since) = self.traffic.quiet_since(&settle.ignore) else { return Some(settle.quiet) };
        let left = (since + settle.quiet).saturating_sub(self.traffic.now());
        Some(left).filter(|left| !left.is_zero())
    }

    fn unsettled(&self, settle: &Settle, since: StepId) -> Unsettled {
        let asking = self.traffic.users().into_iter().filter_map(|(user, traffic)| {
            let is_ignored = settle.ignore.iter().any(|one| **one == *user);
            let what = &traffic.last_request;
            match traffic.requests {
                _ if is_ignored => None,
                0 => {
                    let ago = self.traffic.now().saturating_sub(traffic.last);
                    let counts = ago < settle.quiet && !what.is_empty();
                    counts.then(|| format!("{user} asked {}ms ago for {what}", ago.as_millis()))
                }
                1 => Some(format!("a request of {user} is under way: {what}")),
                count => Some(format!("{count} requests of {user} are under way, the last: {what}")),
            }
        });
        Unsettled {
            within: settle.within,
            written: self.flow.writings(since),
            asking: asking.collect(),
            awake: self.clock.work().count(),
        }
    }
}
