//! Waiting for a cluster, and letting its time pass, for whoever holds it.

use std::time::Duration;

use super::Cluster;
use super::condition::WaitFor;
use super::settle::{Settle, Unsettled};
use super::time::{self, TimeError};

impl Cluster {
    /// Waits until nothing moves: no request in the chain, no undelivered event, no queue with work that is
    /// due, no busy worker, nothing of a pod that is due. What waits for time does not move.
    ///
    /// # Errors
    /// What keeps moving.
    pub async fn settled(&self) -> Result<(), Unsettled> {
        self.settle(Settle::new()).await
    }

    /// Waits until nothing moves, with a bound of one's own, and with clients in other processes.
    ///
    /// # Errors
    /// What keeps moving.
    pub async fn settle(&self, settle: Settle) -> Result<(), Unsettled> {
        self.inside.settle(&settle).await
    }

    /// Lets so much time pass on a stepped clock, from wake to wake, with a settle between: nothing sees time
    /// jump. Says how often somebody woke. Time does not stop where nobody would find anything new, and of
    /// renewals that the next one hides only the last comes, unless there is a fault that could hit them
    /// ([`Clock::step`](crate::Clock::step)).
    ///
    /// # Errors
    /// On the machine's clock; and what keeps moving.
    pub async fn pass(&self, duration: Duration) -> Result<usize, TimeError> {
        self.pass_with(duration, &Settle::new()).await
    }

    /// As [`Cluster::pass`], with a settle of one's own between the wakes: [`Settle::quiet`] waits for
    /// clients in other processes. That costs real time after those wakes alone at which something happened.
    ///
    /// # Errors
    /// As [`Cluster::pass`].
    pub async fn pass_with(&self, duration: Duration, settle: &Settle) -> Result<usize, TimeError> {
        self.inside.pass(duration, settle).await
    }

    /// Waits until a condition is true, for at most so much of the cluster's time; on a stepped clock that
    /// passes meanwhile.
    ///
    /// # Errors
    /// When it does not come true, and who would wake next; what keeps moving.
    pub async fn until(&self, condition: &WaitFor, within: Duration) -> Result<(), TimeError> {
        self.until_with(condition, within, &Settle::new()).await
    }

    /// As [`Cluster::until`], with a settle of one's own between the wakes; see [`Cluster::pass_with`].
    ///
    /// # Errors
    /// As [`Cluster::until`].
    pub async fn until_with(
        &self,
        condition: &WaitFor,
        within: Duration,
        settle: &Settle,
    ) -> Result<(), TimeError> {
        self.inside.until(&self.inside.kit(), condition, within, settle).await
    }

    /// Runs a future to its end, and on a stepped clock lets time pass to the next wake whenever neither it
    /// nor anything else moves. For what waits for the cluster, and for nobody outside of this process.
    pub async fn while_time_passes<T>(&self, future: impl Future<Output = T>) -> T {
        time::while_time_passes(&self.inside.clock, future).await
    }
}
