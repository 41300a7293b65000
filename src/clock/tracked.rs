//! `Tracked`: a future of which is known whether it is awake.
//!
//! A future that was woken has something to do until it has been polled and waits again. That is counted
//! where it is woken and not where it runs, so that between the two nobody takes it for idle: who sends
//! something and then waits has woken the receiver before.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use sync::Mutex;

use super::live::{LiveTask, TaskState, TellsTask};
use super::profile::{FrameName, enter_task};
use super::work::Activity;

/// Waits for somebody who wakes it.
const IDLE: u8 = 0;
/// Is being polled.
const POLLED: u8 = 1;
/// Has been woken, perhaps while being polled.
const WOKEN: u8 = 2;

/// A future that counts as work whenever it is awake; see [`super::Clock::tracked`].
pub struct Tracked<F> {
    /// None once it is being dropped.
    future: Option<Pin<Box<F>>>,
    state: Arc<Awakeness>,
    /// For how many turns others go first; none when that was not drawn yet.
    gives_way: Option<u8>,
    /// Where it stands among those that are there; none before its first poll.
    place: Option<usize>,
}

struct Awakeness {
    /// Whose it is, by the clock's name, and what: a profile says so.
    of: Option<Arc<str>>,
    task: FrameName,
    awake: AtomicU8,
    work: Arc<Activity>,
    /// Who polls it, whom to wake.
    outer: Mutex<Option<Waker>>,
}

impl<F: Future> Tracked<F> {
    /// It has something to do at first.
    pub(crate) fn new(future: F, work: &Arc<Activity>, of: &Option<Arc<str>>) -> Tracked<F> {
        work.add();
        let state = Awakeness {
            of: of.clone(),
            task: FrameName::of_type::<F>(),
            awake: AtomicU8::new(WOKEN),
            work: work.clone(),
            outer: Mutex::default(),
        };
        Tracked { future: Some(Box::pin(future)), state: Arc::new(state), gives_way: None, place: None }
    }

    /// By this name in a profile, and not by that of its type.
    #[must_use]
    pub fn called(mut self, name: impl Into<Arc<str>>) -> Tracked<F> {
        // Nobody else knows it before its first poll.
        if let Some(state) = Arc::get_mut(&mut self.state) {
            state.task = FrameName::Shared(name.into());
        }
        self
    }
}

impl<F: Future> Future for Tracked<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        if self.gives_way() {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        if self.place.is_none() {
            self.place = Some(self.state.work.live.add(self.state.clone()));
        }
        self.state.begin_poll(context.waker());
        let waker = Waker::from(self.state.clone());
        let entered = enter_task(&self.state.work.profiler, &self.state.of, &self.state.task);
        let Some(future) = &mut self.future else { return Poll::Pending };
        let polled = future.as_mut().poll(&mut Context::from_waker(&waker));
        drop(entered);
        if polled.is_pending() {
            // Whoever has used up their turn is woken by the runtime, later.
            if !tokio::task::coop::has_budget_remaining() {
                waker.wake();
            }
            self.state.end_poll();
        }
        polled
    }
}

impl<F> Tracked<F> {
    /// Whether it lets others go first. It is awake meanwhile.
    fn gives_way(&mut self) -> bool {
        let left = self.gives_way.take().unwrap_or_else(|| self.state.work.disorder.turns());
        self.gives_way = left.checked_sub(1);
        self.gives_way.is_some()
    }
}

impl<F> Drop for Tracked<F> {
    fn drop(&mut self) {
        // What it holds may wake others, and until they are awake it is.
        drop(self.future.take());
        self.state.finish();
        self.place.into_iter().for_each(|place| self.state.work.live.remove(place));
    }
}

impl Awakeness {
    fn begin_poll(&self, outer: &Waker) {
        let mut known = self.outer.lock();
        if !known.as_ref().is_some_and(|known| known.will_wake(outer)) {
            *known = Some(outer.clone());
        }
        drop(known);
        self.work.add();
        if self.awake.swap(POLLED, Ordering::SeqCst) != IDLE {
            self.work.remove();
        }
    }

    fn end_poll(&self) {
        if self.awake.compare_exchange(POLLED, IDLE, Ordering::SeqCst, Ordering::SeqCst).is_ok() {
            self.work.remove();
        }
    }

    /// It is never polled again. A waker that is left somewhere wakes nobody.
    fn finish(&self) {
        if self.awake.swap(POLLED | WOKEN, Ordering::SeqCst) != IDLE {
            self.work.remove();
        }
    }
}

