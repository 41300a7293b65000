//! Pulses: who does something again and again that nobody waits for, not even time.

use std::time::Duration;

use super::stepped::Manner;
use super::{Clock, TimeSource};

/// No two are nearer of the machine's time, however fast a clock goes: what nobody waits for costs little.
const PULSE_PAUSE: Duration = Duration::from_millis(100);

impl Clock {
    /// As [`Clock::sleep`], of whoever says again and again that something is there, to those alone who look
    /// at it: a stepped clock never stops for that, not even while [`Clock::exact`] is held, and nobody is
    /// told that it is next. They come at the end of each time that passes: whoever looks then finds it
    /// fresh, unless the end came early. On the machine's clock nothing is at work meanwhile, however short
    /// it is, and on one that goes faster they are at least 100 ms of the machine's time apart.
    pub async fn pulse(&self, pause: Duration) {
        match &self.source {
            TimeSource::Real { faster, .. } => {
                self.wait(pause.max(PULSE_PAUSE.saturating_mul(*faster)), &mut None).await;
            }
            TimeSource::Stepped(stepped) => {
                stepped.sleep_until(&self.name, Manner::Pulse, |now| now.saturating_add(pause)).await;
            }
        }
    }

    /// The last [`Clock::note_change`] was for something that is of use to nobody who waits by
    /// [`Clock::look_until`], as the time of a renewal is.
    pub fn overlook_change(&self) {
        if let TimeSource::Stepped(stepped) = &self.source {
            stepped.overlook_change();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use chrono::DateTime;
    use sync::Mutex;

    use super::*;
    use crate::SOON;

    const SECOND: Duration = Duration::from_secs(1);

    /// When, in seconds, and who.
    type PulseDiary = Arc<Mutex<Vec<(u64, &'static str)>>>;

    /// One who pulses every two seconds and writes each time, one who looks every 7, and one whom time stops
    /// for every 60: what each has noted, in seconds.
    fn inhabited() -> (Clock, PulseDiary) {
        let (clock, diary) = (Clock::stepped(DateTime::UNIX_EPOCH), PulseDiary::default());
        for who in ["pulse", "look", "due"] {
            let (own, notes) = (clock.named(who), diary.clone());
            clock.spawn(async move {
                loop {
                    match who {
                        "pulse" => own.pulse(2 * SECOND).await,
                        "look" => own.look_after(7 * SECOND).await,
                        _ => own.sleep(60 * SECOND).await,
                    }
                    notes.lock().push((own.elapsed().as_secs(), who));
                    if who == "pulse" {
                        own.note_change();
                        own.overlook_change();
                    }
                }
            });
        }
        (clock, diary)
    }

    async fn pass(clock: &Clock, duration: Duration) -> usize {
        let (end, mut steps) = (clock.elapsed() + duration, 1);
        clock.work().idle().await;
        while clock.step(end.saturating_sub(clock.elapsed())) {
            clock.work().idle().await;
            steps += 1;
        }
        clock.work().idle().await;
        steps
    }

    #[tokio::test]
    async fn time_never_stops_for_a_pulse_which_comes_when_it_stands() {
        let (clock, diary) = inhabited();
        assert_eq!(pass(&clock, 150 * SECOND).await, 3);
        let times = |who| diary.lock().iter().filter(|(_, it)| *it == who).map(|it| it.0).collect::<Vec<_>>();
        assert_eq!((times("due"), times("pulse")), (vec![60, 120], vec![150]));
        assert_eq!(times("look"), [60, 120, 150], "what a pulse writes is no change");
        let next = clock.next_waker().unwrap();
        assert_eq!((next.after, &*next.who[0]), (7 * SECOND, "look"), "it is not who is next");
        diary.lock().clear();
        let exact = clock.exact();
        pass(&clock, 60 * SECOND).await;
        assert_eq!((times("pulse").len(), times("look").len()), (1, 8), "nor where every time is to come");
        drop(exact);
        // Moved at once, it comes once.
        diary.lock().clear();
        clock.advance(3600 * SECOND);
        clock.work().idle().await;
        assert_eq!(times("pulse").len(), 1);
    }

    #[tokio::test]
    async fn where_nothing_was_noted_there_is_nothing_to_overlook() {
        let (clock, diary) = inhabited();
        clock.work().idle().await;
        clock.overlook_change();
        clock.note_change();
        pass(&clock, 20 * SECOND).await;
        assert_eq!(diary.lock()[0], (7, "look"));
    }

    #[tokio::test]
    async fn on_the_machines_clock_it_is_no_work_however_short_it_is() {
        let clock = Clock::real();
        let mut pulse = std::pin::pin!(clock.pulse(SOON));
        assert!(futures::poll!(&mut pulse).is_pending());
        assert_eq!(clock.work().count(), 0);
        let mut sleep = std::pin::pin!(clock.sleep(SOON));
        assert!(futures::poll!(&mut sleep).is_pending());
        assert_eq!(clock.work().count(), 1);
    }
}
