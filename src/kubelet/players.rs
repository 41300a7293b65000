//! Where scripts are played: beside the runtime's own threads, so that nobody who asks the cluster for
//! anything waits for a script.
//!
//! All kubelets of a cluster share a few places; whoever finds none waits in a row. On a clock that is
//! stepped a script is played where it stands: a test that steps it looks whether anything still moves, and
//! sees tasks only. A script takes no time then, and all effects come in the same order each time.

use std::num::NonZero;
use std::panic::resume_unwind;
use std::sync::Arc;

use tokio::sync::Semaphore;

use clock::Clock;

/// The places of a cluster. Cloning shares them.
#[derive(Clone, Debug)]
pub struct Players {
    clock: Clock,
    /// For the pods themselves. Bound: half of the machine's processors, so that the other half serves
    /// requests; one at least.
    syncs: Arc<Semaphore>,
    /// For `exec` and logs: as many again, so that neither waits for the other.
    requests: Arc<Semaphore>,
}

/// For whom something is played.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    Sync,
    Request,
}

impl Players {
    /// For a cluster with this clock.
    pub fn new(clock: &Clock) -> Players {
        let count = std::thread::available_parallelism().map_or(1, NonZero::get).div_ceil(2);
        let places = || Arc::new(Semaphore::new(count));
        Players { clock: clock.clone(), syncs: places(), requests: places() }
    }

    /// Whether nothing is played elsewhere.
    pub(crate) fn are_at_hand(&self) -> bool {
        self.clock.is_stepped()
    }

    /// Does `work` as soon as there is a place. It goes on when nobody waits for it any more.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        cause: Cause,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> T {
        if self.clock.is_stepped() {
            return work();
        }
        let places = match cause {
            Cause::Sync => &self.syncs,
            Cause::Request => &self.requests,
        };
        let place = places.clone().acquire_owned().await.expect("it is never closed");
        let busy = self.clock.busy();
        let playing = tokio::task::spawn_blocking(move || {
            let _kept = (place, busy);
            work()
        });
        match playing.await {
            Ok(done) => done,
            Err(error) => match error.try_into_panic() {
                Ok(panic) => resume_unwind(panic),
                // The runtime ends.
                Err(_) => std::future::pending().await,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;
    use apimachinery::time::Time;

    #[tokio::test]
    async fn work_is_done_beside_the_runtime() {
        let players = Players::new(&Clock::real());
        let (go, wait) = mpsc::channel::<()>();
        let playing = players.run(Cause::Sync, move || wait.recv().is_ok());
        let mut playing = std::pin::pin!(playing);
        assert!(futures::poll!(&mut playing).is_pending());
        // The only thread of this runtime is free; so are the places for requests.
        assert_eq!(players.run(Cause::Request, || 7).await, 7);
        go.send(()).unwrap();
        assert!(playing.await);
    }

    #[tokio::test]
    async fn no_more_is_done_at_once_than_there_are_places() {
        let players = Players::new(&Clock::real());
        let count = players.syncs.available_permits();
        let (go, wait) = mpsc::channel::<()>();
        let wait = Arc::new(sync::Mutex::new(wait));
        let one = || {
            let wait = wait.clone();
            tokio::spawn({
                let players = players.clone();
                async move { players.run(Cause::Sync, move || wait.lock().recv().is_ok()).await }
            })
        };
        let all: Vec<_> = (0..count + 3).map(|_| one()).collect();
        while players.syncs.available_permits() > 0 {
            tokio::task::yield_now().await;
        }
        assert!(!all.iter().any(tokio::task::JoinHandle::is_finished));
        (0..count + 3).for_each(|_| go.send(()).unwrap());
        for playing in all {
            assert!(playing.await.unwrap());
        }
        assert_eq!(players.syncs.available_permits(), count);
    }

    #[tokio::test]
    async fn on_a_stepped_clock_it_is_done_on_the_spot() {
        let players = Players::new(&Clock::stepped(Time::UNIX_EPOCH));
        let here = std::thread::current().id();
        let mut playing =
            std::pin::pin!(players.run(Cause::Sync, move || std::thread::current().id() == here));
        assert_eq!(futures::poll!(&mut playing), std::task::Poll::Ready(true));
    }
}
