//! agnhost's `test-service-account-issuer-discovery`: it checks a token as somebody outside would, by what
//! the token's issuer publishes.

use std::net::SocketAddr;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::jwk::JwkSet;
use jsonwebtoken::{Algorithm, DecodingKey, Validation};
use serde_json::Value;

use super::flags::flag;
use super::{in_cluster, klog_line};
use crate::interpreter::player::{AfterCommand, Player};
use crate::programs::resolve;
use crate::questions::NetworkReply;
use crate::url::WebUrl;

/// Where an issuer says what it is.
const DISCOVERY: &str = "/.well-known/openid-configuration";
/// What the real one takes.
const ALGORITHMS: [Algorithm; 2] = [Algorithm::RS256, Algorithm::ES256];

/// Why a token is not believed, or how the play goes on.
enum TokenDoubt {
    Why(String),
    Play(AfterCommand),
}

impl From<AfterCommand> for TokenDoubt {
    fn from(flow: AfterCommand) -> TokenDoubt {
        TokenDoubt::Play(flow)
    }
}

pub(super) fn run(player: &mut Player<'_>, arguments: &[String]) -> AfterCommand {
    let path = flag(arguments, "token-path").unwrap_or_default();
    let Some(token) = player.file(path).map(|file| file.text()) else {
        return klog_line::fatal(player, format!("open {path}: no such file or directory"));
    };
    klog_line::say(player, "OK: Got token");
    klog_line::say(player, "validating with in-cluster discovery");
    if in_cluster::question(player, "/").is_none() {
        return klog_line::fatal(player, in_cluster::WHY_NONE);
    }
    let Some(claims) = unverified(&token) else {
        return klog_line::fatal(player, "go-jose/go-jose: compact JWS format must have three parts");
    };
    match validate(player, (&token, &claims), flag(arguments, "audience").unwrap_or_default()) {
        Ok(()) => AfterCommand::Exit(0),
        Err(TokenDoubt::Play(flow)) => flow,
        Err(TokenDoubt::Why(why)) => {
            klog_line::say(player, format!("failed to validate with in-cluster discovery: {why}"));
            // Nobody outside is reached, and nobody there vouches for anybody here.
            klog_line::say(player, "falling back to validating with external discovery");
            klog_line::fatal(player, why)
        }
    }
}

fn unverified(token: &str) -> Option<Value> {
    let mut parts = token.trim().split('.');
    let (_, payload, _) = (parts.next()?, parts.next()?, parts.next()?);
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(payload).ok()?).ok()
}

fn validate(
    player: &mut Player<'_>,
    (token, claims): (&str, &Value),
    audience: &str,
) -> Result<(), TokenDoubt> {
    let issuer = claims["iss"].as_str().unwrap_or_default();
    klog_line::say(player, format!("OK: got issuer {issuer}"));
    klog_line::say(player, format!("Full, not-validated claims: \n{claims}"));
    let document = discover(player, issuer)?;
    if document["issuer"] != *issuer {
        let got = document["issuer"].as_str().unwrap_or_default();
        let why = "oidc: issuer did not match the issuer returned by provider";
        return Err(TokenDoubt::Why(format!("{why}, expected {issuer:?} got {got:?}")));
    }
    klog_line::say(player, format!("OK: Constructed OIDC provider for issuer {issuer}"));
    check_claims(claims, audience, player.now().timestamp())?;
    let keys = document["jwks_uri"].as_str().unwrap_or_default();
    check_signature(token.trim(), &keys_at(player, keys)?)?;
    klog_line::say(player, "OK: Validated signature on JWT");
    klog_line::say(player, "OK: Got valid claims from token!");
    klog_line::say(player, format!("Full, validated claims: \n{claims}"));
    Ok(())
}

