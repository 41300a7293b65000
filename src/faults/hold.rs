//! `HeldComponents`: which components stand still because of faults, and of how many. One that did not run
//! when the first came is not started when the last has gone.

use std::collections::BTreeMap;

use super::switch::ComponentSwitch;
use sync::Mutex;

/// By name, by how many faults each is held. Bound: one entry for each component.
#[derive(Default)]
pub(super) struct HeldComponents(Mutex<BTreeMap<String, usize>>);

/// What one fault has done to its component.
#[derive(Default)]
pub(super) struct Hold(Mutex<HoldState>);

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum HoldState {
    #[default]
    NotYet,
    /// It was found standing still, by no fault.
    Nothing,
    Held,
    /// It was let go, and is not stopped again.
    Over,
}

/// Why a component was not stopped.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct CannotHold(pub(super) String);

impl HeldComponents {
    /// Stops a component on behalf of one fault, once.
    pub(super) fn take(
        &self,
        hold: &Hold,
        components: &dyn ComponentSwitch,
        name: &str,
    ) -> Result<(), CannotHold> {
        let mut state = hold.0.lock();
        if *state != HoldState::NotYet {
            return Ok(());
        }
        let mut held = self.0.lock();
        let ran = components.stop(name).map_err(CannotHold)?;
        let of_faults = held.get(name).copied().unwrap_or_default();
        *state = HoldState::Nothing;
        if ran || of_faults > 0 {
            held.insert(name.to_owned(), of_faults + 1);
            *state = HoldState::Held;
        }
        Ok(())
    }

    /// The fault is over: the component starts, if it ran before, and no other fault holds it.
    pub(super) fn release(&self, hold: &Hold, components: &dyn ComponentSwitch, name: &str) {
        let before = std::mem::replace(&mut *hold.0.lock(), HoldState::Over);
        if before != HoldState::Held {
            return;
        }
        let mut held = self.0.lock();
        let left = held.get(name).copied().unwrap_or_default().saturating_sub(1);
        if left > 0 {
            held.insert(name.to_owned(), left);
            return;
        }
        held.remove(name);
        components.start(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Fault, FaultRefusal, Faults};
    use chrono::DateTime;
    use clock::Clock;
    use entropy::Entropy;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Duration;

    /// Has one component.
    struct OneSwitch(AtomicBool);

    impl ComponentSwitch for OneSwitch {
        fn check(&self, name: &str) -> Result<(), String> {
            if name == "one" { Ok(()) } else { Err(format!("no component is named {name:?}")) }
        }

        fn stop(&self, name: &str) -> Result<bool, String> {
            self.check(name)?;
            Ok(self.0.swap(false, Ordering::SeqCst))
        }

        fn start(&self, _: &str) {
            self.0.store(true, Ordering::SeqCst);
        }

        fn end_cut_watches(&self) {}

        fn revision(&self) -> u64 {
            0
        }

        fn compact_revision(&self) -> u64 {
            0
        }
    }

    fn faults(runs: bool) -> (Faults, Arc<OneSwitch>, Clock) {
        let clock = Clock::stepped(DateTime::UNIX_EPOCH);
        let one = Arc::new(OneSwitch(AtomicBool::new(runs)));
        let faults = Faults::new(clock.clone(), Entropy::seeded(1));
        faults.know(&(one.clone() as Arc<dyn ComponentSwitch>));
        (faults, one, clock)
    }

    const MINUTE: Duration = Duration::from_secs(60);

    async fn pass(clock: &Clock, duration: Duration) {
        clock.work().idle().await;
        clock.advance(duration);
        clock.work().idle().await;
    }

    #[tokio::test]
    async fn what_never_ran_is_not_started() {
        let (faults, one, clock) = faults(false);
        faults.add(Fault::stop("one").lasting(MINUTE)).unwrap();
        pass(&clock, MINUTE).await;
        faults.clear();
        assert!(!one.0.load(Ordering::SeqCst));
    }

    #[tokio::test]
    async fn a_fault_whose_time_has_not_come_starts_nothing() {
        let (faults, one, clock) = faults(true);
        faults.add(Fault::stop("one").after(MINUTE).named("later")).unwrap();
        clock.work().idle().await;
        one.stop("one").unwrap();
        faults.remove("later").unwrap();
        assert!(!one.0.load(Ordering::SeqCst));
    }

    #[tokio::test]
    async fn it_starts_when_the_last_fault_has_let_it_go() {
        let (faults, one, clock) = faults(true);
        faults.add(Fault::stop("one").lasting(MINUTE)).unwrap();
        faults.add(Fault::stop("one").named("longer")).unwrap();
        pass(&clock, MINUTE).await;
        assert!(!one.0.load(Ordering::SeqCst));
        faults.remove("longer").unwrap();
        assert!(one.0.load(Ordering::SeqCst));
        one.stop("one").unwrap();
        faults.clear();
        assert!(!one.0.load(Ordering::SeqCst), "a fault lets it go once");
    }

    #[tokio::test]
    async fn a_name_is_checked_before_its_time_comes() {
        let (faults, _one, _) = faults(true);
        let refused = faults.add(Fault::stop("two").after(MINUTE)).unwrap_err();
        assert_eq!(refused, FaultRefusal::Component("no component is named \"two\"".into()));
        assert!(faults.list().is_empty());
    }
}
