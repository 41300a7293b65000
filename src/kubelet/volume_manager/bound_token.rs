//! Tokens of service accounts that pods have in their volumes, and when a kubelet asks for another one
//! (`pkg/kubelet/token`).

use chrono::TimeDelta;
use serde_json::Value;

use apimachinery::time::{self, Time};

/// So long a token is used at most, however long it is good.
const MAX_USE: TimeDelta = TimeDelta::hours(24);

/// `BoundToken` is bound to its pod, and used for four fifths of its life.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BoundToken {
    /// What stands in the file.
    pub text: String,
    /// From when on another one is asked for; never, where nobody says how long it is good.
    stale_after: Option<Time>,
}

impl BoundToken {
    /// The one that a TokenRequest was answered with.
    pub fn of(answer: &Value) -> BoundToken {
        let text = answer["status"]["token"].as_str().unwrap_or_default().to_owned();
        let expires = answer["status"]["expirationTimestamp"].as_str().and_then(time::parse);
        let life = answer["spec"]["expirationSeconds"].as_i64();
        let stale_after = expires.zip(life).map(|(expires, life)| {
            let last_fifth = expires - TimeDelta::seconds(life * 20 / 100);
            last_fifth.min(expires - TimeDelta::seconds(life) + MAX_USE)
        });
        BoundToken { text, stale_after }
    }

    /// Whether it is time for another one (`requiresRefresh`). Upstream draws up to ten seconds by which that
    /// is earlier, so that not all kubelets ask at once.
    pub(crate) fn is_stale(&self, now: Time) -> bool {
        self.stale_after.is_some_and(|after| now > after)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn token(life: i64) -> BoundToken {
        let expires = time::rfc3339(Time::UNIX_EPOCH + TimeDelta::seconds(life));
        BoundToken::of(&json!({"spec": {"expirationSeconds": life},
            "status": {"token": "t", "expirationTimestamp": expires}}))
    }

    #[test]
    fn a_token_is_used_for_four_fifths_of_its_life_and_for_a_day_at_most() {
        let is_stale = |life, seconds| token(life).is_stale(Time::UNIX_EPOCH + TimeDelta::seconds(seconds));
        assert!(!is_stale(600, 480));
        assert!(is_stale(600, 481));
        assert!(!is_stale(30 * 86_400, 86_400));
        assert!(is_stale(30 * 86_400, 86_401));
        assert_eq!(token(600).text, "t");
        assert!(!BoundToken::of(&json!({"status": {"token": "t"}})).is_stale(Time::MAX_UTC));
    }
}
