//! How long a failed pod is waited for before another one is made: 10 seconds, doubled with each failure in a
//! row, up to 10 minutes.

use std::collections::HashMap;
use std::time::Duration;

use super::pods::JobPod;
use apimachinery::time::Time;
use sync::{Mutex, MutexGuard};

/// Upstream's `DefaultJobPodFailureBackOff`.
const DEFAULT_POD_FAILURE_BACKOFF: Duration = Duration::from_secs(10);
/// Upstream's `MaxJobPodFailureBackOff`.
const MAX_POD_FAILURE_BACKOFF: Duration = Duration::from_secs(600);

/// The failures of a Job since its last success.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct BackoffRecord {
    failures: i64,
    last_failure: Option<Time>,
}

/// The records of all Jobs, by uid. Bound: an entry goes when its Job is finished or deleted.
#[derive(Default)]
pub(super) struct Backoffs(Mutex<HashMap<String, BackoffRecord>>);

impl BackoffRecord {
    /// With pods that ended since.
    pub(super) fn with(&self, succeeded: &[&JobPod], failed: &[&JobPod]) -> BackoffRecord {
        let last_success = succeeded.iter().map(|pod| pod.finished_at()).max();
        let failures = failed.iter().map(|pod| pod.finished_at());
        let since: Vec<Time> =
            failures.filter(|at| last_success.is_none_or(|success| *at > success)).collect();
        let before = if last_success.is_some() { BackoffRecord::default() } else { self.clone() };
        BackoffRecord {
            failures: before.failures + since.len() as i64,
            last_failure: since.into_iter().max().or(before.last_failure),
        }
    }

    /// How long nothing may be created.
    pub(super) fn remaining(&self, now: Time) -> Duration {
        self.last_failure.map_or(Duration::ZERO, |last| remaining(self.failures, last, now))
    }
}

impl Backoffs {
    /// The record of a Job.
    pub(super) fn get(&self, uid: &str) -> BackoffRecord {
        self.lock().get(uid).cloned().unwrap_or_default()
    }

    /// Remembers it.
    pub(super) fn put(&self, uid: &str, record: BackoffRecord) {
        if record == BackoffRecord::default() {
            self.forget(uid);
        } else {
            self.lock().insert(uid.to_owned(), record);
        }
    }

    /// The Job is finished or gone.
    pub(super) fn forget(&self, uid: &str) {
        self.lock().remove(uid);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, BackoffRecord>> {
        self.0.lock()
    }
}

/// How long the replacement of a pod waits that was the last to fail of its index.
pub(super) fn remaining_for_index(last_failed: &JobPod, now: Time) -> Duration {
    let failures = last_failed.index_failures() + last_failed.index_ignored_failures() + 1;
    remaining(failures, last_failed.finished_at(), now)
}

fn remaining(failures: i64, last_failure: Time, now: Time) -> Duration {
    if failures <= 0 {
        return Duration::ZERO;
    }
    let doublings = u32::try_from(failures - 1).unwrap_or(u32::MAX).min(16);
    let pause = (DEFAULT_POD_FAILURE_BACKOFF * 2u32.pow(doublings)).min(MAX_POD_FAILURE_BACKOFF);
    let due = last_failure + pause;
    (due - now).to_std().unwrap_or(Duration::ZERO)
}

#[cfg(test)]
mod tests {
    use super::*;
    use apimachinery::object::Object;
    use chrono::DateTime;
    use serde_json::json;
    use std::collections::BTreeSet;
    use std::sync::Arc;

    fn at(seconds: i64) -> Time {
        DateTime::from_timestamp(seconds, 0).unwrap()
    }

    fn pod(finished: i64) -> JobPod {
        let ended = json!({"terminated": {"finishedAt": apimachinery::time::rfc3339(at(finished))}});
        let tree = json!({
            "metadata": {"name": "p", "uid": finished.to_string()},
            "status": {"containerStatuses": [{"name": "c", "state": ended}]},
        });
        let job = Object::from_value(&json!({"metadata": {"name": "j"}}), vec![]).unwrap();
        let pod = Arc::new(Object::from_value(&tree, vec![]).unwrap());
        JobPod::of(pod, &job, &BTreeSet::new())
    }

    #[test]
    fn pauses_double_up_to_ten_minutes() {
        let pauses = [1, 2, 3, 6, 7, 8, 1000].map(|failures| remaining(failures, at(0), at(0)).as_secs());
        assert_eq!(pauses, [10, 20, 40, 320, 600, 600, 600]);
        assert_eq!(remaining(0, at(0), at(0)), Duration::ZERO);
        assert_eq!(remaining(1, at(0), at(4)), Duration::from_secs(6));
        assert_eq!(remaining(1, at(0), at(11)), Duration::ZERO);
    }

    #[test]
    fn a_success_starts_the_count_anew() {
        let pods = [pod(5), pod(10), pod(20), pod(30)];
        let record = BackoffRecord::default().with(&[], &[&pods[0], &pods[1]]);
        assert_eq!(record, BackoffRecord { failures: 2, last_failure: Some(at(10)) });
        assert_eq!(record.with(&[], &[]), record);
        assert_eq!(record.with(&[], &[&pods[2]]).failures, 3);
        assert_eq!(record.with(&[&pods[2]], &[]), BackoffRecord::default());
        let after = record.with(&[&pods[2]], &[&pods[0], &pods[3]]);
        assert_eq!(after, BackoffRecord { failures: 1, last_failure: Some(at(30)) });
        assert_eq!(after.remaining(at(30)), Duration::from_secs(10));
    }
}
