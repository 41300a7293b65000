//! Long work leaves the runtime's threads: a request with a big body or for a big object is worked on on
//! threads of its own, a few at once, so that all others, `/livez` among them, are answered meanwhile.
//!
//! A request begins where it came in. When it is known to be long ([`Announced`]) it goes on, as it is, on a
//! thread that may be kept busy. Requests of this process's components, and all on a runtime with one thread,
//! stay where they are: the first have bodies that are trees already, the second belong to tests, where what
//! happens is to happen in the same order each time.

use std::future::{pending, poll_fn};
use std::panic::resume_unwind;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Poll, ready};

use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::{Semaphore, oneshot};

use crate::request::Announced;
use clock::Clock;

/// So many long requests are worked on at once at least, however few processors there are; one for each
/// processor where there are more. Further ones wait for their turn, in the order in which they came.
const AT_ONCE: usize = 4;

/// Where long requests are worked on. Cloning shares it.
#[derive(Clone, Debug)]
pub struct LongWork {
    places: Arc<Semaphore>,
    /// What knows whether anything goes on: work on another thread does, too.
    clock: Clock,
}

impl LongWork {
    /// As many places as the machine has processors.
    pub fn new(clock: Clock) -> LongWork {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        LongWork { places: Arc::new(Semaphore::new(processors.max(AT_ONCE))), clock }
    }

    /// Whether anything may leave the threads that it began on.
    pub fn is_possible() -> bool {
        Handle::try_current().is_ok_and(|runtime| runtime.runtime_flavor() != RuntimeFlavor::CurrentThread)
    }

    /// Works on something that may turn out to be long, and then announces it.
    pub async fn run<T: Send + 'static, F>(&self, begin: impl FnOnce(Announced) -> F) -> T
    where
        F: Future<Output = T> + Send + 'static,
    {
        let announced = Announced::possible();
        let mut work = Box::pin(begin(announced.clone()));
        let here = poll_fn(|context| match work.as_mut().poll(context) {
            Poll::Ready(answer) => Poll::Ready(Some(answer)),
            Poll::Pending if announced.is_made() => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        });
        match here.await {
            Some(answer) => answer,
            None => self.elsewhere(work).await,
        }
    }

    /// Ends early when nobody waits for it any more, as far as it lets itself be ended.
    async fn elsewhere<T: Send + 'static>(
        &self,
        work: Pin<Box<impl Future<Output = T> + Send + 'static>>,
    ) -> T {
        let (work, clock) = (in_turn(self.places.clone(), work), self.clock.clone());
        // Awake from now on, and until whoever waits for the answer has it.
        let work = self.clock.tracked(async move { (work.await, clock.busy()) });
        let (_waiting, gone) = oneshot::channel::<()>();
        let runtime = Handle::current();
        let done = tokio::task::spawn_blocking(move || {
            runtime.block_on(async {
                tokio::select! {
                    biased;
                    answer = work => Some(answer),
                    _ = gone => None,
                }
            })
        });
        match done.await {
            Ok(Some((answer, _busy))) => answer,
            // Only while the runtime ends.
            Ok(None) => pending().await,
            Err(error) => match error.try_into_panic() {
                Ok(panic) => resume_unwind(panic),
                Err(_) => pending().await,
            },
        }
    }
}

/// Has a place only while it works, and none while it waits: for a webhook perhaps, which may ask this server
/// for something long itself.
async fn in_turn<T>(
    places: Arc<Semaphore>,
    mut work: Pin<Box<impl Future<Output = T> + Send + 'static>>,
) -> T {
    let mut turn: Option<BoxFuture<'static, _>> = None;
    poll_fn(move |context| {
        let coming = turn.get_or_insert_with(|| places.clone().acquire_owned().boxed());
        let place = ready!(coming.as_mut().poll(context));
        turn = None;
        let polled = work.as_mut().poll(context);
        drop(place);
        polled
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::LONG_BYTES;
    use std::sync::mpsc::channel;

    use sync::Mutex;

    /// The one thread of the runtime is free while long work blocks another: else this would wait for ever.
    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn short_work_is_done_while_long_work_blocks_its_threads() {
        let work = LongWork::new(Clock::real());
        let places = work.places.available_permits();
        let (order, release) = (Arc::new(Mutex::new(vec![])), Arc::new(Mutex::new(vec![])));
        let long = (0..places).map(|_| {
            let (work, order, release) = (work.clone(), order.clone(), release.clone());
            tokio::spawn(async move {
                let told = work.run(|announced| async move {
                    announced.bytes(LONG_BYTES + 1).await;
                    let (sender, released) = channel::<()>();
                    release.lock().push(sender);
                    released.recv().is_err()
                });
                assert!(told.await);
                order.lock().push("long");
            })
        });
        let long: Vec<_> = long.collect();
        while release.lock().len() < places {
            tokio::task::yield_now().await;
        }
        let (work, short_order) = (work.clone(), order.clone());
        let short = tokio::spawn(async move {
            work.run(|announced| async move { announced.bytes(LONG_BYTES).await }).await;
            short_order.lock().push("short");
        });
        short.await.unwrap();
        release.lock().clear();
        for long in long {
            long.await.unwrap();
        }
        assert_eq!(order.lock().first(), Some(&"short"));
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn long_work_that_waits_leaves_its_place_to_others() {
        let work = LongWork { places: Arc::new(Semaphore::new(1)), clock: Clock::real() };
        let (sender, receiver) = oneshot::channel::<()>();
        let waiting = {
            let work = work.clone();
            tokio::spawn(async move {
                work.run(|announced| async move {
                    announced.bytes(LONG_BYTES + 1).await;
                    receiver.await.is_ok()
                })
                .await
            })
        };
        let other = work.run(|announced| async move { announced.bytes(LONG_BYTES + 1).await });
        other.await;
        sender.send(()).unwrap();
        assert!(waiting.await.unwrap());
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_panic_in_long_work_is_one_of_whoever_waits_for_it() {
        let work = LongWork::new(Clock::real());
        let waiting = tokio::spawn(async move {
            work.run(|announced| async move {
                announced.bytes(LONG_BYTES + 1).await;
                panic!("long");
            })
            .await
        });
        assert!(waiting.await.unwrap_err().is_panic());
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn long_work_on_another_thread_goes_on_until_it_waits_or_is_done() {
        let clock = Clock::real();
        let work = LongWork::new(clock.clone());
        let (begun, began) = oneshot::channel::<()>();
        let (sender, released) = channel::<()>();
        let (end, ended) = oneshot::channel::<()>();
        let done = clock.spawn(async move {
            work.run(|announced| async move {
                announced.bytes(LONG_BYTES + 1).await;
                begun.send(()).unwrap();
                released.recv().unwrap();
                ended.await.is_ok()
            })
            .await
        });
        began.await.unwrap();
        assert!(clock.work().count() > 0, "it blocks its thread");
        sender.send(()).unwrap();
        clock.work().idle().await;
        assert!(!done.is_finished(), "it waits for somebody outside");
        end.send(()).unwrap();
        clock.work().idle().await;
        assert!(done.await.unwrap());
    }
}
