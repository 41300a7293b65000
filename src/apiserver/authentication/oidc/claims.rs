//! What any token of a provider must say of itself: for whom it is, and for how long.

use serde_json::{Map, Value};

use crate::authentication::errors::BadCredential;

/// What a token says.
pub(super) type Claims = Map<String, Value>;

/// Audience and time, in seconds since 1970. The leeway is for clocks that differ.
///
/// # Errors
/// Which of them is wrong.
pub(super) fn check(claims: &Claims, wanted: &[String], now: i64) -> Result<(), BadCredential> {
    let named: Vec<&str> = match claims.get("aud") {
        Some(Value::String(one)) => vec![one],
        Some(Value::Array(many)) => many.iter().filter_map(Value::as_str).collect(),
        _ => vec![],
    };
    if !named.iter().any(|named| wanted.iter().any(|wanted| wanted == named)) {
        let wanted: Vec<&str> = wanted.iter().map(String::as_str).collect();
        let (wanted, named) = (quoted(&wanted), quoted(&named));
        return Err(format!("oidc: expected audience in {wanted} got {named}").into());
    }
    let seconds = |claim: &str| claims.get(claim).and_then(Value::as_f64);
    #[expect(clippy::cast_precision_loss, reason = "seconds fit for millions of years")]
    let now = now as f64;
    if seconds("exp").is_none_or(|end| end < now) {
        return Err("oidc: token is expired".into());
    }
    if seconds("nbf").is_some_and(|start| start > now + 300.0) {
        Err("oidc: current time is before the nbf (not before) time".into())
    } else {
        Ok(())
    }
}

/// As Go's `%q` shows a list.
fn quoted(list: &[&str]) -> String {
    let quoted: Vec<String> = list.iter().map(|item| format!("{item:?}")).collect();
    format!("[{}]", quoted.join(" "))
}
