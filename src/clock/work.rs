//! `Activity`: whether anything goes on in what shares a clock. Counted, not guessed.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Notify;

use super::disorder::Disorder;
use super::live::{LiveTask, LiveTasks};
use super::pauses::Pauses;
use super::profile::Profiler;

/// How much goes on: tasks that are awake, and what holds a [`Busy`].
#[derive(Debug, Default)]
pub struct Activity {
    count: AtomicUsize,
    /// How many wait for its end: mostly nobody, and then nobody is told.
    waiting: AtomicUsize,
    ended: Notify,
    pub(crate) disorder: Disorder,
    pub(crate) pauses: Pauses,
    pub(crate) profiler: Arc<Profiler>,
    pub(crate) live: LiveTasks,
}

/// Something goes on until this is dropped.
#[must_use = "what goes on ends when this is dropped"]
#[derive(Debug)]
pub struct Busy(Arc<Activity>);

impl Activity {
    /// Of a clock that goes on by itself from where another one stands, which was held so long.
    pub(crate) fn after(pauses: &Pauses) -> Activity {
        Activity { pauses: pauses.fork(), ..Activity::default() }
    }

    /// How much goes on just now.
    pub fn count(&self) -> usize {
        self.count.load(Ordering::SeqCst)
    }

    /// What runs under the clock: each future of [`super::Clock::spawn`] and [`super::Clock::tracked`] that
    /// has been polled and is not dropped yet, in the order of their names.
    pub fn live_tasks(&self) -> Vec<LiveTask> {
        self.live.all()
    }

    /// Waits until nothing goes on. When this returns, nothing did a moment ago: what only tasks do that are
    /// tracked stays so until time passes, or somebody outside asks for something.
    pub async fn idle(&self) {
        if self.count() == 0 {
            return;
        }
        let _waiting = WaitsForIdle::new(&self.waiting);
        loop {
            // Asked for before looking, so that an end in between is not missed.
            let ended = self.ended.notified();
            if self.count() == 0 {
                return;
            }
            ended.await;
        }
    }

    pub(crate) fn begin(self: &Arc<Self>) -> Busy {
        self.add();
        Busy(self.clone())
    }

    pub(crate) fn add(&self) {
        self.count.fetch_add(1, Ordering::SeqCst);
    }

    pub(crate) fn remove(&self) {
        if self.count.fetch_sub(1, Ordering::SeqCst) == 1 && self.waiting.load(Ordering::SeqCst) > 0 {
            self.ended.notify_waiters();
        }
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.remove();
    }
}

/// Somebody waits until this is dropped.
struct WaitsForIdle<'a>(&'a AtomicUsize);

impl WaitsForIdle<'_> {
    fn new(count: &AtomicUsize) -> WaitsForIdle<'_> {
        count.fetch_add(1, Ordering::SeqCst);
        WaitsForIdle(count)
    }
}

impl Drop for WaitsForIdle<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}
