//! Reads the record while it is being written: what came since a step, and a wait for what comes next.

use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Notify;

use super::recorded::StepId;
use super::trace::TraceStep;

/// What came since a step.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Followed {
    /// Oldest first. Times are since the cluster's clock began.
    pub steps: Vec<TraceStep>,
    /// Where to go on.
    pub next: StepId,
    /// How many steps before the first were forgotten before somebody asked for them.
    pub missed: u64,
}

/// Who waits for steps. While nobody does, a step costs one look at a number.
#[derive(Default)]
pub(super) struct Followers {
    waiting: AtomicUsize,
    news: Notify,
}

impl Followers {
    /// A step was pushed; the ring is not locked any more.
    pub(super) fn tell(&self) {
        // Whoever began to wait later looks into the ring after that, and finds the step there: the ring's
        // lock orders the two.
        if self.waiting.load(Ordering::Relaxed) > 0 {
            self.news.notify_waiters();
        }
    }
}

/// Counts one who waits, also when the wait is given up.
struct WaitingFollower<'a>(&'a AtomicUsize);

impl Drop for WaitingFollower<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Followers {
    /// Waits until `is_there` says so, which is asked after each step.
    pub(super) async fn until(&self, is_there: impl Fn() -> bool) {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let _waiting = WaitingFollower(&self.waiting);
        loop {
            let mut news = std::pin::pin!(self.news.notified());
            // Before the look, so that what comes between the two is heard of.
            news.as_mut().enable();
            if is_there() {
                return;
            }
            news.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use clock::Clock;

    use super::*;
    use crate::{CAPACITY, Flow, Step};

    fn flow() -> Flow {
        Flow::new(Clock::stepped(chrono::DateTime::UNIX_EPOCH))
    }

    fn ids(followed: &Followed) -> Vec<u64> {
        followed.steps.iter().map(|step| step.id.0).collect()
    }

    #[test]
    fn what_came_since_is_told_in_parts() {
        let flow = flow();
        for _ in 0..5 {
            flow.record(None, Step::VALIDATED);
        }
        let first = flow.since(StepId::NONE, 3);
        assert_eq!((ids(&first), first.next, first.missed), (vec![1, 2, 3], StepId(4), 0));
        let rest = flow.since(first.next, 3);
        assert_eq!((ids(&rest), rest.next), (vec![4, 5], StepId(6)));
        let none = flow.since(rest.next, 3);
        assert_eq!((ids(&none), none.next, none.missed), (vec![], StepId(6), 0));
        // Who asks for what will be is told what is next.
        assert_eq!(flow.since(StepId(900), 3).next, StepId(6));
    }

    #[test]
    fn who_comes_too_late_is_told_how_much_is_missing() {
        let flow = flow();
        for _ in 0..CAPACITY + 7 {
            flow.record(None, Step::VALIDATED);
        }
        let told = flow.since(StepId(3), 1);
        assert_eq!((ids(&told), told.missed), (vec![8], 5));
    }

    #[test]
    fn who_saw_a_write_is_caused_by_it() {
        let flow = flow();
        let written = flow.record(
            None,
            Step::Stored {
                resource: "pods".into(),
                namespace: "default".into(),
                name: "a".into(),
                revision: 7,
                operation: crate::WriteOperation::Create,
                uid: None,
                bytes: 0,
            },
        );
        let (resource, key) = ("pods".into(), "default/a".into());
        flow.record(None, Step::WatchDelivered { resource, key, revision: 7, watchers: 1 });
        assert_eq!(flow.since(StepId(2), 1).steps[0].cause, Some(written));
    }

    #[tokio::test]
    async fn who_waits_is_woken_by_the_step() {
        let flow = flow();
        let waiting = tokio::spawn({
            let flow = flow.clone();
            async move { flow.until(StepId(2)).await }
        });
        flow.record(None, Step::VALIDATED);
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        flow.record(None, Step::VALIDATED);
        waiting.await.unwrap();
        // It is there already.
        flow.until(StepId(1)).await;
        let record = flow.record.as_ref().unwrap();
        assert_eq!(record.followers.waiting.load(Ordering::Relaxed), 0);
    }
}