impl TellsTask for Awakeness {
    fn tell(&self) -> LiveTask {
        let of = self.of.clone().map(FrameName::Shared).filter(|of| *of != self.task);
        let state = match self.awake.load(Ordering::SeqCst) {
            IDLE => TaskState::Waiting,
            awake if awake & POLLED != 0 => TaskState::Running,
            _ => TaskState::Runnable,
        };
        LiveTask { stack: of.into_iter().chain([self.task.clone()]).collect(), state }
    }
}

impl Wake for Awakeness {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if self.awake.load(Ordering::SeqCst) & WOKEN != 0 {
            return;
        }
        self.work.add();
        if self.awake.fetch_or(WOKEN, Ordering::SeqCst) != IDLE {
            self.work.remove();
        }
        let outer = self.outer.lock().clone();
        outer.into_iter().for_each(Waker::wake);
    }
}

/// Lets other tasks run, and goes on: of whoever has no [`super::Clock`] at hand, whose `yield_now` lets
/// sockets come first. Unlike tokio's it counts as awake all the time.
pub async fn yield_now() {
    let mut has_yielded = false;
    poll_fn(|context| {
        if std::mem::replace(&mut has_yielded, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use chrono::DateTime;
    use tokio::sync::{mpsc, oneshot};

    use super::super::Clock;
    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn what_is_handed_from_task_to_task_is_never_taken_for_idle() {
        for _ in 0..200 {
            let clock = Clock::real();
            let (first, mut next) = mpsc::channel::<u32>(1);
            for _ in 0..8 {
                let (sender, receiver) = mpsc::channel::<u32>(1);
                let mut from = std::mem::replace(&mut next, receiver);
                clock.spawn(async move {
                    while let Some(number) = from.recv().await {
                        yield_now().await;
                        let _ = sender.send(number + 1).await;
                    }
                });
            }
            clock.work().idle().await;
            first.send(0).await.unwrap();
            clock.work().idle().await;
            assert_eq!(next.try_recv(), Ok(8));
        }
    }

    #[tokio::test]
    async fn what_waits_is_idle_and_what_has_ended_counts_no_more() {
        let clock = Clock::stepped(DateTime::UNIX_EPOCH);
        let (end, ended) = oneshot::channel::<()>();
        let task = clock.spawn(async move {
            let _ = ended.await;
        });
        let sleeper = clock.spawn({
            let clock = clock.named("sleeper");
            async move { clock.sleep(Duration::from_secs(7)).await }
        });
        clock.work().idle().await;
        let wake = clock.next_waker().unwrap();
        assert_eq!((wake.after.as_secs(), &*wake.who), (7, &["sleeper".into()][..]));
        clock.advance(Duration::from_secs(7));
        assert_eq!(clock.work().count(), 1, "woken, and not run yet");
        end.send(()).unwrap();
        task.await.unwrap();
        sleeper.await.unwrap();
        clock.work().idle().await;
        let held = clock.busy();
        assert_eq!(clock.work().count(), 1);
        drop(held);
        drop(clock.tracked(std::future::pending::<()>()));
        assert_eq!(clock.work().count(), 0);
    }

    #[tokio::test]
    async fn on_the_machines_clock_what_is_due_soon_is_under_way_and_time_limits_are_not() {
        let clock = Clock::real();
        let mut soon = std::pin::pin!(clock.sleep(super::super::SOON));
        assert!(futures::poll!(&mut soon).is_pending());
        assert_eq!(clock.work().count(), 1);
        let mut later = std::pin::pin!(clock.sleep(super::super::SOON * 2));
        let limit = clock.timeout(super::super::SOON, std::future::pending::<()>());
        let mut limit = std::pin::pin!(limit);
        assert!(futures::poll!(&mut later).is_pending() && futures::poll!(&mut limit).is_pending());
        assert_eq!(clock.work().count(), 1);
    }

    #[tokio::test]
    async fn who_has_used_up_their_turn_is_awake() {
        let clock = Clock::real();
        let (sender, mut receiver) = mpsc::unbounded_channel::<u32>();
        (0..10_000).for_each(|number| sender.send(number).unwrap());
        let seen = Arc::new(AtomicU8::new(0));
        let counted = seen.clone();
        clock.spawn(async move {
            while receiver.recv().await.is_some_and(|number| number < 9_999) {}
            counted.store(1, Ordering::SeqCst);
            std::future::pending::<()>().await;
        });
        clock.work().idle().await;
        assert_eq!(seen.load(Ordering::SeqCst), 1);
    }
}
