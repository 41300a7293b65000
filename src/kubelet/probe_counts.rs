//! How often probes were asked (`prober_probe_total`), and how long those took that passed
//! (`prober_probe_duration_seconds`).

use std::time::Duration;

use component_base::metrics::DEFAULT_BUCKETS;

/// What one probe of one run of a container has said, counted.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct ProbeCount {
    pub(crate) successful: u64,
    pub(crate) failed: u64,
    /// Those that passed and took longer than the bucket of the same number: few are asked, and of those few
    /// take long.
    slower: [u32; DEFAULT_BUCKETS.len()],
    /// How long those that passed took together, in seconds.
    seconds: f64,
}

impl ProbeCount {
    pub(crate) fn add(&mut self, is_good: bool) {
        let count = if is_good { &mut self.successful } else { &mut self.failed };
        *count = count.saturating_add(1);
    }

    /// One that passed took so long.
    pub(crate) fn took(&mut self, time: Duration) {
        let seconds = time.as_secs_f64();
        self.seconds += seconds;
        for (slower, bound) in self.slower.iter_mut().zip(DEFAULT_BUCKETS) {
            *slower += u32::from(seconds > bound);
        }
    }

    /// How many that passed took no longer than the bounds of the buckets, and all of them together.
    pub(crate) fn durations(&self) -> ([u64; DEFAULT_BUCKETS.len()], f64) {
        (self.slower.map(|slower| self.successful.saturating_sub(slower.into())), self.seconds)
    }

    pub(crate) fn and_successful(self, more: u64) -> ProbeCount {
        ProbeCount { successful: self.successful.saturating_add(more), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_took_long_is_in_few_buckets() {
        let mut count = ProbeCount::default().and_successful(3);
        [4, 30, 20_000].map(Duration::from_millis).into_iter().for_each(|time| count.took(time));
        count.add(false);
        let (buckets, seconds) = count.durations();
        assert_eq!(buckets, [1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2]);
        assert!((seconds - 20.034).abs() < 0.001, "{seconds}");
    }
}
