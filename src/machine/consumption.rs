//! What a process uses of the machine because somebody has told it to.

use std::collections::BTreeMap;
use std::time::Duration;

/// So many of them are remembered of one process; a further one is refused.
pub const MAX_SPANS: usize = 1000;
/// So long after its end one still counts by itself, since what was used is measured over a while.
const REMEMBERED: Duration = Duration::from_secs(120);

/// Metrics that a process was told to raise: by how much, each until when. Bound: [`MAX_SPANS`] of all of
/// them.
pub type BumpedMetrics = BTreeMap<String, Vec<(f64, Duration)>>;

/// What is used from one time to another, both since the process began.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ConsumedSpan {
    /// When that begins.
    pub begins: Duration,
    /// When it is over.
    pub ends: Duration,
    /// How many processors.
    pub cores: f64,
    /// How much memory.
    pub bytes: f64,
}

/// All of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Consumption {
    /// Bound: [`MAX_SPANS`].
    spans: Vec<ConsumedSpan>,
    /// What those used that are long over.
    past_core_seconds: f64,
    /// Until when that was.
    past_until: Duration,
}

impl Consumption {
    /// Whether there was room.
    pub fn add(&mut self, span: ConsumedSpan) -> bool {
        let now = span.begins;
        let is_past = |own: &ConsumedSpan| own.ends + REMEMBERED < now;
        let (past, kept): (Vec<_>, Vec<_>) = self.spans.drain(..).partition(is_past);
        for own in past {
            self.past_core_seconds += own.cores * (own.ends - own.begins).as_secs_f64();
            self.past_until = self.past_until.max(own.ends);
        }
        self.spans = kept;
        let has_room = self.spans.len() < MAX_SPANS;
        self.spans.extend(has_room.then_some(span));
        has_room
    }

    /// The processors' time that was used between two times, in seconds.
    pub fn core_seconds(&self, from: f64, until: f64) -> f64 {
        let of_one = |span: &ConsumedSpan| {
            let (begins, ends) = (span.begins.as_secs_f64().max(from), span.ends.as_secs_f64().min(until));
            (ends - begins).max(0.0) * span.cores
        };
        let past = if from < self.past_until.as_secs_f64() { self.past_core_seconds } else { 0.0 };
        past + self.spans.iter().map(of_one).sum::<f64>()
    }

    /// The memory that is used at a time.
    pub fn bytes(&self, at: f64) -> f64 {
        let is_used = |span: &&ConsumedSpan| span.begins.as_secs_f64() <= at && at < span.ends.as_secs_f64();
        self.spans.iter().filter(is_used).map(|span| span.bytes).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(begins: u64, ends: u64, cores: f64, bytes: f64) -> ConsumedSpan {
        ConsumedSpan { begins: Duration::from_secs(begins), ends: Duration::from_secs(ends), cores, bytes }
    }

    #[test]
    fn what_overlaps_is_added() {
        let mut consumption = Consumption::default();
        assert!(consumption.add(span(10, 20, 0.5, 0.0)) && consumption.add(span(15, 30, 1.0, 100.0)));
        assert_eq!(consumption.core_seconds(0.0, 100.0), 20.0);
        assert_eq!(consumption.core_seconds(15.0, 20.0), 7.5);
        assert_eq!([14.0, 15.0, 29.0, 30.0].map(|at| consumption.bytes(at)), [0.0, 100.0, 100.0, 0.0]);
        assert!(consumption.add(span(1000, 1010, 1.0, 0.0)));
        assert_eq!((consumption.spans.len(), consumption.core_seconds(0.0, 1100.0)), (1, 30.0));
        assert_eq!(consumption.core_seconds(1000.0, 1010.0), 10.0);
    }

    #[test]
    fn no_more_is_remembered_than_there_is_room_for() {
        let mut consumption = Consumption::default();
        assert!((0..MAX_SPANS).all(|_| consumption.add(span(0, 10, 1.0, 1.0))));
        assert!(!consumption.add(span(0, 10, 1.0, 1.0)));
        assert_eq!(consumption.spans.len(), MAX_SPANS);
        assert!(consumption.add(span(1000, 1010, 1.0, 1.0)));
    }
}
