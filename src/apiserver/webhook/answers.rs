//! Answers that count for a while (`util/cache.Expiring`): what was said of the same not long ago.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;
use std::time::Duration;

use clock::Clock;
use sync::{Mutex, MutexGuard};

/// Remembers what somebody said. At its bound those answers go that are over, and when none is, all.
pub struct Answers<K, V> {
    clock: Clock,
    bound: usize,
    /// With the time on the clock until which they count.
    remembered: Mutex<HashMap<K, (Duration, V)>>,
}

impl<K: Eq + Hash, V: Clone> Answers<K, V> {
    /// Remembers `bound` answers.
    pub fn new(clock: &Clock, bound: usize) -> Answers<K, V> {
        Answers { clock: clock.clone(), bound, remembered: Mutex::default() }
    }

    /// What was said, if it still counts.
    pub fn get<Q: Eq + Hash + ?Sized>(&self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        let now = self.clock.elapsed();
        self.lock().get(key).filter(|(until, _)| now < *until).map(|(_, answer)| answer.clone())
    }

    /// Remembers what was said, from now on for `time_to_live`.
    pub fn put(&self, key: K, answer: V, time_to_live: Duration) {
        if time_to_live.is_zero() {
            return;
        }
        let now = self.clock.elapsed();
        let mut remembered = self.lock();
        if remembered.len() >= self.bound {
            remembered.retain(|_, (until, _)| now < *until);
        }
        if remembered.len() >= self.bound {
            remembered.clear();
        }
        remembered.insert(key, (now + time_to_live, answer));
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<K, (Duration, V)>> {
        self.remembered.lock()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn answers_count_for_a_while_and_are_bounded() {
        let clock = Clock::stepped(chrono::DateTime::UNIX_EPOCH);
        let answers: Answers<String, u32> = Answers::new(&clock, 2);
        let second = Duration::from_secs(1);
        answers.put("a".into(), 1, second);
        answers.put("b".into(), 2, 10 * second);
        answers.put("never".into(), 3, Duration::ZERO);
        assert_eq!((answers.get("a"), answers.get("b"), answers.get("never")), (Some(1), Some(2), None));
        clock.advance(second);
        assert_eq!((answers.get("a"), answers.get("b")), (None, Some(2)));
        answers.put("c".into(), 4, second);
        assert_eq!((answers.get("b"), answers.get("c")), (Some(2), Some(4)), "the one that is over went");
        answers.put("d".into(), 5, second);
        assert_eq!((answers.get("b"), answers.get("c"), answers.get("d")), (None, None, Some(5)));
    }
}
