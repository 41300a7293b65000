//! What comes later on purpose, and what is under way until then.

use std::time::Duration;

use clock::{Clock, SOON};

/// Waits. On the machine's clock what a fault holds up is under way, and nothing has settled before it has
/// come: it waits bit by bit, each of which is. A stepped one would never be stepped for it: there it waits
/// for its time as others do.
pub(crate) async fn hold_up(clock: &Clock, duration: Duration) {
    if clock.is_stepped() {
        return clock.sleep(duration).await;
    }
    let end = clock.elapsed().saturating_add(duration);
    let waiting = async {
        while let Some(left) = end.checked_sub(clock.elapsed()).filter(|left| !left.is_zero()) {
            clock.sleep(left.min(SOON)).await;
        }
    };
    // From one bit to the next it is awake.
    clock.tracked(waiting).await;
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;

    use super::*;

    const LONG: Duration = Duration::from_secs(3600);

    #[tokio::test]
    async fn only_what_nobody_steps_is_under_way() {
        let (real, stepped) = (Clock::real(), Clock::stepped(DateTime::UNIX_EPOCH));
        let mut on_machine = std::pin::pin!(hold_up(&real, LONG));
        let mut on_step = std::pin::pin!(hold_up(&stepped, LONG));
        assert!(futures::poll!(&mut on_machine).is_pending() && futures::poll!(&mut on_step).is_pending());
        assert!(real.work().count() > 0);
        assert_eq!((stepped.work().count(), stepped.next_wake()), (0, Some(LONG)));
        stepped.advance(LONG);
        on_step.await;
        hold_up(&real, Duration::from_millis(1)).await;
    }
}
