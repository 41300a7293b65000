//! `Traffic`: who asks for what just now, and when they last did. That is what is known of clients outside:
//! nobody can see whether they are done, only whether they have asked again.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use sync::{Mutex, MutexGuard};

use clock::Clock;

/// Of how many users it is known apart; further ones are one, called [`OTHERS`].
pub const MAX_USERS: usize = 1024;
/// All users beyond the bound.
pub const OTHERS: &str = "others";

/// The requests of all users of one server. Cloning shares it.
#[derive(Clone)]
pub struct Traffic(Arc<AllTraffic>);

struct AllTraffic {
    /// Real time, whatever the cluster's: clients outside live by it.
    clock: Clock,
    users: Mutex<BTreeMap<Arc<str>, UserTraffic>>,
}

/// What one user asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UserTraffic {
    /// Requests that are not answered yet, watches and other streams aside.
    pub requests: usize,
    /// Watches and other streams that are open.
    pub streams: usize,
    /// When they last asked for something or were answered, on [`Traffic::now`].
    pub last: Duration,
    /// What they asked for last, as `GET /api/v1/pods`.
    pub last_request: String,
}

/// A request that is under way until this is dropped.
pub(crate) struct RequestUnderWay {
    traffic: Traffic,
    user: Arc<str>,
    is_stream: bool,
}

impl Default for Traffic {
    fn default() -> Traffic {
        Traffic(Arc::new(AllTraffic { clock: Clock::real(), users: Mutex::default() }))
    }
}

impl Traffic {
    /// The time that [`UserTraffic::last`] is on.
    pub fn now(&self) -> Duration {
        self.0.clock.elapsed()
    }

    /// What each user asks for, by name.
    pub fn users(&self) -> BTreeMap<Arc<str>, UserTraffic> {
        self.lock().clone()
    }

    /// Since when nobody has asked for anything, but for those that are named; none while a request of the
    /// others is under way.
    pub fn quiet_since(&self, ignored: &[String]) -> Option<Duration> {
        let users = self.lock();
        let mut last = Duration::ZERO;
        for (_, user) in users.iter().filter(|(name, _)| !ignored.iter().any(|one| **one == ***name)) {
            if user.requests > 0 {
                return None;
            }
            last = last.max(user.last);
        }
        Some(last)
    }

    /// A component of this process writes something.
    pub(crate) fn note(&self, user: &Arc<str>) {
        self.change(user, |_| ());
    }

    pub(crate) fn begin(
        &self,
        user: &Arc<str>,
        is_stream: bool,
        what: impl FnOnce() -> String,
    ) -> RequestUnderWay {
        self.change(user, |traffic| {
            let count = if is_stream { &mut traffic.streams } else { &mut traffic.requests };
            *count += 1;
            traffic.last_request = what();
        });
        RequestUnderWay { traffic: self.clone(), user: user.clone(), is_stream }
    }

    fn change(&self, user: &Arc<str>, change: impl FnOnce(&mut UserTraffic)) {
        let now = self.now();
        let mut users = self.lock();
        let is_known = users.contains_key(user);
        let key = if is_known || users.len() < MAX_USERS { user.clone() } else { OTHERS.into() };
        let traffic = users.entry(key).or_default();
        traffic.last = now;
        change(traffic);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Arc<str>, UserTraffic>> {
        self.0.users.lock()
    }
}

impl Drop for RequestUnderWay {
    fn drop(&mut self) {
        let is_stream = self.is_stream;
        self.traffic.change(&self.user, |traffic| {
            let count = if is_stream { &mut traffic.streams } else { &mut traffic.requests };
            *count = count.saturating_sub(1);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_quiet_when_nobody_asks_but_who_is_ignored() {
        let traffic = Traffic::default();
        let (jane, poller): (Arc<str>, Arc<str>) = ("jane".into(), "poller".into());
        let asking = traffic.begin(&jane, false, || "GET /api".into());
        let polling = traffic.begin(&poller, false, || "GET /apis".into());
        let ignored = ["poller".to_owned()];
        assert_eq!(traffic.quiet_since(&ignored), None);
        drop(asking);
        let since = traffic.quiet_since(&ignored).unwrap();
        assert_eq!((traffic.quiet_since(&[]), since), (None, traffic.users()["jane"].last));
        drop(polling);
        let watch = traffic.begin(&jane, true, || "GET /api/v1/pods?watch=1".into());
        assert!(traffic.quiet_since(&[]).is_some(), "a watch that is open says nothing");
        assert_eq!(traffic.users()["jane"].streams, 1);
        drop(watch);
        assert_eq!(traffic.users()["jane"].streams, 0);
    }

    #[test]
    fn beyond_the_bound_users_are_counted_together() {
        let traffic = Traffic::default();
        (0..MAX_USERS + 5).for_each(|number| traffic.note(&number.to_string().into()));
        assert_eq!(traffic.users().len(), MAX_USERS + 1);
        let asking = traffic.begin(&"new".into(), false, String::new);
        assert_eq!(traffic.users()[OTHERS].requests, 1);
        drop(asking);
        assert_eq!(traffic.users()[OTHERS].requests, 0);
    }
}
