//! Secrets of type `bootstrap.kubernetes.io/token`: tokens with which nodes join
//! (`k8s.io/cluster-bootstrap/token`, `util/secrets`).

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use crate::tree::{at, text};
use apimachinery::time::{self, Time};

/// Where they are.
pub const NAMESPACE: &str = "kube-system";
/// Their `type`.
pub const TYPE: &str = "bootstrap.kubernetes.io/token";
/// What their names begin with; the token's id follows.
pub const NAME_PREFIX: &str = "bootstrap-token-";

/// A text of a Secret's `data`; empty when there is none.
pub fn data(secret: &Value, key: &str) -> String {
    let encoded = at(secret, "data")[key].as_str().unwrap_or_default();
    String::from_utf8(STANDARD.decode(encoded).unwrap_or_default()).unwrap_or_default()
}

/// When it ends: never, or at a time; one that cannot be read is over (`GetExpiration`).
pub fn expiration(secret: &Value) -> Option<Time> {
    let end = data(secret, "expiration");
    (!end.is_empty()).then(|| time::parse(&end).unwrap_or(Time::UNIX_EPOCH))
}

/// Whether its time is over.
pub fn is_expired(secret: &Value, now: Time) -> bool {
    expiration(secret).is_some_and(|end| end <= now)
}

/// Its id and its secret, if it may be used to sign (`validateSecretForSigning`).
pub fn signing_token(name: &str, secret: &Value, now: Time) -> Option<(String, String)> {
    let (id, value) = (data(secret, "token-id"), data(secret, "token-secret"));
    let is_usable = text(secret, "type") == TYPE
        && name.strip_prefix(NAME_PREFIX) == Some(&id)
        && id.len() == 6
        && id.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
        && !value.is_empty()
        && !is_expired(secret, now)
        && data(secret, "usage-bootstrap-signing") == "true";
    is_usable.then_some((id, value))
}
