//! Remembers for a short time whose a token was (`token/cache`): signatures cost something, and the same
//! client comes again.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use sha2::{Digest, Sha256};

use super::union::TokenOutcome;
use crate::clock::Clock;

/// Tokens that are remembered; at the bound those that have expired go, and when none has, all.
const MAX_REMEMBERED: usize = 4096;
/// Upstream's `TokenSuccessCacheTTL`. Failures are not remembered at all.
pub const SUCCESS_TIME_TO_LIVE: Duration = Duration::from_secs(10);

/// Verified tokens, by the digest of token and audiences: the tokens themselves are nowhere.
pub struct TokenCache {
    clock: Clock,
    remembered: Mutex<HashMap<[u8; 32], (Duration, TokenOutcome)>>,
}

impl TokenCache {
    /// Empty.
    pub fn new(clock: &Clock) -> TokenCache {
        TokenCache { clock: clock.clone(), remembered: Mutex::default() }
    }

    /// What was found out about a token not long ago.
    pub fn get(&self, key: &[u8; 32]) -> Option<TokenOutcome> {
        let now = self.clock.elapsed();
        let remembered = self.lock();
        remembered.get(key).filter(|(until, _)| now < *until).map(|(_, outcome)| outcome.clone())
    }

    /// Remembers whose a token is.
    pub fn put(&self, key: [u8; 32], outcome: TokenOutcome) {
        let now = self.clock.elapsed();
        let mut remembered = self.lock();
        if remembered.len() >= MAX_REMEMBERED {
            remembered.retain(|_, (until, _)| now < *until);
        }
        if remembered.len() >= MAX_REMEMBERED {
            remembered.clear();
        }
        remembered.insert(key, (now + SUCCESS_TIME_TO_LIVE, outcome));
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<[u8; 32], (Duration, TokenOutcome)>> {
        self.remembered.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

/// Under what a token is remembered.
pub fn key(token: &str, audiences: Option<&[String]>) -> [u8; 32] {
    let mut digest = Sha256::new();
    digest.update(token);
    for audience in audiences.unwrap_or_default() {
        digest.update([0]);
        digest.update(audience);
    }
    digest.update([u8::from(audiences.is_some())]);
    digest.finalize().into()
}