/// What an issuer says of itself.
fn discover(player: &mut Player<'_>, issuer: &str) -> Result<Value, TokenDoubt> {
    let url = format!("{}{DISCOVERY}", issuer.trim_end_matches('/'));
    let wrong = |why: String| TokenDoubt::Why(format!("Get {url:?}: {why}"));
    let parsed = WebUrl::parse(&url).map_err(|_| wrong("unsupported protocol scheme \"\"".into()))?;
    let host = parsed.host.trim_start_matches('[').trim_end_matches(']');
    let Some(address) = resolve(player, host)? else {
        return Err(wrong(format!("dial tcp: lookup {host}: no such host")));
    };
    let to = (SocketAddr::new(address, parsed.port), host);
    let question = in_cluster::to(player, to, &parsed.target).ok_or_else(|| wrong("EOF".into()))?;
    let reply = player.ask(question)?;
    read(reply).map_err(wrong)
}

/// The keys of an issuer. Whatever address the apiserver gives for them is its own.
fn keys_at(player: &mut Player<'_>, uri: &str) -> Result<JwkSet, TokenDoubt> {
    let wrong = |why: String| TokenDoubt::Why(format!("fetching keys oidc: get keys failed {uri:?}: {why}"));
    let parsed = WebUrl::parse(uri).map_err(|_| wrong("it is no address".into()))?;
    let question = in_cluster::question(player, &parsed.target).ok_or_else(|| wrong("EOF".into()))?;
    let reply = player.ask(question)?;
    let keys = read(reply).map_err(wrong)?;
    serde_json::from_value(keys).map_err(|error| wrong(error.to_string()))
}

fn read(reply: NetworkReply) -> Result<Value, String> {
    match reply {
        NetworkReply::Web(web) if web.code == 200 => {
            serde_json::from_slice(&web.body).map_err(|error| error.to_string())
        }
        NetworkReply::Web(web) => Err(format!("{}: {}", web.code, String::from_utf8_lossy(&web.body))),
        NetworkReply::Untrusted => Err("x509: certificate signed by unknown authority".to_owned()),
        NetworkReply::Refused => Err("connect: connection refused".to_owned()),
        NetworkReply::TimedOut(_) => Err("i/o timeout".to_owned()),
        _ => Err("EOF".to_owned()),
    }
}

fn check_claims(claims: &Value, audience: &str, now: i64) -> Result<(), TokenDoubt> {
    let found: Vec<&str> = match &claims["aud"] {
        Value::Array(all) => all.iter().filter_map(Value::as_str).collect(),
        one => one.as_str().into_iter().collect(),
    };
    if !found.contains(&audience) {
        return Err(TokenDoubt::Why(format!("oidc: expected audience {audience:?} got {found:?}")));
    }
    match claims["exp"].as_i64() {
        Some(end) if end > now => Ok(()),
        _ => Err(TokenDoubt::Why("oidc: token is expired".to_owned())),
    }
}

fn check_signature(token: &str, keys: &JwkSet) -> Result<(), TokenDoubt> {
    let is_signed = |algorithm: Algorithm, key: &DecodingKey| {
        let mut validation = Validation::new(algorithm);
        validation.required_spec_claims.clear();
        (validation.validate_exp, validation.validate_nbf, validation.validate_aud) = (false, false, false);
        jsonwebtoken::decode::<Value>(token, key, &validation).is_ok()
    };
    let keys = keys.keys.iter().filter_map(|key| DecodingKey::from_jwk(key).ok());
    let mut tries = keys.flat_map(|key| ALGORITHMS.map(|algorithm| (algorithm, key.clone())));
    if tries.any(|(algorithm, key)| is_signed(algorithm, &key)) {
        return Ok(());
    }
    Err(TokenDoubt::Why("failed to verify signature: failed to verify id token signature".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn who_else_it_is_for_and_how_long_is_looked_at() {
        let claims = json!({"aud": ["a", "b"], "exp": 100});
        let why = |audience: &str, now: i64| match check_claims(&claims, audience, now) {
            Err(TokenDoubt::Why(why)) => why,
            _ => String::new(),
        };
        assert_eq!(why("b", 99), "");
        assert_eq!(why("c", 99), "oidc: expected audience \"c\" got [\"a\", \"b\"]");
        assert_eq!(why("a", 100), "oidc: token is expired");
        assert!(check_signature("a.b.c", &JwkSet { keys: vec![] }).is_err());
    }
}
