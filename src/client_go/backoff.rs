//! How long to wait after one more failure (`k8s.io/apimachinery/pkg/util/wait`'s exponential backoff
//! manager).

use std::time::Duration;

use clock::Clock;
use entropy::Entropy;

/// Doubles from `initial` up to `longest`, adds up to `jitter` times as much again at random, and starts anew
/// when nothing has failed for `reset`.
#[derive(Debug)]
pub struct Backoff {
    clock: Clock,
    entropy: Entropy,
    initial: Duration,
    longest: Duration,
    jitter: f64,
    reset: Duration,
    next: Duration,
    last_failure: Option<Duration>,
}

impl Backoff {
    /// What client-go's reflector waits: 800 ms to 30 s, doubled at random at most, reset after two minutes.
    pub fn reflector(clock: Clock, entropy: Entropy) -> Backoff {
        Backoff::new(clock, entropy, Duration::from_millis(800), Duration::from_secs(30))
    }

    /// From `initial` to `longest`, with jitter of up to as much again, reset after two minutes.
    pub fn new(clock: Clock, entropy: Entropy, initial: Duration, longest: Duration) -> Backoff {
        let reset = Duration::from_secs(120);
        Backoff { clock, entropy, initial, longest, jitter: 1.0, reset, next: initial, last_failure: None }
    }

    /// Something failed just now: how long to wait.
    pub fn step(&mut self) -> Duration {
        let now = self.clock.elapsed();
        if self.last_failure.is_some_and(|last| now.saturating_sub(last) > self.reset) {
            self.next = self.initial;
        }
        self.last_failure = Some(now);
        let pause = self.entropy.jitter(self.next, self.jitter);
        self.next = (self.next * 2).min(self.longest);
        pause
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::DateTime;

    #[test]
    fn it_doubles_to_the_longest_and_starts_anew_after_two_quiet_minutes() {
        let clock = Clock::stepped(DateTime::UNIX_EPOCH);
        let mut backoff = Backoff::reflector(clock.clone(), Entropy::seeded(1));
        let mut expected = Duration::from_millis(800);
        for _ in 0..8 {
            let pause = backoff.step();
            assert!(pause >= expected && pause <= expected * 2, "{pause:?} for {expected:?}");
            expected = (expected * 2).min(Duration::from_secs(30));
            clock.advance(pause);
        }
        clock.advance(Duration::from_secs(121));
        assert!(backoff.step() <= Duration::from_millis(1600));
    }
}
