//! Remembers for a short time whose a token was (`token/cache`): signatures cost something, and the same
//! client comes again.

use std::time::Duration;

use sha2::{Digest, Sha256};

use super::outcome::TokenOutcome;
use crate::webhook::Answers;
use clock::Clock;

/// Tokens that are remembered.
const MAX_REMEMBERED: usize = 4096;
/// Upstream's `TokenSuccessCacheTTL`. Failures are not remembered at all.
pub const SUCCESS_TIME_TO_LIVE: Duration = Duration::from_secs(10);

/// Verified tokens, by the digest of token and audiences: the tokens themselves are nowhere.
pub struct TokenCache(Answers<[u8; 32], TokenOutcome>);

impl TokenCache {
    /// A cache that is empty.
    pub fn new(clock: &Clock) -> TokenCache {
        TokenCache(Answers::new(clock, MAX_REMEMBERED))
    }

    /// What was found out about a token not long ago.
    pub fn get(&self, key: &[u8; 32]) -> Option<TokenOutcome> {
        self.0.get(key)
    }

    /// Remembers whose a token is.
    pub fn put(&self, key: [u8; 32], outcome: TokenOutcome) {
        self.0.put(key, outcome, SUCCESS_TIME_TO_LIVE);
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
