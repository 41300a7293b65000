//! `Tasks`: the running tasks of one component. What panics is logged, and what is supervised starts again.
//!
//! Upstream, each component is a process that a kubelet or systemd restarts when it crashes; here this does.

use std::any::Any;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
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
    /// Those that end with these. Bound: those of which somebody holds the tasks; what is gone is cleared
    /// away when another comes.
    parts: Mutex<Vec<Weak<TasksShared>>>,
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
        let (restarts, parts) = (AtomicU64::new(0), Mutex::default());
        Tasks { shared: Arc::new(TasksShared { clock, entropy, running, restarts, parts }) }
    }

    /// Tasks that are stopped with these, or before by themselves.
    pub fn part(&self) -> Tasks {
        let part = Tasks::new(self.shared.clock.clone(), self.shared.entropy.clone());
        let whole = self.running();
        if whole.is_none() {
            drop(part.running().take());
        }
        let mut parts = self.shared.parts.lock();
        parts.retain(|part| part.strong_count() > 0);
        parts.push(Arc::downgrade(&part.shared));
        drop((parts, whole));
        part
    }

    /// Runs `future` once. A panic is logged as an error and ends this task alone. After a stop nothing is
    /// run; none is returned then.
    pub fn spawn(
        &self,
        name: &str,
        future: impl Future<Output = ()> + Send + 'static,
    ) -> Option<AbortHandle> {
        let name: Arc<str> = name.into();
        self.run(name.clone(), async move {
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
        self.run(name.clone(), async move {
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
        self.parts().iter().for_each(Tasks::stop);
    }

    /// Like [`Tasks::stop`], and waits until every task has ended. Must not be called from one of them.
    pub async fn stop_and_wait(&self) {
        let running = self.running().take();
        if let Some(mut running) = running {
            running.shutdown().await;
        }
        for part in self.parts() {
            Box::pin(part.stop_and_wait()).await;
        }
    }

    fn parts(&self) -> Vec<Tasks> {
        let parts = self.shared.parts.lock();
        parts.iter().filter_map(Weak::upgrade).map(|shared| Tasks { shared }).collect()
    }

    /// Ties the tasks to what is returned.
    pub fn stop_on_drop(&self) -> StopOnDrop {
        StopOnDrop { tasks: self.clone() }
    }

    fn run(&self, name: Arc<str>, future: impl Future<Output = ()> + Send + 'static) -> Option<AbortHandle> {
        let mut running = self.running();
        let set = running.as_mut()?;
        while set.try_join_next().is_some() {}
        Some(set.spawn(self.shared.clock.tracked(future).called(name)))
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
    async fn a_part_ends_by_itself_or_with_the_whole() {
        let whole = tasks(&Clock::stepped(DateTime::UNIX_EPOCH));
        let [one, other] = [whole.part(), whole.part()];
        let alive = [Arc::new(()), Arc::new(()), Arc::new(())];
        for (tasks, held) in [&whole, &one, &other].into_iter().zip(alive.clone()) {
            tasks.spawn("waits", async move {
                std::future::pending::<()>().await;
                drop(held);
            });
        }
        one.stop_and_wait().await;
        assert_eq!(alive.each_ref().map(Arc::strong_count), [2, 1, 2]);
        assert!(one.spawn("too late", async {}).is_none() && other.spawn("in time", async {}).is_some());
        whole.stop_and_wait().await;
        assert_eq!(alive.each_ref().map(Arc::strong_count), [1, 1, 1]);
        assert!(whole.part().spawn("too late", async {}).is_none());
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
