//! `EventPatience`: asks again when nobody could be asked, so that what happens while the apiserver is away
//! is told later (`tools/record`, `recordToSink`).

use std::time::Duration;

use apimachinery::status::Status;
use clock::Clock;
use entropy::Entropy;

/// So often a request is made at most; then the event is dropped (`maxTriesPerEvent`).
pub(super) const MAX_TRIES: usize = 12;
/// The pause between two (`defaultSleepDuration`).
const PAUSE: Duration = Duration::from_secs(10);

/// When, and how often, an event's request is made again.
pub(super) struct EventPatience {
    clock: Clock,
    entropy: Entropy,
}

/// What came of it.
pub(super) struct Asked<T> {
    pub(super) answer: Result<T, Status>,
    /// It was made more than once: an earlier one was perhaps done.
    pub(super) is_repeated: bool,
}

impl EventPatience {
    pub(super) fn new(clock: Clock, entropy: Entropy) -> EventPatience {
        EventPatience { clock, entropy }
    }

    /// Makes a request until it is answered, by whatever.
    pub(super) async fn ask<T, F: Future<Output = Result<T, Status>>>(
        &self,
        request: impl Fn() -> F,
    ) -> Asked<T> {
        let mut tries = 0;
        loop {
            let answer = request().await;
            tries += 1;
            match answer {
                Err(status) if status.is_unreachable() && tries < MAX_TRIES => {
                    tracing::debug!(%status, "unable to write an event (may retry after sleeping)");
                    self.clock.sleep(self.pause(tries)).await;
                }
                answer => return Asked { answer, is_repeated: tries > 1 },
            }
        }
    }

    /// The first is drawn, so that not all come back at one moment.
    fn pause(&self, tries: usize) -> Duration {
        let millis = u64::try_from(self.entropy.below(10_000)).unwrap_or_default();
        if tries == 1 { Duration::from_millis(millis) } else { PAUSE }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::event_recorder::tests::{Recording, pod};
    use apis::core::event::EVENTS;

    /// Lets time pass until so many requests were made; says how long that took.
    async fn pass(recording: &Recording, count: usize) -> Duration {
        let start = recording.clock.elapsed();
        loop {
            for _ in 0..50 {
                tokio::task::yield_now().await;
            }
            if recording.api.requests().len() >= count {
                return recording.clock.elapsed() - start;
            }
            recording.clock.advance(recording.clock.next_wake().expect("nobody tries again"));
        }
    }

    #[tokio::test]
    async fn while_nobody_can_be_asked_events_wait_and_none_is_lost_or_doubled() {
        let (recording, broadcaster) = Recording::new();
        broadcaster.start(&recording.tasks);
        recording.api.fail_with(vec![Status::unreachable("away"); 3]);
        recording.recorder.event(pod("a"), "Normal", "First", "1");
        recording.recorder.event(pod("b"), "Normal", "Second", "2");
        let took = pass(&recording, 5).await;
        let ten = Duration::from_secs(10);
        assert!((2 * ten..=3 * ten).contains(&took), "the first pause is shorter: {took:?}");
        let names: Vec<String> =
            recording.api.objects().iter().map(|object| object.to_value()["reason"].to_string()).collect();
        assert_eq!(names, ["\"First\"", "\"Second\""]);
        // What was done, though nobody heard it, is not done again under another name.
        recording.api.fail_with(vec![
            Status::already_exists(&EVENTS.group_resource(), "a"),
            Status::unreachable("it broke off"),
        ]);
        recording.recorder.event(pod("a"), "Normal", "Third", "3");
        pass(&recording, 8).await;
        assert!(recording.api.requests()[7].starts_with("GET "), "{:?}", recording.api.requests());
        recording.tasks.stop_and_wait().await;
    }

    #[tokio::test]
    async fn an_event_is_given_up_after_so_many_tries() {
        let (recording, broadcaster) = Recording::new();
        broadcaster.start(&recording.tasks);
        recording.api.fail_with(vec![Status::unreachable("away"); MAX_TRIES]);
        recording.recorder.event(pod("a"), "Normal", "First", "1");
        recording.recorder.event(pod("b"), "Normal", "Second", "2");
        pass(&recording, MAX_TRIES + 1).await;
        let objects = recording.api.objects();
        assert_eq!((objects.len(), &objects[0].to_value()["reason"]), (1, &json!("Second")));
        recording.tasks.stop_and_wait().await;
    }
}
