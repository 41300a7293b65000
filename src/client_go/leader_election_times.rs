//! `LeaderElectionTimes`: how long a Lease lasts, and how often it is renewed.

use std::time::Duration;

/// By so much of the pause longer whoever waits for the Lease may wait at random (`JitterFactor`).
pub(super) const JITTER_FACTOR: f64 = 1.2;

/// How long everything takes; the default is upstream's (`config/v1alpha1`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaderElectionTimes {
    /// After so long without a word of its holder a Lease may be taken.
    pub lease_duration: Duration,
    /// A holder that cannot renew it for so long gives it up.
    pub renew_deadline: Duration,
    /// The pause between two attempts.
    pub retry_period: Duration,
}

impl Default for LeaderElectionTimes {
    fn default() -> LeaderElectionTimes {
        LeaderElectionTimes {
            lease_duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry_period: Duration::from_secs(2),
        }
    }
}

/// Times by which two could lead at once, in upstream's words (`NewLeaderElector`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ElectionTimesError(&'static str);

impl LeaderElectionTimes {
    /// Whether a holder gives up before others take over.
    ///
    /// # Errors
    /// Which of the times is wrong.
    pub fn check(&self) -> Result<(), ElectionTimesError> {
        if self.lease_duration.as_secs() == 0 {
            return Err(ElectionTimesError("leaseDuration must be greater than zero, in whole seconds"));
        }
        if self.lease_duration <= self.renew_deadline {
            return Err(ElectionTimesError("leaseDuration must be greater than renewDeadline"));
        }
        if self.renew_deadline <= self.retry_period.mul_f64(JITTER_FACTOR) {
            return Err(ElectionTimesError("renewDeadline must be greater than retryPeriod*JitterFactor"));
        }
        if self.retry_period.is_zero() {
            return Err(ElectionTimesError("retryPeriod must be greater than zero"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_that_let_two_lead_are_refused() {
        let with = |change: fn(&mut LeaderElectionTimes)| {
            let mut changed = LeaderElectionTimes::default();
            change(&mut changed);
            changed.check()
        };
        assert_eq!(with(|_| ()), Ok(()));
        let why = with(|times| times.renew_deadline = times.lease_duration).unwrap_err();
        assert_eq!(why.0, "leaseDuration must be greater than renewDeadline");
        let why = with(|times| times.retry_period = times.renew_deadline).unwrap_err();
        assert_eq!(why.0, "renewDeadline must be greater than retryPeriod*JitterFactor");
        assert!(with(|times| times.retry_period = Duration::ZERO).is_err());
        assert!(with(|times| times.lease_duration = Duration::from_millis(900)).is_err());
    }
}
