//! `Disorder`: who was woken does not always go on in the order of waking. Drawn from a seed, so that on one
//! thread the same seed makes the same order again.
//!
//! A runtime with one thread serves those who are ready one after the other, always alike. Real ones do not:
//! of two watches either may be told first, and any of the workers of a queue may be the next.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// One in so many that are woken lets others go first.
const ONE_IN: u64 = 8;
/// For so many turns at most: longer than a request takes that nobody holds up.
const MOST_TURNS: u64 = 64;
/// Weyl's step of splitmix64.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// The order of those who share a clock. At first there is none but that of waking.
#[derive(Debug, Default)]
pub(crate) struct Disorder {
    is_on: AtomicBool,
    state: AtomicU64,
}

impl Disorder {
    /// From now on it is drawn.
    pub(crate) fn begin(&self, seed: u64) {
        self.state.store(seed, Ordering::Relaxed);
        self.is_on.store(true, Ordering::Relaxed);
    }

    /// How many turns somebody who was woken lets others go first; mostly none.
    pub(crate) fn turns(&self) -> u8 {
        if !self.is_on.load(Ordering::Relaxed) {
            return 0;
        }
        let number = mixed(self.state.fetch_add(STEP, Ordering::Relaxed));
        let waits = number.is_multiple_of(ONE_IN);
        if waits { 1 + (number >> 32) as u8 % MOST_TURNS as u8 } else { 0 }
    }
}

/// The mixing step of splitmix64.
fn mixed(state: u64) -> u64 {
    let number = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_off_at_first_and_then_the_same_for_the_same_seed() {
        let drawn = |seed: u64| {
            let disorder = Disorder::default();
            assert_eq!(disorder.turns(), 0);
            disorder.begin(seed);
            (0..1000).map(|_| disorder.turns()).collect::<Vec<u8>>()
        };
        assert_eq!(drawn(7), drawn(7));
        assert_ne!(drawn(7), drawn(8));
        let waits = drawn(7).iter().filter(|turns| **turns > 0).count();
        assert!((80..200).contains(&waits), "{waits}");
        assert_eq!(drawn(7).iter().max(), Some(&64));
    }
}
