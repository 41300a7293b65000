//! `Tasks`: the running tasks of one component. What panics is logged, and what is supervised starts again.
//!
//! Upstream, each component is a process that a kubelet or systemd restarts when it crashes; here this does.

use std::any::Any;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures::FutureExt;
use sync::{Mutex, MutexGuard};
use tokio::task::{AbortHandle, JoinSet};

use super::backoff::Backoff;
use clock::Clock;
use entropy::Entropy;

/// The tasks of one component. Cloning shares them. A task may hold a clone, so they do not end by themselves
/// with the last one: whoever starts the component keeps a [`StopOnDrop`].
#[derive(Clone)]
pub struct Tasks {
    shared: Arc<TasksShared>,
}

struct TasksShared {
    clock: Clock,
    entropy: Entropy,
    /// None once they were stopped. Bound: what runs; what has ended is cleared away whenever something is
    /// spawned.
    running: Mutex<Option<JoinSet<()>>>,
    restarts: AtomicU64,
}

/// Stops a component's tasks when it is dropped.
#[must_use = "the tasks stop when this is dropped"]
pub struct StopOnDrop {
    tasks: Tasks,
}

impl Tasks {
    /// No tasks yet.
    pub fn new(clock: Clock, entropy: Entropy) -> Tasks {
        let running = Mutex::new(Some(JoinSet::new()));
        Tasks { shared: Arc::new(TasksShared { clock, entropy, running, restarts: AtomicU64::new(0) }) }
    }

    /// Runs `future` once. A panic is logged as an error and ends this task alone. After a stop nothing is
    /// run; none is returned then.
    pub fn spawn(
        &self,
        name: &str,
        future: impl Future<Output = ()> + Send + 'static,
    ) -> Option<AbortHandle> {
        let name: Arc<str> = name.into();
        self.run(async move {
            run_once(&name, future).await;
        })
    }

    /// Runs what `make` makes; after a panic it is logged as an error and made again, after 1 s and then
    /// twice as long each time up to 30 s, with jitter. When it ends by itself, that is its end.
    pub fn supervise<F>(
        &self,
        name: &str,
        mut make: impl FnMut() -> F + Send + 'static,
    ) -> Option<AbortHandle>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let name: Arc<str> = name.into();
        let shared = self.shared.clone();
        let (first, longest) = (Duration::from_secs(1), Duration::from_secs(30));
        let mut backoff = Backoff::new(shared.clock.clone(), shared.entropy.clone(), first, longest);
        self.run(async move {
            while run_once(&name, make()).await.is_none() {
                let pause = backoff.step();
                tracing::error!(task = %name, ?pause, "restarting");
                shared.clock.sleep(pause).await;
                shared.restarts.fetch_add(1, Ordering::Relaxed);
            }
        })
    }

    /// How often something was restarted after a panic.
    pub fn restarts(&self) -> u64 {
        self.shared.restarts.load(Ordering::Relaxed)
    }

    /// Ends every task at its next await, and keeps new ones from starting.
    pub fn stop(&self) {
        // Dropping a set aborts what is in it.
        drop(self.running().take());
    }

    /// Like [`Tasks::stop`], and waits until every task has ended. Must not be called from one of them.
    pub async fn stop_and_wait(&self) {
        let running = self.running().take();
        if let Some(mut running) = running {
            running.shutdown().await;
        }
    }

    /// Ties the tasks to what is returned.
    pub fn stop_on_drop(&self) -> StopOnDrop {
        StopOnDrop { tasks: self.clone() }
    }

    fn run(&self, future: impl Future<Output = ()> + Send + 'static) -> Option<AbortHandle> {
        let mut running = self.running();
        let set = running.as_mut()?;
        while set.try_join_next().is_some() {}
        Some(set.spawn(self.shared.clock.tracked(future)))
    }

    fn running(&self) -> MutexGuard<'_, Option<JoinSet<()>>> {
        self.shared.running.lock()
    }
}

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.tasks.stop();
    }
}

/// Runs `future`; none if it panicked, which was logged then.
pub(super) async fn run_once(name: &str, future: impl Future<Output = ()>) -> Option<()> {
    match AssertUnwindSafe(future).catch_unwind().await {
        Ok(()) => Some(()),
        Err(panic) => {
            tracing::error!(task = %name, panic = panic_text(&*panic), "panicked");
            None
        }
    }
}

/// What was said in a panic.
pub(super) fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("a panic without a text")
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::DateTime;

    fn tasks(clock: &Clock) -> Tasks {
        Tasks::new(clock.clone(), Entropy::seeded(1))
    }

    #[tokio::test]
    async fn what_panics_starts_again_after_a_pause() {
        let clock = Clock::stepped(DateTime::UNIX_EPOCH);
        let tasks = tasks(&clock);
        let runs = Arc::new(AtomicU64::new(0));
        let counted = runs.clone();
        tasks.supervise("clumsy", move || {
            let run = counted.fetch_add(1, Ordering::SeqCst);
            async move { assert!(run >= 2, "on purpose") }
        });
        while runs.load(Ordering::SeqCst) < 3 {
            if let Some(pause) = clock.next_wake() {
                assert!(pause >= Duration::from_secs(1));
                clock.advance(pause);
            }
            tokio::task::yield_now().await;
        }
        assert_eq!(tasks.restarts(), 2);
        tasks.stop_and_wait().await;
    }

    #[tokio::test]
    async fn dropping_the_guard_ends_what_runs_and_nothing_starts_after_it() {
        let tasks = tasks(&Clock::stepped(DateTime::UNIX_EPOCH));
        let alive = Arc::new(());
        let guard = tasks.stop_on_drop();
        let (inner, held) = (tasks.clone(), alive.clone());
        tasks.spawn("holds its own tasks", async move {
            std::future::pending::<()>().await;
            drop((inner, held));
        });
        tokio::task::yield_now().await;
        drop(guard);
        while Arc::strong_count(&alive) > 1 {
            tokio::task::yield_now().await;
        }
        assert!(tasks.spawn("too late", async {}).is_none());
    }
}
