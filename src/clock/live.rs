//! `LiveTasks`: which tasks there are under a clock (what goroutines are to Go's runtime).
//!
//! A task is noted when it is first polled and forgotten when it is dropped: a place in a list each, which
//! nobody looks through until somebody asks. That costs a few dozen nanoseconds a task.

use std::sync::Arc;

use sync::Mutex;

use super::profile::FrameName;

/// One task that has begun and has not ended.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct LiveTask {
    /// Whose it is by its clock's name, if that has one, and what it is: as a profile tells it.
    pub stack: Vec<FrameName>,
    /// What it does just now.
    pub state: TaskState,
}

/// What a task does just now, in Go's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TaskState {
    /// It is being polled.
    Running,
    /// It was woken, and waits for its turn.
    Runnable,
    /// It waits for somebody who wakes it.
    Waiting,
}

/// A task that can say what it is and does.
pub(crate) trait TellsTask: Send + Sync {
    /// As it is just now.
    fn tell(&self) -> LiveTask;
}

/// The tasks of one clock. Bound: those that are there; the list is as long as the most that ever were there
/// at once.
#[derive(Debug, Default)]
pub(crate) struct LiveTasks {
    places: Mutex<TaskPlaces>,
}

#[derive(Default)]
struct TaskPlaces {
    all: Vec<Option<Arc<dyn TellsTask>>>,
    /// Which of them are empty.
    free: Vec<usize>,
}

impl LiveTasks {
    /// Notes one more, and says where.
    pub(crate) fn add(&self, task: Arc<dyn TellsTask>) -> usize {
        let mut places = self.places.lock();
        if let Some(at) = places.free.pop() {
            places.all[at] = Some(task);
            return at;
        }
        places.all.push(Some(task));
        places.all.len() - 1
    }

    /// Forgets the one that was noted there.
    pub(crate) fn remove(&self, at: usize) {
        let mut places = self.places.lock();
        places.all[at] = None;
        places.free.push(at);
    }

    /// As they are just now, in the order of their names.
    pub(crate) fn all(&self) -> Vec<LiveTask> {
        let held: Vec<Arc<dyn TellsTask>> = self.places.lock().all.iter().flatten().cloned().collect();
        let mut tasks: Vec<LiveTask> = held.iter().map(|task| task.tell()).collect();
        tasks.sort_unstable();
        tasks
    }
}

impl std::fmt::Debug for TaskPlaces {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TaskPlaces").field("taken", &(self.all.len() - self.free.len())).finish()
    }
}

impl TaskState {
    /// As it stands in a dump of goroutines.
    pub fn as_str(self) -> &'static str {
        match self {
            TaskState::Running => "running",
            TaskState::Runnable => "runnable",
            TaskState::Waiting => "waiting",
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;

    use super::super::Clock;
    use super::*;

    fn told(clock: &Clock) -> Vec<(String, &'static str)> {
        let text = |task: &LiveTask| task.stack.iter().map(FrameName::as_str).collect::<Vec<_>>().join("; ");
        clock.work().live_tasks().iter().map(|task| (text(task), task.state.as_str())).collect()
    }

    #[tokio::test]
    async fn tasks_are_told_by_name_from_their_first_poll_to_their_end() {
        let clock = Clock::real();
        let scheduler = clock.named("kube-scheduler");
        let never_begun = scheduler.tracked(std::future::pending::<()>());
        let (end, ended) = oneshot::channel::<()>();
        let waiting = tokio::spawn(
            scheduler.tracked(async move { ended.await.unwrap_or_default() }).called("waits for its end"),
        );
        let inside = clock.clone();
        let own = clock.spawn(async move { told(&inside) }).await.unwrap();
        assert_eq!(own.len(), 2, "{own:?}");
        assert!(own.iter().any(|(_, state)| *state == "running"), "{own:?}");
        let waits = ("kube-scheduler; waits for its end".to_owned(), "waiting");
        assert_eq!(told(&clock), [waits]);
        end.send(()).unwrap();
        assert_eq!(told(&scheduler)[0].1, "runnable");
        waiting.await.unwrap();
        drop(never_begun);
        assert_eq!(told(&clock), []);
    }

    #[tokio::test]
    async fn the_list_is_as_long_as_the_most_that_were_there_at_once() {
        let clock = Clock::real();
        for _ in 0..100 {
            let tasks: Vec<_> = (0..3).map(|_| clock.spawn(async {})).collect();
            for task in tasks {
                task.await.unwrap();
            }
        }
        let panicked = clock.spawn(async { panic!("on purpose") }).await;
        assert!(panicked.is_err() && clock.work().live_tasks().is_empty());
        let places = clock.work.live.places.lock();
        assert!(places.all.len() <= 4 && places.free.len() == places.all.len(), "{}", places.all.len());
    }
}
