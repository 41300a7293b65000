//! Limits of time for what somebody outside waits for, and for components: what becomes of them while a clock
//! is stepped, or held.

use std::future::Future;
use std::time::Duration;

use super::{Clock, Elapsed, TimeSource};

impl Clock {
    /// How much of its time passes in so much of the machine's; none is known of a stepped clock.
    pub fn within_real(&self, duration: Duration) -> Option<Duration> {
        match &self.source {
            TimeSource::Real { faster, .. } => Some(duration.saturating_mul(*faster)),
            TimeSource::Stepped(_) => None,
        }
    }

    /// Runs `future` for at most `duration` of this clock, and of real time where it is another: for what
    /// somebody outside waits for, who must not wait for ever because nobody steps the clock, or because it
    /// is held.
    pub async fn timeout_for_client<F: Future>(
        &self,
        duration: Duration,
        future: F,
    ) -> Result<F::Output, Elapsed> {
        let real = match &self.source {
            TimeSource::Real { faster, .. } => duration / *faster,
            TimeSource::Stepped(_) => duration,
        };
        if !self.is_stepped() {
            return tokio::time::timeout(real, future).await.map_err(|_| Elapsed);
        }
        tokio::select! {
            biased;
            output = self.timeout(duration, future) => output,
            () = tokio::time::sleep(real) => Err(Elapsed),
        }
    }

    /// As [`Clock::timeout_for_client`], for somebody who lives by this clock: while it is held, they wait
    /// on.
    pub async fn timeout_for_component<F: Future>(
        &self,
        duration: Duration,
        future: F,
    ) -> Result<F::Output, Elapsed> {
        if !self.is_stepped() {
            return self.timeout(duration, future).await;
        }
        let mut at_work = None;
        tokio::select! {
            biased;
            output = self.timeout(duration, future) => output,
            () = self.wait_on_machine(duration, &mut at_work) => Err(Elapsed),
        }
    }

    /// Runs `future`, which waits for somebody outside, for at most `duration` of real time: a clock that
    /// somebody steps says nothing of how long others take. Until then something goes on.
    pub async fn timeout_outside<F: Future>(
        &self,
        duration: Duration,
        future: F,
    ) -> Result<F::Output, Elapsed> {
        let _busy = self.busy();
        match &self.source {
            TimeSource::Real { .. } => self.timeout_for_client(duration, future).await,
            TimeSource::Stepped(_) => tokio::time::timeout(duration, future).await.map_err(|_| Elapsed),
        }
    }

    /// Gives somebody outside so much time, by [`Clock::timeout_outside`].
    pub async fn pause_outside(&self, duration: Duration) {
        let _ = self.timeout_outside(duration, std::future::pending::<()>()).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_faster_clock_goes_further_in_as_much_real_time() {
        let second = Duration::from_secs(1);
        assert_eq!(Clock::real().within_real(second), Some(second));
        assert_eq!(Clock::faster(60).within_real(second), Some(Duration::from_secs(60)));
        assert_eq!(Clock::faster(2).within_real(Duration::MAX), Some(Duration::MAX));
        assert_eq!(Clock::stepped(chrono::DateTime::UNIX_EPOCH).within_real(second), None);
    }

    #[tokio::test]
    async fn while_a_clock_is_held_no_time_passes_and_nobody_is_at_work() {
        let clock = Clock::real();
        let mut soon = std::pin::pin!(clock.sleep(Duration::from_millis(1)));
        assert!(futures::poll!(&mut soon).is_pending());
        clock.hold();
        clock.hold();
        let (now, elapsed) = (clock.now(), clock.elapsed());
        let mut limit = std::pin::pin!(clock.timeout(Duration::from_millis(1), std::future::pending::<()>()));
        // What somebody outside waits for ends all the same.
        let outside = clock.timeout_for_client(Duration::from_millis(5), async {
            tokio::select! {
                () = &mut soon => panic!("slept through"),
                _ = &mut limit => panic!("its time was over"),
            }
        });
        assert_eq!(outside.await, Err(Elapsed));
        assert_eq!((clock.now(), clock.elapsed(), clock.is_held()), (now, elapsed, true));
        assert_eq!(clock.work().count(), 0);
        let fork = clock.fork();
        assert!(!fork.is_held() && fork.elapsed() >= elapsed);
        clock.go_on();
        soon.await;
        assert_eq!(limit.await, Err(Elapsed));
        assert!(clock.elapsed() > elapsed && !clock.is_held());
    }
}
